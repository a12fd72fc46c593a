/* The profile: what was measured on a machine, in memory. No YAML, no CUDA, no NCCL here.
 *
 * A profile is built once (gv_profile_read, or a calibration) and then only read: every pointer in
 * it belongs to the profile and lives until gv_profile_free. Numbers that are not known are NAN
 * (double) or -1 (int); text that is not known is the empty string. Units stand in the names: _gbs
 * = 1e9 bytes/s, _us, _mib, _mhz, _w. */
#ifndef GV_PROFILE_H
#define GV_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/gv_error.h"
#include "base/gv_gpuset.h"

/* The schema number this code writes and the newest that it reads. */
#define GV_PROFILE_SCHEMA 1

/* The most bytes that a profile may have. */
#define GV_PROFILE_MAX (8u << 20)

/* Operations, numbered as NCCL's ncclFunc_t numbers them (2.19 to 2.32) where NCCL has one. */
enum gv_op {
    GV_OP_BROADCAST,
    GV_OP_REDUCE,
    GV_OP_ALL_GATHER,
    GV_OP_REDUCE_SCATTER,
    GV_OP_ALL_REDUCE,
    GV_OP_SEND_RECV,
    GV_OP_ALL_TO_ALL,
    GV_OP_COUNT
};
#define GV_OP_BIT(op) (1u << (op))

/* Algorithms and protocols, numbered as NCCL numbers them; GV_ALGO_ANY, GV_PROTO_ANY: NCCL's own
 * choice. */
enum gv_algo {
    GV_ALGO_ANY = -1,
    GV_ALGO_TREE,
    GV_ALGO_RING,
    GV_ALGO_COLLNET_DIRECT,
    GV_ALGO_COLLNET_CHAIN,
    GV_ALGO_NVLS,
    GV_ALGO_NVLS_TREE,
    GV_ALGO_PAT,
    GV_ALGO_COUNT
};
enum gv_proto { GV_PROTO_ANY = -1, GV_PROTO_LL, GV_PROTO_LL128, GV_PROTO_SIMPLE, GV_PROTO_COUNT };

/* Where the figures come from. A virtual profile is never used on a real machine. */
enum gv_provenance_kind { GV_PUBLISHED, GV_CUDA, GV_IMPORTED, GV_VIRTUAL };

/* How a profile finds its machine. SHAPE: PCI ids, NUMA nodes and islands in PCI order. */
enum gv_match { GV_MATCH_UUID, GV_MATCH_BUS_ID, GV_MATCH_SHAPE };

/* What is known about P2P from one GPU to another. Only VERIFIED may ever be turned on. */
enum gv_p2p {
    GV_P2P_UNVERIFIED,
    GV_P2P_VERIFIED,
    GV_P2P_REFUSED, /* the driver says that it is not supported */
    GV_P2P_CORRUPT, /* bytes arrived wrong */
    GV_P2P_HUNG,
    GV_P2P_ONE_WAY,
    GV_P2P_STATES
};

/* Path classes as NCCL names them, nearest first. */
enum gv_path_class {
    GV_PATH_UNKNOWN,
    GV_PATH_NVL,
    GV_PATH_PIX,
    GV_PATH_PXB,
    GV_PATH_PHB,
    GV_PATH_SYS,
    GV_PATH_CLASSES
};

/* How a variant of a group was made to differ from NCCL's default. */
enum gv_edit_kind {
    GV_EDIT_NONE,      /* NCCL's default */
    GV_EDIT_LEND,      /* an NVLink entry lent to single pairs */
    GV_EDIT_BRIDGE,    /* a made-up bridge above the switches of one CPU node */
    GV_EDIT_SEPARATE,  /* pairs moved apart, so that they use SHM */
    GV_EDIT_P2P_LEVEL, /* NCCL_P2P_LEVEL=PHB for the process: same rings and transports as BRIDGE
                          (NCCL 2.23.4, 2.28.9) */
    GV_EDIT_KINDS
};

