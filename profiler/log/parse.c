/* The log as a whole: its lines, two times over. The first time finds out what stands in brackets
 * behind ranks, which is the same for the whole log. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/log/log.h"

#define MOST_BYTES ((size_t)1 << 30)

/* A line of Docker's json-file: what is between the quotes, where ">" stands as "\u003e". */
static void unescape(const char *text, size_t n, char *out)
{
    size_t k = 0;
    for (size_t i = 0; i < n && text[i] != '"'; i++) {
        unsigned code;
        if (text[i] != '\\' || i + 1 == n)
            out[k++] = text[i] == '\0' ? ' ' : text[i];
        else if (text[++i] == 'u' && i + 4 < n && sscanf(text + i + 1, "%4x", &code) == 1) {
            out[k++] = code >= ' ' && code < 127 ? (char)code : ' ';
            i += 4;
        } else
            out[k++] = text[i] == '"' || text[i] == '\\' || text[i] == '/' ? text[i] : ' ';
    }
    out[k] = 0;
}

/* One line without escapes ("\033[4m", and "[4m" where the first byte was lost) and without bytes
 * that are no text. `out` has room for n + 1. */
static void clean(const char *text, size_t n, char *out)
{
    static const char docker[] = "{\"log\":\"";
    size_t k = 0;
    if (n >= sizeof(docker) - 1 && !memcmp(text, docker, sizeof(docker) - 1)) {
        unescape(text + sizeof(docker) - 1, n - sizeof(docker) + 1, out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        size_t at = i + (text[i] == '\033');
        size_t digits = at + 1;
        while (at < n && text[at] == '[' && digits < n &&
               (isdigit((unsigned char)text[digits]) || text[digits] == ';'))
            digits++;
        if (at < n && text[at] == '[' && digits < n && isalpha((unsigned char)text[digits]) &&
            (text[i] == '\033' || text[digits] == 'm')) {
            i = digits;
            continue;
        }
        if (text[i] != '\r' && text[i] != '\033')
            out[k++] = text[i] ? text[i] : ' ';
    }
    out[k] = 0;
}

struct label_count {
    int bus, small, round;
};

/* NVML indexes are small decimal numbers; addresses have letters, three digits or more, or all end
 * in 0 without being 0 (virtual machines: 0000:00:08.0 is "80"). */
static void count_label(struct label_count *c, const char *label)
{
    size_t n = strlen(label);
    if (!n)
        return;
    if (n > 2 || strspn(label, "0123456789") != n || atoi(label) > 63)
        c->bus++;
    else
        c->small++;
    c->round += n > 1 && label[n - 1] == '0';
}

typedef void (*line_fn)(struct gv_nlog_reader *r, char *line, unsigned number, void *data);

static void
each_line(struct gv_nlog_reader *r, const char *text, size_t len, line_fn fn, void *data)
{
    unsigned number = 0;
    char *line = NULL;
    size_t room = 0;
    for (size_t at = 0; at < len && !r->no_memory;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        if (n + 1 > room) {
            char *more = realloc(line, room = n * 2 + 1);
            if (!more) {
                r->no_memory = true;
                break;
            }
            line = more;
        }
        clean(text + at, n, line);
        fn(r, line, ++number, data);
        at += n + 1;
    }
    r->log->lines = number;
    free(line);
}

/* Calls `fn` for each entry of a line; two may be glued. */
static void count_line(struct gv_nlog_reader *r, char *line, unsigned number, void *data)
{
    struct gv_nlog_line one;
    struct gv_nlog_hop hop;
    (void)r, (void)number;
    if (gv_nlog_line(line, &one, NULL) && gv_nlog_hop(one.text, &hop)) {
        count_label(data, hop.from_label);
        count_label(data, hop.to_label);
    }
}

static int thread_of(struct gv_nlog_reader *r, const struct gv_nlog_line *line)
{
    for (int i = r->nthreads - 1; i >= 0; i--) {
        const struct gv_nlog_thread *t = &r->threads[i];
        if (t->tid == line->tid && t->pid == line->pid && t->dev == line->dev &&
            !strcmp(t->host, line->host))
            return i;
    }
    void *grown = gv_nlog_grow(r, r->threads, r->nthreads, sizeof(*r->threads));
    if (!grown)
        return -1;
    r->threads = grown;
    struct gv_nlog_thread *t = &r->threads[r->nthreads];
    *t = (struct gv_nlog_thread){.pid = line->pid, .tid = line->tid, .dev = line->dev, .comm = -1};
    memcpy(t->host, line->host, sizeof(t->host));
    return r->nthreads++;
}

static void version(struct gv_nlog *log, const char *text)
{
    const char *at = strstr(text, "NCCL version ");
    if (!at || !isdigit((unsigned char)at[13]) || *log->nccl)
        return;
    int n = (int)strspn(at + 13, "0123456789.+cudarc-");
    while (n && (at[13 + n - 1] == '.' || at[13 + n - 1] == '-'))
        n--;
    snprintf(log->nccl, sizeof(log->nccl), "%.*s", n < 31 ? n : 31, at + 13);
}

static void take_line(struct gv_nlog_reader *r, char *line, unsigned number, void *data)
{
    struct gv_nlog_line one;
    struct gv_nlog_member member;
    struct gv_nlog_event event = {.line = number};
    char *rest = NULL;
    (void)data;
    version(r->log, line);
    if (!gv_nlog_line(line, &one, &rest))
        return;
    r->log->nccl_lines++;
    int thread = thread_of(r, &one);
    if (thread >= 0 && gv_nlog_member(one.text, &member))
        gv_nlog_take_member(r, thread, &member, number);
    else if (thread >= 0 && gv_nlog_event(one.text, &event))
        gv_nlog_take_event(r, thread, &event);
    else if (gv_nlog_take_paths(r, one.text, number))
        ;
    else if (
        thread >= 0 && !gv_nlog_take_note(r, &one, r->threads[thread].comm, number) &&
        strstr(one.text, "->") && !strncmp(one.text, "Channel", 7) && !r->log->cut_line)
        r->log->cut_line = number;
    if (rest) {
        take_line(r, rest, number, NULL);
        free(rest);
    }
}

static void release(struct gv_nlog_reader *r)
{
    for (int i = 0; i < r->nthreads; i++) {
        for (int k = 0; k < r->threads[i].npending; k++)
            free(r->threads[i].pending[k].order);
        free(r->threads[i].pending);
    }
    for (int i = 0; i < r->nwork; i++) {
        for (int k = 0; k < r->work[i].nevents; k++)
            free(r->work[i].events[k].order);
        free(r->work[i].events);
        free(r->work[i].pointers);
        free(r->work[i].connected);
    }
    free(r->threads);
    free(r->work);
}

static int hand_over(struct gv_nlog_reader *r)
{
    r->log->comms = calloc((size_t)r->nwork + 1, sizeof(*r->log->comms));
    r->log->ncomms = r->log->comms ? r->nwork : 0;
    for (int i = 0; i < r->nwork; i++) {
        if (r->log->comms)
            r->log->comms[i] = r->work[i].comm;
        if (r->work[i].comm.nranks < 0 && r->log->comms)
            r->log->comms[i].nranks = -1;
    }
    return r->log->comms ? 0 : -1;
}

/* Our decisions name the communicator by NCCL's own id. */
static void link_decisions(struct gv_nlog *log)
{
    unsigned long long id;
    for (int i = 0; i < log->ours.n; i++) {
        if (sscanf(log->ours.list[i].text, "communicator %16llx,", &id) != 1)
            continue;
        log->ours.list[i].comm = -1;
        for (int k = log->ncomms - 1; k >= 0; k--)
            if (*log->comms[k].id && strtoull(log->comms[k].id, NULL, 16) == id)
                log->ours.list[i].comm = k;
    }
}

struct gv_nlog *gv_nlog_parse(const char *text, size_t len, const char *name, struct gv_error *err)
{
    struct gv_nlog_reader r = {.name = name, .log = calloc(1, sizeof(*r.log))};
    struct label_count labels = {0};
    if (!r.log) {
        gv_error_set(err, "out of memory");
        return NULL;
    }
    each_line(&r, text, len, count_line, &labels);
    r.bus_labels = labels.bus || (labels.small && labels.round == labels.small);
    each_line(&r, text, len, take_line, NULL);
    gv_nlog_finish(&r);
    bool failed = hand_over(&r) || r.no_memory;
    release(&r);
    if (!failed)
        link_decisions(r.log);
    if (failed || !r.log->nccl_lines) {
        gv_error_at(
            err, name, 0, 0, "%s",
            failed ? "out of memory"
                   : "no line of NCCL is in it: run the job with NCCL_DEBUG=INFO and keep its "
                     "output");
        gv_nlog_free(r.log);
        return NULL;
    }
    return r.log;
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
    if (text && n < size) {
        free(text);
        return NULL;
    }
    return text;
}

struct gv_nlog *gv_nlog_read(const char *path, struct gv_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        gv_error_at(err, path, 0, 0, "%m");
        return NULL;
    }
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (size_t)st.st_size > MOST_BYTES) {
        gv_error_at(err, path, 0, 0, "it is no regular file of at most 1 GiB");
        close(fd);
        return NULL;
    }
    char *text = read_all(fd, (size_t)st.st_size);
    close(fd);
    struct gv_nlog *log = NULL;
    if (text)
        log = gv_nlog_parse(text, (size_t)st.st_size, path, err);
    else
        gv_error_at(err, path, 0, 0, "it could not be read whole");
    free(text);
    return log;
}

void gv_nlog_free(struct gv_nlog *log)
{
    if (!log)
        return;
    for (int i = 0; i < log->ncomms; i++) {
        for (int k = 0; k < log->comms[i].nrings; k++)
            free(log->comms[i].rings[k].order);
        free(log->comms[i].rings);
        free(log->comms[i].edges);
        free(log->comms[i].ranks);
    }
    free(log->comms);
    free(log->paths);
    free(log->plugins.list);
    free(log->ours.list);
    free(log->warnings.list);
    free(log->settings.list);
    free(log);
}
