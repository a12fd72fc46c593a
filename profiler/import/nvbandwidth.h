/* Inside the readers of nvbandwidth: one test's matrix. */
#ifndef GV_IMPORT_NVBANDWIDTH_H
#define GV_IMPORT_NVBANDWIDTH_H

#include "profiler/import/import.h"

enum gv_nvb_figure {
    GV_NVB_NONE,
    GV_NVB_TO_DEVICE,
    GV_NVB_TO_HOST,
    GV_NVB_WRITE,
    GV_NVB_READ,
    GV_NVB_BOTH
};

struct gv_nvb_matrix {
    enum gv_nvb_figure figure;
    char title[120];
    unsigned line; /* of its title */
    int rows, columns;
    bool rounded; /* some cell has not two digits behind the point: it is cut, or not as printed */
    bool holes;   /* N/A where something was to be measured */
    double sum;   /* of all cells */
    double value[GV_MAX_GPUS][GV_MAX_GPUS]; /* NAN: N/A */
    unsigned row_line[GV_MAX_GPUS];
};

/* What a test measures; title is that of its matrix. */
enum gv_nvb_figure gv_nvb_figure_of(const char *test, const char *title);
/* Checks a matrix and adds its figures. 0, or -1 with `err`. */
int gv_nvb_take(
    const struct gv_text *t, struct gv_import_source *s, const struct gv_nvb_matrix *m,
    struct gv_error *err);

#endif
