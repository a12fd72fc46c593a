/* What a collective's time is worth, as nccl-tests defines it (its doc/PERFORMANCE.md, 2.13 to
 * 2.17): algbw = size / time; busbw = algbw x factor, so that it can be held against what a link
 * can do, whatever the number of ranks.
 *
 *   operation      size                               factor
 *   AllReduce      the buffer of a rank               2 (n - 1) / n
 *   ReduceScatter  what a rank sends (all pieces)     (n - 1) / n
 *   AllGather      what a rank receives (all pieces)  (n - 1) / n
 *   AllToAll       what a rank sends (all pieces)     (n - 1) / n
 *   Broadcast, Reduce, SendRecv   the buffer          1
 */
#ifndef GV_BUSBW_H
#define GV_BUSBW_H

#include "config/gv_profile.h"

/* The factor; 0 for fewer than two ranks of an operation that moves nothing then (Broadcast, Reduce
 * and SendRecv keep 1, as nccl-tests prints it). */
double gv_busbw_factor(enum gv_op op, int nranks);

/* GB/s (1e9 bytes/s); NAN where the time is not positive. */
double gv_algbw_gbs(uint64_t bytes, double time_us);
double gv_busbw_gbs(enum gv_op op, int nranks, uint64_t bytes, double time_us);

/* The reverse: microseconds that the size takes at this busbw; NAN where that cannot be said. */
double gv_busbw_time_us(enum gv_op op, int nranks, uint64_t bytes, double busbw_gbs);

/* `bytes` as nccl-tests would really run it: whole elements; operations in pieces (AllGather,
 * ReduceScatter, AllToAll) have equal pieces of whole 16 bytes, as it trims them (from 2.13 on; of
 * 64K and six ranks 65472 bytes are left). May be 0. */
uint64_t gv_op_bytes(enum gv_op op, int nranks, uint64_t bytes, int element_bytes);

/* Number of pieces of one rank's send and receive buffer (1 or nranks). */
int gv_op_send_pieces(enum gv_op op, int nranks);
int gv_op_recv_pieces(enum gv_op op, int nranks);

#endif
