/* Which format a file has, and reading it. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/import/import.h"

#define MOST_BYTES ((size_t)64 << 20)

static const struct {
    const char *name;
    gv_import_fn read;
} formats[GV_IMPORT_FORMATS] = {
    [GV_IMPORT_AUTO] = {"auto", NULL},
    [GV_IMPORT_SMI] = {"smi", gv_import_smi},
    [GV_IMPORT_NCCL_TESTS] = {"nccl-tests", gv_import_nccl_tests},
    [GV_IMPORT_NCCL_TESTS_JSON] = {"nccl-tests-json", gv_import_nccl_tests_json},
    [GV_IMPORT_P2P_BANDWIDTH] = {"p2p-bandwidth", gv_import_p2p_bandwidth},
    [GV_IMPORT_NVBANDWIDTH] = {"nvbandwidth", gv_import_nvbandwidth},
    [GV_IMPORT_NVBANDWIDTH_JSON] = {"nvbandwidth-json", gv_import_nvbandwidth_json},
    [GV_IMPORT_NCCL_TOPOLOGY] = {"nccl-topology", gv_import_nccl_topology},
    [GV_IMPORT_NCCL_GRAPH] = {"nccl-graph", gv_import_nccl_graph},
    [GV_IMPORT_HWLOC] = {"hwloc", gv_import_hwloc},
    [GV_IMPORT_CSV] = {"csv", gv_import_csv},
    [GV_IMPORT_TUNER] = {"nccl-tuner", gv_import_tuner},
};

const char *gv_import_format_name(enum gv_import_format format)
{
    return format < GV_IMPORT_FORMATS ? formats[format].name : "?";
}

int gv_import_format_from_name(const char *name)
{
    for (int i = 0; i < GV_IMPORT_FORMATS; i++)
        if (!strcmp(formats[i].name, name))
            return i;
    return -1;
}

/* The name of the first element, comments and declarations passed over. */
static bool root_is(const char *s, const char *name)
{
    while ((s = strchr(s, '<'))) {
        if (!strncmp(s, "<!--", 4)) {
            s = strstr(s, "-->");
            if (!s)
                return false;
            continue;
        }
        s++;
        if (*s != '?' && *s != '!')
            return !strncmp(s, name, strlen(name)) && !isalnum((unsigned char)s[strlen(name)]);
    }
    return false;
}

static enum gv_import_format markup(const char *s)
{
    return root_is(s, "system")     ? GV_IMPORT_NCCL_TOPOLOGY
           : root_is(s, "graphs")   ? GV_IMPORT_NCCL_GRAPH
           : root_is(s, "topology") ? GV_IMPORT_HWLOC
                                    : GV_IMPORT_AUTO;
}

static bool has_any(const char *s, const char *const *words)
{
    for (; *words; words++)
        if (strstr(s, *words))
            return true;
    return false;
}

/* The first line that is neither empty nor a remark; NULL: there is none. */
static const char *first_row(const char *s)
{
    while (*s) {
        size_t n = strcspn(s, "\n");
        if (strspn(s, " \t") < n && *s != '#')
            return s;
        s += n + (s[n] == '\n');
    }
    return NULL;
}

/* A row has commas and no blanks; a tuner's configuration may have blanks behind the commas. */
static enum gv_import_format separated(const char *s)
{
    const char *row = first_row(s);
    size_t n = row ? strcspn(row, "\n") : 0;
    if (!n || !memchr(row, ',', n))
        return GV_IMPORT_AUTO;
    if (gv_import_is_tuner(row))
        return GV_IMPORT_TUNER;
    return strcspn(row, " \t\n") >= n ? GV_IMPORT_CSV : GV_IMPORT_AUTO;
}

/* "GPU0" and behind it another column or a cell. */
static bool has_matrix(const char *s)
{
    for (s = strstr(s, "GPU0"); s; s = strstr(s + 1, "GPU0")) {
        const char *next = s + 4 + strspn(s + 4, " \t|");
        if (next > s + 4 && (!strncmp(next, "GPU1", 4) || !strncmp(next, "CPU", 3) || *next == 'X'))
            return true;
    }
    return false;
}