/* A measured quantity: the median of `count` samples and their range. In YAML: {median:, min:,
 * max:, count:}, or a bare number where min = median = max and count = 1. */
struct gv_figure {
    double median, min, max;
    int count; /* 0: not known, and the other fields are NAN */
};

struct gv_profile_gpu {
    int index; /* in PCI order, from 0 without gaps */
    char model[64];
    uint16_t pci_vendor, pci_device; /* 0: not known */
    char bus_id[20];                 /* "0000:1a:00.0", lower case; "" where not known */
    char uuid[48];
    int memory_mib;
    int numa_node; /* -1: not known */
    char
        island[16]; /* GPUs with the same name are under one PCIe switch; a GPU alone has its own */
    int sm;         /* compute capability as NCCL's file has it: 70, 80, 90; -1: not known */
    int link_gen, link_width;         /* as trained under load */
    int link_gen_max, link_width_max; /* as the board could */
    int power_limit_w; /* in force when measured: a setting, not a property of the board */
    int app_core_mhz, max_core_mhz, memory_mhz;
    char note[96];
    char source[200]; /* imported: files and lines, "topo.txt:4, p2p.txt:31" */
};

struct gv_profile_memory {
    gv_gpuset gpus; /* the figures hold for each of them (a mean over them where `note` says so) */
    double theoretical_gbs;
    struct gv_figure copy_gbs, read_gbs, write_gbs, triad_gbs; /* bytes read plus bytes written */
    char note[96];
    char source[200]; /* imported: files and lines, "topo.txt:4, p2p.txt:31" */
};

struct gv_profile_host_link {
    gv_gpuset gpus;     /* one GPU, or the GPUs that ran together */
    bool together;      /* false: one at a time; true: all of `gpus` at once, figures are each GPU's
                           share */
    char root_port[20]; /* "" where not known */
    struct gv_figure to_device_gbs, to_host_gbs;
    char source[200]; /* imported: files and lines, "topo.txt:4, p2p.txt:31" */
};

/* One entry covers every ordered pair (a, b), a in `from`, b in `to`, a != b, and, where
 * `both_directions`, (b, a) too. A pair covered twice is an error when read. */
struct gv_profile_path {
    gv_gpuset from, to;
    bool both_directions;
    enum gv_path_class nccl_class;
    char smi_class[8]; /* as nvidia-smi topo -m prints it: PIX, PXB, PHB, NODE, SYS, NV4 */
    int nvlinks;       /* number of NVLinks of the pair, 0 none */
    enum gv_p2p p2p;
    struct gv_figure write_gbs, read_gbs, both_ways_gbs, latency_us, loaded_write_gbs;
    struct gv_figure
        host_path_gbs; /* through host memory, for pairs without P2P; never a P2P figure */
    char acs[96];      /* "off"; the bridges at which ACS redirects P2P; "unknown"; "" not said */
    char note[96];
    char source[200]; /* imported: files and lines, "topo.txt:4, p2p.txt:31" */
};

/* Samples of one run of one variant, in the order in which they were taken. */
struct gv_profile_run {
    char name[32];     /* "first", "again", or a date */
    double *busbw_gbs; /* `count` samples, as nccl-tests defines busbw */
    bool *throttled;   /* per sample, or NULL where none was */
    int count;
    double algbw_gbs; /* as published beside it; NAN */
    char source[200]; /* imported: files and lines, "topo.txt:4, p2p.txt:31" */
};

struct gv_profile_variant {
    enum gv_edit_kind edit;
    int lend_count;         /* NVLinks in each lent entry; 0: the smallest that suffices */
    int lend[16][2], nlend; /* pairs lent, profile indexes; 0 where the edit says it all */
    enum gv_algo algorithm;
    enum gv_proto protocol;
    int channels; /* 0: NCCL's choice */
    struct gv_profile_run *runs;
    int nruns;
};

