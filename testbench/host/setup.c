/* The job's folder and its environment: the machine in it, the plugin's variable, the launcher's.
 */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/gv_stamp.h"
#include "testbench/host/job.h"

static void set(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void set(const char *name, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) >= 0)
        setenv(name, text, 1);
    va_end(args);
    free(text);
}

static void set_default(const char *name, const char *value)
{
    if (!getenv(name))
        setenv(name, value, 1);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    remove(path);
    return 0;
}

void gvh_remove_folder(const char *dir)
{
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int make_folder(struct gvh_job *job, struct gv_error *err)
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || !*tmp) /* a sysfs tree is some hundred small files */
        tmp = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    snprintf(job->dir, sizeof(job->dir), "%s/gv-nccl-host.XXXXXX", tmp);
    if (!mkdtemp(job->dir))
        return gv_error_set(err, "no temporary folder %s: %m", job->dir);
    set("GV_HOST_DIR", "%s", job->dir);
    return 0;
}

static int
write_topology(const struct gvh_job *job, const struct gv_bench_machine *m, struct gv_error *err)
{
    struct gv_str xml = {0};
    char path[PATH_MAX + 16];

    snprintf(path, sizeof(path), "%s/detected.xml", job->dir);
    gv_bench_machine_topology(m, &xml);
    FILE *file = fopen(path, "w");
    int rc = !file || xml.failed || fwrite(xml.data, 1, xml.len, file) != xml.len ? -1 : 0;
    if (file)
        rc |= fclose(file);
    gv_str_free(&xml);
    if (rc)
        return gv_error_set(err, "%s cannot be written: %m", path);
    set("GV_HOST_XML", "%s", path);
    return 0;
}

static void name_gpus(const struct gv_bench_machine *m)
{
    struct gv_str buses = {0}, uuids = {0};
    for (int i = 0; i < m->ngpus; i++) {
        gv_str_addf(&buses, "%s%s", i ? "," : "", m->gpus[i].pci.bus_id);
        gv_str_addf(&uuids, "%s%s", i ? "," : "", m->gpus[i].uuid);
    }
    set("GV_HOST_BUS_IDS", "%s", buses.data ? buses.data : "");
    set("GV_HOST_UUIDS", "%s", uuids.data ? uuids.data : "");
    set("GV_HOST_NOP2P", "0x%lx", (unsigned long)gv_bench_machine_nop2p(m));
    gv_str_free(&buses);
    gv_str_free(&uuids);
}

/* A stamp that says "verified" of every pair whose GPUs can do P2P. */
static int
write_stamp(const struct gvh_job *job, const struct gv_bench_machine *m, struct gv_error *err)
{
    static struct gv_machine machine;
    static struct gv_stamp stamp;
    char path[PATH_MAX + 16];

    if (gv_machine_read(getenv("GV100_SYSFS"), &machine, err))
        return -1;
    snprintf(stamp.host, sizeof(stamp.host), "%s", machine.host);
    snprintf(stamp.boot_id, sizeof(stamp.boot_id), "%s", machine.boot_id);
    snprintf(stamp.driver, sizeof(stamp.driver), "%s", machine.driver);
    snprintf(stamp.date, sizeof(stamp.date), "2026-01-01");
    snprintf(stamp.tool, sizeof(stamp.tool), "gv-nccl-host");
    stamp.ngpus = m->ngpus;
    for (int a = 0; a < m->ngpus; a++) {
        snprintf(stamp.bus_id[a], sizeof(stamp.bus_id[a]), "%s", m->gpus[a].pci.bus_id);
        for (int b = 0; b < m->ngpus; b++)
            if (a != b)
                stamp.pair[a][b] =
                    m->gpus[a].p2p && m->gpus[b].p2p ? GV_P2P_VERIFIED : GV_P2P_REFUSED;
    }
    snprintf(path, sizeof(path), "%s/verified.yaml", job->dir);
    set("GV100_STAMP", "%s", path);
    return gv_stamp_write(&stamp, path, err);
}

