/* Every allocation fails in turn, once and for good, in what makes a topology: read from sysfs or
 * from a file, copied, edited, written. What comes out is whole or nothing; nothing says why; no
 * memory is left behind. In one process, so that all of thousands can be tried where ranks of a
 * communicator (gv-torture-faults) are run for some. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/topology/gv_topology.h"
#include "tests/bench/world.h"
#include "tests/torture/faults.h"

static const char *sysfs;
static struct gv_tree *whole;                 /* as read from sysfs */
static struct gv_str text;                    /* the same as NCCL reads it */
static struct gv_tree_gpu one, other, linked; /* linked: `one` with an NVLink to `other` */
static char ids[GV_MAX_GPUS][24];
static const char *pair[2]; /* of two branches of one CPU */

/* Each returns the tree, NULL with `err`. */
static struct gv_tree *from_sysfs(struct gv_error *err)
{
    return gv_tree_from_sysfs(sysfs, err);
}

static struct gv_tree *from_text(struct gv_error *err)
{
    return gv_tree_parse(text.data, text.len, "topology.xml", err);
}

static struct gv_tree *copy(struct gv_error *err)
{
    struct gv_tree *tree = gv_tree_copy(whole);
    if (!tree)
        gv_error_set(err, "out of memory");
    return tree;
}

/* The tree if `rc` is 0. */
static struct gv_tree *edited(struct gv_tree *tree, int rc)
{
    if (!rc)
        return tree;
    gv_tree_free(tree);
    return NULL;
}

static struct gv_tree *lend(struct gv_error *err)
{
    struct gv_tree *tree = copy(err);
    return tree ? edited(tree, gv_tree_lend(tree, &one, &other, 0, sysfs, err)) : NULL;
}

static struct gv_tree *separate(struct gv_error *err)
{
    struct gv_tree *tree = copy(err);
    return tree ? edited(tree, gv_tree_separate(tree, &linked, &other, err)) : NULL;
}

static struct gv_tree *bridge(struct gv_error *err)
{
    struct gv_tree *tree = copy(err);
    return tree ? edited(tree, gv_tree_bridge(tree, pair, 2, sysfs, err)) : NULL;
}

static struct gv_tree *write_out(struct gv_error *err)
{
    struct gv_tree *tree = copy(err);
    int fd = tree ? gv_tree_memfd(tree, err) : -1;
    if (fd >= 0)
        close(fd);
    return tree ? edited(tree, fd < 0) : NULL;
}

static const struct {
    const char *name;
    struct gv_tree *(*make)(struct gv_error *err);
} steps[] = {{"sysfs", from_sysfs}, {"text", from_text},    {"copy", copy},      {"lend", lend},
             {"bridge", bridge},    {"separate", separate}, {"write", write_out}};

static struct gv_str as_text(struct gv_tree *tree)
{
    struct gv_str out = {0};
    if (tree && gv_tree_format(tree, &out))
        exit(3);
    return out;
}

/* One go with the `n`th allocation failing; true if all is as it must be. */
static bool go(struct gv_tree *(*make)(struct gv_error *), long n, bool stays, struct gv_str *out)
{
    struct gv_error err = {0};
    gv_faults_set(GV_FAULT_MEMORY, n, stays);
    gv_faults_here(true);
    struct gv_tree *tree = make(&err);
    gv_faults_here(false);
    *out = as_text(tree);
    bool said = tree || err.text[0];
    gv_faults_here(true);
    gv_tree_free(tree);
    gv_faults_here(false);
    return said && !gv_faults_live();
}

/* The number of goes that were not right. */
static long torture(const char *name, struct gv_tree *(*make)(struct gv_error *))
{
    struct gv_str wanted, got;
    long bad = 0, refused = 0;
    if (!go(make, 0, false, &wanted) || !wanted.len)
        bad++;
    long calls = gv_faults_seen(GV_FAULT_MEMORY);
    for (long n = 1; n <= calls; n++) {
        for (int stays = 0; stays < 2; stays++) {
            bool right = go(make, n, stays, &got) && (!got.data || !strcmp(got.data, wanted.data));
            refused += !got.data;
            bad += !right;
            if (!right)
                printf("  FAILED: %s, allocation %ld%s\n", name, n, stays ? " and all later" : "");
            gv_str_free(&got);
        }
    }
    printf(
        "%-10s %7ld allocations, %7ld of %7ld goes refused, %ld wrong\n", name, calls, refused,
        2 * calls, bad);
    gv_str_free(&wanted);
    return bad + !refused;
}

/* GPUs in branches of their own under one CPU: the first pair that can be bridged. */
static bool find_pair(int n)
{
    for (int a = 0; a < n; a++) {
        for (int b = a + 1; b < n; b++) {
            struct gv_error err;
            pair[0] = ids[a];
            pair[1] = ids[b];
            struct gv_tree *tree = bridge(&err);
            gv_tree_free(tree);
            if (tree)
                return true;
        }
    }
    return false;
}

int main(void)
{
    struct gv_world world;
    struct gv_error err;
    long bad = 0;
    gv_world_open(&world, GV_WORLD_4028);
    sysfs = getenv("GV100_SYSFS");
    whole = gv_tree_from_sysfs(sysfs, &err);
    text = as_text(whole);
    int n = whole ? gv_tree_gpus(whole, ids, GV_MAX_GPUS) : 0;
    if (n < 2 || !find_pair(n))
        return 3;
    one = (struct gv_tree_gpu){.bus_id = ids[0], .sm = 70};
    other = (struct gv_tree_gpu){.bus_id = ids[1], .sm = 70};
    linked = one;
    linked.nvlinks = 1;
    linked.nvlink[0].target = ids[1];
    linked.nvlink[0].count = 2;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        bad += torture(steps[i].name, steps[i].make);
    gv_str_free(&text);
    gv_tree_free(whole);
    gv_world_close(&world);
    return bad != 0;
}
