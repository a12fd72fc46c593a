/* A topology file: what is accepted is written and read back equal; the edits keep it so, or refuse
 * and leave it as it was; the check for NCCL's limits looks at anything. */
#include "plugin/topology/gv_topology.h"
#include "tests/fuzz/fuzz.h"

#define GPUS 12

/* The tree's text after the same text was read and written: for free(). */
static char *stable(const struct gv_tree *tree)
{
    struct gv_str first = {0}, second = {0};
    struct gv_error err = {0};
    GV_MUST(!gv_tree_format(tree, &first));
    struct gv_tree *again = gv_tree_parse(first.data, first.len, "again", &err);
    if (!again)
        fprintf(stderr, "%u:%u: %s\n%s", err.line, err.column, err.text, first.data);
    GV_MUST(again && !gv_tree_format(again, &second));
    GV_MUST(!strcmp(first.data, second.data));
    gv_tree_free(again);
    gv_str_free(&second);
    return first.data;
}

static void check(const struct gv_tree *tree, const char *const *ids, int n)
{
    static const int releases[] = {0, 21903, 22105, 22809, 23203};
    for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
        struct gv_error err = {0};
        GV_MUST(!gv_tree_check(tree, ids, n, releases[i], &err) || err.text[0]);
    }
}

static int edit(struct gv_tree *tree, int kind, const char *const *ids, int n, struct gv_error *err)
{
    struct gv_tree_gpu a = {.bus_id = ids[0], .sm = 70}, b = {.bus_id = ids[n - 1], .sm = 70};
    if (kind == 0)
        return gv_tree_lend(tree, &a, &b, 0, "/nonexistent", err);
    if (kind == 1)
        return gv_tree_bridge(tree, ids, n, "/nonexistent", err);
    return gv_tree_separate(tree, &a, &b, err);
}

static void edits(const struct gv_tree *tree, const char *before, const char *const *ids, int n)
{
    for (int kind = 0; kind < 3 && n > 1; kind++) {
        struct gv_error err = {0};
        struct gv_tree *copy = gv_tree_copy(tree);
        GV_MUST(copy);
        bool refused = edit(copy, kind, ids, n, &err) != 0;
        char *after = stable(copy);
        GV_MUST(refused ? err.text[0] && !strcmp(before, after) : 1);
        check(copy, ids, n);
        free(after);
        gv_tree_free(copy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gv_error err = {0};
    char *text = gv_fuzz_text(data, size);
    struct gv_tree *tree = gv_tree_parse(text, size, "input", &err);
    GV_MUST(tree || err.text[0]);
    if (tree) {
        char ids[GPUS][24];
        const char *id[GPUS];
        int n = gv_tree_gpus(tree, ids, GPUS);
        GV_MUST(n >= 0 && n <= GPUS);
        for (int i = 0; i < n; i++)
            id[i] = ids[i];
        char *before = stable(tree);
        check(tree, id, n);
        edits(tree, before, id, n);
        free(before);
    }
    gv_tree_free(tree);
    free(text);
    return 0;
}
