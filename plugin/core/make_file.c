#include "plugin/core/make_file.h"

#include <string.h>

static const char *bus_id(const struct gv_state *state, int profile_gpu)
{
    int gpu = state->to_machine[profile_gpu];
    return gpu < 0 ? NULL : state->machine.gpus[gpu].bus_id;
}

/* What the edits must know of one GPU: its bus id, its generation, its real NVLinks. */
static int
describe(const struct gv_state *state, int gpu, struct gv_tree_gpu *out, struct gv_error *err)
{
    memset(out, 0, sizeof(*out));
    out->bus_id = bus_id(state, gpu);
    if (!out->bus_id)
        return gv_error_set(err, "GPU %d of the profile is not on this machine", gpu);
    out->sm = state->profile->gpus[gpu].sm;
    const int most = (int)(sizeof(out->nvlink) / sizeof(out->nvlink[0]));
    for (int other = 0; other < state->profile->ngpus; other++) {
        const struct gv_profile_path *path = gv_profile_path_of(state->profile, gpu, other);
        if (other == gpu || !path || path->nvlinks <= 0 || !bus_id(state, other))
            continue;
        if (out->nvlinks == most)
            return gv_error_set(err, "GPU %d has NVLinks to more than %d others", gpu, most);
        out->nvlink[out->nvlinks].target = bus_id(state, other);
        out->nvlink[out->nvlinks++].count = path->nvlinks;
    }
    return 0;
}

static int bridge(
    const struct gv_state *state, struct gv_tree *tree, const struct gv_edit *edit,
    struct gv_error *err)
{
    const char *ids[GV_MAX_GPUS];
    int n = 0;
    for (gv_gpuset rest = edit->gpus; rest; rest &= rest - 1) {
        ids[n] = bus_id(state, gv_gpuset_first(rest));
        if (!ids[n++])
            return gv_error_set(
                err, "GPU %d of the profile is not on this machine", gv_gpuset_first(rest));
    }
    return gv_tree_bridge(tree, ids, n, gv_sysfs_root(), err);
}

static int apply(
    const struct gv_state *state, struct gv_tree *tree, const struct gv_edit *edit,
    struct gv_error *err)
{
    if (edit->kind == GV_EDIT_BRIDGE)
        return bridge(state, tree, edit, err);
    struct gv_tree_gpu from, to;
    if (describe(state, edit->from, &from, err) || describe(state, edit->to, &to, err))
        return -1;
    if (edit->kind == GV_EDIT_LEND)
        return gv_tree_lend(tree, &from, &to, edit->count, gv_sysfs_root(), err);
    if (edit->kind == GV_EDIT_SEPARATE)
        return gv_tree_separate(tree, &from, &to, err);
    return gv_error_set(err, "an edit of kind %d cannot be applied", (int)edit->kind);
}

static int check(
    const struct gv_state *state, const struct gv_tree *tree, const struct gv_question *question,
    struct gv_error *err)
{
    const char *ids[GV_MAX_GPUS];
    int n = 0;
    for (gv_gpuset rest = question->gpus; rest; rest &= rest - 1)
        ids[n++] = state->machine.gpus[gv_gpuset_first(rest)].bus_id;
    return gv_tree_check(tree, ids, n, question->nccl_version, err);
}

int gv_make_file(
    const struct gv_state *state, const struct gv_decision *decision, const char *user_file,
    struct gv_error *err)
{
    struct gv_tree *tree;
    if (user_file)
        tree = gv_tree_base(user_file, gv_sysfs_root(), err);
    else if (state->tree)
        tree = gv_tree_copy(state->tree);
    else
        return gv_error_set(err, "there is no topology to start from");
    if (!tree)
        return user_file ? -1 : gv_error_set(err, "out of memory");
    int rc = 0, file = -1;
    for (int i = 0; !rc && i < decision->plan.nedits; i++)
        rc = apply(state, tree, &decision->plan.edits[i], err);
    if (!rc && !check(state, tree, &decision->question, err))
        file = gv_tree_memfd(tree, err);
    gv_tree_free(tree);
    return file;
}
