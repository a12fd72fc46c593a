/* A library of a program that uses NCCL, linked with one of its own: what it does is in caller.c,
 * which NCCL that means is a matter of the link. */
#ifndef GV_HOST_CALLER_H
#define GV_HOST_CALLER_H

#include "testbench/host/gv_host_nccl.h"

/* Makes a communicator of `gpus` (n of them, CUDA ordinals): a thread for each rank, or `all`:
 * ncclCommInitAll. Runs an AllReduce and an all-to-all on it, ends it, and writes what became of it
 * as one line to stdout:
 *   NAME release=22707 result=0 file=1 alltoall=0 choice=1,2 transports=PPPPPP
 * (choice: algorithm and protocol of the AllReduce, by NCCL's numbers)
 * and a line "NAME says ..." for each of the plugin's that its NCCL was given. */
GV_HOST_API void gv_caller_run(const char *name, const int *gpus, int n, bool all);

#endif
