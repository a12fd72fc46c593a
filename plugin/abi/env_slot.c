/* Env slot: v1 (NCCL 2.28.7), v2 (2.30.7). NCCL asks here for every variable and does not look at
 * the environment itself any more. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "plugin/abi/gv_nccl_abi.h"
#include "plugin/abi/gv_release.h"
#include "plugin/abi/gv_slots.h"
#include "plugin/core/gv_answer.h"
#include "plugin/core/gv_env.h"
#include "plugin/core/gv_state.h"

/* Where the library was found by its default name alone (libnccl-env.so of the package), it acts
 * only if the job asked for it. */
static atomic_bool asked_for;
static pthread_once_t named = PTHREAD_ONCE_INIT;

static void name_net_slot(void)
{
    gv_net_slot_name(gv_answer_net_name());
}

/* Once for each NCCL of the process, possibly at the same time. */
static int init_v1(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix)
{
    (void)suffix;
    atomic_fetch_add(&gv_release_envs, 1);
    atomic_store(&gv_release_env, major * 10000 + minor * 100 + patch);
    bool asked =
        gv_env_set("NCCL_ENV_PLUGIN") || gv_answer_names_us(gv_env_get("NCCL_TUNER_PLUGIN"));
    atomic_store(&asked_for, asked);
    if (!asked)
        return GV_NCCL_SUCCESS;
    pthread_once(&named, name_net_slot);
    gv_state(); /* reads the profile now, not in the middle of the first communicator */
    return GV_NCCL_SUCCESS;
}

static int
init_v2(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix, gv_logger logger)
{
    int rc = init_v1(major, minor, patch, suffix);
    gv_log_flush(logger);
    return rc;
}

static int finalize(void)
{
    return GV_NCCL_SUCCESS;
}

static const char *get_env(const char *name)
{
    const char *user = gv_env_get(name);
    const void *caller = __builtin_return_address(0);
    return atomic_load(&asked_for) ? gv_answer(GV_ASKER_ENV_PLUGIN, caller, name, user) : user;
}

GV_EXPORT const struct gv_env_v1 ncclEnvPlugin_v1 = {
    .name = "gv100", .init = init_v1, .finalize = finalize, .get_env = get_env};
GV_EXPORT const struct gv_env_v2 ncclEnvPlugin_v2 = {
    .name = "gv100", .init = init_v2, .finalize = finalize, .get_env = get_env};
