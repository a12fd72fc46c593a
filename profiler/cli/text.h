/* Text for a terminal: lines that fit, tables that align. */
#ifndef GV_CLI_TEXT_H
#define GV_CLI_TEXT_H

#include "profiler/cli/cli.h"

/* Columns that the command writes at most. */
#define GV_WIDTH 100

/* Prints `label` in two blanks and eleven columns, then `text` broken at blanks to fit GV_WIDTH,
 * later lines beneath its first. */
void gv_print_field(const char *label, const char *text);

/* "6.89", or "-" where it is not known; `out` holds 24 bytes. Returns `out`. */
const char *gv_number(double value, char out[24]);

/* A table whose columns are as wide as their widest cell. Cells are copied. */
struct gv_table_text {
    int columns, rows;
    bool to_the_right; /* every column, not only those of numbers */
    char (*cells)[40]; /* [rows * columns] */
    enum gv_style *styles;
    bool failed;
};
void gv_text_row(struct gv_table_text *t, const char *const *cells, enum gv_style style);
/* Prints it, each line after `indent` blanks, then frees it. A column whose cells are numbers (the
 * first row, the heading, aside) is aligned right. */
void gv_text_print(struct gv_table_text *t, int indent);
/* Frees what was never printed. */
void gv_text_free(struct gv_table_text *t);

#endif
