/* gv-bench-parse: the parsers in MB/s, each beside a peer in the same run, one JSON object. Each is
 * measured in a child of its own, so that its memory is its own too. */
#include <expat.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <yaml.h>

#include "plugin/topology/gv_topology.h"
#include "profiler/import/gv_import.h"
#include "profiler/log/gv_nccl_log.h"
#include "tests/bench/parse_texts.h"
#include "tests/bench/profiles.h"

struct text {
    const char *data;
    size_t len;
};

struct figure {
    double cpu_s;
    long rss_kib; /* above a child that does nothing */
    bool ok;
};

static bool import(const struct text *t, enum gv_import_format format)
{
    struct gv_import im = {.options = {.op = GV_OP_ALL_REDUCE, .edit = -1}};
    struct gv_error err = {0};
    char text[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    int rc = gv_import_text(&im, t->data, t->len, "generated", format, &err);
    if (rc)
        fprintf(stderr, "bench: %s\n", gv_error_format(&err, text, sizeof(text)));
    gv_import_finish(&im);
    return !rc;
}

static bool tables(const struct text *t)
{
    return import(t, GV_IMPORT_NCCL_TESTS);
}

static bool matrix(const struct text *t)
{
    return import(t, GV_IMPORT_SMI);
}

static bool profile(const struct text *t)
{
    struct gv_profile *p = gv_profile_parse(t->data, t->len, "generated", NULL);
    gv_profile_free(p);
    return p != NULL;
}

static bool topology(const struct text *t)
{
    struct gv_tree *tree = gv_tree_parse(t->data, t->len, "generated", NULL);
    gv_tree_free(tree);
    return tree != NULL;
}

/* Peers: the least that any reader of the format does. */

/* Words, and each one's value where it is a number. */
static bool words(const struct text *t)
{
    volatile double sum = 0;
    for (const char *p = t->data; *p;) {
        char *end;
        p += strspn(p, " \t\n");
        double value = strtod(p, &end);
        sum += end > p ? value : 0;
        p += strcspn(p, " \t\n");
    }
    return true;
}

static bool bare_yaml(const struct text *t)
{
    yaml_parser_t parser;
    yaml_event_t event;
    bool last = false, ok = true;
    yaml_parser_initialize(&parser);
    yaml_parser_set_input_string(&parser, (const unsigned char *)t->data, t->len);
    while (!last && (ok = yaml_parser_parse(&parser, &event))) {
        last = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return ok;
}

static bool bare_xml(const struct text *t)
{
    XML_Parser parser = XML_ParserCreate(NULL);
    bool ok = XML_Parse(parser, t->data, (int)t->len, 1) == XML_STATUS_OK;
    XML_ParserFree(parser);
    return ok;
}

static double cpu_s(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1e-6;
}

static struct figure waited(pid_t child)
{
    struct rusage used;
    int status = 1;
    wait4(child, &status, 0, &used);
    return (struct figure){cpu_s(&used), used.ru_maxrss, status == 0};
}

/* `times` times in a child. */
static struct figure in_child(bool (*fn)(const struct text *), const struct text *t, int times)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        bool ok = true;
        for (int i = 0; i < times; i++)
            ok &= fn(t);
        _exit(!ok);
    }
    return waited(child);
}

static bool nothing(const struct text *t)
{
    return t != NULL;
}

static double mb_per_s(size_t bytes, int times, struct figure f)
{
    return (double)bytes * times / f.cpu_s / 1e6;
}

static void print(
    const char *name, const char *peer, size_t bytes, int times, struct figure own,
    struct figure other, long base_kib)
{
    static const char *comma = "";
    double mine = mb_per_s(bytes, times, own), theirs = mb_per_s(bytes, times, other);
    if (!own.ok || !other.ok) {
        fprintf(stderr, "bench: %s could not be parsed\n", name);
        exit(3);
    }
    printf(
        "%s{\"what\":\"%s\",\"bytes\":%zu,\"mb_per_s\":%.1f,\"peer\":\"%s\",\"peer_mb_per_s\":%.1f,"
        "\"ratio\":%.3f,\"memory_kib\":%ld}",
        comma, name, bytes, mine, peer, theirs, mine / theirs, own.rss_kib - base_kib);
    comma = ",\n";
}

static void both(
    const char *name, bool (*own)(const struct text *), const char *peer,
    bool (*other)(const struct text *), const struct gv_str *s)
{
    struct text t = {s->data, s->len};
    int times = (int)(8000000 / s->len) + 1;
    long base = in_child(nothing, &t, 1).rss_kib;
    in_child(own, &t, 1);
    struct figure mine = in_child(own, &t, times), theirs = in_child(other, &t, times);
    print(name, peer, s->len, times, mine, theirs, base);
}

/* ---- the log ---- */

static bool read_log(const struct text *t)
{
    struct gv_error err = {0};
    char text[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    struct gv_nlog *log = gv_nlog_read(t->data, &err);
    if (!log)
        fprintf(stderr, "bench: %s\n", gv_error_format(&err, text, sizeof(text)));
    bool ok = log && log->ncomms > 0 && log->comms[0].nranks == 8;
    gv_nlog_free(log);
    return ok;
}

static struct figure command(const char *a, const char *b, const char *c, const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(tmpfile()), 1); /* not /dev/null, where grep would end at the first match */
        execlp(a, a, b, c ? c : path, c ? path : NULL, NULL);
        _exit(127);
    }
    return waited(child);
}

static void log_of(size_t megabytes)
{
    char path[4096], name[32];
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%.4000s/gv100-bench-log.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file)
        abort();
    gv_text_log(file, megabytes * 1000000);
    size_t bytes = (size_t)ftell(file);
    if (fclose(file))
        abort();
    struct text t = {path, 0};
    long base = in_child(nothing, &t, 1).rss_kib;
    struct figure wc = command("wc", "-l", NULL, path), own = in_child(read_log, &t, 1);
    struct figure grep = command("grep", "-c", "NCCL INFO", path);
    unlink(path);
    snprintf(name, sizeof(name), "log of %zu MB", megabytes);
    print(name, "wc -l", bytes, 1, own, wc, base);
    print(name, "grep -c", bytes, 1, own, grep, base);
}

int main(int argc, char **argv)
{
    size_t megabytes = argc > 1 ? (size_t)atol(argv[1]) : 1000;
    struct gv_str texts[3] = {{0}}, yaml = {0};
    if (megabytes < 1 || megabytes > 1070 || argc > 2) {
        fputs("Usage: gv-bench-parse [MEGABYTES of the log, 1 to 1070]\n", stderr);
        return 2;
    }
    gv_text_tables(&texts[0], 3000);
    gv_text_matrix(&texts[1], 64);
    gv_text_topology(&texts[2]);
    struct gv_profile *p = gv_bench_profile_rows(4096, NULL);
    gv_profile_format(p, &yaml);
    gv_profile_free(p);
    puts("[");
    log_of(megabytes / 10 ? megabytes / 10 : 1);
    log_of(megabytes);
    both("nccl-tests tables", tables, "strtod of every word", words, &texts[0]);
    both("topo -m of 64 GPUs", matrix, "strtod of every word", words, &texts[1]);
    both("profile of 4096 groups", profile, "libyaml alone", bare_yaml, &yaml);
    both("topology of 64 GPUs", topology, "expat alone", bare_xml, &texts[2]);
    puts("]");
    for (int i = 0; i < 3; i++)
        gv_str_free(&texts[i]);
    gv_str_free(&yaml);
    return 0;
}
