/* Who is in a communicator, and one decision for all of them.
 *
 * Each rank registers under the communicator's key in a file of /dev/shm/gv100-<uid>; NCCL's own
 * all-gather is the barrier after which every rank finds the same members. Then each rank prepares
 * its plan, the last one to be ready commits, one that waits too long or cannot go on aborts, and
 * all read the same final word. Ranks may be threads, processes, or live in containers that share
 * /dev/shm.
 *
 * An entry lives as long as somebody holds its file lock (pids mean nothing across containers). A
 * key that comes again while an older entry is decided starts a new generation. */
#ifndef GV_REGISTRY_H
#define GV_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/gv_error.h"
#include "base/gv_gpuset.h"

/* Ranks in one entry. Plans know 64 GPUs; a larger communicator overflows and gets the default. */
#define GV_REGISTRY_RANKS 64

struct gv_registry_entry; /* one rank's membership; owned by the caller, gv_registry_leave */

/* The final word of an entry, the same for every rank that asks. */
enum gv_verdict {
    GV_OPEN,           /* not decided; never returned by gv_registry_decide */
    GV_COMMITTED,      /* every rank prepared the same plan */
    GV_ABORT_MISMATCH, /* ranks prepared different plans (another profile, another version) */
    GV_ABORT_TIMEOUT,  /* a rank did not come in time */
    GV_ABORT_RANK,     /* a rank gave up (its own trouble, or the communicator's init failed) */
    GV_ABORT_OVERFLOW, /* more than GV_REGISTRY_RANKS ranks */
    GV_ABORT_CONFUSED  /* it could not be told from another communicator */
};

struct gv_registry_members {
    int count;      /* ranks registered */
    gv_gpuset gpus; /* their GPUs, by machine index (PCI order) */
    int on_one_gpu; /* ranks beyond the first on a GPU: count - popcount(gpus) */
};

/* Registers the calling rank, which drives GPU `gpu` (machine index), under `key`. `folder` is the
 * registry's folder ($GV100_SHM_DIR, else /dev/shm/gv100-<uid>): made with mode 0700 where it is
 * missing, refused where it is a link, another user's, or open to others. Never waits longer than a
 * few milliseconds. Returns NULL with `err`: the communicator then gets the default. */
struct gv_registry_entry *
gv_registry_join(const char *folder, uint64_t key, int gpu, struct gv_error *err);

/* The ranks registered so far. */
struct gv_registry_members gv_registry_members(const struct gv_registry_entry *entry);

/* Waits until `nranks` ranks are there, at most `wait_ms`. Returns 0, or -1 (time is up, or the
 * entry was aborted). */
int gv_registry_await(struct gv_registry_entry *entry, int nranks, int wait_ms);

/* Prepares `plan` (a hash over all that must be equal: members, profile, edits, rows), commits if
 * this rank is the last of `nranks`, else waits for the final word, at most `wait_ms`, and aborts
 * then. Any thread may ask again: the answer stays. */
enum gv_verdict
gv_registry_decide(struct gv_registry_entry *entry, uint64_t plan, int nranks, int wait_ms);

/* The same without waiting, for a rank whose plan is the default whatever the others say: they see
 * its hash. */
void gv_registry_prepare(struct gv_registry_entry *entry, uint64_t plan, int nranks);

/* Ends the entry for all where it is not decided yet. */
void gv_registry_abort(struct gv_registry_entry *entry, enum gv_verdict why);

/* The word as it stands now, GV_OPEN included. */
enum gv_verdict gv_registry_verdict(const struct gv_registry_entry *entry);

/* Gives the membership back (an undecided entry is aborted first); the last one out removes the
 * file. NULL is fine. */
void gv_registry_leave(struct gv_registry_entry *entry);

/* For a rank that cannot join: leaves a sign for the others, in `folder` or in /tmp/gv100-<uid>.
 * Needs no memory and no descriptor. Before NCCL's all-gather, as joining. */
void gv_registry_refuse(const char *folder, uint64_t key);

/* Whether a rank of `key` has left a sign. After NCCL's all-gather. */
bool gv_registry_refused(const char *folder, uint64_t key);

/* Removes the sign. One that nobody removes is swept after an hour; until then `key` gets the
 * default. */
void gv_registry_take_back(const char *folder, uint64_t key);

/* Removes entries that nobody holds, and old signs. Returns how many; 0 where the folder is not
 * there. At most `limit` files are looked at. */
int gv_registry_sweep(const char *folder, int limit);

/* Writes the registry's folder for this user into `out`. $GV100_SHM_DIR names another (tests, or a
 * /dev/shm that is too small). */
void gv_registry_folder(char *out, unsigned long out_size);

/* Where signs lie that cannot lie there. $GV100_SIGN_DIR names another folder (tests, whose keys
 * come again). */
void gv_registry_second_folder(char *out, unsigned long out_size);

/* Cause and next step, one sentence for a log. */
const char *gv_verdict_text(enum gv_verdict verdict);

#endif