static int
setup_stamp(const struct gvh_job *job, const struct gv_bench_machine *m, struct gv_error *err)
{
    if (!strcmp(job->stamp, "auto"))
        return getenv("GV100_STAMP") ? 0 : write_stamp(job, m, err);
    if (!strcmp(job->stamp, "none"))
        set("GV100_STAMP", "%s/no-such-stamp", job->dir);
    else
        set("GV100_STAMP", "%s", job->stamp);
    return 0;
}

/* ../share or the source tree: where this program's machines are. */
static int find_machine(
    const struct gvh_job *job, const char *program, struct gv_bench_machine *m,
    struct gv_error *err)
{
    char path[PATH_MAX], folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/machines", program);
    if (access(folder, R_OK))
        snprintf(folder, sizeof(folder), "%s", GV_MACHINES_FOLDER);
    if (gv_bench_machine_resolve(job->machine, folder, path, err))
        return -1;
    return gv_bench_machine_read(path, m, err);
}

static int setup_machine(struct gvh_job *job, const char *program, struct gv_error *err)
{
    static struct gv_bench_machine m;
    char sysfs[PATH_MAX + 16];

    if (find_machine(job, program, &m, err))
        return -1;
    for (gv_gpuset rest = job->all; rest; rest &= rest - 1)
        if (gv_gpuset_first(rest) >= m.ngpus)
            return gv_error_set(
                err, "machine %s has no GPU %d, only 0 to %d", m.name, gv_gpuset_first(rest),
                m.ngpus - 1);
    snprintf(sysfs, sizeof(sysfs), "%s/sys", job->dir);
    if (gv_bench_machine_sysfs(&m, sysfs, err) || write_topology(job, &m, err))
        return -1;
    set("GV100_SYSFS", "%s", sysfs);
    set_default("GV100_PROFILE", m.name);
    name_gpus(&m);
    return setup_stamp(job, &m, err);
}

/* Only the file is known: GPUs are what it says. */
static void setup_bare(void)
{
    struct gv_str buses = {0};
    for (int i = 0; i < GV_MAX_GPUS; i++)
        gv_str_addf(&buses, "%s0000:%02x:00.0", i ? "," : "", i + 1);
    set("GV_HOST_BUS_IDS", "%s", buses.data);
    gv_str_free(&buses);
}

static int setup_overrides(const struct gvh_job *job, struct gv_error *err)
{
    gv_gpuset set_of = 0;
    if (job->topology)
        set("NCCL_TOPO_FILE", "%s", job->topology);
    if (job->sm)
        set("GV_HOST_SM", "%d", job->sm);
    if (job->timeout_ms)
        set("GV_HOST_TIMEOUT_MS", "%d", job->timeout_ms);
    if (job->nop2p && *job->nop2p && gv_gpuset_parse(job->nop2p, &set_of, err))
        return -1;
    if (job->nop2p)
        set("GV_HOST_NOP2P", "0x%lx", (unsigned long)set_of);
    if (job->visible) {
        int list[GV_MAX_GPUS], n = gv_gpulist_parse(job->visible, list, err);
        struct gv_str text = {0};
        for (int i = 0; i < n; i++)
            gv_str_addf(&text, "%s%d", i ? "," : "", list[i]);
        if (n < 0)
            return -1;
        set("CUDA_VISIBLE_DEVICES", "%s", text.data);
        gv_str_free(&text);
    }
    set("GV_HOST_NODES", "%d", job->nodes);
    set("GV_HOST_RELEASE", "%s", job->release_text);
    return 0;
}

/* A sanitizer's runtime wants to be the first library of a process. */
static int find_sanitizer(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    bool found = strstr(info->dlpi_name, "/libasan.so") || strstr(info->dlpi_name, "/libtsan.so");
    if (found)
        snprintf(out, PATH_MAX, "%s:", info->dlpi_name);
    return found;
}

