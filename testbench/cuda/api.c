/* The entry points of libcuda.so.1 that gv100 uses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testbench/cuda/gv_virtual.h"

#define EXPORT __attribute__((visibility("default")))
#define INVALID 1
#define NOT_INITIALIZED 3
#define INVALID_CONTEXT 201
#define INVALID_HANDLE 400
#define current gv_virtual_current

/* Every entry point has its prototype here, from the one table that gv100 loads by. */
#define CU_X(field, symbol, args) gv_cu_result gv_v_##field args __asm__(symbol) EXPORT;
GV_CUDA_FUNCTIONS(CU_X)
#undef CU_X

__thread struct gv_vgpu
    *gv_virtual_current; /* the context of this thread, as cuCtxSetCurrent sets it */

/* Takes the lock; on failure it is not held. */
static struct gv_world *enter(void)
{
    gv_world_lock();
    struct gv_world *w = gv_world();
    if (!w)
        gv_world_unlock();
    return w;
}

static gv_cu_result leave(gv_cu_result rc)
{
    gv_world_unlock();
    return rc;
}

/* Enters with a context; what went wrong on its GPU before is answered again. */
#define ENTER(w)                                                                                   \
    struct gv_world *w = enter();                                                                  \
    if (!w)                                                                                        \
        return NOT_INITIALIZED;
#define ENTER_CONTEXT(w)                                                                           \
    ENTER(w)                                                                                       \
    if (!current)                                                                                  \
        return leave(INVALID_CONTEXT);                                                             \
    if (current->sticky)                                                                           \
        return leave(current->sticky);

gv_cu_result gv_v_init(unsigned flags)
{
    (void)flags;
    ENTER(w)
    return leave(w->faults.init ? w->faults.init : w->nvisible ? 0 : GV_CU_NO_DEVICE);
}

gv_cu_result gv_v_driver_version(int *version)
{
    ENTER(w)
    *version = w->faults.cuda_version ? w->faults.cuda_version : 13000;
    return leave(0);
}

