/* Membership and the two-step decision. */
#include "plugin/registry/entry.h"
#include "plugin/registry/gv_spare.h"

#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits while *word == seen, at most until `deadline_ms`. Wakes early now and then: callers look
 * again. */
static void futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t deadline_ms)
{
    int64_t left = deadline_ms - now_ms();
    if (left <= 0)
        return;
    struct timespec t = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The first word that is written stays. */
static void speak(struct gv_shared *shared, enum gv_verdict verdict)
{
    uint32_t open = GV_OPEN;
    if (atomic_compare_exchange_strong(&shared->word, &open, (uint32_t)verdict)) {
        futex_wake(&shared->word);
        futex_wake(&shared->arrived);
    }
}

static struct gv_registry_entry spare_room[GV_SPARES];
static struct gv_spares spares = {.room = spare_room, .size = sizeof(spare_room[0])};

static void free_entry(struct gv_registry_entry *entry)
{
    if (!gv_spare_give(&spares, entry))
        free(entry);
}

struct gv_registry_entry *
gv_registry_join(const char *folder, uint64_t key, int gpu, struct gv_error *err)
{
    struct gv_registry_entry *entry = calloc(1, sizeof(*entry));
    if (!entry)
        entry = gv_spare_take(&spares);
    if (!entry) {
        gv_error_set(err, "out of memory");
        return NULL;
    }
    if (gv_entry_open(folder, key, entry, err)) {
        free_entry(entry);
        return NULL;
    }
    struct gv_shared *shared = entry->shared;
    uint32_t slot = atomic_fetch_add(&shared->claimed, 1);
    if (slot >= GV_REGISTRY_RANKS) {
        speak(shared, GV_ABORT_OVERFLOW);
        gv_error_set(err, "more than %d ranks in one communicator", GV_REGISTRY_RANKS);
        gv_entry_close(entry);
        free_entry(entry);
        return NULL;
    }
    entry->slot = (int)slot;
    shared->slot[slot].gpu = gpu;
    atomic_store(&shared->slot[slot].state, GV_SLOT_REGISTERED);
    atomic_fetch_add(&shared->arrived, 1);
    futex_wake(&shared->arrived);
    return entry;
}

static int slots_in_use(const struct gv_shared *shared)
{
    uint32_t claimed = atomic_load(&shared->claimed);
    return claimed < GV_REGISTRY_RANKS ? (int)claimed : GV_REGISTRY_RANKS;
}

struct gv_registry_members gv_registry_members(const struct gv_registry_entry *entry)
{
    struct gv_registry_members members = {0};
    const struct gv_shared *shared = entry->shared;
    int n = slots_in_use(shared);
    for (int i = 0; i < n; i++) {
        if (atomic_load(&shared->slot[i].state) < GV_SLOT_REGISTERED)
            continue;
        members.count++;
        int gpu = shared->slot[i].gpu;
        if (gpu >= 0 && gpu < GV_MAX_GPUS)
            members.gpus |= GV_GPU_BIT(gpu);
    }
    members.on_one_gpu = members.count - gv_gpuset_count(members.gpus);
    return members;
}

int gv_registry_await(struct gv_registry_entry *entry, int nranks, int wait_ms)
{
    struct gv_shared *shared = entry->shared;
    int64_t deadline = now_ms() + wait_ms;
    for (;;) {
        uint32_t arrived = atomic_load(&shared->arrived);
        if (arrived >= (uint32_t)nranks)
            return arrived == (uint32_t)nranks ? 0 : -1;
        if (atomic_load(&shared->word) != GV_OPEN || now_ms() >= deadline)
            return -1;
        futex_wait(&shared->arrived, arrived, deadline);
    }
}

/* Called by the last rank to prepare: all the same, or none. */
static enum gv_verdict compare_plans(const struct gv_shared *shared, int nranks)
{
    if (slots_in_use(shared) != nranks)
        return GV_ABORT_MISMATCH;
    uint64_t first = atomic_load(&shared->slot[0].plan);
    for (int i = 1; i < nranks; i++)
        if (atomic_load(&shared->slot[i].plan) != first)
            return GV_ABORT_MISMATCH;
    return GV_COMMITTED;
}

void gv_registry_prepare(struct gv_registry_entry *entry, uint64_t plan, int nranks)
{
    struct gv_shared *shared = entry->shared;
    struct gv_slot *slot = &shared->slot[entry->slot];
    if (atomic_load(&slot->state) == GV_SLOT_PREPARED)
        return;
    atomic_store(&slot->plan, plan);
    atomic_store(&slot->state, GV_SLOT_PREPARED);
    if (atomic_fetch_add(&shared->prepared, 1) + 1 == (uint32_t)nranks)
        speak(shared, compare_plans(shared, nranks));
}

enum gv_verdict
gv_registry_decide(struct gv_registry_entry *entry, uint64_t plan, int nranks, int wait_ms)
{
    struct gv_shared *shared = entry->shared;
    gv_registry_prepare(entry, plan, nranks);
    int64_t deadline = now_ms() + wait_ms;
    uint32_t word;
    while ((word = atomic_load(&shared->word)) == GV_OPEN) {
        if (now_ms() >= deadline)
            speak(shared, GV_ABORT_TIMEOUT);
        else
            futex_wait(&shared->word, GV_OPEN, deadline);
    }
    return (enum gv_verdict)word;
}

void gv_registry_abort(struct gv_registry_entry *entry, enum gv_verdict why)
{
    speak(entry->shared, why);
}

enum gv_verdict gv_registry_verdict(const struct gv_registry_entry *entry)
{
    return (enum gv_verdict)atomic_load(&entry->shared->word);
}

void gv_registry_leave(struct gv_registry_entry *entry)
{
    if (!entry)
        return;
    /* A rank that has prepared has said all that the others need. */
    if (atomic_load(&entry->shared->slot[entry->slot].state) != GV_SLOT_PREPARED)
        speak(entry->shared, GV_ABORT_RANK);
    gv_entry_close(entry);
    free_entry(entry);
}

const char *gv_verdict_text(enum gv_verdict verdict)
{
    static const char *const text[] = {
        [GV_OPEN] = "not decided",
        [GV_COMMITTED] = "all ranks agreed",
        [GV_ABORT_MISMATCH] = "ranks came to different plans; give all of them the same profile, "
                              "the same plugin and the same settings",
        [GV_ABORT_TIMEOUT] = "a rank did not answer in time; see whether one ended or hangs",
        [GV_ABORT_RANK] = "a rank could not take part; its own warning says why",
        [GV_ABORT_OVERFLOW] = "plans are for 64 ranks at most",
        [GV_ABORT_CONFUSED] =
            "communicators over different GPUs were being made at the same time in one process, "
            "and NCCL before 2.28.7 does not say which of them a thread works for; make them one "
            "after the other",
    };
    return verdict <= GV_ABORT_CONFUSED ? text[verdict] : "ranks have different plugins";
}
