#include "plugin/core/gv_log.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/gv_hash.h"
#include "base/gv_str.h"
#include "plugin/core/gv_locks.h"
#include "plugin/core/say.h"

#define QUEUE 16
#define LINE 768
#define SEEN 64
/* NCCL_INIT | NCCL_TUNING */
#define FLAGS 0x41ul

struct line {
    enum gv_level level;
    char text[LINE];
};

/* Lines that wait for a logger, and hashes of what was said once. Guarded by `lock`. */
static struct line queue[QUEUE];
static int queued;
static uint64_t seen[SEEN];
static unsigned nseen;
/* No slot of ours will be given NCCL's logger: lines do not wait for one. Only ever raised. */
static atomic_bool alone;

/* Under the lock. */
static bool said_before(const char *text)
{
    uint64_t h = gv_hash_bytes(GV_HASH_START, text, strlen(text));
    for (unsigned i = 0; i < nseen && i < SEEN; i++)
        if (seen[i] == h)
            return true;
    seen[nseen++ % SEEN] = h; /* the oldest is forgotten */
    return false;
}

static void put(enum gv_level level, bool once, const char *fmt, va_list ap)
{
    struct line line = {.level = level};
    vsnprintf(line.text, sizeof(line.text), fmt, ap);
    bool waits = !atomic_load(&alone);
    gv_lock(GV_LOCK_LOG);
    bool drop = (waits && queued == QUEUE) || (once && said_before(line.text));
    if (!drop && waits)
        queue[queued++] = line;
    gv_unlock(GV_LOCK_LOG);
    if (!drop && !waits)
        gv_say(level, line.text);
    if (!drop && level == GV_LOG_WARN)
        gv_log_event("warning", line.text);
}

void gv_log(enum gv_level level, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put(level, false, fmt, ap);
    va_end(ap);
}

void gv_log_once(enum gv_level level, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put(level, true, fmt, ap);
    va_end(ap);
}

void gv_log_now(gv_logger logger, enum gv_level level, const char *text)
{
    if (logger)
        logger((int)level, FLAGS, "gv100", __LINE__, "gv100: %s", text);
}

/* Takes what waits out of the queue. */
static int take(struct line lines[QUEUE])
{
    gv_lock(GV_LOCK_LOG);
    int n = queued;
    memcpy(lines, queue, sizeof(lines[0]) * (size_t)n);
    queued = 0;
    gv_unlock(GV_LOCK_LOG);
    return n;
}

void gv_log_flush(gv_logger logger)
{
    if (!logger)
        return;
    struct line lines[QUEUE];
    int n = take(lines);
    for (int i = 0; i < n; i++)
        gv_log_now(logger, lines[i].level, lines[i].text);
}

void gv_log_alone(void)
{
    struct line lines[QUEUE];
    if (atomic_exchange(&alone, true))
        return;
    int n = take(lines);
    for (int i = 0; i < n; i++)
        gv_say(lines[i].level, lines[i].text);
}

static void json_text(struct gv_str *s, const char *text)
{
    gv_str_add(s, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            gv_str_addf(s, "\\%c", c);
        else if (c < 0x20)
            gv_str_addf(s, "\\u%04x", c);
        else
            gv_str_add_n(s, text, 1);
    }
    gv_str_add(s, "\"");
}

/* One write for one line, so that ranks which share the file do not mix. */
static void append(struct gv_str *s)
{
    const char *path = secure_getenv("GV100_LOG"); /* a file that is written */
    gv_str_addf(s, ",\"pid\":%ld,\"time\":%lld}\n", (long)getpid(), (long long)time(NULL));
    if (path && *path && !s->failed) {
        int fd =
            open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
        if (fd >= 0) {
            /* A pipe whose reader is gone would end the job. One that cannot be written is no
             * reason to disturb it. */
            struct stat st;
            ssize_t n = fstat(fd, &st) || S_ISFIFO(st.st_mode) ? 0 : write(fd, s->data, s->len);
            (void)n;
            close(fd);
        }
    }
    gv_str_free(s);
}

void gv_log_decision(
    unsigned long long comm, const char *gpus, const char *transport, const char *evidence,
    double gain, const char *reason)
{
    if (!secure_getenv("GV100_LOG"))
        return;
    struct gv_str s = {0};
    gv_str_addf(&s, "{\"event\":\"decision\",\"comm\":\"%016llx\",\"gpus\":", comm);
    json_text(&s, gpus);
    gv_str_add(&s, ",\"transport\":");
    json_text(&s, transport);
    gv_str_add(&s, ",\"evidence\":");
    json_text(&s, evidence);
    if (isnan(gain))
        gv_str_add(&s, ",\"gain\":null,\"reason\":");
    else
        gv_str_addf(&s, ",\"gain\":%.4f,\"reason\":", gain);
    json_text(&s, reason);
    append(&s);
}

void gv_log_event(const char *event, const char *text)
{
    if (!secure_getenv("GV100_LOG"))
        return;
    struct gv_str s = {0};
    gv_str_add(&s, "{\"event\":");
    json_text(&s, event);
    gv_str_add(&s, ",\"text\":");
    json_text(&s, text);
    append(&s);
}