static int setup_plugin(const struct gvh_job *job, const char *program, struct gv_error *err)
{
    char path[PATH_MAX];
    enum gvh_given given = job->given;

    if (given == GVH_GIVEN_NONE)
        return 0;
    snprintf(path, sizeof(path), "%s/../lib/libnccl-tuner-gv100.so", program);
    if (job->plugin)
        snprintf(path, sizeof(path), "%s", job->plugin);
    char *real = realpath(path, NULL);
    if (!real)
        return gv_error_set(err, "%s: %m; name the plugin with --plugin, or --no-plugin", path);
    if (given == GVH_GIVEN_AUTO)
        given = job->release.version >= 22807 ? GVH_GIVEN_ENV : GVH_GIVEN_PRELOAD;
    char first[PATH_MAX] = "";
    if (given == GVH_GIVEN_PRELOAD) {
        dl_iterate_phdr(find_sanitizer, first);
        set("LD_PRELOAD", "%s%s", first, real);
    } else {
        set(given == GVH_GIVEN_ENV ? "NCCL_ENV_PLUGIN" : "NCCL_TUNER_PLUGIN", "%s", real);
    }
    free(real);
    return 0;
}

int gvh_setup(struct gvh_job *job, const char *program, struct gv_error *err)
{
    if (make_folder(job, err))
        return -1;
    if (*job->machine) {
        if (setup_machine(job, program, err))
            return -1;
    } else {
        setup_bare();
    }
    return setup_overrides(job, err) ? -1 : setup_plugin(job, program, err);
}

static void clear_launchers(void)
{
    static const char *const names[] = {
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "RANK",
        "LOCAL_RANK",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "SLURM_NTASKS",
        "SLURM_NPROCS",
        "SLURM_PROCID",
        "SLURM_LOCALID",
        "SLURM_NNODES",
        "SLURM_JOB_NUM_NODES",
        "SLURM_STEP_NUM_NODES",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_TASKS_PER_NODE",
        "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_NODEID",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "PMI_SIZE",
        "PMI_RANK",
        "PMIX_RANK"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

void gvh_setup_rank(const struct gvh_job *job, int rank, int nprocs)
{
    int world = nprocs * job->nodes;

    clear_launchers();
    if (!strcmp(job->launcher, "torchrun")) {
        set("WORLD_SIZE", "%d", world);
        set("LOCAL_WORLD_SIZE", "%d", nprocs);
        set("RANK", "%d", rank);
        set("LOCAL_RANK", "%d", rank);
        set("GROUP_RANK", "0");
        set("GROUP_WORLD_SIZE", "%d", job->nodes);
    } else if (!strcmp(job->launcher, "srun")) {
        set("SLURM_NTASKS", "%d", world);
        set("SLURM_NPROCS", "%d", world);
        set("SLURM_PROCID", "%d", rank);
        set("SLURM_LOCALID", "%d", rank);
        set("SLURM_NODEID", "0");
        set("SLURM_NNODES", "%d", job->nodes);
        set("SLURM_JOB_NUM_NODES", "%d", job->nodes);
        set("SLURM_STEP_NUM_NODES", "%d", job->nodes);
        set("SLURM_STEP_NUM_TASKS", "%d", world);
        if (job->nodes > 1)
            set("SLURM_STEP_TASKS_PER_NODE", "%d(x%d)", nprocs, job->nodes);
        else
            set("SLURM_STEP_TASKS_PER_NODE", "%d", nprocs);
    } else if (!strcmp(job->launcher, "mpirun")) {
        set("OMPI_COMM_WORLD_SIZE", "%d", world);
        set("OMPI_COMM_WORLD_RANK", "%d", rank);
        set("OMPI_COMM_WORLD_LOCAL_SIZE", "%d", nprocs);
        set("OMPI_COMM_WORLD_LOCAL_RANK", "%d", rank);
        set("PMIX_RANK", "%d", rank);
    }
}