/* Everything measured for one set of GPUs, one operation and one size. */
struct gv_profile_group {
    gv_gpuset gpus;
    enum gv_op op;
    uint64_t bytes;
    bool loaded;                               /* true: measured beside other groups */
    int ring[GV_MAX_GPUS], nring;              /* NCCL's default ring order; 0 where not known */
    int shm_edges[GV_MAX_GPUS][2], nshm_edges; /* ring edges on SHM by default */
    bool shm_edges_known;
    struct gv_profile_variant *variants;
    int nvariants;
};

/* What the direct path made of a whole step, against the host path. */
enum gv_handoff_verdict { GV_HANDOFF_TIE, GV_HANDOFF_GAIN, GV_HANDOFF_LOSS, GV_HANDOFF_VERDICTS };

/* A buffer handed from the GPU of one stage to the GPU of the next, measured over both paths as
 * part of a step (`gv100 handoff`). One entry for each (from, to, bytes). */
struct gv_profile_handoff {
    int from, to;
    uint64_t bytes;
    double compute_us; /* of a step, both stages together, that the hand-off waited for */
    bool graph;        /* the steps were replayed from a CUDA graph */
    bool host_traffic; /* both GPUs pulled from host memory meanwhile */
    bool data_ok;      /* a pattern arrived right over both paths */
    char host_method[16], peer_method[16]; /* the faster of each path: "mapped", "staged"; "copy",
                                              "read"; "" where the path was not to be had */
    struct gv_figure host_us, peer_us;     /* the hand-off alone */
    struct gv_figure host_step_us, peer_step_us;
    enum gv_handoff_verdict verdict; /* of the steps, peer against host */
};

/* One line of a tuner configuration that somebody wrote (NVIDIA's example tuner reads such files):
 * what to choose, without the figures it rests on. Of two rows that hold for a call the first
 * counts. */
struct gv_profile_tuner {
    enum gv_op op;                 /* one of the five collectives that a tuner is asked about */
    uint64_t min_bytes, max_bytes; /* both inclusive; max_bytes 0: no end */
    enum gv_algo algorithm;
    enum gv_proto protocol;
    int channels;     /* 0: NCCL's own number */
    int nodes, ranks; /* of the communicator; -1: any */
    int pipe_ops;     /* operations in the pipeline, -1: any */
    int registered;   /* 1: registered user buffers, 0: others, -1: either */
    char source[200]; /* imported: files and lines, "tuner.conf:4" */
};

struct gv_profile_policy {
    double min_gain;     /* 0.03 where the file is silent */
    double max_loss;     /* 0.05 */
    unsigned operations; /* GV_OP_BITs the jobs of this machine use; 0: any */
};

/* What the host was when it was measured, beside its GPUs: what decides whether P2P works, or moves
 * figures. Kernel and container are in the provenance. */
struct gv_profile_host {
    char cpu_model[96]; /* "" not said */
    char iommu[32];     /* "off", or the type of the GPUs' groups ("identity", "DMA", "DMA-FQ"),
                           "unknown"; "" not said */
    int shm_mib;        /* size of /dev/shm, -1 not known */
    int peers;          /* connections that one GPU held at once, -1 not known */
};

struct gv_profile_provenance {
    enum gv_provenance_kind kind;
    char date[16], driver[32], cuda[16], nccl[16], tool[64], nccl_tests[32], source[160],
        kernel[96], container[64];
};

struct gv_profile {
    char name[64];
    enum gv_match match;
    struct gv_profile_gpu *gpus; /* [ngpus], ordered by index */
    int ngpus;
    char cpu_vendor[16]; /* "intel", "amd", "arm", ...; "" not known */
    struct gv_profile_provenance provenance;
    struct gv_profile_host host;
    struct gv_profile_memory *memory;
    int nmemory;
    struct gv_profile_host_link *host_links;
    int nhost_links;
    struct gv_profile_path *paths;
    int npaths;
    struct gv_profile_group *groups;
    int ngroups;
    struct gv_profile_handoff *handoffs;
    int nhandoffs;
    struct gv_profile_tuner *tuner;
    int ntuner;
    struct gv_profile_policy policy;
    uint64_t hash; /* of the file's bytes (FNV-1a 64); equal on ranks that read the same file */
};

