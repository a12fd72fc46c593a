/* Where the GPUs sit: path classes, islands, the groups that are worth measuring, ring orders. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/probe/gv_calibration.h"

/* Folders of `path` below the first `len` characters. */
static int levels(const char *path, size_t len)
{
    int n = 0;
    for (const char *p = path + len; *p; p++)
        n += *p == '/';
    return n;
}

const char *gv_shape_acs(const struct gv_calibration *cal, int a, int b, char *out, size_t size)
{
    return gv_host_acs_between(
        gv_sysfs_root(), cal->machine.gpus[a].bus_id, cal->machine.gpus[b].bus_id, out, size);
}

static bool same_host_bridge(const char *a, const char *b)
{
    const char *x = strstr(a, "/pci"), *y = strstr(b, "/pci");
    size_t n = x ? strcspn(x + 1, "/") : 0;
    return x && y && n == strcspn(y + 1, "/") && !strncmp(x, y, n + 1);
}

static void classify(struct gv_calibration *cal, int a, int b, const char *pa, const char *pb)
{
    const struct gv_machine_gpu *x = &cal->machine.gpus[a], *y = &cal->machine.gpus[b];
    enum gv_path_class c = GV_PATH_UNKNOWN;
    const char *smi = "";
    char links[8];
    if (x->numa_node >= 0 && y->numa_node >= 0 && x->numa_node != y->numa_node) {
        c = GV_PATH_SYS;
        smi = "SYS";
    } else if (x->root_port[0] && !strcmp(x->root_port, y->root_port)) {
        size_t len = gv_host_common_path(pa, pb);
        /* A switch is an upstream port with one downstream port above each device. */
        bool one = levels(pa, len) <= 2 && levels(pb, len) <= 2;
        c = one ? GV_PATH_PIX : GV_PATH_PXB;
        smi = one ? "PIX" : "PXB";
    } else if (pa[0] && pb[0]) {
        c = GV_PATH_PHB;
        smi = same_host_bridge(pa, pb) ? "PHB" : "NODE";
    }
    if (cal->nvlinks[a][b]) {
        snprintf(links, sizeof(links), "NV%d", cal->nvlinks[a][b]);
        c = GV_PATH_NVL;
        smi = links;
    }
    cal->path_class[a][b] = c;
    snprintf(cal->smi_class[a][b], sizeof(cal->smi_class[a][b]), "%s", smi);
}

static void number_islands(struct gv_calibration *cal)
{
    int islands = 0;
    for (int i = 0; i < cal->n; i++) {
        const char *port = cal->machine.gpus[i].root_port;
        cal->island[i] = -1;
        for (int k = 0; k < i && cal->island[i] < 0; k++)
            if (port[0] && !strcmp(port, cal->machine.gpus[k].root_port))
                cal->island[i] = cal->island[k];
        if (cal->island[i] < 0)
            cal->island[i] = islands++;
    }
}

void gv_shape_read(struct gv_calibration *cal)
{
    char(*paths)[PATH_MAX] = malloc(sizeof(*paths) * (size_t)cal->n);
    if (!paths)
        return;
    for (int i = 0; i < cal->n; i++)
        gv_host_device_path(gv_sysfs_root(), cal->machine.gpus[i].bus_id, paths[i]);
    for (int a = 0; a < cal->n; a++)
        for (int b = 0; b < cal->n; b++)
            if (a != b) {
                cal->nvlinks[a][b] = gv_device_nvlinks(&cal->gpus, a, b);
                classify(cal, a, b, paths[a], paths[b]);
            }
    number_islands(cal);
    free(paths);
}

static void add_group(gv_gpuset *out, int *n, gv_gpuset set)
{
    for (int i = 0; i < *n; i++)
        if (out[i] == set)
            return;
    if (gv_gpuset_count(set) >= 2 && *n < GV_MAX_GPUS)
        out[(*n)++] = set;
}

static gv_gpuset island_of(const struct gv_calibration *cal, int island)
{
    gv_gpuset set = 0;
    for (int i = 0; i < cal->n; i++)
        if (cal->island[i] == island)
            set |= GV_GPU_BIT(i);
    return set;
}

/* The first pair of each class. */
static void add_pairs(const struct gv_calibration *cal, gv_gpuset *out, int *n)
{
    for (int c = GV_PATH_UNKNOWN; c < GV_PATH_CLASSES; c++) {
        bool found = false;
        for (int a = 0; a < cal->n && !found; a++)
            for (int b = a + 1; b < cal->n && !found; b++)
                if ((int)cal->path_class[a][b] == c) {
                    add_group(out, n, GV_GPU_BIT(a) | GV_GPU_BIT(b));
                    found = true;
                }
    }
}

static void add_islands(const struct gv_calibration *cal, gv_gpuset *out, int *n)
{
    bool size_seen[GV_MAX_GPUS + 1] = {0};
    for (int i = 0; i < cal->n; i++) {
        gv_gpuset set = island_of(cal, i);
        int size = gv_gpuset_count(set);
        if (!size_seen[size])
            add_group(out, n, set);
        size_seen[size] = true;
    }
}

/* Islands of the first GPU's NUMA node, one after the other. */
static void add_joined(const struct gv_calibration *cal, gv_gpuset *out, int *n)
{
    for (int i = 0; i < cal->n; i++) {
        gv_gpuset first = island_of(cal, cal->island[i]), joined = first;
        int node = cal->machine.gpus[i].numa_node;
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen |= cal->machine.gpus[k].numa_node == node;
        if (seen)
            continue;
        for (int k = i; k < cal->n; k++) {
            if (cal->machine.gpus[k].numa_node != node || joined & GV_GPU_BIT(k))
                continue;
            if (joined == first && gv_gpuset_count(first) > 1)
                add_group(out, n, first | GV_GPU_BIT(k));
            joined |= island_of(cal, cal->island[k]);
            add_group(out, n, joined);
        }
    }
}

int gv_shape_groups(const struct gv_calibration *cal, gv_gpuset out[GV_MAX_GPUS])
{
    int n = 0;
    gv_gpuset all = cal->n == 64 ? ~(gv_gpuset)0 : GV_GPU_BIT(cal->n) - 1;
    add_pairs(cal, out, &n);
    add_islands(cal, out, &n);
    add_joined(cal, out, &n);
    add_group(out, &n, all);
    return n;
}

int gv_shape_ring(const struct gv_calibration *cal, gv_gpuset gpus, int out[GV_MAX_GPUS])
{
    int n = 0, at = gv_gpuset_first(gpus);
    while (at >= 0) {
        out[n++] = at;
        gpus &= ~GV_GPU_BIT(at);
        int next = -1;
        for (gv_gpuset rest = gpus; rest; rest &= rest - 1) {
            int to = gv_gpuset_first(rest);
            if (next < 0 || cal->path_class[at][to] < cal->path_class[at][next])
                next = to;
        }
        at = next;
    }
    return n;
}

bool gv_shape_default_p2p(const struct gv_calibration *cal, int a, int b)
{
    enum gv_path_class c = cal->path_class[a][b];
    return c >= GV_PATH_NVL && c <= GV_PATH_PXB;
}
