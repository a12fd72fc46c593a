#include "testbench/nccl/nodes.h"

#include <stdlib.h>
#include <string.h>

/* 100 Mb/s a lane. The kernel's text changed in 5.7; other texts count as generation 3. */
static const struct gv_nt_word speeds[] = {
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
static const struct gv_nt_word archs[] = {
    {"x86_64", GV_NT_X86}, {"arm64", GV_NT_ARM}, {"ppc64", GV_NT_POWER}, {NULL, GV_NT_ARCH_NONE}};
static const struct gv_nt_word vendors[] = {
    {"GenuineIntel", GV_NT_INTEL},
    {"AuthenticAMD", GV_NT_AMD},
    {"CentaurHauls", GV_NT_ZHAOXIN},
    {"  Shanghai  ", GV_NT_ZHAOXIN},
    {NULL, GV_NT_VENDOR_NONE}};

static int add_nets(struct gv_nt_system *sys, const struct gv_nt_elem *xnic, struct gv_nt_node *nic)
{
    for (int i = 0; i < xnic->nchild; i++) {
        const struct gv_nt_elem *xnet = xnic->child[i];
        if (xnet->first < 0)
            continue;
        struct gv_nt_node *net = gv_nt_add(sys, GV_NT_NET, gv_nt_xml_int(xnet, "dev", 0));
        int mbps = gv_nt_xml_int(xnet, "speed", 0);
        net->gdr = gv_nt_xml_int(xnet, "gdr", 0) != 0;
        int rc = gv_nt_connect_both(
            sys, nic, net, GV_NT_NETWORK, (float)((mbps <= 0 ? 10000 : mbps) / 8000.0));
        if (rc)
            return rc;
    }
    return 0;
}

static float pcie_gbs(const struct gv_nt_elem *xpci)
{
    int width = gv_nt_xml_int(xpci, "link_width", 0);
    int speed = gv_nt_look_up(speeds, gv_nt_xml_get(xpci, "link_speed"));
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
    struct gv_nt_node *gpu = gv_nt_add(sys, GV_NT_GPU, busid);
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
    int64_t busid = gv_nt_busid(gv_nt_xml_get(xpci, "busid"));
    enum gv_nt_kind kind = gv_nt_class_kind(gv_nt_xml_get(xpci, "class"));
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
        struct gv_nt_node *nic = gv_nt_find(sys, GV_NT_NIC, id);
        if (!nic)
            nic = node = gv_nt_add(sys, GV_NT_NIC, id);
        rc = add_nets(sys, xnic, nic);
    } else if (kind == GV_NT_PCI) {
        node = gv_nt_add(sys, GV_NT_PCI, busid);
        rc = add_switch(sys, xpci, node, numa);
    }
    return rc || !node ? rc : gv_nt_connect_both(sys, node, parent, GV_NT_PCIE, pcie_gbs(xpci));
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
    struct gv_nt_node *nic = gv_nt_find(sys, GV_NT_NIC, cpu->id << 40);
    int rc = 0;
    if (!nic) {
        nic = gv_nt_add(sys, GV_NT_NIC, cpu->id << 40);
        rc = gv_nt_connect_both(sys, cpu, nic, GV_NT_PCIE, GV_NT_LOCAL_GBS);
    }
    return rc ? rc : add_nets(sys, xnic, nic);
}

static int add_cpu(struct gv_nt_system *sys, struct gv_nt_elem *xcpu)
{
    struct gv_nt_node *cpu = gv_nt_add(sys, GV_NT_CPU, gv_nt_xml_int(xcpu, "numaid", 0));
    cpu->arch = (enum gv_nt_arch)gv_nt_look_up(archs, gv_nt_xml_get(xcpu, "arch"));
    if (cpu->arch == GV_NT_X86)
        cpu->vendor = (enum gv_nt_vendor)gv_nt_look_up(vendors, gv_nt_xml_get(xcpu, "vendor"));
    if (cpu->vendor == GV_NT_INTEL && !gv_nt_xml_get(xcpu, "modelid"))
        return gv_nt_missing(sys, xcpu, "modelid");
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
    for (int i = 0; i < tree->nchild; i++) {
        struct gv_nt_elem *cpu = tree->child[i];
        int rc = cpu->first < 0 || strcmp(cpu->name, "cpu") ? 0 : add_cpu(sys, cpu);
        if (rc)
            return rc;
    }
    int rc = gv_nt_add_links(sys, tree);
    if (rc)
        return rc;
    gv_nt_flatten_switches(sys);
    rc = connect_cpus(sys);
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
