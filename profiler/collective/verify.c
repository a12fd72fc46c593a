/* Data into the buffers before a call, and the check of what came out. A buffer is pieces; of each
 * the whole is filled and checked, or only both ends where the setup bounds it. */
#include <string.h>

#include "profiler/collective/gv_busbw.h"
#include "profiler/collective/rank.h"

static int cuda(struct gv_rank *r, gv_cu_result rc, const char *what, struct gv_error *err)
{
    return rc ? gv_cuda_fail(&r->gpus->cuda, rc, err, what) : 0;
}

/* Calls `each` for runs of elements [first, first + count) of a piece of `n`, in parts that fit the
 * staging buffer. */
struct walk {
    struct gv_rank *r;
    struct gv_expected *expected;
    gv_cu_ptr piece; /* where the piece begins */
    uint64_t offset; /* the piece's first element in its rank's data */
    size_t bytes;    /* of an element */
    uint64_t wrong;
};

typedef int (*walk_fn)(struct walk *w, uint64_t first, size_t count, struct gv_error *err);

static int
walk_range(struct walk *w, uint64_t first, uint64_t count, walk_fn each, struct gv_error *err)
{
    size_t most = w->r->setup->staging_bytes / w->bytes;
    while (count) {
        size_t part = count < most ? (size_t)count : most;
        if (each(w, first, part, err))
            return -1;
        first += part;
        count -= part;
    }
    return 0;
}

static int walk_piece(struct walk *w, uint64_t n, int pieces, walk_fn each, struct gv_error *err)
{
    uint64_t ends = w->r->setup->check_bytes / w->bytes / 2 / (uint64_t)pieces;
    if (!w->r->setup->check_bytes || n <= 2 * ends)
        return walk_range(w, 0, n, each, err);
    if (!ends)
        ends = 1;
    return walk_range(w, 0, ends, each, err) || walk_range(w, n - ends, ends, each, err) ? -1 : 0;
}

static int put(struct walk *w, uint64_t first, size_t count, struct gv_error *err)
{
    struct gv_rank *r = w->r;
    const struct gv_cuda *cu = &r->gpus->cuda;
    if (w->expected)
        gv_expected_copy(w->expected, w->offset + first, count, r->staging);
    else
        memset(r->staging, 0xee, count * w->bytes);
    gv_cu_ptr at = w->piece + first * w->bytes;
    if (cuda(r, cu->copy_htod(at, r->staging, count * w->bytes, r->stream), "copy to GPU", err))
        return -1;
    return cuda(r, cu->stream_sync(r->stream), "copy to GPU", err);
}

static int compare(struct walk *w, uint64_t first, size_t count, struct gv_error *err)
{
    struct gv_rank *r = w->r;
    const struct gv_cuda *cu = &r->gpus->cuda;
    gv_cu_ptr at = w->piece + first * w->bytes;
    if (cuda(r, cu->copy_dtoh(r->staging, at, count * w->bytes, r->stream), "copy to host", err) ||
        cuda(r, cu->stream_sync(r->stream), "copy to host", err))
        return -1;
    w->wrong += gv_expected_wrong(w->expected, w->offset + first, count, r->staging);
    return 0;
}

/* Elements of a piece, and the most pieces of a buffer. */
static uint64_t elements(const struct gv_rank *r, const struct gv_case *what, int *pieces)
{
    int n = r->setup->nranks;
    int send = gv_op_send_pieces(what->op, n), recv = gv_op_recv_pieces(what->op, n);
    *pieces = send > recv ? send : recv;
    return what->bytes / (uint64_t)gv_type_bytes(what->type) / (uint64_t)*pieces;
}

/* `kept` for this case, anew where it is another type's or reduction's. */
static int renew(
    struct gv_rank *r, struct gv_expected *kept, const struct gv_case *what, int from,
    struct gv_error *err)
{
    if (kept->bytes && kept->type == what->type && kept->redop == what->redop)
        return 0;
    gv_expected_finish(kept);
    if (gv_expected_init(kept, what->type, what->redop, r->setup->nranks, from))
        return gv_error_set(err, "out of memory");
    return 0;
}

int gv_rank_fill(struct gv_rank *r, const struct gv_case *what, struct gv_error *err)
{
    int pieces, n = r->setup->nranks;
    uint64_t count = elements(r, what, &pieces);
    struct walk w = {.r = r, .bytes = (size_t)gv_type_bytes(what->type)};
    int rc = 0;
    for (int p = 0; !rc && p < gv_op_recv_pieces(what->op, n); p++) {
        w.piece = gv_rank_recv_buffer(r, what) + (uint64_t)p * count * w.bytes;
        rc = walk_piece(&w, count, pieces, put, err);
    }
    if (rc || renew(r, &r->mine, what, r->rank, err))
        return -1;
    w.expected = &r->mine;
    for (int p = 0; !rc && p < gv_op_send_pieces(what->op, n); p++) {
        w.offset = (uint64_t)p * count;
        w.piece = gv_rank_send_buffer(r, what) + w.offset * w.bytes;
        rc = walk_piece(&w, count, pieces, put, err);
    }
    return rc;
}

/* Whose data piece `p` of the result is (-1: the reduction's), and where in it the piece begins. */
static int
source(const struct gv_rank *r, const struct gv_case *what, int p, uint64_t n, uint64_t *at)
{
    *at = 0;
    switch (what->op) {
    case GV_OP_ALL_GATHER:
        return p;
    case GV_OP_ALL_TO_ALL:
        *at = (uint64_t)r->rank * n;
        return p;
    case GV_OP_BROADCAST:
        return GV_ROOT;
    case GV_OP_REDUCE_SCATTER:
        *at = (uint64_t)r->rank * n;
        return -1;
    default:
        return -1;
    }
}

int gv_rank_verify(
    struct gv_rank *r, const struct gv_case *what, struct gv_ran *out, struct gv_error *err)
{
    int pieces, n = r->setup->nranks;
    uint64_t count = elements(r, what, &pieces);
    struct walk w = {.r = r, .bytes = (size_t)gv_type_bytes(what->type)};
    out->bound = gv_data_bound(what->type, what->redop, n, gv_op_reduces(what->op));
    if (what->op == GV_OP_REDUCE && r->rank != GV_ROOT)
        return 0; /* only the root has a result */
    for (int p = 0; p < gv_op_recv_pieces(what->op, n); p++) {
        struct gv_expected other = {0}, *expected;
        int from = source(r, what, p, count, &w.offset);
        expected = from < 0 ? &r->result : from == r->rank ? &r->mine : &other;
        int rc = renew(r, expected, what, from, err);
        w.expected = expected;
        w.piece = gv_rank_recv_buffer(r, what) + (uint64_t)p * count * w.bytes;
        if (!rc)
            rc = walk_piece(&w, count, pieces, compare, err);
        gv_expected_finish(&other);
        if (rc)
            return -1;
    }
    out->wrong += w.wrong;
    return 0;
}
