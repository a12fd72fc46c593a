#include "profiler/report/ring_layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW 32.0
#define HEAD 24.0
#define LABEL 126.0
#define APART 15.0
#define CLEAR 9.0

static struct gv_ring_row *
add_row(struct gv_ring_layout *l, enum gv_row_kind kind, int parent, double height)
{
    struct gv_ring_row *row = &l->row[l->nrows++];
    *row = (struct gv_ring_row){.kind = kind, .gpu = -1, .parent = parent};
    row->indent = parent < 0 ? 0 : l->row[parent].indent + 1;
    row->y = l->height + height / 2;
    l->height += height;
    return row;
}

static void add_gpu(struct gv_ring_layout *l, int gpu, int parent)
{
    struct gv_ring_row *row = add_row(l, GV_ROW_GPU, parent, ROW);
    row->gpu = gpu;
    snprintf(row->name, sizeof(row->name), "GPU %d", gpu);
}

static bool same_island(const struct gv_profile_gpu *a, const struct gv_profile_gpu *b)
{
    return a->numa_node == b->numa_node && a->island[0] && !strcmp(a->island, b->island);
}

/* One switch and what is below it, of the GPUs that are left; takes them out of `left`. A GPU that
 * shares its switch with no other hangs from the CPU node. */
static void
add_island(const struct gv_view *view, struct gv_ring_layout *l, gv_gpuset *left, int node)
{
    int first = gv_gpuset_first(*left);
    const struct gv_profile_gpu *like = gv_view_gpu(view, first);
    int parent = node, shared = 0;
    for (int i = 0; i < view->profile->ngpus; i++)
        shared += same_island(&view->profile->gpus[i], like);
    if (shared > 1) {
        parent = l->nrows;
        struct gv_ring_row *row = add_row(l, GV_ROW_SWITCH, node, HEAD);
        snprintf(row->name, sizeof(row->name), "switch %s", like->island);
    }
    for (gv_gpuset rest = *left; rest; rest &= rest - 1) {
        int gpu = gv_gpuset_first(rest);
        const struct gv_profile_gpu *g = gv_view_gpu(view, gpu);
        if (gpu != first && !(g && same_island(g, like)))
            continue;
        add_gpu(l, gpu, parent);
        *left &= ~GV_GPU_BIT(gpu);
    }
}

/* The CPU node of the first GPU that is left, and all below it. */
static void add_node(const struct gv_view *view, struct gv_ring_layout *l, gv_gpuset *left)
{
    const struct gv_profile_gpu *like = gv_view_gpu(view, gv_gpuset_first(*left));
    gv_gpuset here = 0;
    for (gv_gpuset rest = *left; like && rest; rest &= rest - 1) {
        const struct gv_profile_gpu *g = gv_view_gpu(view, gv_gpuset_first(rest));
        if (g && g->numa_node == like->numa_node)
            here |= rest & -rest;
    }
    if (!like) { /* not in the profile: its place is not known */
        add_gpu(l, gv_gpuset_first(*left), -1);
        *left &= *left - 1;
        return;
    }
    int node = l->nrows;
    struct gv_ring_row *row = add_row(l, GV_ROW_NODE, -1, HEAD);
    if (like->numa_node >= 0)
        snprintf(row->name, sizeof(row->name), "NUMA node %d", like->numa_node);
    else
        snprintf(row->name, sizeof(row->name), "CPU");
    *left &= ~here;
    while (here)
        add_island(view, l, &here, node);
}

static int row_of(const struct gv_ring_layout *l, int gpu)
{
    for (int i = 0; i < l->nrows; i++)
        if (l->row[i].kind == GV_ROW_GPU && l->row[i].gpu == gpu)
            return i;
    return 0;
}

struct span {
    int edge, low, high; /* rows */
};

static int shorter(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    int dx = x->high - x->low, dy = y->high - y->low;
    return dx != dy ? dx - dy : x->edge - y->edge;
}

/* Spans that touch in one row only may share a lane: one arrives above the middle, one leaves
 * below. */
static bool overlap(const struct span *a, const struct span *b)
{
    return a->low < b->high && b->low < a->high;
}

