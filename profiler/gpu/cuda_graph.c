#include "profiler/gpu/gv_cuda_graph.h"

#include <dlfcn.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define GV_X(field, symbol, args) {symbol, offsetof(struct gv_cuda_graph, field)},
    GV_CUDA_GRAPH_FUNCTIONS(GV_X)
#undef GV_X
};

int gv_cuda_graph_open(const struct gv_cuda *cuda, struct gv_cuda_graph *out, struct gv_error *err)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *found = dlsym(cuda->library, symbols[i].name);
        if (!found)
            return gv_error_set(
                err, "the CUDA driver has no %s: install one with CUDA 11.4 or newer",
                symbols[i].name);
        memcpy((char *)out + symbols[i].offset, &found, sizeof(found));
    }
    return 0;
}
