/* The machine whose tree is edited, for the tests of the edits:
 *   CPU 0: switch 17 (GPUs 1a, 1b, 1e), switch 3a (3d, 3f, 41; NVLink 3f-41), GPU 60 on the CPU
 *   CPU 1: GPU b1
 * with links that differ from row to row. */
#ifndef GV_TOPOLOGY_EDITS_H
#define GV_TOPOLOGY_EDITS_H

#include "tests/unit/topology_world.h"

#include "plugin/topology/gv_topology.h"

#define C0 "<cpu numaid=\"0\">"
#define GPU(id) "<pci busid=\"0000:" id ":00.0\" class=\"0x030200\"/>"
#define SW(id, inside) "<pci busid=\"0000:" id ":00.0\" class=\"0x060400\">" inside "</pci>"
#define REST "</cpu><cpu numaid=\"1\">" GPU("b1") "</cpu></system>"
#define S17 SW("17", GPU("1a") GPU("1b") GPU("1e"))
#define S3A SW("3a", GPU("3d") GPU("3f") GPU("41"))
#define MACHINE "<system version=\"1\">" C0 S17 S3A GPU("60") REST

static inline struct gv_tree *parse(const char *text)
{
    struct gv_error err = {0};
    struct gv_tree *tree = gv_tree_parse(text, strlen(text), "table", &err);
    if (!tree)
        fail_msg("%u:%u: %s\n%s", err.line, err.column, err.text, text);
    return tree;
}

static inline char *format(const struct gv_tree *tree)
{
    struct gv_str out = {0};
    assert_int_equal(gv_tree_format(tree, &out), 0);
    return out.data;
}

/* A GPU of the machine; 3f and 41 have their NVLinks, as NVML names them. */
struct gpu {
    char bus_id[24];
    struct gv_tree_gpu g;
};

static inline void gpu_of(const char *id, int sm, struct gpu *out)
{
    memset(out, 0, sizeof(*out));
    snprintf(out->bus_id, sizeof(out->bus_id), "0000:%s:00.0", id);
    out->g.bus_id = out->bus_id;
    out->g.sm = sm;
    bool left = !strcmp(id, "3f"), right = !strcmp(id, "41");
    if (left || right) {
        out->g.nvlinks = 1;
        out->g.nvlink[0].target = left ? "00000000:41:00.0" : "00000000:3F:00.0";
        out->g.nvlink[0].count = 4;
    }
}

/* Where the machine's links stand: sysfs, as the tree itself has none. */
static inline void add_links(const char *sysfs, const char *speed)
{
    static const char *const ids[] = {"17", "1a", "1b", "1e", "3a", "3d", "3f", "41", "60", "b1"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        char path[WORLD_SYSFS + 64];
        snprintf(path, sizeof(path), "pci0000:%s/0000:%s:00.0", ids[i], ids[i]);
        world_add(
            sysfs, &(struct world_device){
                       .path = path,
                       .class = "0x030200",
                       .numa = "0",
                       .speed = speed ? speed : "8.0 GT/s PCIe",
                       .width = 16});
        /* The port above: as wide. */
        snprintf(path, sizeof(path), "%s/devices/pci0000:%s", sysfs, ids[i]);
        world_put(path, "max_link_width", "16");
    }
}

#endif
