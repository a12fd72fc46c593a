/* Profiles from what other tools printed. A file is read into facts, each with its line; facts of
 * all files together become a profile, or nothing does. What a file leaves open (no header, another
 * host, a failed check, a cut row) is refused with its place, never filled in. */
#ifndef GV_IMPORT_H
#define GV_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/gv_error.h"
#include "config/gv_profile.h"

enum gv_import_format {
    GV_IMPORT_AUTO,
    GV_IMPORT_SMI,        /* nvidia-smi topo -m, topo -p2p */
    GV_IMPORT_NCCL_TESTS, /* tables of nccl-tests, 2.0 (2018) to 2.20 */
    GV_IMPORT_NCCL_TESTS_JSON,
    GV_IMPORT_P2P_BANDWIDTH, /* p2pBandwidthLatencyTest of the CUDA samples */
    GV_IMPORT_NVBANDWIDTH,
    GV_IMPORT_NVBANDWIDTH_JSON,
    GV_IMPORT_NCCL_TOPOLOGY, /* <system version="1"> */
    GV_IMPORT_NCCL_GRAPH,    /* <graphs version="1"> */
    GV_IMPORT_HWLOC,         /* lstopo x.xml, hwloc 2 */
    GV_IMPORT_CSV,           /* our own columns, and the measurements NCCL's example tuner is fed */
    GV_IMPORT_TUNER,         /* the configuration of NCCL's example tuner */
    GV_IMPORT_FORMATS
};

/* "auto", "smi", "nccl-tests", ... as --format takes them. */
const char *gv_import_format_name(enum gv_import_format format);
int gv_import_format_from_name(const char *name); /* -1: unknown */

/* A GPU as one file names it; what it does not say is "" or -1. */
struct gv_import_gpu {
    int index;       /* in the file's own numbering */
    char bus_id[20]; /* "0000:3b:00.0" */
    int bus;         /* the bus alone, where nothing else is said ("[0x3d]") */
    char model[64], uuid[48];
    uint16_t pci_vendor, pci_device;
    int numa_node, sm, memory_mib, link_gen, link_width;
    char island[24]; /* equal text: one island */
    unsigned line;
};

/* Facts of the ordered pair from -> to (indexes into `gpus` of the source). NAN: not said. */
struct gv_import_pair {
    int from, to;
    char smi_class[8];
    enum gv_path_class nccl_class;
    int nvlinks;
    bool refused; /* the driver says that P2P is not supported */
    double write_gbs, read_gbs, both_ways_gbs, latency_us, host_path_gbs;
    unsigned line;
};

/* Memory and host link of one GPU. NAN: not said. */
struct gv_import_single {
    int gpu;
    double copy_gbs, to_device_gbs, to_host_gbs;
    unsigned line;
};

struct gv_import_sample {
    enum gv_op op;
    uint64_t bytes;
    double busbw_gbs, algbw_gbs;
    enum gv_edit_kind edit;
    enum gv_algo algorithm;
    enum gv_proto protocol;
    int channels;
    gv_gpuset gpus; /* profile indexes, CSV alone; 0: all of the source's GPUs */
    unsigned line;
};

struct gv_import_ring {
    int order[GV_MAX_GPUS], n;
    unsigned line;
};

/* A choice without figures. */
struct gv_import_choice {
    struct gv_profile_tuner row; /* its source is empty */
    unsigned line;
};

/* Something that was read and not taken over, and why. */
struct gv_import_note {
    unsigned line;
    char text[200];
};

/* One table, matrix or tree. */
struct gv_import_source {
    char path[256];
    enum gv_import_format format;
    bool whole; /* lists every GPU of the machine; else those that one run used */
    struct gv_import_gpu gpus[GV_MAX_GPUS];
    int ngpus;
    char cpu_vendor[16], nccl[16], nccl_tests[32], driver[32], cuda[16];
    struct gv_import_pair *pairs;
    int npairs;
    struct gv_import_single *singles;
    int nsingles;
    struct gv_import_sample *samples;
    int nsamples;
    struct gv_import_ring *rings;
    int nrings;
    struct gv_import_choice *choices;
    int nchoices;
    struct gv_import_note *notes;
    int nnotes;
};

struct gv_import_options {
    int gpus[GV_MAX_GPUS], ngpus; /* --gpus: the profile's GPU of each rank; ngpus 0: not given */
    int op;                       /* enum gv_op, -1: as the file says */
    int edit;                     /* enum gv_edit_kind, -1: as the file says */
    bool in_place;                /* the in-place half of tables instead of the other */
};

struct gv_import {
    struct gv_import_options options;
    struct gv_import_source *sources;
    int nsources;
};

/* Reads one file and adds its sources. 0, or -1 with `err`: nothing of the import may be used then.
 * `format` AUTO looks at the content; a text that holds several kinds gives several sources. */
int gv_import_file(
    struct gv_import *import, const char *path, enum gv_import_format format, struct gv_error *err);

/* The same from memory. */
int gv_import_text(
    struct gv_import *import, const char *text, size_t len, const char *path,
    enum gv_import_format format, struct gv_error *err);

/* All facts as a profile of kind `imported`: a new one named `name`, or `base` (which stays as it
 * is) with the facts added. NULL with `err` where two sources contradict each other or the base, or
 * where a table's GPUs cannot be told. Free it with gv_profile_free. */
struct gv_profile *gv_import_profile(
    struct gv_import *import, const struct gv_profile *base, const char *name,
    struct gv_error *err);

/* True where the files hold choices alone: they name no GPU, so that they go into a profile that is
 * there (or onto the GPUs of --gpus) and make none by themselves. */
bool gv_import_choices_alone(const struct gv_import *import);

void gv_import_finish(struct gv_import *import);

#endif
