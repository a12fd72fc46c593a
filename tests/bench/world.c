#include "tests/bench/world.h"

#include <dlfcn.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testbench/machines/gv_bench_machine.h"

static void stop(const char *what, const struct gv_error *err)
{
    char text[GV_ERROR_TEXT + GV_ERROR_FILE + 32] = "";
    fprintf(stderr, "bench: %s%s\n", what, err ? gv_error_format(err, text, sizeof(text)) : "");
    exit(3);
}

/* Variables that steer the plugin or tell about a launcher are the benchmark's to set. */
static void clean_environment(void)
{
    static const char *const prefixes[] = {"NCCL_", "GV100_", "OMPI_",      "MV2_",
                                           "PMI_",  "SLURM_", "MPI_LOCALN", NULL};
    for (char **at = environ; *at;) {
        char name[128];
        bool drop = !strncmp(*at, "WORLD_SIZE=", 11) || !strncmp(*at, "LOCAL_WORLD_SIZE=", 17) ||
                    !strncmp(*at, "CUDA_VISIBLE_DEVICES=", 21);
        for (int i = 0; prefixes[i]; i++)
            drop |= !strncmp(*at, prefixes[i], strlen(prefixes[i]));
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*at, "="), *at);
        if (!drop || unsetenv(name) || getenv(name))
            at++;
    }
}

static void take_reference(struct gv_bench_machine *m)
{
    char path[PATH_MAX];
    struct gv_error err = {0};
    if (gv_bench_machine_resolve("4028", GV_MACHINES, path, &err) ||
        gv_bench_machine_read(path, m, &err))
        stop("", &err);
}

static struct gv_bench_pci *pci_at(
    struct gv_bench_pci *pci, const char *bus_id, const char *parent, const char *pci_class,
    unsigned vendor, unsigned device)
{
    snprintf(pci->bus_id, sizeof(pci->bus_id), "%s", bus_id);
    snprintf(pci->parent, sizeof(pci->parent), "%s", parent);
    snprintf(pci->pci_class, sizeof(pci->pci_class), "%s", pci_class);
    snprintf(pci->speed, sizeof(pci->speed), "8.0 GT/s PCIe");
    pci->width = 16;
    pci->vendor = (uint16_t)vendor;
    pci->device = (uint16_t)device;
    return pci;
}

static void add_switch(struct gv_bench_machine *m, int bus)
{
    char host[20], root[20], up[20], down[20], gpu[20];
    snprintf(host, sizeof(host), "pci0000:%02x", bus);
    snprintf(root, sizeof(root), "0000:%02x:00.0", bus);
    snprintf(up, sizeof(up), "0000:%02x:00.0", bus + 1);
    pci_at(&m->bridges[m->nbridges++], root, host, "0x060400", 0x8086, 0x2030);
    pci_at(&m->bridges[m->nbridges++], up, root, "0x060400", 0x10b5, 0x9797);
    for (int i = 0; i < 4; i++) {
        snprintf(down, sizeof(down), "0000:%02x:%02x.0", bus + 2, 4 + 4 * i);
        snprintf(gpu, sizeof(gpu), "0000:%02x:00.0", bus + 3 + i);
        pci_at(&m->bridges[m->nbridges++], down, up, "0x060400", 0x10b5, 0x9797);
        struct gv_bench_gpu *g = &m->gpus[m->ngpus];
        pci_at(&g->pci, gpu, down, "0x030200", 0x10de, 0x1db6);
        snprintf(g->model, sizeof(g->model), "Tesla V100-PCIE-32GB");
        snprintf(
            g->uuid, sizeof(g->uuid), "GPU-64640000-0000-4000-8000-0000000000%02x", m->ngpus++);
        g->sm = 70;
        g->memory_mib = 32768;
        g->p2p = true;
    }
}