static void
assign_lanes(struct gv_ring_layout *l, const struct gv_compared_ring *ring, struct span *spans)
{
    for (int i = 0; i < ring->n; i++) {
        int a = row_of(l, ring->edge[i].from), b = row_of(l, ring->edge[i].to);
        spans[i] = (struct span){i, a < b ? a : b, a < b ? b : a};
    }
    qsort(spans, (size_t)ring->n, sizeof(*spans), shorter);
    for (int i = 0; i < ring->n; i++) {
        int lane = 0;
        for (int j = 0; j < i; j++)
            if (overlap(&spans[i], &spans[j]) && l->edge[spans[j].edge].lane >= lane)
                lane = l->edge[spans[j].edge].lane + 1;
        l->edge[spans[i].edge].lane = lane;
        if (lane >= l->nlanes)
            l->nlanes = lane + 1;
    }
}

/* The edge that arrives at the GPU where edge i starts. */
static int before(const struct gv_compared_ring *ring, int i)
{
    return (i + ring->n - 1) % ring->n;
}

/* Where edge `i` meets the box of its first (`end` false) or second GPU: on the side where it comes
 * from; of two on one side the outer lane takes the other half. */
static double
port(const struct gv_ring_layout *l, const struct gv_compared_ring *ring, int i, bool end)
{
    int other = end ? (i + 1) % ring->n : before(ring, i);
    int here = row_of(l, end ? ring->edge[i].to : ring->edge[i].from);
    int mine = row_of(l, end ? ring->edge[i].from : ring->edge[i].to);
    int theirs = row_of(l, end ? ring->edge[other].to : ring->edge[other].from);
    bool below = mine > here, same = (theirs > here) == below;
    bool outer = l->edge[i].lane > l->edge[other].lane;
    return l->row[here].y + (below != (same && outer) ? 6 : -6);
}

static bool is_free(const double *taken, int n, double y)
{
    for (int i = 0; i < n; i++)
        if (fabs(taken[i] - y) < APART)
            return false;
    return true;
}

/* Whether an edge of an outer lane runs to its GPU at this height: a label on it would seem to be
 * that edge's. */
static bool is_crossed(const struct gv_ring_layout *l, int n, int lane, double y)
{
    for (int i = 0; i < n; i++) {
        const struct gv_ring_lane *e = &l->edge[i];
        if (e->lane > lane && (fabs(e->from_y - y) < CLEAR || fabs(e->to_y - y) < CLEAR))
            return true;
    }
    return false;
}

/* Labels stand at their lane, each at a height of its own: the middle of the edge where that is
 * free, else as near to it as can be. */
static void place_labels(struct gv_ring_layout *l, const struct span *spans, int n)
{
    double taken[GV_MAX_GPUS];
    for (int i = 0; i < n; i++) {
        struct gv_ring_lane *e = &l->edge[spans[i].edge];
        double middle = (e->from_y + e->to_y) / 2, y = middle;
        for (int step = 0;
             step < 4 * GV_MAX_GPUS && (!is_free(taken, i, y) || is_crossed(l, n, e->lane, y));
             step++)
            y = middle + (step % 2 ? -1 : 1) * (step / 2 + 1) * APART / 2;
        e->label_y = taken[i] = y;
    }
}

void gv_ring_lay_out(
    const struct gv_view *view, const struct gv_compared_ring *ring, struct gv_ring_layout *l)
{
    struct span spans[GV_MAX_GPUS];
    *l = (struct gv_ring_layout){.height = 4};
    gv_gpuset left = 0;
    for (int i = 0; i < ring->n; i++)
        left |= GV_GPU_BIT(ring->edge[i].from) | GV_GPU_BIT(ring->edge[i].to);
    while (left)
        add_node(view, l, &left);
    assign_lanes(l, ring, spans);
    for (int i = 0; i < ring->n; i++) {
        l->edge[i].from_y = port(l, ring, i, false);
        l->edge[i].to_y = port(l, ring, i, true);
    }
    place_labels(l, spans, ring->n);
    l->box_x = 40;
    l->box_width = 58;
    l->lane_x = l->box_x + l->box_width + 20;
    /* room for a label between few lanes */
    l->lane_step = l->nlanes <= 2 ? 126 : l->nlanes == 3 ? 66 : 26;
    l->width = l->lane_x + (l->nlanes - 1) * l->lane_step + LABEL;
    l->height += 6;
}
