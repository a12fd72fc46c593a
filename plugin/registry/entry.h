/* The file of one communicator and generation, as it lies in shared memory. Private to the
 * registry. */
#ifndef GV_REGISTRY_ENTRY_H
#define GV_REGISTRY_ENTRY_H

#include <stdatomic.h>
#include <stdint.h>

#include "plugin/registry/gv_registry.h"

#define GV_REGISTRY_MAGIC 0x31303156u /* "V101": changes with the layout below */

/* Signs of ranks that could not register (refuse.c) lie beside the entries. */
#define GV_SIGN_PREFIX "r-"

struct gv_slot {
    _Atomic uint32_t state; /* enum gv_slot_state */
    int32_t gpu;            /* machine index; valid from REGISTERED on */
    _Atomic uint64_t plan;  /* valid from PREPARED on */
};

enum gv_slot_state { GV_SLOT_CLAIMED = 0, GV_SLOT_REGISTERED, GV_SLOT_PREPARED };

/* All zero is a valid, empty entry, so that whoever creates the file has nothing to initialise and
 * no other rank can see half of it. */
struct gv_shared {
    _Atomic uint32_t magic;    /* 0 or GV_REGISTRY_MAGIC */
    _Atomic uint32_t word;     /* enum gv_verdict; futex */
    _Atomic uint32_t claimed;  /* slots handed out, may exceed GV_REGISTRY_RANKS */
    _Atomic uint32_t arrived;  /* slots REGISTERED; futex */
    _Atomic uint32_t prepared; /* slots PREPARED */
    uint32_t reserved;
    struct gv_slot slot[GV_REGISTRY_RANKS];
};

_Static_assert(sizeof(struct gv_slot) == 16, "shared between builds");
_Static_assert(sizeof(struct gv_shared) == 24 + 16 * GV_REGISTRY_RANKS, "shared between builds");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "atomics in shared memory must be free of locks");

struct gv_registry_entry {
    struct gv_shared *shared;
    int fd; /* holds the shared lock */
    int slot;
    char path[256];
};

/* Opens, locks and maps the newest generation of `key` that is still open, or the next one. Fills
 * fd, shared, path. 0 or -1 with `err`. */
int gv_entry_open(
    const char *folder, uint64_t key, struct gv_registry_entry *entry, struct gv_error *err);
void gv_entry_close(struct gv_registry_entry *entry);

/* Makes or checks the folder. Returns its descriptor or -1 with `err`. */
int gv_folder_open(const char *folder, struct gv_error *err);

#endif
