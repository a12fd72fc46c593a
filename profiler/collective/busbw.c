#include "profiler/collective/gv_busbw.h"

#include <math.h>

double gv_busbw_factor(enum gv_op op, int nranks)
{
    double n = nranks > 0 ? nranks : 1;
    switch (op) {
    case GV_OP_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case GV_OP_REDUCE_SCATTER:
    case GV_OP_ALL_GATHER:
    case GV_OP_ALL_TO_ALL:
        return (n - 1) / n;
    default:
        return 1;
    }
}

double gv_algbw_gbs(uint64_t bytes, double time_us)
{
    return time_us > 0 ? (double)bytes / time_us / 1e3 : NAN;
}

double gv_busbw_gbs(enum gv_op op, int nranks, uint64_t bytes, double time_us)
{
    return gv_algbw_gbs(bytes, time_us) * gv_busbw_factor(op, nranks);
}

double gv_busbw_time_us(enum gv_op op, int nranks, uint64_t bytes, double busbw_gbs)
{
    return busbw_gbs > 0 ? (double)bytes * gv_busbw_factor(op, nranks) / busbw_gbs / 1e3 : NAN;
}

int gv_op_send_pieces(enum gv_op op, int nranks)
{
    return op == GV_OP_REDUCE_SCATTER || op == GV_OP_ALL_TO_ALL ? nranks : 1;
}

int gv_op_recv_pieces(enum gv_op op, int nranks)
{
    return op == GV_OP_ALL_GATHER || op == GV_OP_ALL_TO_ALL ? nranks : 1;
}

/* Pieces are trimmed to so much, whatever the type. */
#define PIECE_BYTES 16u

uint64_t gv_op_bytes(enum gv_op op, int nranks, uint64_t bytes, int element_bytes)
{
    int send = gv_op_send_pieces(op, nranks), recv = gv_op_recv_pieces(op, nranks);
    bool whole = op == GV_OP_ALL_REDUCE || op == GV_OP_BROADCAST || op == GV_OP_REDUCE ||
                 op == GV_OP_SEND_RECV;
    uint64_t pieces = (uint64_t)(send > recv ? send : recv);
    uint64_t unit = whole ? (uint64_t)element_bytes : PIECE_BYTES * pieces;
    return bytes / unit * unit;
}
