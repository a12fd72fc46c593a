#include "testbench/nccl/graph.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    const char *text;
    int value;
};

/* Classes, speeds and names are compared by prefix, first match wins. */
static const struct word classes[] = {{"0x060400", GV_NT_PCI}, {"0x080100", GV_NT_PCI},
                                      {"0x068000", GV_NT_NVS}, {"0x068001", GV_NT_CPU},
                                      {"0x03", GV_NT_GPU},     {"0x02", GV_NT_NIC},
                                      {NULL, GV_NT_PCI}};
/* 100 Mb/s a lane. The kernel's text changed in 5.7; other texts count as generation 3. */
static const struct word speeds[] = {
    {"2.5 GT/s", 15},
    {"5 GT/s", 30},
    {"8 GT/s", 60},
    {"16 GT/s", 120},
    {"32 GT/s", 240},
    {"5.0 GT/s PCIe", 30},
    {"8.0 GT/s PCIe", 60},
    {"16.0 GT/s PCIe", 120},
    {"32.0 GT/s PCIe", 240},
    {"64.0 GT/s PCIe", 480},
    {NULL, 60}};
static const struct word archs[] = {
    {"x86_64", GV_NT_X86}, {"arm64", GV_NT_ARM}, {"ppc64", GV_NT_POWER}, {NULL, GV_NT_ARCH_NONE}};
static const struct word vendors[] = {
    {"GenuineIntel", GV_NT_INTEL},
    {"AuthenticAMD", GV_NT_AMD},
    {"CentaurHauls", GV_NT_ZHAOXIN},
    {"  Shanghai  ", GV_NT_ZHAOXIN},
    {NULL, GV_NT_VENDOR_NONE}};

static int look_up(const struct word *words, const char *text)
{
    while (words->text && strncmp(text, words->text, strlen(words->text)))
        words++;
    return words->value;
}

/* Hex digits without the separators; stops at anything else. */
static int64_t parse_busid(const char *text)
{
    int64_t id = 0;
    for (; *text; text++) {
        if (*text == '.' || *text == ':')
            continue;
        if (!isxdigit((unsigned char)*text))
            break;
        id = id << 4 | (isdigit((unsigned char)*text) ? *text - '0' : tolower(*text) - 'a' + 10);
    }
    return id;
}

static int missing(struct gv_nt_system *sys, const struct gv_nt_elem *e, const char *key)
{
    snprintf(sys->err->text, sizeof(sys->err->text), "element %.40s has no %s", e->name, key);
    return GV_NCCL_INTERNAL_ERROR;
}

static struct gv_nt_node *
find_node(const struct gv_nt_system *sys, enum gv_nt_kind kind, int64_t id)
{
    for (int i = 0; i < sys->count[kind]; i++)
        if (sys->node[kind][i]->id == id)
            return sys->node[kind][i];
    return NULL;
}

static struct gv_nt_node *add_node(struct gv_nt_system *sys, enum gv_nt_kind kind, int64_t id)
{
    if (sys->count[kind] == sys->cap[kind]) {
        sys->cap[kind] = sys->cap[kind] ? 2 * sys->cap[kind] : 16;
        sys->node[kind] = realloc(sys->node[kind], (size_t)sys->cap[kind] * sizeof(void *));
        if (!sys->node[kind])
            abort();
    }
    struct gv_nt_node *n = calloc(1, sizeof(*n));
    n->kind = kind;
    n->id = id;
    n->index = sys->count[kind]++;
    sys->node[kind][n->index] = n;
    return n;
}

static void remove_node(struct gv_nt_system *sys, struct gv_nt_node *node)
{
    struct gv_nt_node **list = sys->node[node->kind];
    int last = --sys->count[node->kind];
    for (int i = node->index; i < last; i++) {
        list[i] = list[i + 1];
        list[i]->index = i;
    }
    free(node);
}

int gv_nt_connect(
    struct gv_nt_system *sys, struct gv_nt_node *from, struct gv_nt_node *to, enum gv_nt_wire wire,
    float gbs)
{
    int at = 0;
    while (at < from->nlinks && (from->link[at].to != to || from->link[at].wire != wire))
        at++;
    if (at == sys->max_links) {
        snprintf(
            sys->err->text, sizeof(sys->err->text), "a node has more than %d links",
            sys->max_links);
        return GV_NCCL_INTERNAL_ERROR;
    }
    struct gv_nt_link link = {to, wire, gbs};
    if (at == from->nlinks)
        from->nlinks++;
    else
        link.gbs += from->link[at].gbs;
    for (; at > 0 && from->link[at - 1].gbs < link.gbs; at--)
        from->link[at] = from->link[at - 1];
    from->link[at] = link;
    return 0;
}

