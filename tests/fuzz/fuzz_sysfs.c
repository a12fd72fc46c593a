/* A machine's sysfs with any content: the plugin and the command read it as root's word, but what
 * stands there is a firmware's. A line "d PATH" makes a device's folder and its link in
 * bus/pci/devices, "f NAME VALUE" a file in the folder of the last one, "n PATH VALUE" a file
 * anywhere else. What is read has an order and bounds, and NCCL's tree made of it is written and
 * read back equal. */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "config/gv_machine.h"
#include "plugin/topology/gv_topology.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_LINES = 64, PATH_SIZE = 512 };

static char root[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type;
    return ftw->level ? remove(path) : 0;
}

static void remove_root(void)
{
    rmdir(root);
}

static void make_root(void)
{
    if (root[0])
        return;
    snprintf(
        root, sizeof(root), "%s/gv-fuzz-sysfs-XXXXXX",
        access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    GV_MUST(mkdtemp(root));
    atexit(remove_root);
}

/* A path that stays below the root. */
static bool harmless(const char *path)
{
    return *path && *path != '/' && strlen(path) < 200 && !strstr(path, "..");
}

static void folders(char *path)
{
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
}

static void put(const char *below, const char *name, const char *value)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%s%s%s", root, below, *below ? "/" : "", name);
    folders(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return;
    GV_MUST(write(fd, value, strlen(value)) == (ssize_t)strlen(value));
    close(fd);
}

static void device(const char *below)
{
    char path[PATH_SIZE], to[PATH_SIZE];
    const char *name = strrchr(below, '/');
    snprintf(path, sizeof(path), "%s/%s/", root, below);
    folders(path);
    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", root, name ? name + 1 : below);
    snprintf(to, sizeof(to), "../../../%s", below);
    if (symlink(to, path))
        return;
}

static void make(char *text)
{
    char last[200] = "devices";
    put("bus/pci/devices", ".made", "");
    for (int i = 0; text && i < MOST_LINES; i++) {
        char *line = strsep(&text, "\n");
        if (strncmp(line, "d ", 2) && strncmp(line, "f ", 2) && strncmp(line, "n ", 2))
            continue;
        char kind = line[0], *value = line + 2, *path = strsep(&value, " ");
        if (!harmless(path))
            continue;
        if (kind == 'd') {
            snprintf(last, sizeof(last), "%s", path);
            device(path);
        } else if (value) {
            put(kind == 'f' ? last : "", path, value);
        }
    }
}

static void check_machine(struct gv_machine *m)
{
    struct gv_error err = {0};
    if (gv_machine_read(root, m, &err)) {
        GV_MUST(err.text[0]);
        m->ngpus = 0;
        return;
    }
    GV_MUST(m->ngpus >= 0 && m->ngpus <= GV_MAX_GPUS && m->replayed);
    for (int i = 0; i < m->ngpus; i++) {
        const struct gv_machine_gpu *gpu = &m->gpus[i];
        GV_MUST(strlen(gpu->bus_id) >= 12 && strcmp(gpu->root_port, gpu->bus_id));
        GV_MUST(gpu->link_width == -1 || (gpu->link_width > 0 && gpu->link_width <= 64));
        GV_MUST(!i || strcmp(gpu->bus_id, gpu[-1].bus_id));
    }
}

/* Letters that stand in a sysfs; what is written with others may be refused. */
static bool plain(const char *text)
{
    return !text[strspn(
        text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:/.,_- \n")];
}

static void check_tree(bool usual)
{
    struct gv_error err = {0};
    struct gv_tree *tree = gv_tree_from_sysfs(root, &err);
    char ids[GV_MAX_GPUS][24];
    if (!tree) {
        GV_MUST(err.text[0]);
        return;
    }
    int n = gv_tree_gpus(tree, ids, GV_MAX_GPUS);
    GV_MUST(n >= 0 && n <= GV_MAX_GPUS);
    int fd = gv_tree_memfd(tree, &err); /* reads it back and compares */
    if (fd < 0)
        GV_MUST(err.text[0]);
    if (fd < 0 && usual) {
        dprintf(2, "%u:%u: %s\n", err.line, err.column, err.text);
        GV_MUST(!"refused without a cause");
    }
    if (fd >= 0)
        close(fd);
    gv_tree_free(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gv_machine machine;
    char *text = gv_fuzz_text(data, size);
    make_root();
    bool usual = plain(text);
    make(text);
    check_machine(&machine);
    check_tree(usual);
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(text);
    return 0;
}
