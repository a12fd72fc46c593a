#include "testbench/nccl/nodes.h"

#include <string.h>

/* NCCL's figure for one NVLink of a compute capability, GB/s. */
static float nvlink_gbs(int sm, int release)
{
    if (sm >= 100 && release >= 22500)
        return release < 22705 ? 40.0f : 40.1f;
    if (sm >= 90)
        return release < 22000 ? 20.0f : 20.6f;
    if (sm == 86)
        return 12.0f;
    return sm >= 60 && sm < 70 ? 18.0f : 20.0f;
}

/* The CPU above a node, through PCI switches only. */
static struct gv_nt_node *cpu_above(struct gv_nt_node *node, const struct gv_nt_node *from)
{
    struct gv_nt_node *cpu = node->kind == GV_NT_CPU ? node : NULL;
    for (int i = 0; i < node->nlinks && !cpu; i++) {
        struct gv_nt_link *l = node->link + i;
        if (l->wire == GV_NT_PCIE && l->to != from &&
            (l->to->kind == GV_NT_PCI || l->to->kind == GV_NT_CPU))
            cpu = cpu_above(l->to, node);
    }
    return cpu;
}

static int add_nvlink(struct gv_nt_system *sys, const struct gv_nt_elem *x, struct gv_nt_node *gpu)
{
    const char *tclass = gv_nt_xml_get(x, "tclass"), *target = gv_nt_xml_get(x, "target");
    if (!gv_nt_xml_get(x, "count") || !tclass)
        return gv_nt_missing(sys, x, tclass ? "count" : "tclass");
    enum gv_nt_kind kind = gv_nt_class_kind(tclass);
    if (kind == GV_NT_GPU && !target)
        return gv_nt_missing(sys, x, "target");
    struct gv_nt_node *peer;
    if (kind == GV_NT_GPU)
        peer = gv_nt_find(sys, GV_NT_GPU, gv_nt_busid(target));
    else if (kind == GV_NT_CPU)
        peer = cpu_above(gpu, NULL);
    else
        peer = sys->count[GV_NT_NVS] ? sys->node[GV_NT_NVS][0] : gv_nt_add(sys, GV_NT_NVS, 0);
    if (!peer)
        return 0;
    float gbs = (float)gv_nt_xml_int(x, "count", 0) * nvlink_gbs(gpu->sm, sys->release);
    /* Between GPUs each side states its own direction. */
    return peer->kind == GV_NT_GPU ? gv_nt_connect(sys, gpu, peer, GV_NT_NVLINK, gbs)
                                   : gv_nt_connect_both(sys, gpu, peer, GV_NT_NVLINK, gbs);
}

/* Up to 2.25 the chip-to-chip link counts as NVLink. */
static int add_c2c(struct gv_nt_system *sys, const struct gv_nt_elem *x, struct gv_nt_node *gpu)
{
    struct gv_nt_node *cpu = cpu_above(gpu, NULL);
    float gbs = (float)(gv_nt_xml_int(x, "bw", 0) * gv_nt_xml_int(x, "count", 0) / 1000.0);
    return cpu ? gv_nt_connect_both(
                     sys, gpu, cpu, sys->release < 22600 ? GV_NT_NVLINK : GV_NT_C2C, gbs)
               : 0;
}

static int
add_pcilink(struct gv_nt_system *sys, const struct gv_nt_elem *x, struct gv_nt_node *from)
{
    const char *target = gv_nt_xml_get(x, "target");
    if (!target)
        return gv_nt_missing(sys, x, "target");
    struct gv_nt_node *to = gv_nt_find(sys, GV_NT_PCI, gv_nt_busid(target));
    return to ? gv_nt_connect(sys, from, to, GV_NT_LOCAL, GV_NT_LOCAL_GBS) : 0;
}

struct extra {
    const char *name;
    enum gv_nt_kind owner;
    int (*add)(struct gv_nt_system *, const struct gv_nt_elem *, struct gv_nt_node *);
};

/* Links that are not part of the tree, added once all nodes are there. */
static int add_extra(
    struct gv_nt_system *sys, const struct gv_nt_elem *e, const struct extra *kind, int64_t busid)
{
    if (!strcmp(e->name, kind->name)) {
        struct gv_nt_node *owner = gv_nt_find(sys, kind->owner, busid);
        return owner ? kind->add(sys, e, owner) : 0;
    }
    if (e->first < 0)
        return 0;
    if (gv_nt_xml_get(e, "busid"))
        busid = gv_nt_busid(gv_nt_xml_get(e, "busid"));
    for (int i = 0; i < e->nchild; i++) {
        int rc = add_extra(sys, e->child[i], kind, busid);
        if (rc)
            return rc;
    }
    return 0;
}

int gv_nt_add_links(struct gv_nt_system *sys, const struct gv_nt_elem *tree)
{
    static const struct extra extras[] = {
        {"nvlink", GV_NT_GPU, add_nvlink},
        {"c2c", GV_NT_GPU, add_c2c},
        {"pcilink", GV_NT_PCI, add_pcilink}};
    int rc = 0;
    for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]) && !rc; i++)
        rc = add_extra(sys, tree, extras + i, 0);
    return rc;
}

/* Broadcom switches of generation 4 and 5 show a level that is not there. */
static int broadcom_gen(uint64_t device, uint64_t level)
{
    uint64_t id = device & 0xfffffffffffff000u;
    if (id == 0x1000c0101000a000u)
        return 4;
    return id == (0x1000c03010000000u | level * 0x1000u) ? 5 : 0;
}

static void move_links(struct gv_nt_node *sub, struct gv_nt_node *top)
{
    for (int i = 0; i < sub->nlinks; i++) {
        struct gv_nt_node *far = sub->link[i].to;
        if (far == top)
            continue;
        top->link[top->nlinks++] = sub->link[i];
        for (int k = 0; k < far->nlinks; k++)
            if (far->link[k].to == sub) {
                far->link[k].to = top;
                break;
            }
    }
}

/* Takes the false sub-switches out of `top`, first their links, then the nodes. */
static void flatten(struct gv_nt_system *sys, struct gv_nt_node *top, int gen)
{
    struct gv_nt_node *subs[GV_NT_MAX_LINKS];
    int nsubs = 0, kept = 0;
    for (int i = 0; i < top->nlinks; i++) {
        struct gv_nt_node *sub = top->link[i].to;
        if (sub->kind == GV_NT_PCI && broadcom_gen(sub->device, 1) == gen)
            subs[nsubs++] = sub;
        else
            top->link[kept++] = top->link[i];
    }
    top->nlinks = kept;
    for (int i = 0; i < nsubs; i++) {
        move_links(subs[i], top);
        gv_nt_remove(sys, subs[i]);
    }
    top->device |= 0xffff;
}

void gv_nt_flatten_switches(struct gv_nt_system *sys)
{
    for (int i = 0; i < sys->count[GV_NT_PCI]; i++) {
        struct gv_nt_node *top = sys->node[GV_NT_PCI][i];
        int gen = broadcom_gen(top->device, 0);
        if (!gen || (top->device & 0xffff) == 0xffff)
            continue;
        flatten(sys, top, gen);
        i = -1; /* the list has changed */
    }
}