static int connect_both(
    struct gv_nt_system *sys, struct gv_nt_node *a, struct gv_nt_node *b, enum gv_nt_wire wire,
    float gbs)
{
    int rc = gv_nt_connect(sys, a, b, wire, gbs);
    return rc ? rc : gv_nt_connect(sys, b, a, wire, gbs);
}

float gv_nt_nvlink_gbs(int sm, int release)
{
    if (sm >= 100 && release >= 22500)
        return release < 22705 ? 40.0f : 40.1f;
    if (sm >= 90)
        return release < 22000 ? 20.0f : 20.6f;
    if (sm == 86)
        return 12.0f;
    return sm >= 60 && sm < 70 ? 18.0f : 20.0f;
}

static int add_nets(struct gv_nt_system *sys, const struct gv_nt_elem *xnic, struct gv_nt_node *nic)
{
    for (int i = 0; i < xnic->nchild; i++) {
        const struct gv_nt_elem *xnet = xnic->child[i];
        if (xnet->first < 0)
            continue;
        struct gv_nt_node *net = add_node(sys, GV_NT_NET, gv_nt_xml_int(xnet, "dev", 0));
        int mbps = gv_nt_xml_int(xnet, "speed", 0);
        net->gdr = gv_nt_xml_int(xnet, "gdr", 0) != 0;
        int rc = connect_both(
            sys, nic, net, GV_NT_NETWORK, (float)((mbps <= 0 ? 10000 : mbps) / 8000.0));
        if (rc)
            return rc;
    }
    return 0;
}

static float pcie_gbs(const struct gv_nt_elem *xpci)
{
    int width = gv_nt_xml_int(xpci, "link_width", 0);
    int speed = look_up(speeds, gv_nt_xml_get(xpci, "link_speed"));
    return (float)((width ? width : 16) * speed / 80.0);
}

static void set_device(struct gv_nt_node *node, const struct gv_nt_elem *xpci)
{
    static const char *const keys[] = {"vendor", "device", "subsystem_vendor", "subsystem_device"};
    for (int i = 0; i < 4; i++) {
        const char *text = gv_nt_xml_get(xpci, keys[i]);
        if (text)
            node->device += (uint64_t)strtol(text, NULL, 0) << (48 - 16 * i);
    }
}

static int
add_pci(struct gv_nt_system *sys, struct gv_nt_elem *xpci, struct gv_nt_node *parent, int64_t numa);

static int
add_switch(struct gv_nt_system *sys, struct gv_nt_elem *xpci, struct gv_nt_node *node, int64_t numa)
{
    set_device(node, xpci);
    for (int i = 0; i < xpci->nchild; i++) {
        struct gv_nt_elem *sub = xpci->child[i];
        int rc = strcmp(sub->name, "pci") || sub->first < 0 ? 0 : add_pci(sys, sub, node, numa);
        if (rc)
            return rc;
    }
    return 0;
}

static struct gv_nt_node *
add_gpu(struct gv_nt_system *sys, const struct gv_nt_elem *xgpu, int64_t busid)
{
    struct gv_nt_node *gpu = add_node(sys, GV_NT_GPU, busid);
    gpu->dev = gv_nt_xml_int(xgpu, "dev", -1);
    gpu->sm = gv_nt_xml_int(xgpu, "sm", 0);
    gpu->rank = gv_nt_xml_int(xgpu, "rank", -1);
    gpu->gdr = gv_nt_xml_int(xgpu, "gdr", 0) != 0;
    return gpu;
}

/* What lies below is added before the link upwards: the order of links decides ties later. */
static int
add_pci(struct gv_nt_system *sys, struct gv_nt_elem *xpci, struct gv_nt_node *parent, int64_t numa)
{
    int64_t busid = parse_busid(gv_nt_xml_get(xpci, "busid"));
    int kind = look_up(classes, gv_nt_xml_get(xpci, "class"));
    struct gv_nt_elem *xgpu = gv_nt_xml_child(xpci, "gpu"), *xnic = gv_nt_xml_child(xpci, "nic");
    struct gv_nt_node *node = NULL;
    int rc = 0;
    if (xgpu) {
        kind = GV_NT_GPU;
        if (!gv_nt_xml_get(xgpu, "rank"))
            return 0;
        node = add_gpu(sys, xgpu, busid);
    }
    if (xnic && xnic->first >= 0) {
        int64_t id = (numa << 40) + busid;
        struct gv_nt_node *nic = find_node(sys, GV_NT_NIC, id);
        if (!nic)
            nic = node = add_node(sys, GV_NT_NIC, id);
        rc = add_nets(sys, xnic, nic);
    } else if (kind == GV_NT_PCI) {
        node = add_node(sys, GV_NT_PCI, busid);
        rc = add_switch(sys, xpci, node, numa);
    }
    return rc || !node ? rc : connect_both(sys, node, parent, GV_NT_PCIE, pcie_gbs(xpci));
}

