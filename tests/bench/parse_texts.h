/* Generated texts of the kinds that the parsers read, of a wanted size. */
#ifndef GV_BENCH_PARSE_TEXTS_H
#define GV_BENCH_PARSE_TEXTS_H

#include <stdio.h>

#include "base/gv_str.h"

/* The output of a training job of 8 ranks with NCCL_DEBUG=INFO and its calls: a communicator every
 * 20 MB, lines of the job between. */
void gv_text_log(FILE *out, size_t bytes);
/* nccl-tests: tables of `rows` rows. */
void gv_text_tables(struct gv_str *out, int rows);
/* nvidia-smi topo -m of `gpus` GPUs. */
void gv_text_matrix(struct gv_str *out, int gpus);
/* NCCL's topology file of 64 GPUs. */
void gv_text_topology(struct gv_str *out);

#endif
