/* Where the ring's picture has its GPUs, lanes and labels; inside this folder only. */
#ifndef GV_REPORT_RING_LAYOUT_H
#define GV_REPORT_RING_LAYOUT_H

#include "profiler/report/view.h"

enum gv_row_kind { GV_ROW_NODE, GV_ROW_SWITCH, GV_ROW_GPU };

/* A line of the tree, top to bottom: CPU node, PCIe switch, GPU. */
struct gv_ring_row {
    enum gv_row_kind kind;
    int gpu;            /* GPU rows: in the page's numbers */
    int indent, parent; /* parent: index of the row above it in the tree, -1 none */
    char name[48];
    double y; /* middle */
};

/* An edge: from its GPU to a lane right of the tree, along it, and back. Lanes are numbered from
 * the tree outward; edges that overlap have different ones, short edges the inner ones. */
struct gv_ring_lane {
    int lane;
    double from_y, to_y, label_y;
};

#define GV_RING_ROWS (3 * GV_MAX_GPUS)

struct gv_ring_layout {
    struct gv_ring_row row[GV_RING_ROWS];
    int nrows, nlanes;
    struct gv_ring_lane edge[GV_MAX_GPUS]; /* as ring->edge */
    double box_x, box_width, lane_x, lane_step, width, height;
};

void gv_ring_lay_out(
    const struct gv_view *view, const struct gv_compared_ring *ring, struct gv_ring_layout *out);

#endif
