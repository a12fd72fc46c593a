/* What the plugin says. NCCL's logger is only to be called from net init and tuner init (inside
 * getEnv it could re-enter NCCL), so lines wait in a small queue until then. Where neither slot is
 * ours they go to stderr, if NCCL_DEBUG asks for their level; nothing is ever printed on stdout. */
#ifndef GV_LOG_H
#define GV_LOG_H

#include <stdbool.h>

/* NCCL's ncclDebugLogger_t: level and subsystem flags as in ncclDebugLogLevel and nccl_common.h
 * (2.19 to 2.32). */
typedef void (*gv_logger)(
    int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

enum gv_level { GV_LOG_WARN = 2, GV_LOG_INFO = 3 };

/* Queues a line. When the queue is full (16) the line is dropped. Safe anywhere outside the hot
 * path. */
void gv_log(enum gv_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same, but a text that was queued or written before in this process is not said again. */
void gv_log_once(enum gv_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Hands all queued lines to NCCL. `logger` may be NULL: nothing happens. */
void gv_log_flush(gv_logger logger);

/* No slot of ours will be given the logger: what waits, and all later lines, go to stderr. */
void gv_log_alone(void);

/* Says one line at once; only where NCCL's logger may be called. */
void gv_log_now(gv_logger logger, enum gv_level level, const char *text);

/* A decision, as one JSON line in $GV100_LOG (if set). `gpus` as 0-5, `transport`, `evidence` as
 * explain prints them; gain NAN becomes null. */
void gv_log_decision(
    unsigned long long comm, const char *gpus, const char *transport, const char *evidence,
    double gain, const char *reason);

/* A warning or note there, beside the decisions. */
void gv_log_event(const char *event, const char *text);

#endif
