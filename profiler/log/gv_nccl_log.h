/* What a job's NCCL_DEBUG=INFO log says: communicators, their rings, each edge's transport, which
 * plugins were loaded. Any release from 2.0 on, ranks interleaved, behind the tags of mpirun or
 * srun, cut at either end.
 *
 * Lines that the reader relies on (NCCL release): "Ring 00 : 0 1 2" and "Ring 00 : 3[c0] -> 0[80]
 * via P2P/IPC" (to 2.5), "Channel 00/02 : 0 1" and "Channel 00 : 1[c2000] -> 0[c1000] via ..." (2.6
 * on), "comm 0x.. rank 0 nranks 4 cudaDev 0 busId 3b000 - Init COMPLETE" (2.4 on), the same with
 * "commId 0x.." and "Init START" (2.17 on). What stands in brackets behind a rank is the GPU's PCI
 * address as a number (to 2.18) or its NVML index (later). */
#ifndef GV_NCCL_LOG_H
#define GV_NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/gv_error.h"

/* The most ranks of one communicator that are kept; later ones are counted, not listed. */
#define GV_NLOG_MAX_RANKS 1024

enum gv_nlog_transport {
    GV_NLOG_P2P,
    GV_NLOG_SHM,
    GV_NLOG_NET,
    GV_NLOG_OTHER, /* COLLNET, NVLS, and what is not known here */
    GV_NLOG_TRANSPORTS
};

struct gv_nlog_rank {
    bool seen;              /* anything at all is known of this rank */
    char host[64];          /* "" not known */
    int pid;                /* -1 not known */
    int cuda_dev, nvml_dev; /* -1 not known; nvml_dev also from the brackets of edges */
    char bus_id[20];        /* "0000:3b:00.0", "" not known */
};

/* One connection from rank to rank, all channels that use the same transport together. */
struct gv_nlog_edge {
    int from, to;
    enum gv_nlog_transport transport;
    char via[48];      /* as the log has it: "P2P/CUMEM/read", "direct shared memory" */
    uint64_t channels; /* bit c: channel c (0 to 63) */
    bool ring;         /* an edge of a ring, as far as the log tells */
    unsigned line;     /* where it stands first, from 1 */
};

struct gv_nlog_ring {
    uint64_t channels; /* channels with this order */
    int *order, n;     /* ranks, beginning with the lowest */
};

struct gv_nlog_comm {
    char id[24];                /* commId as the log has it, "" where it has none */
    int nranks;                 /* -1 not known */
    int nnodes;                 /* -1 not known */
    int channels;               /* coll channels, -1 not known */
    unsigned line;              /* where it is first spoken of */
    struct gv_nlog_rank *ranks; /* [slots] */
    int slots;
    struct gv_nlog_edge *edges;
    int nedges;
    struct gv_nlog_ring *rings; /* none: the log does not tell */
    int nrings;
};

/* A line worth keeping whole. `comm` is the communicator's index, -1 for none. */
struct gv_nlog_note {
    unsigned line;
    int comm;
    char text[320];
};

struct gv_nlog_notes {
    struct gv_nlog_note *list;
    int n;
};

/* One way between two GPUs in NCCL's own model of the machine (NCCL_DEBUG_SUBSYS=GRAPH). */
struct gv_nlog_path {
    char from[20], to[20]; /* PCI addresses */
    char class[8];         /* as NCCL names it: PIX, PHB, SYS, NVL */
    int hops;
    double model_gbs; /* NCCL's table value, nothing measured */
    unsigned line;
};

/* Whether a tuner plugin was in use. */
enum gv_nlog_tuner { GV_NLOG_TUNER_UNKNOWN, GV_NLOG_TUNER_INTERNAL, GV_NLOG_TUNER_PLUGIN };

struct gv_nlog {
    char nccl[32]; /* "2.23.4+cuda12.9", "" where no line says so */
    struct gv_nlog_comm *comms;
    int ncomms;
    enum gv_nlog_tuner tuner;
    char tuner_name[160];          /* of the plugin, where one was in use */
    struct gv_nlog_notes plugins;  /* lines about loading tuner, net, env and profiler plugins */
    struct gv_nlog_notes ours;     /* "gv100: ..." lines, without that word */
    struct gv_nlog_notes warnings; /* NCCL WARN lines of others */
    struct gv_nlog_notes settings; /* "NCCL_X set by environment to Y", once each */
    struct gv_nlog_path *paths;    /* each pair and direction once */
    int npaths;
    unsigned lines, nccl_lines; /* lines in all, and lines that NCCL wrote */
    unsigned cut_line;          /* a line of NCCL that ends in the middle, 0 none; it is not used */
};

/* Reads a log. NULL with `err` where the file cannot be read (over 1 GiB, no regular file) or holds
 * no line of NCCL. What a line says that is cut or that is not understood is left out, never
 * guessed. The file is read twice, piece by piece: memory does not grow with it. Free the result
 * with gv_nlog_free. */
struct gv_nlog *gv_nlog_read(const char *path, struct gv_error *err);

/* The same from memory; `name` stands for the file in errors. `text` may hold any byte. */
struct gv_nlog *gv_nlog_parse(const char *text, size_t len, const char *name, struct gv_error *err);

void gv_nlog_free(struct gv_nlog *log); /* NULL is fine */

/* "P2P", "SHM", "NET", "other". */
const char *gv_nlog_transport_name(enum gv_nlog_transport transport);

/* Ring edges by transport. Where the log tells no ring at all: all edges. Returns their number;
 * pairs of ranks are counted once, by the slowest transport that any channel uses. */
int gv_nlog_count(const struct gv_nlog_comm *comm, int by_transport[GV_NLOG_TRANSPORTS]);

/* What became of the edges of one communicator in another log. */
struct gv_nlog_change {
    int before, after; /* indexes of the communicators */
    int edges;         /* edges in `after` that have a counterpart in `before` */
    int moved[GV_NLOG_TRANSPORTS][GV_NLOG_TRANSPORTS]; /* [transport before][transport after] */
    bool same_ring; /* the first rings have the same order; false too where one is not known */
    bool rings_known;
};

/* Pairs communicators of the same number of ranks in the order in which they were made and compares
 * their edges. Where the rings differ but each ring has one transport throughout, the edges count
 * as counterparts all the same. Returns the number of entries written to `out` (room for `size`).
 */
int gv_nlog_compare(
    const struct gv_nlog *before, const struct gv_nlog *after, struct gv_nlog_change *out,
    int size);

/* One line taken apart; for those who follow a log while it is written. */
struct gv_nlog_line {
    char host[64];
    int pid, tid, dev; /* -1 where the line has none */
    bool warn;
    const char *text; /* what NCCL says, in the caller's buffer */
};

/* Whether NCCL wrote this line (without line end; escapes already taken out), and what it says.
 * `line` is changed: an entry of another rank that was glued behind is cut off. `*rest` (may be
 * NULL) receives that one, to be freed by the caller, or NULL. */
bool gv_nlog_line(char *line, struct gv_nlog_line *out, char **rest);

struct gv_nlog_hop {
    int channel, from, to;
    int connection; /* 0: of rings and trees, 1: of send and receive ("Channel 00/1", 2.8 on) */
    char from_label[24], to_label[24]; /* in brackets behind the rank; "" none */
    bool receive;                      /* the receiving side speaks */
    enum gv_nlog_transport transport;
    char via[48];
};

/* Whether `text` (of gv_nlog_line) is a connection "Channel 00/0 : 0[0] -> 1[1] via ...". */
bool gv_nlog_hop(const char *text, struct gv_nlog_hop *out);

#endif