static void make_64(struct gv_bench_machine *m)
{
    snprintf(m->name, sizeof(m->name), "64");
    snprintf(m->driver, sizeof(m->driver), "580.0");
    snprintf(m->boot_id, sizeof(m->boot_id), "64640000-0000-4000-8000-000000000001");
    m->cpu = (struct gv_bench_cpu){"x86_64", "GenuineIntel", 6, 85};
    m->nodes[0] = (struct gv_bench_node){0, "ffffffff"};
    m->nnodes = 1;
    for (int i = 0; i < 16; i++)
        add_switch(m, 0x10 + 8 * i);
}

static void name_gpus(const struct gv_bench_machine *m)
{
    struct gv_str ids = {0};
    for (int i = 0; i < m->ngpus; i++)
        gv_str_addf(&ids, "%s%s", i ? "," : "", m->gpus[i].pci.bus_id);
    setenv("GV_HOST_BUS_IDS", ids.data ? ids.data : "", 1);
    gv_str_free(&ids);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

/* The open world's folder, for the exits that do not close it. */
static char open_dir[sizeof(((struct gv_world *)0)->dir)];

static void remove_folder(void)
{
    if (open_dir[0])
        nftw(open_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    open_dir[0] = 0;
}

void gv_world_close(struct gv_world *world)
{
    (void)world;
    remove_folder();
}

void gv_world_open(struct gv_world *world, enum gv_world_machine machine)
{
    static struct gv_bench_machine m;
    char path[PATH_MAX];
    struct gv_error err = {0};

    clean_environment();
    snprintf(world->dir, sizeof(world->dir), "/dev/shm/gv100-bench.XXXXXX");
    if (!mkdtemp(world->dir)) {
        snprintf(world->dir, sizeof(world->dir), "/tmp/gv100-bench.XXXXXX");
        if (!mkdtemp(world->dir))
            stop("no temporary folder in /dev/shm or /tmp", NULL);
    }
    memcpy(open_dir, world->dir, sizeof(open_dir));
    atexit(remove_folder);
    memset(&m, 0, sizeof(m));
    if (machine == GV_WORLD_64)
        make_64(&m);
    else
        take_reference(&m);
    snprintf(path, sizeof(path), "%s/sys", world->dir);
    if (gv_bench_machine_sysfs(&m, path, &err))
        stop("", &err);
    setenv("GV100_SYSFS", path, 1);
    snprintf(path, sizeof(path), "%s/registry", world->dir);
    setenv("GV100_SHM_DIR", path, 1);
    snprintf(path, sizeof(path), "%s/signs", world->dir);
    setenv("GV100_SIGN_DIR", path, 1);
    setenv("GV100_ASSUME_VERIFIED", "1", 1);
    setenv("GV100_SINGLE_NODE", "1", 1);
    setenv("GV100_PROFILE_DIR", GV_PROFILES, 1);
    name_gpus(&m);
}

void gv_world_profile(const struct gv_world *world, struct gv_profile *profile)
{
    char path[PATH_MAX];
    struct gv_error err = {0};
    snprintf(path, sizeof(path), "%s/profile.yaml", world->dir);
    if (gv_profile_write(profile, path, &err))
        stop("", &err);
    setenv("GV100_PROFILE", path, 1);
    gv_profile_free(profile);
}

void gv_world_shipped(const char *name)
{
    setenv("GV100_PROFILE", name, 1);
}

const char *gv_world_registry(void)
{
    return getenv("GV100_SHM_DIR");
}

const void *gv_world_symbol(const char *library, const char *symbol)
{
    char path[PATH_MAX];
    const char *folder = getenv("GV_LIB_DIR");
    snprintf(path, sizeof(path), "%s/%s", folder ? folder : GV_LIBRARIES, library);
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const void *found = lib ? dlsym(lib, symbol) : NULL;
    if (!found)
        stop(dlerror(), NULL);
    return found;
}

static atomic_int warnings;

int gv_world_warnings(void)
{
    return atomic_load(&warnings);
}

void gv_world_logger(
    int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
    (void)flags, (void)file, (void)line;
    if (level == GV_LOG_WARN)
        atomic_fetch_add(&warnings, 1);
    if (!getenv("GV_BENCH_VERBOSE"))
        return;
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
    *version = GV_WORLD_NCCL;
    return 0;
}