/* GB/s between two CPUs as NCCL assumes it, by maker and model alone. */
static float inter_cpu_gbs(const struct gv_nt_node *cpu, int family, int model, int release)
{
    if (cpu->arch == GV_NT_POWER)
        return 32.0f;
    if (cpu->arch == GV_NT_ARM)
        return 6.0f;
    if (cpu->arch != GV_NT_X86)
        return GV_NT_LOCAL_GBS;
    if (cpu->vendor == GV_NT_AMD)
        return 16.0f;
    if (cpu->vendor == GV_NT_ZHAOXIN)
        return family == 7 && model == 0x5B ? 9.0f : 6.0f;
    if (cpu->vendor != GV_NT_INTEL)
        return GV_NT_LOCAL_GBS;
    if (family != 6 || model < 0x55)
        return 6.0f;
    if (release < 22600 || model < 0x8F)
        return 10.0f;
    return model < 0xCF ? 22.0f : 40.0f;
}

static int add_cpu_nic(struct gv_nt_system *sys, struct gv_nt_elem *xnic, struct gv_nt_node *cpu)
{
    struct gv_nt_node *nic = find_node(sys, GV_NT_NIC, cpu->id << 40);
    int rc = 0;
    if (!nic) {
        nic = add_node(sys, GV_NT_NIC, cpu->id << 40);
        rc = connect_both(sys, cpu, nic, GV_NT_PCIE, GV_NT_LOCAL_GBS);
    }
    return rc ? rc : add_nets(sys, xnic, nic);
}

static int add_cpu(struct gv_nt_system *sys, struct gv_nt_elem *xcpu)
{
    struct gv_nt_node *cpu = add_node(sys, GV_NT_CPU, gv_nt_xml_int(xcpu, "numaid", 0));
    cpu->arch = (enum gv_nt_arch)look_up(archs, gv_nt_xml_get(xcpu, "arch"));
    if (cpu->arch == GV_NT_X86)
        cpu->vendor = (enum gv_nt_vendor)look_up(vendors, gv_nt_xml_get(xcpu, "vendor"));
    if (cpu->vendor == GV_NT_INTEL && !gv_nt_xml_get(xcpu, "modelid"))
        return missing(sys, xcpu, "modelid");
    cpu->inter_cpu_gbs = inter_cpu_gbs(
        cpu, gv_nt_xml_int(xcpu, "familyid", 0), gv_nt_xml_int(xcpu, "modelid", 0), sys->release);
    for (int i = 0; i < xcpu->nchild; i++) {
        struct gv_nt_elem *sub = xcpu->child[i];
        int rc = 0;
        if (sub->first >= 0)
            rc = strcmp(sub->name, "pci") ? add_cpu_nic(sys, sub, cpu)
                                          : add_pci(sys, sub, cpu, cpu->id);
        if (rc)
            return rc;
    }
    return 0;
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
        return missing(sys, x, tclass ? "count" : "tclass");
    int kind = look_up(classes, tclass);
    if (kind == GV_NT_GPU && !target)
        return missing(sys, x, "target");
    struct gv_nt_node *peer;
    if (kind == GV_NT_GPU)
        peer = find_node(sys, GV_NT_GPU, parse_busid(target));
    else if (kind == GV_NT_CPU)
        peer = cpu_above(gpu, NULL);
    else
        peer = sys->count[GV_NT_NVS] ? sys->node[GV_NT_NVS][0] : add_node(sys, GV_NT_NVS, 0);
    if (!peer)
        return 0;
    float gbs = (float)gv_nt_xml_int(x, "count", 0) * gv_nt_nvlink_gbs(gpu->sm, sys->release);
    /* Between GPUs each side states its own direction. */
    return peer->kind == GV_NT_GPU ? gv_nt_connect(sys, gpu, peer, GV_NT_NVLINK, gbs)
                                   : connect_both(sys, gpu, peer, GV_NT_NVLINK, gbs);
}

