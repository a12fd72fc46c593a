/* What changed from one NCCL release to the next, as a table. Sources: docs of the facts in the
 * releases' public source, and runs of the stock libraries. */
#ifndef GV_HOST_RELEASE_H
#define GV_HOST_RELEASE_H

#include <stdbool.h>

/* How the tuner library's name is formed from NCCL_TUNER_PLUGIN. */
enum gvh_naming {
    GVH_NAME_LITERAL, /* the value alone, nothing when unset */
    GVH_NAME_BOTH,    /* the value, then PREFIX-value.so; PREFIX.so when unset */
    GVH_NAME_LIB,     /* the value alone if lib*.so, else PREFIX-value.so alone: paths fail */
    GVH_NAME_PATHS,   /* as BOTH, but no prefix for paths and lib*.so */
    GVH_NAME_PREFIX,  /* PREFIX-value.so alone (net up to 2.20) */
};

/* When a loaded tuner is closed. */
enum gvh_unload {
    GVH_UNLOAD_LAST,      /* with the last communicator; can be loaded anew */
    GVH_UNLOAD_ONCE,      /* with the last communicator; later ones get none */
    GVH_UNLOAD_BY_LOADER, /* only the loading communicator counts down */
};

struct gvh_release {
    int version; /* 22809 */
    int tuner_newest, tuner_oldest;
    int net_newest, net_oldest;
    int env_newest; /* 0: no env plugin */
    int nalgo;
    enum gvh_naming tuner_naming, net_naming;
    enum gvh_unload tuner_unload;
    bool now;              /* plugins are opened with RTLD_NOW, else RTLD_LAZY */
    bool tuner_net_names;  /* no tuner library: try the net plugin's names (2.21 to 2.25) */
    bool tuner_net_handle; /* no tuner library: look into the net plugin's library */
    bool none;             /* "none" switches a plugin off */
    bool tuner_first;      /* tuner init comes before the time model */
    bool sole_job_inline;  /* a group's only job runs on the caller's thread */
    bool conf_variable;    /* NCCL_CONF_FILE */
    bool home_variable;    /* $HOME before the passwd entry for ~/.nccl.conf */
    bool net_list;         /* NCCL_NET_PLUGIN is a comma list */
    bool net_each_comm;    /* v11 and later: init for each communicator */
    bool share_skips_net;  /* splitShare children inherit the parent's net */
    bool merge;            /* ranks of a host merge their topologies */
    bool split_counts;     /* a child's commId depends on how many splits the parent had; shrink
                              never counts, so its ids repeat */
    bool negative_wins;    /* the smallest cell wins even when it is -1 */
    float time_limit;      /* cells from here on are never chosen */
};

/* What "2.28.9" does. A release between or after the table's entries behaves as the one before it.
 * False for no version, or one older than 2.19. */
bool gvh_release_find(const char *text, struct gvh_release *out);

/* The release this process plays, from GV_HOST_RELEASE (2.28.9 where unset). */
const struct gvh_release *gvh_release(void);

#endif
