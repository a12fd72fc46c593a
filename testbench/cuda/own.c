/* What the virtual machine's libcuda.so.1 offers beside the driver's functions. */
#include <stdio.h>

#include "testbench/cuda/entry.h"

/* For the virtual NCCL: waits for the stream, then lets `us` pass; a factor of the noise. */
EXPORT gv_cu_result gv_virtual_pass(gv_cu_stream stream, double us);
EXPORT double gv_virtual_factor(void);

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

/* Whether NCCL's data goes wrong over P2P between them. */
EXPORT int gv_virtual_nccl_corrupt(int from, int to);

int gv_virtual_nccl_corrupt(int from, int to)
{
    struct gv_world *w = enter();
    if (!w)
        return 0;
    int on = gv_fault_on(w, GV_FAULT_NCCL, from, to);
    leave(0);
    return on;
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