/* Reads a profile. The whole file is checked before anything is returned: unknown keys, wrong
 * types, GPUs that do not exist, pairs covered twice, a newer schema number are errors with file,
 * line and column (and the nearest known key). Files over 8 MiB, aliases and anything that is no
 * regular file are refused. Returns the profile (free it with gv_profile_free), or NULL with `err`
 * set. */
struct gv_profile *gv_profile_read(const char *path, struct gv_error *err);

/* The same from memory; `name` stands for the file in errors. */
struct gv_profile *
gv_profile_parse(const char *text, unsigned long len, const char *name, struct gv_error *err);

/* Writes it whole or not at all (temporary file in the same folder, fsync, rename). Reading the
 * result gives an equal profile, writing that again the same bytes. Returns 0, or -1 with `err` set
 * and the old file as it was. */
int gv_profile_write(const struct gv_profile *profile, const char *path, struct gv_error *err);

struct gv_str;
/* The text that gv_profile_write would write. Returns 0, or -1 (out of memory). */
int gv_profile_format(const struct gv_profile *profile, struct gv_str *out);

/* An empty profile (all unknown, thresholds as above) on the heap, to be filled by whoever
 * measures: arrays must come from malloc. NULL: out of memory. */
struct gv_profile *gv_profile_new(void);

/* Equal in every field of the file (the hash is none). */
bool gv_profile_equal(const struct gv_profile *a, const struct gv_profile *b);

/* Adds the format's documentation, made from the schema table, as Markdown. */
void gv_profile_schema_markdown(struct gv_str *out);

void gv_profile_free(struct gv_profile *profile); /* NULL is fine */

/* The entry that covers the ordered pair, or NULL. `*reversed` (may be NULL) says that it does so
 * as (b, a). Constant time after loading is not promised: do not call it in a hot path. */
const struct gv_profile_path *gv_profile_path_of(const struct gv_profile *, int from, int to);

/* State of P2P from -> to; GV_P2P_UNVERIFIED where no entry covers the pair. */
enum gv_p2p gv_profile_p2p(const struct gv_profile *, int from, int to);

/* True where `later` could never hold for some call that it is written for, since `first` stands
 * before it and holds too: their sizes overlap, and all that `first` asks for `later` does too. */
bool gv_profile_tuner_hides(
    const struct gv_profile_tuner *first, const struct gv_profile_tuner *later);

/* GPUs in the same island as `gpu`, itself included. */
gv_gpuset gv_profile_island(const struct gv_profile *, int gpu);

/* Names as they stand in the file ("AllReduce", "RING", "LL128", "verified", "PHB", "lend",
 * "published", "shape"). The from-name functions return -2 for an unknown name (so that ANY = -1
 * stays free). */
const char *gv_op_name(enum gv_op op);
const char *gv_algo_name(enum gv_algo algo);
const char *gv_proto_name(enum gv_proto proto);
const char *gv_p2p_name(enum gv_p2p state);
const char *gv_path_class_name(enum gv_path_class c);
const char *gv_edit_name(enum gv_edit_kind kind);
const char *gv_provenance_name(enum gv_provenance_kind kind);
const char *gv_match_name(enum gv_match match);
const char *gv_handoff_verdict_name(enum gv_handoff_verdict verdict);
int gv_op_from_name(const char *name);
int gv_algo_from_name(const char *name);  /* "any" is GV_ALGO_ANY */
int gv_proto_from_name(const char *name); /* "any" is GV_PROTO_ANY */
int gv_edit_from_name(const char *name);
/* A comma list such as "AllReduce,AllGather" to GV_OP_BITs; 0 or -1 with `err`. */
int gv_ops_parse(const char *text, unsigned *out_bits, struct gv_error *err);

#endif
