#include "profiler/cli/text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LABEL 11

void gv_print_field(const char *label, const char *text)
{
    const int first = 2 + LABEL, room = GV_WIDTH - first;
    printf("  %s%-*s%s", gv_style(GV_DIM), LABEL, label, gv_style(GV_PLAIN));
    while (strlen(text) > (size_t)room) {
        int cut = room;
        while (cut > 0 && text[cut] != ' ')
            cut--;
        if (!cut)
            break;
        printf("%.*s\n%*s", cut, text, first, "");
        text += cut + 1;
    }
    puts(text);
}

const char *gv_number(double value, char out[24])
{
    if (isfinite(value))
        snprintf(out, 24, "%.2f", value);
    else
        snprintf(out, 24, "-");
    return out;
}

void gv_text_row(struct gv_table_text *t, const char *const *cells, enum gv_style style)
{
    size_t n = (size_t)(t->rows + 1);
    void *more = realloc(t->cells, n * (size_t)t->columns * sizeof(*t->cells));
    void *styles = realloc(t->styles, n * sizeof(*t->styles));
    if (more)
        t->cells = more;
    if (styles)
        t->styles = styles;
    if (!more || !styles) {
        t->failed = true;
        return;
    }
    for (int c = 0; c < t->columns; c++)
        snprintf(t->cells[t->rows * t->columns + c], sizeof(*t->cells), "%s", cells[c]);
    t->styles[t->rows++] = style;
}

static bool is_number(const char *cell)
{
    return !cell[strspn(cell, "0123456789.+-%")];
}

static int width_of(const struct gv_table_text *t, int column, bool *right)
{
    size_t width = 0;
    *right = true;
    for (int r = 0; r < t->rows; r++) {
        const char *cell = t->cells[r * t->columns + column];
        if (strlen(cell) > width)
            width = strlen(cell);
        if (r && !t->to_the_right && !is_number(cell))
            *right = false;
    }
    return (int)width;
}

static void
print_row(const struct gv_table_text *t, int row, int indent, const int *width, const bool *right)
{
    char line[1024];
    int len = snprintf(line, sizeof(line), "%*s", indent, "");
    for (int c = 0; c < t->columns && len < (int)sizeof(line); c++) {
        const char *cell = t->cells[row * t->columns + c];
        len += snprintf(
            line + len, sizeof(line) - (size_t)len, "%s%*s", c ? "  " : "",
            right[c] ? width[c] : -width[c], cell);
    }
    if (len >= (int)sizeof(line))
        len = (int)sizeof(line) - 1;
    while (len && line[len - 1] == ' ')
        line[--len] = '\0';
    const char *style =
        row ? t->styles[row] == GV_PLAIN ? "" : gv_style(t->styles[row]) : gv_style(GV_DIM);
    printf("%s%s%s\n", style, line, *style ? gv_style(GV_PLAIN) : "");
}

void gv_text_print(struct gv_table_text *t, int indent)
{
    int width[GV_MAX_GPUS + 4];
    bool right[GV_MAX_GPUS + 4];
    for (int c = 0; c < t->columns; c++)
        width[c] = width_of(t, c, &right[c]);
    for (int r = 0; r < t->rows && !t->failed; r++)
        print_row(t, r, indent, width, right);
    gv_text_free(t);
}

void gv_text_free(struct gv_table_text *t)
{
    free(t->cells);
    free(t->styles);
    *t = (struct gv_table_text){.columns = t->columns};
}
