/* Streams that wait for each other, and CUDA graphs: what gv_cuda.h leaves out because measuring
 * does not need it. The newest symbol came with CUDA 11.4. Types are those of the driver's ABI. */
#ifndef GV_CUDA_GRAPH_H
#define GV_CUDA_GRAPH_H

#include "profiler/gpu/gv_cuda.h"

typedef struct CUgraph_st *gv_cu_graph;
typedef struct CUgraphNode_st *gv_cu_node;
typedef struct CUgraphExec_st *gv_cu_exec;

/* CUDA_MEMCPY3D of the _v2 functions. A linear copy has height and depth 1, memory types
 * GV_CU_MEMORY_UNIFIED, and its two addresses in `from_device` and `to_device`. */
struct gv_cu_copy {
    size_t from_x, from_y, from_z, from_lod;
    int from_type;
    const void *from_host;
    gv_cu_ptr from_device;
    void *from_array, *from_reserved;
    size_t from_pitch, from_height;
    size_t to_x, to_y, to_z, to_lod;
    int to_type;
    void *to_host;
    gv_cu_ptr to_device;
    void *to_array, *to_reserved;
    size_t to_pitch, to_height;
    size_t width, height, depth;
};
_Static_assert(sizeof(void *) != 8 || sizeof(struct gv_cu_copy) == 200, "CUDA_MEMCPY3D_v2");

enum { GV_CU_MEMORY_UNIFIED = 4 };

/* CUstreamCaptureMode and CUstreamCaptureStatus. */
enum { GV_CU_CAPTURE_GLOBAL, GV_CU_CAPTURE_THREAD, GV_CU_CAPTURE_RELAXED };
enum { GV_CU_CAPTURING_NOT, GV_CU_CAPTURING, GV_CU_CAPTURE_INVALIDATED };

#define GV_CU_EVENT_NO_TIMING 2

#define GV_CUDA_GRAPH_FUNCTIONS(X)                                                                 \
    X(ctx_get, "cuCtxGetCurrent", (gv_cu_ctx *))                                                   \
    X(stream_wait, "cuStreamWaitEvent", (gv_cu_stream, gv_cu_event, unsigned flags))               \
    X(capture_begin, "cuStreamBeginCapture_v2", (gv_cu_stream, int mode))                          \
    X(capture_end, "cuStreamEndCapture", (gv_cu_stream, gv_cu_graph *))                            \
    X(capture_info, "cuStreamGetCaptureInfo", (gv_cu_stream, int *status, uint64_t *id))           \
    X(capture_mode, "cuThreadExchangeStreamCaptureMode", (int *mode))                              \
    X(graph_create, "cuGraphCreate", (gv_cu_graph *, unsigned flags))                              \
    X(graph_destroy, "cuGraphDestroy", (gv_cu_graph))                                              \
    X(graph_add_copy, "cuGraphAddMemcpyNode",                                                      \
      (gv_cu_node *, gv_cu_graph, const gv_cu_node *after, size_t nafter,                          \
       const struct gv_cu_copy *, gv_cu_ctx))                                                      \
    X(graph_add_empty, "cuGraphAddEmptyNode",                                                      \
      (gv_cu_node *, gv_cu_graph, const gv_cu_node *after, size_t nafter))                         \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                            \
      (gv_cu_exec *, gv_cu_graph, unsigned long long flags))                                       \
    X(graph_launch, "cuGraphLaunch", (gv_cu_exec, gv_cu_stream))                                   \
    X(exec_destroy, "cuGraphExecDestroy", (gv_cu_exec))

struct gv_cuda_graph {
#define GV_X(field, symbol, args) gv_cu_result(*field) args;
    GV_CUDA_GRAPH_FUNCTIONS(GV_X)
#undef GV_X
};

/* Fills the table from the library that `cuda` has open. 0, or -1 with `err` naming the symbol that
 * is missing and the release that has it. */
int gv_cuda_graph_open(const struct gv_cuda *cuda, struct gv_cuda_graph *out, struct gv_error *err);

#endif
