/* Arguments of the kernels, one struct by value each: read by the device code, by the C twins and
 * by whoever launches. Addresses are device addresses (local, a peer's, or mapped host memory). */
#ifndef GV_KERNEL_ARGS_H
#define GV_KERNEL_ARGS_H

typedef unsigned long long gv_u64;
typedef unsigned int gv_u32;

/* dst = src (copy); reads `src` (read, `dst` is a sink of 16 bytes that is never written); dst =
 * pattern (write); dst = src + 3 * src2 in float (triad). `n16` counts units of 16 bytes. */
struct gv_memory_args {
    gv_u64 dst, src, src2, n16;
    gv_u64 chunked; /* 0: the blocks take tiles in turn; 1: each block has one run of tiles */
};

/* Holds the stream until the 32-bit word at `flag` is at least `value`; gives up after
 * `timeout_ns`. */
struct gv_gate_args {
    gv_u64 flag, timeout_ns;
    gv_u32 value, pad;
};

/* Word i of the pattern is a hash of (i, seed). fill writes it. check compares with the sum of the
 * patterns of `ranks` seeds from `seed` on, and adds to the two 64-bit words at `result`: [0] wrong
 * 16-byte units, [1] lowest wrong index (set to all ones before). */
struct gv_pattern_args {
    gv_u64 buffer, n16, result;
    gv_u32 seed, ranks;
};

/* One half of the check of a pair, both halves resident at once, launched with the same grid. push:
 * for each round, waits for the owner's word, writes the pattern into `buffer`, then raises the
 * block's flag there. owner: waits for the flag, compares what arrived, says so in `ack`. Block b
 * has the b-th part of the buffer and word b*32 of `flags` and of `ack`. `flags` lie beside the
 * buffer, so that they travel as the data does; `ack` is mapped host memory, so that only one
 * direction is under test. `result` (64-bit words): [0] wrong units, [1] lowest wrong index, [2]
 * blocks that waited in vain. */
struct gv_pair_args {
    gv_u64 buffer, flags, ack, n16, result, timeout_ns;
    gv_u32 rounds, seed;
};

/* One-way latency: `rounds` times there and back. `mine` is the word that the other side writes,
 * `theirs` the one this side writes, `start` is 1 on the side that writes first. */
struct gv_pingpong_args {
    gv_u64 mine, theirs, result, timeout_ns;
    gv_u32 rounds, start;
};

#define GV_RING_SLOTS 8

/* One rank of a ring AllReduce (sum). Block b is a channel of its own: FIFO of GV_RING_SLOTS slots
 * of `slot16` units at recv/send + b * GV_RING_SLOTS * slot16 * 16. Counters are 32-bit words at
 * b*32: `arrived` counts slots that the previous rank filled (it writes there), `next_arrived` the
 * same at the next rank; `drained` counts the slots that the next rank emptied, `prev_drained` the
 * same at the previous rank. `send` is the next rank's `recv`, in its memory or in mapped host
 * memory. `ring_id` is the same for all ranks of one run. The buffer is cut into pieces of n *
 * slot16 units; piece p belongs to block p mod gridDim. */
struct gv_ring_args {
    gv_u64 in, out, n16;
    gv_u64 recv, send;
    gv_u64 arrived, next_arrived, drained, prev_drained;
    gv_u64 result, timeout_ns, ring_id;
    gv_u32 rank, n, slot16, is_float;
    gv_u32 loops, pad; /* how often all of it is done */
};

#endif
