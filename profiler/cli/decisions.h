/* What the plugin decided in a job, read from the JSON lines of GV100_LOG. */
#ifndef GV_CLI_DECISIONS_H
#define GV_CLI_DECISIONS_H

#include <stddef.h>

#include "base/gv_str.h"

/* One decision; ranks of one communicator write the same one each and count once. */
struct gv_decision {
    char comm[40], gpus[160], transport[16], evidence[16], reason[384];
    double gain; /* NAN where none was measured */
    int times;   /* communicators with the same GPUs and the same decision */
};

struct gv_decisions {
    struct gv_decision *list;
    int n;
    int communicators; /* different ones, all decisions together */
    int warnings;
    char warning[384]; /* the first */
    int unread;        /* lines that are no JSON: a process died in the middle of one */
};

/* Reads `path` from byte `from` on. A file that is not there is no decisions. 0, or -1 (memory). */
int gv_decisions_read(const char *path, long from, struct gv_decisions *out);
void gv_decisions_finish(struct gv_decisions *d);

/* "GPUs 0-5 p2p (+15 %, measured): ...; GPUs 0-10 default: ..." without an end of line. `most`
 * decisions are spelled out, the rest counted. */
void gv_decisions_sentence(const struct gv_decisions *d, int most, struct gv_str *out);

#endif