/* Up to 2.25 the chip-to-chip link counts as NVLink. */
static int add_c2c(struct gv_nt_system *sys, const struct gv_nt_elem *x, struct gv_nt_node *gpu)
{
    struct gv_nt_node *cpu = cpu_above(gpu, NULL);
    float gbs = (float)(gv_nt_xml_int(x, "bw", 0) * gv_nt_xml_int(x, "count", 0) / 1000.0);
    return cpu ? connect_both(sys, gpu, cpu, sys->release < 22600 ? GV_NT_NVLINK : GV_NT_C2C, gbs)
               : 0;
}

static int
add_pcilink(struct gv_nt_system *sys, const struct gv_nt_elem *x, struct gv_nt_node *from)
{
    const char *target = gv_nt_xml_get(x, "target");
    if (!target)
        return missing(sys, x, "target");
    struct gv_nt_node *to = find_node(sys, GV_NT_PCI, parse_busid(target));
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
        struct gv_nt_node *owner = find_node(sys, kind->owner, busid);
        return owner ? kind->add(sys, e, owner) : 0;
    }
    if (e->first < 0)
        return 0;
    if (gv_nt_xml_get(e, "busid"))
        busid = parse_busid(gv_nt_xml_get(e, "busid"));
    for (int i = 0; i < e->nchild; i++) {
        int rc = add_extra(sys, e->child[i], kind, busid);
        if (rc)
            return rc;
    }
    return 0;
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
        remove_node(sys, subs[i]);
    }
    top->device |= 0xffff;
}

static void flatten_switches(struct gv_nt_system *sys)
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

static int connect_cpus(struct gv_nt_system *sys)
{
    for (int i = 0; i < sys->count[GV_NT_CPU]; i++)
        for (int k = 0; k < sys->count[GV_NT_CPU]; k++) {
            struct gv_nt_node *a = sys->node[GV_NT_CPU][i], *b = sys->node[GV_NT_CPU][k];
            int rc = i == k ? 0 : gv_nt_connect(sys, a, b, GV_NT_INTER_CPU, a->inter_cpu_gbs);
            if (rc)
                return rc;
        }
    return 0;
}

/* The link upwards becomes the last of each node of the PCI tree. */
static void sort_links(struct gv_nt_node *node, const struct gv_nt_node *up)
{
    int at = 0;
    while (up && at < node->nlinks && node->link[at].to != up)
        at++;
    if (up && at < node->nlinks) {
        struct gv_nt_link link = node->link[at];
        for (; at + 1 < node->nlinks; at++)
            node->link[at] = node->link[at + 1];
        node->link[at] = link;
    }
    for (int i = 0; i < node->nlinks; i++)
        if (node->link[i].wire == GV_NT_PCIE && node->link[i].to != up)
            sort_links(node->link[i].to, node);
}

static int build(struct gv_nt_system *sys, struct gv_nt_elem *tree)
{
    static const struct extra extras[] = {
        {"nvlink", GV_NT_GPU, add_nvlink},
        {"c2c", GV_NT_GPU, add_c2c},
        {"pcilink", GV_NT_PCI, add_pcilink}};
    for (int i = 0; i < tree->nchild; i++) {
        struct gv_nt_elem *cpu = tree->child[i];
        int rc = cpu->first < 0 || strcmp(cpu->name, "cpu") ? 0 : add_cpu(sys, cpu);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]); i++) {
        int rc = add_extra(sys, tree, extras + i, 0);
        if (rc)
            return rc;
    }
    flatten_switches(sys);
    int rc = connect_cpus(sys);
    for (int i = 0; i < sys->count[GV_NT_CPU] && !rc; i++)
        sort_links(sys->node[GV_NT_CPU][i], NULL);
    return rc;
}

int gv_nt_system_build(
    struct gv_nt_elem *tree, int release, struct gv_nt_system **out, struct gv_nt_error *err)
{
    struct gv_nt_system *sys = calloc(1, sizeof(*sys));
    sys->release = release;
    sys->max_links = release < 22100 ? 32 : release < 22500 ? 128 : GV_NT_MAX_LINKS;
    sys->err = err;
    int rc = build(sys, tree);
    if (rc) {
        gv_nt_system_free(sys);
        return rc;
    }
    *out = sys;
    return 0;
}

void gv_nt_system_free(struct gv_nt_system *sys)
{
    if (!sys)
        return;
    for (int a = 0; a < GV_NT_KINDS; a++) {
        for (int i = 0; i < sys->count[a]; i++)
            free(sys->node[a][i]);
        free(sys->node[a]);
        for (int b = 0; b < GV_NT_KINDS; b++)
            free(sys->path[a][b]);
    }
    free(sys);
}
