/* From the file as written to the tree that NCCL builds its graph from: what it leaves out is taken
 * from the machine, branches to GPUs outside the communicator fall away, and the ranks' trees are
 * merged. */
#ifndef GV_NT_PREPARE_H
#define GV_NT_PREPARE_H

#include "testbench/nccl/gv_nccl_eval.h"
#include "testbench/nccl/xml.h"

/* Parses in->xml (and in->machine_xml), fills and marks. On success *out is the tree with, in every
 * element that NCCL keeps, `first` >= 0 and the children in the order in which the merged tree has
 * them; gpu elements of the communicator carry `rank`. The caller frees it. Returns a
 * gv_nccl_result; `err` is set unless it is 0. */
int gv_nt_prepare(
    const struct gv_nccl_eval_in *in, struct gv_nt_elem **out, struct gv_nt_error *err);

#endif
