/* busbw over size: what its picture and its tables share; inside this folder only. */
#ifndef GV_REPORT_BUSBW_H
#define GV_REPORT_BUSBW_H

#include "profiler/report/view.h"

/* The cases of one picture: all that differ in size alone. */
struct gv_series {
    const struct gv_view *view;
    const struct gv_case *like;
    int number;
    double low, high; /* log2 of the sizes */
    double most, step;
};

bool gv_same_series(const struct gv_case *a, const struct gv_case *b);
/* "AllReduce, float, sum". Returns `out`. */
const char *gv_series_name(const struct gv_case *what, char out[96]);

/* A table for each variant against the base; of the base alone where there is no other. */
void gv_series_tables(struct gv_html *h, const struct gv_series *s);

#endif
