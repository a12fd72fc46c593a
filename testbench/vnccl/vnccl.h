/* Inside the virtual NCCL: the host's engine (testbench/host) with bytes that move and a clock. It
 * stands on the virtual CUDA driver of the same process. */
#ifndef GV_VNCCL_H
#define GV_VNCCL_H

#include "testbench/fabric/gv_fabric.h"
#include "testbench/host/engine.h"

/* The machine of $GV_VIRTUAL_MACHINE; NULL where it cannot be read (said on stderr). */
const struct gv_fabric *gvv_fabric(void);

/* The virtual driver: waits for the stream and lets `us` pass; a factor of its noise. */
int gvv_pass(void *stream, double us);
double gvv_noise(void);
/* Whether what NCCL sends over P2P from one GPU to the other goes wrong. */
bool gvv_corrupt(int from, int to);

/* cost.c: microseconds of one call, by the fabric, the communicator's rings and transports, and
 * what was chosen for it (comm->algorithm, protocol, channels). */
double gvv_collective_us(const struct gvh_comm *comm, const struct gvh_call *call);
/* All pairs at once, `bytes` from each rank to each other. */
double gvv_all_to_all_us(const struct gvh_comm *comm, uint64_t bytes);

/* exchange.c: what ranks show each other of their buffers. */
struct gvv_shared;
/* Bytes of real data that a rank may show in one call: $GV_VIRTUAL_CAP, 64 KiB. All of a smaller
 * buffer is moved, reduced and can be checked; of a larger one the first and the last half of that
 * (for a call of several pieces: of each piece its part of it). What lies between is not touched,
 * so buffers of GiB cost neither memory nor time; the call's time is the fabric's for all of its
 * bytes. */
size_t gvv_room(void);
struct gvv_shared *gvv_shared(struct gvh_comm *comm); /* NULL: cannot be mapped */
/* This rank's room for the present call, then every rank's after gvv_meet. */
unsigned char *gvv_slot(struct gvv_shared *shared, int rank);
/* The call is over for this rank: lets its time pass, and the next one uses the other room. */
int gvv_end(struct gvh_comm *comm, void *stream, double us);
/* All ranks of the call meet; `us` becomes rank 0's. 0 or a result. */
int gvv_meet(struct gvh_comm *comm, double *us);

/* Only both ends of a piece are moved: `bytes` of it, `room` for them. */
struct gvv_ends {
    size_t head, tail; /* bytes at the beginning, and at the end */
    size_t bytes;      /* of the whole piece */
};
struct gvv_ends gvv_ends(size_t bytes, size_t room);
void gvv_pack(unsigned char *room, const void *piece, struct gvv_ends ends);
void gvv_unpack(void *piece, const unsigned char *room, struct gvv_ends ends);

/* reduce.c: into[] = into[] op from[], elements of ncclDataType_t. AVG sums; gvv_scale divides. */
void gvv_reduce(unsigned char *into, const unsigned char *from, size_t bytes, int type, int op);
void gvv_scale(unsigned char *at, size_t bytes, int type, int n);
int gvv_type_bytes(int type);

#endif