static const struct {
    gv_cu_result rc;
    const char *name, *text;
} results[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {INVALID, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {GV_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {GV_CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {GV_CU_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE",
     "uncorrectable ECC error encountered"},
    {GV_CU_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {GV_CU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {GV_CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {GV_CU_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {GV_CU_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access has not been enabled"},
    {GV_CU_TOO_MANY_PEERS, "CUDA_ERROR_TOO_MANY_PEERS", "peer mapping resources exhausted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {907, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

gv_cu_result gv_v_error_name(gv_cu_result rc, const char **name)
{
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i].rc == rc) {
            *name = results[i].name;
            return 0;
        }
    return INVALID;
}

gv_cu_result gv_v_error_string(gv_cu_result rc, const char **text)
{
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i].rc == rc) {
            *text = results[i].text;
            return 0;
        }
    return INVALID;
}

gv_cu_result gv_v_device_count(int *count)
{
    ENTER(w)
    *count = w->nvisible;
    return leave(0);
}

/* A CUdevice is the GPU's number in the machine, whatever is visible. */
gv_cu_result gv_v_device_get(gv_cu_device *device, int ordinal)
{
    ENTER(w)
    if (ordinal < 0 || ordinal >= w->nvisible)
        return leave(101);
    *device = w->visible[ordinal];
    return leave(0);
}

gv_cu_result gv_v_device_name(char *name, int size, gv_cu_device device)
{
    ENTER(w)
    snprintf(name, (size_t)size, "%s", w->fabric.machine.gpus[device].model);
    return leave(0);
}

gv_cu_result gv_v_device_uuid(struct gv_cu_uuid *uuid, gv_cu_device device)
{
    ENTER(w)
    const char *text = w->fabric.machine.gpus[device].uuid;
    int at = 0;
    memset(uuid, 0, sizeof(*uuid));
    for (const char *p = strncmp(text, "GPU-", 4) ? text : text + 4; *p && at < 16;) {
        unsigned byte;
        if (*p == '-')
            p++;
        if (sscanf(p, "%2x", &byte) != 1)
            break;
        uuid->bytes[at++] = (unsigned char)byte;
        p += 2;
    }
    return leave(0);
}

gv_cu_result gv_v_device_memory(size_t *bytes, gv_cu_device device)
{
    ENTER(w)
    *bytes = (size_t)w->fabric.machine.gpus[device].memory_mib << 20;
    return leave(0);
}

gv_cu_result gv_v_device_attribute(int *value, int attribute, gv_cu_device device)
{
    ENTER(w)
    const struct gv_fabric_gpu *g = &w->fabric.gpu[device];
    int sm = w->fabric.machine.gpus[device].sm;
    switch (attribute) {
    case GV_CU_ATTR_CLOCK_KHZ:
        *value = g->max_core_mhz * 1000;
        break;
    case GV_CU_ATTR_MULTIPROCESSORS:
        *value = g->multiprocessors;
        break;
    case GV_CU_ATTR_MEMORY_CLOCK_KHZ:
        *value = g->memory_mhz * 1000;
        break;
    case GV_CU_ATTR_BUS_WIDTH_BITS:
        *value = g->bus_width_bits;
        break;
    case GV_CU_ATTR_L2_BYTES:
        *value = 6 << 20;
        break;
    case GV_CU_ATTR_MAJOR:
        *value = sm / 10;
        break;
    case GV_CU_ATTR_MINOR:
        *value = sm % 10;
        break;
    default:
        return leave(INVALID);
    }
    return leave(0);
}

gv_cu_result gv_v_device_bus_id(char *bus_id, int size, gv_cu_device device)
{
    ENTER(w)
    snprintf(bus_id, (size_t)size, "%s", w->fabric.machine.gpus[device].pci.bus_id);
    return leave(0);
}

gv_cu_result gv_v_can_access_peer(int *can, gv_cu_device device, gv_cu_device peer)
{
    ENTER(w)
    *can = device != peer && gv_fabric_p2p(&w->fabric, device, peer) &&
           !gv_fault_on(w, GV_FAULT_ONE_WAY, peer, device);
    return leave(0);
}

gv_cu_result gv_v_p2p_attribute(int *value, int attribute, gv_cu_device from, gv_cu_device to)
{
    ENTER(w)
    bool p2p = gv_fabric_p2p(&w->fabric, from, to);
    bool nvlink = w->fabric.nvlinks[from][to] > 0;
    *value = attribute == GV_CU_P2P_ACCESS ? p2p : attribute == GV_CU_P2P_ATOMICS ? nvlink : 0;
    return leave(0);
}

gv_cu_result gv_v_ctx_retain(gv_cu_ctx *ctx, gv_cu_device device)
{
    ENTER(w)
    *ctx = (gv_cu_ctx)&w->gpu[device];
    return leave(w->gpu[device].sticky);
}

gv_cu_result gv_v_ctx_release(gv_cu_device device)
{
    (void)device;
    return 0;
}

gv_cu_result gv_v_ctx_set(gv_cu_ctx ctx)
{
    current = (struct gv_vgpu *)ctx;
    return 0;
}

gv_cu_result gv_v_ctx_sync(void)
{
    ENTER_CONTEXT(w)
    return leave(gv_virtual_advance(w, NULL));
}

gv_cu_result gv_v_peer_enable(gv_cu_ctx ctx, unsigned flags)
{
    int peer = ((struct gv_vgpu *)ctx)->index;
    (void)flags;
    ENTER_CONTEXT(w)
    if (!gv_fabric_p2p(&w->fabric, current->index, peer) ||
        gv_fault_on(w, GV_FAULT_ONE_WAY, peer, current->index) ||
        gv_fault_on(w, GV_FAULT_NO_ENABLE, current->index, peer))
        return leave(GV_CU_PEER_ACCESS_UNSUPPORTED);
    if (current->peer[peer])
        return leave(GV_CU_PEER_ACCESS_ALREADY_ENABLED);
    if (current->npeers == w->fabric.max_peers)
        return leave(GV_CU_TOO_MANY_PEERS);
    current->peer[peer] = true;
    current->npeers++;
    return leave(0);
}

gv_cu_result gv_v_peer_disable(gv_cu_ctx ctx)
{
    int peer = ((struct gv_vgpu *)ctx)->index;
    ENTER_CONTEXT(w)
    if (!current->peer[peer])
        return leave(GV_CU_PEER_ACCESS_NOT_ENABLED);
    current->peer[peer] = false;
    current->npeers--;
    return leave(0);
}

gv_cu_result gv_v_mem_info(size_t *free_bytes, size_t *total)
{
    ENTER_CONTEXT(w)
    int mib = w->faults.gpu[current->index].free_mib;
    *total = (size_t)w->fabric.machine.gpus[current->index].memory_mib << 20;
    *free_bytes = (mib ? (size_t)mib << 20 : *total) - current->used;
    return leave(0);
}

gv_cu_result gv_v_mem_alloc(gv_cu_ptr *at, size_t bytes)
{
    ENTER_CONTEXT(w)
    return leave(bytes ? gv_virtual_alloc(w, current->index, bytes, at) : INVALID);
}

gv_cu_result gv_v_mem_free(gv_cu_ptr at)
{
    ENTER_CONTEXT(w)
    return leave(gv_virtual_free(w, at));
}

gv_cu_result gv_v_host_alloc(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    ENTER_CONTEXT(w)
    uint64_t at = 0;
    gv_cu_result rc = gv_virtual_alloc(w, -1, bytes, &at);
    *out = (void *)(uintptr_t)at;
    return leave(rc);
}

gv_cu_result gv_v_host_free(void *at)
{
    ENTER(w)
    return leave(gv_virtual_free(w, (uint64_t)(uintptr_t)at));
}

gv_cu_result gv_v_host_pointer(gv_cu_ptr *out, void *at, unsigned flags)
{
    (void)flags;
    *out = (uint64_t)(uintptr_t)at;
    return 0;
}

static gv_cu_result queue(struct gv_world *w, gv_cu_stream stream, const struct gv_vop *like)
{
    if (gv_capture_take((struct gv_vstream *)stream, like))
        return 0;
    struct gv_vop *op = malloc(sizeof(*op));
    if (!op)
        return GV_CU_OUT_OF_MEMORY;
    *op = *like;
    gv_virtual_room(w, (struct gv_vstream *)stream);
    gv_virtual_queue(w, (struct gv_vstream *)stream, op);
    return 0;
}

static gv_cu_result queue_copy(gv_cu_ptr to, gv_cu_ptr from, size_t bytes, gv_cu_stream stream)
{
    struct gv_vop op = {.kind = GV_VOP_COPY, .to = to, .from = from, .bytes = bytes};
    ENTER_CONTEXT(w)
    const struct gv_alloc *a = gv_virtual_find(w, from), *b = gv_virtual_find(w, to);
    if (!a || !b)
        return leave(INVALID);
    bool peers = a->gpu >= 0 && b->gpu >= 0 && a->gpu != b->gpu;
    if (peers && w->faults.peer_copies && w->peer_copies++ >= w->faults.peer_copies) {
        gv_capture_spoil((struct gv_vstream *)stream);
        return leave(801);
    }
    return leave(queue(w, stream, &op));
}

gv_cu_result gv_v_copy_async(gv_cu_ptr to, gv_cu_ptr from, size_t bytes, gv_cu_stream stream)
{
    return queue_copy(to, from, bytes, stream);
}

gv_cu_result gv_v_copy_dtod(gv_cu_ptr to, gv_cu_ptr from, size_t bytes, gv_cu_stream stream)
{
    return queue_copy(to, from, bytes, stream);
}

gv_cu_result gv_v_copy_htod(gv_cu_ptr to, const void *from, size_t bytes, gv_cu_stream stream)
{
    return queue_copy(to, (uint64_t)(uintptr_t)from, bytes, stream);
}

gv_cu_result gv_v_copy_dtoh(void *to, gv_cu_ptr from, size_t bytes, gv_cu_stream stream)
{
    return queue_copy((uint64_t)(uintptr_t)to, from, bytes, stream);
}

gv_cu_result gv_v_copy_peer(
    gv_cu_ptr to, gv_cu_ctx to_ctx, gv_cu_ptr from, gv_cu_ctx from_ctx, size_t bytes,
    gv_cu_stream stream)
{
    (void)to_ctx, (void)from_ctx;
    return queue_copy(to, from, bytes, stream);
}

gv_cu_result gv_v_set_words(gv_cu_ptr at, unsigned value, size_t count, gv_cu_stream stream)
{
    struct gv_vop op = {.kind = GV_VOP_SET, .to = at, .bytes = 4 * count, .value = value};
    ENTER_CONTEXT(w)
    const struct gv_alloc *a = gv_virtual_find(w, at);
    if (!a)
        return leave(INVALID);
    return leave(queue(w, stream, &op));
}

gv_cu_result gv_v_stream_create(gv_cu_stream *out, unsigned flags)
{
    (void)flags;
    ENTER_CONTEXT(w)
    struct gv_vstream *s = calloc(1, sizeof(*s));
    if (!s)
        return leave(GV_CU_OUT_OF_MEMORY);
    s->gpu = current->index;
    s->next = w->streams;
    w->streams = s;
    *out = (gv_cu_stream)s;
    return leave(0);
}

gv_cu_result gv_v_stream_destroy(gv_cu_stream stream)
{
    ENTER(w)
    struct gv_vstream **at = &w->streams;
    while (*at && *at != (struct gv_vstream *)stream)
        at = &(*at)->next;
    if (*at)
        *at = (*at)->next;
    free(stream);
    return leave(0);
}

gv_cu_result gv_v_stream_query(gv_cu_stream stream)
{
    ENTER(w)
    return leave(gv_virtual_advance(w, (struct gv_vstream *)stream));
}

/* Blocks for good where the work never ends, as the driver does. */
gv_cu_result gv_v_stream_sync(gv_cu_stream stream)
{
    for (;;) {
        gv_cu_result rc = gv_v_stream_query(stream);
        if (rc != GV_CU_NOT_READY)
            return rc;
        usleep(1000);
    }
}

gv_cu_result gv_v_event_create(gv_cu_event *out, unsigned flags)
{
    (void)flags;
    ENTER_CONTEXT(w)
    (void)w;
    struct gv_vevent *event = calloc(1, sizeof(*event));
    if (!event)
        return leave(GV_CU_OUT_OF_MEMORY);
    event->gpu = current->index;
    event->at = -1;
    *out = (gv_cu_event)event;
    return leave(0);
}

gv_cu_result gv_v_event_destroy(gv_cu_event event)
{
    free(event);
    return 0;
}

gv_cu_result gv_v_event_record(gv_cu_event event, gv_cu_stream stream)
{
    struct gv_vop op = {.kind = GV_VOP_EVENT, .event = (struct gv_vevent *)event};
    ENTER_CONTEXT(w)
    if (op.event->gpu != ((struct gv_vstream *)stream)->gpu)
        return leave(INVALID_HANDLE); /* as the driver: both must be of one context */
    op.event->at = -1;
    if (!((struct gv_vstream *)stream)->capture) {
        op.event->recorded++;
        op.event->capture = 0;
    }
    return leave(queue(w, stream, &op));
}

gv_cu_result gv_v_event_elapsed(float *ms, gv_cu_event begin, gv_cu_event end)
{
    const struct gv_vevent *a = (struct gv_vevent *)begin, *b = (struct gv_vevent *)end;
    if (a->at < 0 || b->at < 0)
        return GV_CU_NOT_READY;
    *ms = (float)((b->at - a->at) * 1e-3);
    return 0;
}

/* The module is the PTX; a function is a name in it that has a twin. */
gv_cu_result gv_v_module_load(gv_cu_module *out, const void *image)
{
    ENTER_CONTEXT(w)
    (void)w;
    *out = (gv_cu_module)(uintptr_t)image;
    return leave(strstr(image, ".target sm_70") ? 0 : 200);
}

gv_cu_result gv_v_module_unload(gv_cu_module module)
{
    (void)module;
    return 0;
}

gv_cu_result gv_v_module_function(gv_cu_function *out, gv_cu_module module, const char *name)
{
    char entry[96];
    const struct gv_twin *twin = gv_twin_find(name);
    snprintf(entry, sizeof(entry), ".entry %s(", name);
    if (!twin || !strstr((const char *)module, entry))
        return 500;
    *out = (gv_cu_function)(uintptr_t)twin;
    return 0;
}

gv_cu_result gv_v_launch(
    gv_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
    unsigned block_y, unsigned block_z, unsigned shared_bytes, gv_cu_stream stream, void **params,
    void **extra)
{
    const struct gv_twin *twin = (const struct gv_twin *)function;
    struct gv_vop op = {.kind = GV_VOP_KERNEL, .twin = twin};
    (void)grid_y, (void)grid_z, (void)block_y, (void)block_z, (void)shared_bytes, (void)extra;
    ENTER_CONTEXT(w)
    if (!grid_x || !block_x || block_x > 1024 || twin->args_size > sizeof(op.args) ||
        ((struct gv_vstream *)stream)->gpu != current->index)
        return leave(INVALID);
    op.env.grid = grid_x;
    op.env.block = block_x;
    op.is_gate = !strcmp(twin->name, "gv_gate");
    memcpy(op.args, params[0], twin->args_size);
    return leave(queue(w, stream, &op));
}

/* Not asked by gv100, but by NCCL and by plugins. */
EXPORT gv_cu_result cuCtxGetDevice(gv_cu_device *device);

gv_cu_result cuCtxGetDevice(gv_cu_device *device)
{
    if (!current)
        return INVALID_CONTEXT;
    *device = current->index;
    return 0;
}

/* For the virtual NCCL: waits for the stream, then lets `us` pass; a factor of the noise. */
EXPORT gv_cu_result gv_virtual_pass(gv_cu_stream stream, double us);
EXPORT double gv_virtual_factor(void);
/* Whether NCCL's data goes wrong over P2P between them. */
EXPORT int gv_virtual_nccl_corrupt(int from, int to);

gv_cu_result gv_virtual_pass(gv_cu_stream stream, double us)
{
    ENTER_CONTEXT(w)
    gv_cu_result rc = gv_virtual_advance(w, (struct gv_vstream *)stream);
    if (!rc)
        w->now_us += us;
    return leave(rc);
}

double gv_virtual_factor(void)
{
    struct gv_world *w = enter();
    double factor = w ? gv_virtual_noise(w) : 1;
    if (w)
        leave(0);
    return factor;
}

/* For `gv100 --virtual`: writes the machine's sysfs tree below `root`. 0, or -1 with a message in
 * `text` (512 bytes). */
EXPORT int gv_virtual_sysfs(const char *root, char *text);

int gv_virtual_sysfs(const char *root, char *text)
{
    struct gv_error err = {0};
    struct gv_world *w = enter();
    if (!w) {
        snprintf(text, 512, "the virtual machine cannot be made");
        return -1;
    }
    int rc = gv_bench_machine_sysfs(&w->fabric.machine, root, &err);
    for (int i = 0; i < w->fabric.machine.ngpus && !rc; i++) {
        char path[4096];
        if (!w->faults.gpu[i].link_width)
            continue;
        snprintf(
            path, sizeof(path), "%s/bus/pci/devices/%s/current_link_width", root,
            w->fabric.machine.gpus[i].pci.bus_id);
        FILE *file = fopen(path, "w");
        if (file) {
            fprintf(file, "%d\n", w->faults.gpu[i].link_width);
            fclose(file);
        }
    }
    snprintf(text, 512, "%s", err.text);
    return leave(rc);
}

int gv_virtual_nccl_corrupt(int from, int to)
{
    struct gv_world *w = enter();
    if (!w)
        return 0;
    int on = gv_fault_on(w, GV_FAULT_NCCL, from, to);
    leave(0);
    return on;
}
