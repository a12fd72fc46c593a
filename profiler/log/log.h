/* Inside the reader: events of the log and whom they belong to. */
#ifndef GV_LOG_INSIDE_H
#define GV_LOG_INSIDE_H

#include "profiler/log/gv_nccl_log.h"

#define GV_NLOG_MAX_COMMS 4096

enum gv_nlog_kind { EVENT_HOP, EVENT_ORDER, EVENT_TRIPLE, EVENT_CONNECTED, EVENT_CHANNELS };

/* What one line says about a communicator that it does not name. */
struct gv_nlog_event {
    enum gv_nlog_kind kind;
    unsigned line;
    int speaker;            /* index into readers' threads */
    bool after_rings;       /* this rank had said "Connected all rings" */
    struct gv_nlog_hop hop; /* HOP; TRIPLE: from = the rank, to = the next */
    int *order, n;          /* ORDER; owned */
    int channels;           /* CHANNELS: coll channels */
};

/* "comm 0x... rank R nranks N ..." */
struct gv_nlog_member {
    char pointer[24], id[24], bus_id[20];
    int rank, nranks, nnodes, cuda_dev, nvml_dev;
    char parent[24]; /* ncclComm that it was split from, "" none */
    int split, color;
    bool start, complete;
    char key[40]; /* equal for all ranks of one communicator: the id, or where a split has none its
                     parent, count and color; "" not known */
};

struct gv_nlog_thread {
    char host[64];
    int pid, tid, dev;
    int comm; /* that it is making or made last, -1 */
    struct gv_nlog_event *pending;
    int npending;
};

/* One communicator while it is read. */
struct gv_nlog_work {
    struct gv_nlog_comm comm;
    bool named; /* a line spoke of it: not the one that gathers what is left */
    char key[40];
    struct gv_nlog_event *events;
    int nevents;
    char (*pointers)[24]; /* of each rank's ncclComm, [comm.slots] */
    bool *connected;      /* [comm.slots] */
};

struct gv_nlog_reader {
    struct gv_nlog *log;
    const char *name;
    struct gv_nlog_thread *threads;
    int nthreads;
    struct gv_nlog_work *work;
    int nwork;
    bool bus_labels; /* brackets hold PCI addresses, found out over the whole log first */
    bool no_memory;
};

/* Parsers of what NCCL says; false where it is something else or cut. */
bool gv_nlog_member(const char *text, struct gv_nlog_member *out);
bool gv_nlog_event(const char *text, struct gv_nlog_event *out);
/* PCI address from NCCL's number ("3b000"); false where it is none. */
bool gv_nlog_bus_id(const char *hex, char out[20]);

/* Assigns; each takes the event over. */
void gv_nlog_take_member(
    struct gv_nlog_reader *r, int thread, const struct gv_nlog_member *m, unsigned line);
void gv_nlog_take_event(struct gv_nlog_reader *r, int thread, struct gv_nlog_event *e);
/* Events that nobody claimed, then edges and rings of each communicator. */
void gv_nlog_finish(struct gv_nlog_reader *r);
/* Edges and rings from a communicator's events. */
void gv_nlog_build(struct gv_nlog_reader *r, struct gv_nlog_work *w);
/* Makes room for rank `rank`; false where it is over the limit or memory ran out. */
bool gv_nlog_slot(struct gv_nlog_reader *r, struct gv_nlog_work *w, int rank);
/* What the brackets behind a rank say about it. */
void gv_nlog_label(struct gv_nlog_reader *r, struct gv_nlog_work *w, int rank, const char *label);
/* Whether they contradict what is known about it. */
bool gv_nlog_fits(
    const struct gv_nlog_reader *r, const struct gv_nlog_work *w, int rank, const char *label);
/* Lines about plugins, settings and of ours. True where it was one. */
bool gv_nlog_take_note(
    struct gv_nlog_reader *r, const struct gv_nlog_line *line, int comm, unsigned number);

/* NCCL's table of paths: "GPU/CE000 :GPU/0-4e000 (5/10.0/SYS) ...". True where it is a row of it.
 */
bool gv_nlog_take_paths(struct gv_nlog_reader *r, const char *text, unsigned line);

/* Grows an array by one; NULL (and r->no_memory) where there is no memory. */
void *gv_nlog_grow(struct gv_nlog_reader *r, void *array, int n, size_t size);

#endif