/* The kinds of printed output in a text, as bits of formats. */
static unsigned printed(const char *s)
{
    static const char *const tests[] = {
        "# nThread ",
        "\nnThread ",
        "busbw",
        "Out of bounds values",
        "Avg bus bandwidth",
        "Collective test starting",
        NULL};
    static const char *const p2p[] = {"D\\D", "GPU Bandwidth Latency Test", NULL};
    static const char *const nvb[] = {"nvbandwidth Version", "Running host_to_device_memcpy",
                                      "Running device_to_",  "memcpy CE ",
                                      "memcpy SM ",          NULL};
    unsigned bits = 0;
    bits |= has_matrix(s) ? 1u << GV_IMPORT_SMI : 0;
    bits |= has_any(s, tests) ? 1u << GV_IMPORT_NCCL_TESTS : 0;
    bits |= has_any(s, p2p) ? 1u << GV_IMPORT_P2P_BANDWIDTH : 0;
    bits |= has_any(s, nvb) ? 1u << GV_IMPORT_NVBANDWIDTH : 0;
    return bits;
}

static unsigned detect(const char *s)
{
    s += strspn(s, " \t\r\n");
    if (*s == '<' && markup(s) != GV_IMPORT_AUTO)
        return 1u << markup(s);
    if (*s == '{')
        return 1u
               << (strstr(s, "\"nvbandwidth\"") ? GV_IMPORT_NVBANDWIDTH_JSON
                                                : GV_IMPORT_NCCL_TESTS_JSON);
    enum gv_import_format csv = separated(s);
    unsigned bits = csv != GV_IMPORT_AUTO ? 1u << csv : printed(s);
    return bits ? bits : 1u << GV_IMPORT_AUTO;
}

/* The text with its line ends again, as the detection wants it. */
static char *joined(const struct gv_text *t)
{
    char *all = malloc(t->len + (size_t)t->n + 1), *p = all;
    for (int i = 0; all && i < t->n; i++) {
        p = stpcpy(p, t->lines[i]);
        *p++ = '\n';
    }
    if (all)
        *p = 0;
    return all;
}

static int unknown(const struct gv_text *t, struct gv_error *err)
{
    return gv_error_at(
        err, t->path, 0, 0,
        "it is none of the formats that are known here (nvidia-smi topo, nccl-tests, "
        "p2pBandwidthLatencyTest, nvbandwidth, NCCL's and hwloc's XML, a tuner's configuration, "
        "CSV); name it with "
        "--format");
}

static int
read_formats(struct gv_import *im, struct gv_text *t, unsigned bits, struct gv_error *err)
{
    for (int f = 1; f < GV_IMPORT_FORMATS; f++)
        if (bits >> f & 1 && formats[f].read(im, t, err))
            return -1;
    return bits & 1u << GV_IMPORT_AUTO ? unknown(t, err) : 0;
}

int gv_import_text(
    struct gv_import *im, const char *text, size_t len, const char *path,
    enum gv_import_format format, struct gv_error *err)
{
    struct gv_text t;
    if (len > MOST_BYTES)
        return gv_error_at(err, path, 0, 0, "it is larger than 64 MiB");
    if (gv_text_init(&t, text, len, path))
        return gv_import_no_memory(err);
    char *all = joined(&t);
    int rc = all ? 0 : gv_import_no_memory(err);
    if (all)
        rc = read_formats(im, &t, format ? 1u << format : detect(all), err);
    free(all);
    gv_text_finish(&t);
    return rc;
}

static char *read_all(int fd, size_t size)
{
    char *text = malloc(size + 1);
    size_t n = 0;
    while (text && n < size) {
        ssize_t got = read(fd, text + n, size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (text && n == size) {
        text[size] = 0;
        return text;
    }
    free(text);
    return NULL;
}

int gv_import_file(
    struct gv_import *im, const char *path, enum gv_import_format format, struct gv_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return gv_error_at(err, path, 0, 0, "%m");
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (size_t)st.st_size > MOST_BYTES) {
        close(fd);
        return gv_error_at(err, path, 0, 0, "it is no regular file of at most 64 MiB");
    }
    char *text = read_all(fd, (size_t)st.st_size);
    close(fd);
    if (!text)
        return gv_error_at(err, path, 0, 0, "it could not be read whole");
    int rc = gv_import_text(im, text, (size_t)st.st_size, path, format, err);
    free(text);
    return rc;
}
