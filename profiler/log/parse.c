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

/* How many bytes stand for themselves. */
static size_t plain(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && text[i] != '[' && text[i] != '\033' && text[i] != '\r' && text[i])
        i++;
    return i;
}

/* The last byte of the escape that begins at `i`, 0 where none does. */
static size_t escape(const char *text, size_t n, size_t i)
{
    size_t at = i + (text[i] == '\033'), digits = at + 1;
    if (at >= n || text[at] != '[')
        return 0;
    while (digits < n && (isdigit((unsigned char)text[digits]) || text[digits] == ';'))
        digits++;
    bool ends = digits < n && isalpha((unsigned char)text[digits]);
    return ends && (text[i] == '\033' || text[digits] == 'm') ? digits : 0;
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
        size_t run = plain(text + i, n - i);
        memcpy(out + k, text + i, run);
        k += run;
        i += run;
        if (i == n)
            break;
        size_t behind = escape(text, n, i);
        if (behind) {
            i = behind;
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

/* Where the log's bytes come from: memory, or a file that is read piece by piece, so that a log of
 * any size takes the same memory. */
struct source {
    const char *text;
    int fd; /* -1: all of it is in `text` */
    size_t len, at;
    char *piece;
    bool failed;
};

#define PIECE ((size_t)1 << 20)

/* The next bytes; NULL where there are no more. */
static const char *next_piece(struct source *s, size_t *n)
{
    *n = s->len - s->at;
    const char *text = s->text + (s->fd < 0 ? s->at : 0);
    if (*n && s->fd >= 0) {
        ssize_t got;
        do
            got = pread(s->fd, s->piece, *n < PIECE ? *n : PIECE, (off_t)s->at);
        while (got < 0 && errno == EINTR);
        s->failed |= got <= 0;
        *n = got > 0 ? (size_t)got : 0;
        text = s->piece;
    }
    s->at += *n;
    return *n ? text : NULL;
}

/* A line as it grows over pieces, and where its clean form goes. */
struct growing {
    char *raw, *line;
    size_t len, raw_room, line_room;
};

static bool room_for(char **buffer, size_t *room, size_t need)
{
    if (need <= *room)
        return true;
    char *more = realloc(*buffer, need * 2);
    if (!more)
        return false;
    *buffer = more;
    *room = need * 2;
    return true;
}

static bool append(struct growing *g, const char *text, size_t n)
{
    if (!room_for(&g->raw, &g->raw_room, g->len + n + 1))
        return false;
    memcpy(g->raw + g->len, text, n);
    g->len += n;
    return true;
}

/* `text` need not end in a zero. */
static bool one_line(
    struct gv_nlog_reader *r, struct growing *g, const char *text, size_t n, line_fn fn,
    unsigned number, void *data)
{
    if (!room_for(&g->line, &g->line_room, n + 1))
        return false;
    clean(text, n, g->line);
    fn(r, g->line, number, data);
    return true;
}

/* The lines that end in this piece; what is left of it is kept. */
static bool lines_of(
    struct gv_nlog_reader *r, struct growing *g, const char *text, size_t n, line_fn fn,
    unsigned *number, void *data)
{
    const char *end;
    for (; n && (end = memchr(text, '\n', n)); n -= (size_t)(end + 1 - text), text = end + 1) {
        size_t len = (size_t)(end - text);
        bool whole = !g->len;
        if (!whole && !append(g, text, len))
            return false;
        if (!one_line(r, g, whole ? text : g->raw, whole ? len : g->len, fn, ++*number, data))
            return false;
        g->len = 0;
    }
    return append(g, text, n);
}

static void each_line(struct gv_nlog_reader *r, struct source *s, line_fn fn, void *data)
{
    struct growing g = {0};
    unsigned number = 0;
    const char *text;
    size_t n;
    s->at = 0;
    while (!r->no_memory && (text = next_piece(s, &n)))
        r->no_memory |= !lines_of(r, &g, text, n, fn, &number, data);
    if (g.len && !r->no_memory)
        r->no_memory |= !one_line(r, &g, g.raw, g.len, fn, ++number, data);
    r->log->lines = number;
    free(g.raw);
    free(g.line);
}

/* Calls `fn` for each entry of a line; two may be glued. */
static void count_line(struct gv_nlog_reader *r, char *line, unsigned number, void *data)
{
    struct gv_nlog_line one;
    struct gv_nlog_hop hop;
    (void)r, (void)number;
    if (strstr(line, "->") && gv_nlog_line(line, &one, NULL) && gv_nlog_hop(one.text, &hop)) {
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
    const char *at = *log->nccl ? NULL : strstr(text, "NCCL version ");
    if (!at || !isdigit((unsigned char)at[13]))
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
    if (strstr(one.text, ": opCount ")) /* a call: most lines are, and nothing is kept of them */
        ;
    else if (thread >= 0 && gv_nlog_member(one.text, &member))
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

static struct gv_nlog *parse(struct source *source, const char *name, struct gv_error *err)
{
    struct gv_nlog_reader r = {.name = name, .log = calloc(1, sizeof(*r.log))};
    struct label_count labels = {0};
    if (!r.log) {
        gv_error_set(err, "out of memory");
        return NULL;
    }
    each_line(&r, source, count_line, &labels);
    r.bus_labels = labels.bus || (labels.small && labels.round == labels.small);
    each_line(&r, source, take_line, NULL);
    gv_nlog_finish(&r);
    bool failed = hand_over(&r) || r.no_memory;
    release(&r);
    if (!failed)
        link_decisions(r.log);
    if (!failed && !source->failed && r.log->nccl_lines)
        return r.log;
    gv_error_at(
        err, name, 0, 0, "%s",
        failed ? "out of memory"
        : source->failed
            ? "it could not be read whole"
            : "no line of NCCL is in it: run the job with NCCL_DEBUG=INFO and keep its "
              "output");
    gv_nlog_free(r.log);
    return NULL;
}

struct gv_nlog *gv_nlog_parse(const char *text, size_t len, const char *name, struct gv_error *err)
{
    struct source source = {.text = text, .fd = -1, .len = len};
    return parse(&source, name, err);
}

struct gv_nlog *gv_nlog_read(const char *path, struct gv_error *err)
{
    struct stat st;
    struct gv_nlog *log = NULL;
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
    struct source source = {.fd = fd, .len = (size_t)st.st_size, .piece = malloc(PIECE)};
    if (source.piece)
        log = parse(&source, path, err);
    else
        gv_error_set(err, "out of memory");
    free(source.piece);
    close(fd);
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
