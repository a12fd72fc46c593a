#include "testbench/nccl/prepare.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct prepare {
    const struct gv_nccl_eval_in *in;
    struct gv_nt_elem *tree, *machine; /* machine may be NULL */
    bool detected;                     /* there was no file: the tree is the machine's */
    const char *cpu_lacks;             /* what the file's first cpu leaves out and NCCL needs */
    struct gv_nt_error *err;
};

static int fail_dev(struct prepare *p, int result, const char *fmt, int dev)
{
    snprintf(p->err->text, sizeof(p->err->text), fmt, dev);
    return result;
}

static struct gv_nt_elem *find_gpu(struct gv_nt_elem *root, int dev)
{
    if (root && !strcmp(root->name, "gpu") && gv_nt_xml_int(root, "dev", -1) == dev)
        return root;
    for (int i = 0; root && i < root->nchild; i++) {
        struct gv_nt_elem *found = find_gpu(root->child[i], dev);
        if (found)
            return found;
    }
    return NULL;
}

static void take(struct gv_nt_elem *to, const struct gv_nt_elem *from, const char *key)
{
    const char *value = from ? gv_nt_xml_get(from, key) : NULL;
    if (value && !gv_nt_xml_get(to, key))
        gv_nt_xml_set(to, key, value);
}

static void set_default(struct gv_nt_elem *elem, const char *key, const char *value)
{
    if (!gv_nt_xml_get(elem, key))
        gv_nt_xml_set(elem, key, value);
}

/* The class in /sys wins over the file's; all else is only filled in. */
static int fill_pci(struct prepare *p, struct gv_nt_elem *pci)
{
    static const char *const keys[] = {"vendor",           "device",     "subsystem_vendor",
                                       "subsystem_device", "link_speed", "link_width"};
    const char *busid = gv_nt_xml_get(pci, "busid");
    if (!busid) {
        snprintf(p->err->text, sizeof(p->err->text), "pci element without busid");
        return GV_NCCL_INTERNAL_ERROR;
    }
    struct gv_nt_elem *real = gv_nt_xml_find(p->machine, "pci", "busid", busid);
    if (real && gv_nt_xml_get(real, "class"))
        gv_nt_xml_set(pci, "class", gv_nt_xml_get(real, "class"));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        take(pci, real, keys[i]);
    set_default(pci, "link_speed", "");
    set_default(pci, "link_width", "");
    if (gv_nt_xml_child(pci, "gpu"))
        set_default(pci, "class", "0x03");
    if (gv_nt_xml_get(pci, "class"))
        return 0;
    snprintf(p->err->text, sizeof(p->err->text), "pci %s has no class, here or in /sys", busid);
    return GV_NCCL_INTERNAL_ERROR;
}

static int fill_cpu(struct prepare *p, struct gv_nt_elem *cpu)
{
    static const char *const keys[] = {"affinity", "arch", "vendor"};
    const char *node = gv_nt_xml_get(cpu, "numaid");
    if (!node) {
        snprintf(p->err->text, sizeof(p->err->text), "cpu element without numaid");
        return GV_NCCL_INTERNAL_ERROR;
    }
    struct gv_nt_elem *real = gv_nt_xml_find(p->machine, "cpu", "numaid", node);
    if (!real)
        real = gv_nt_xml_find(p->machine, "cpu", NULL, NULL);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        take(cpu, real, keys[i]);
    if (!gv_nt_xml_get(cpu, "familyid") && real) {
        gv_nt_xml_set(cpu, "familyid", "0");
        gv_nt_xml_set(cpu, "modelid", "0");
        if (gv_nt_xml_get(real, "familyid"))
            gv_nt_xml_set(cpu, "familyid", gv_nt_xml_get(real, "familyid"));
        if (gv_nt_xml_get(real, "modelid"))
            gv_nt_xml_set(cpu, "modelid", gv_nt_xml_get(real, "modelid"));
    }
    set_default(cpu, "arch", "x86_64");
    bool x86 = !strcmp(gv_nt_xml_get(cpu, "arch"), "x86_64");
    if (!x86 || (gv_nt_xml_get(cpu, "vendor") && gv_nt_xml_get(cpu, "familyid")))
        return 0;
    snprintf(
        p->err->text, sizeof(p->err->text),
        "cpu %s: vendor or familyid left out, NCCL would ask this host's CPU", node);
    return GV_NCCL_UNKNOWN;
}

/* A gpu element without any nvlink makes NCCL ask NVML. */
static void fill_nvlinks(struct prepare *p, struct gv_nt_elem *gpu, const struct gv_nt_elem *real)
{
    if (!gv_nt_xml_child(gpu, "nvlink") && real)
        for (int i = 0; i < real->nchild; i++)
            if (!strcmp(real->child[i]->name, "nvlink"))
                gv_nt_xml_insert(gpu, gv_nt_xml_clone(real->child[i]), gpu->nchild);
    if (!gv_nt_xml_child(gpu, "c2c") && real && gv_nt_xml_child(real, "c2c"))
        gv_nt_xml_insert(gpu, gv_nt_xml_clone(gv_nt_xml_child(real, "c2c")), gpu->nchild);
    for (int i = 0; i < gpu->nchild; i++) {
        struct gv_nt_elem *link = gpu->child[i];
        const char *target = gv_nt_xml_get(link, "target");
        if (strcmp(link->name, "nvlink") || !target)
            continue;
        take(link, NULL, "tclass");
        struct gv_nt_elem *peer = gv_nt_xml_find(p->machine, "pci", "busid", target);
        const char *peer_class = peer ? gv_nt_xml_get(peer, "class") : NULL;
        set_default(link, "tclass", peer_class ? peer_class : "0x068000");
    }
}

/* NCCL marks the element as kept and adds the rank, into an array of 17. */
static bool overflows(const struct gv_nt_elem *gpu)
{
    return gpu->nattrs + 1 + !gv_nt_xml_get(gpu, "rank") > GV_NT_MAX_ATTRS + 1;
}

static int fill_gpu(struct prepare *p, struct gv_nt_elem *gpu, int rank)
{
    char text[16];
    const char *busid = gv_nt_xml_get(gpu->parent, "busid");
    struct gv_nt_elem *real_pci = busid ? gv_nt_xml_find(p->machine, "pci", "busid", busid) : NULL;
    struct gv_nt_elem *real = real_pci ? gv_nt_xml_child(real_pci, "gpu") : NULL;
    take(gpu, real, "dev");
    take(gpu, real, "sm");
    take(gpu, real, "gdr");
    if (p->in->sm) {
        snprintf(text, sizeof(text), "%d", p->in->sm);
        set_default(gpu, "sm", text);
    }
    if (!gv_nt_xml_get(gpu, "sm"))
        return fail_dev(
            p, GV_NCCL_UNKNOWN, "GPU %d: sm left out, NCCL would ask NVML", p->in->gpus[rank]);
    set_default(gpu, "gdr", "0");
    if (overflows(gpu))
        return fail_dev(
            p, GV_NCCL_CRASH, "GPU %d: no room for the attributes NCCL adds", p->in->gpus[rank]);
    snprintf(text, sizeof(text), "%d", rank);
    gv_nt_xml_set(gpu, "rank", text);
    fill_nvlinks(p, gpu, real);
    return 0;
}

/* Where a branch taken from /sys goes: children stay sorted by bus id. */
static int sorted_place(const struct gv_nt_elem *parent, const char *busid)
{
    for (int i = 0; i < parent->nchild; i++) {
        const char *other = gv_nt_xml_get(parent->child[i], "busid");
        if (other && strcmp(busid, other) < 0)
            return i;
    }
    return parent->nchild;
}

static struct gv_nt_elem *find_same(struct prepare *p, const struct gv_nt_elem *real)
{
    if (!strcmp(real->name, "system"))
        return p->tree;
    const char *key = strcmp(real->name, "cpu") ? "busid" : "numaid";
    const char *value = gv_nt_xml_get(real, key);
    return value ? gv_nt_xml_find(p->tree, real->name, key, value) : NULL;
}

/* The element of the tree that stands for `real` of the machine, made if it is missing, with all
 * its ancestors. */
static struct gv_nt_elem *adopt(struct prepare *p, const struct gv_nt_elem *real)
{
    struct gv_nt_elem *have = find_same(p, real);
    if (have)
        return have;
    struct gv_nt_elem *copy = gv_nt_xml_clone(real);
    struct gv_nt_elem *parent = adopt(p, real->parent);
    const char *busid = gv_nt_xml_get(copy, "busid");
    gv_nt_xml_insert(parent, copy, busid ? sorted_place(parent, busid) : parent->nchild);
    return copy;
}

/* NCCL knows its GPU by bus id, not by the file's numbering. */
static struct gv_nt_elem *locate_gpu(struct prepare *p, int dev)
{
    if (!p->machine)
        return find_gpu(p->tree, dev);
    struct gv_nt_elem *real = find_gpu(p->machine, dev);
    if (!real)
        return NULL;
    struct gv_nt_elem *pci = adopt(p, real->parent);
    struct gv_nt_elem *gpu = gv_nt_xml_child(pci, "gpu");
    if (!gpu) {
        gpu = gv_nt_xml_clone(real);
        gv_nt_xml_insert(pci, gpu, pci->nchild);
    }
    return gpu;
}

/* Fills the branch from the GPU up to its cpu and marks it as kept by `rank`. */
static int keep_branch(struct prepare *p, struct gv_nt_elem *leaf, int rank)
{
    for (struct gv_nt_elem *e = leaf; e; e = e->parent) {
        int rc = 0;
        if (!strcmp(e->name, "pci"))
            rc = fill_pci(p, e);
        if (!strcmp(e->name, "cpu"))
            rc = fill_cpu(p, e);
        if (rc)
            return rc;
        if (e->first < 0 || e->first > rank)
            e->first = rank;
    }
    return 0;
}

static int keep_gpu(struct prepare *p, int rank)
{
    struct gv_nt_elem *gpu = locate_gpu(p, p->in->gpus[rank]);
    if (!gpu)
        return fail_dev(
            p, p->machine ? GV_NCCL_CUDA_ERROR : GV_NCCL_UNKNOWN,
            p->machine ? "the machine has no GPU %d"
                       : "GPU %d is not in the file, NCCL would look into /sys",
            p->in->gpus[rank]);
    int rc = fill_gpu(p, gpu, rank);
    return rc ? rc : keep_branch(p, gpu, rank);
}

static int keep_nets(struct prepare *p, struct gv_nt_elem *elem, bool *any)
{
    if (!strcmp(elem->name, "net") && gv_nt_xml_get(elem, "dev")) {
        *any = true;
        return keep_branch(p, elem, 0);
    }
    for (int i = 0; i < elem->nchild; i++) {
        int rc = keep_nets(p, elem->child[i], any);
        if (rc)
            return rc;
    }
    return 0;
}

/* Attribute that NCCL cannot do without and that this cpu leaves out, or NULL. */
static const char *missing_of_cpu(const struct gv_nt_elem *cpu)
{
    const char *arch = gv_nt_xml_get(cpu, "arch"), *vendor = gv_nt_xml_get(cpu, "vendor");
    if (!arch)
        return "arch";
    if (strcmp(arch, "x86_64"))
        return NULL;
    if (!vendor)
        return "vendor";
    if (strcmp(vendor, "GenuineIntel"))
        return NULL;
    return gv_nt_xml_get(cpu, "familyid") ? NULL : "familyid";
}

static bool is_under(const struct gv_nt_elem *elem, const struct gv_nt_elem *above)
{
    while (elem && elem != above)
        elem = elem->parent;
    return elem;
}

/* A rank fills in only what lies above its own GPU (before 2.22: above any GPU). With the network
 * on a cpu that is not, that rank's copy of it stays as the file has it. */
static int check_bare_cpu(struct prepare *p, const struct gv_nt_elem *cpu)
{
    int under = 0;
    for (int r = 0; r < p->in->ngpus; r++)
        under += is_under(locate_gpu(p, p->in->gpus[r]), cpu);
    bool bare = p->in->release < 22200 ? !under : under < p->in->ngpus;
    if (!bare || !p->cpu_lacks)
        return 0;
    snprintf(
        p->err->text, sizeof(p->err->text),
        "attribute %s of the first cpu not found: a rank whose GPU is elsewhere does not fill it",
        p->cpu_lacks);
    return GV_NCCL_INTERNAL_ERROR;
}

/* Every rank keeps the branches to the network devices; one that is no PCI device hangs on the
 * first cpu. */
static int keep_network(struct prepare *p)
{
    bool any = false;
    int rc = keep_nets(p, p->tree, &any);
    struct gv_nt_elem *cpu = gv_nt_xml_find(p->tree, "cpu", NULL, NULL);
    if (rc || any || !cpu || p->detected)
        return rc;
    rc = check_bare_cpu(p, cpu);
    return rc ? rc : keep_branch(p, cpu, 0);
}

static void clear_marks(struct gv_nt_elem *elem)
{
    elem->first = -1;
    for (int i = 0; i < elem->nchild; i++)
        clear_marks(elem->child[i]);
}

/* Merging appends what the first rank's tree lacks, rank by rank: a stable sort by first keeper. */
static void merge_order(struct gv_nt_elem *elem)
{
    for (int i = 1; i < elem->nchild; i++) {
        struct gv_nt_elem *e = elem->child[i];
        int at = i;
        for (; at > 0 && elem->child[at - 1]->first > e->first; at--)
            elem->child[at] = elem->child[at - 1];
        elem->child[at] = e;
    }
    for (int i = 0; i < elem->nchild; i++)
        merge_order(elem->child[i]);
}

/* Up to 2.27.3 an autodetected cpu carries a host hash and a file's does not: NCCL then crashes. */
static int check_hosts(struct prepare *p)
{
    int with = 0, without = 0;
    for (int i = 0; i < p->tree->nchild; i++)
        if (p->tree->child[i]->first >= 0)
            gv_nt_xml_get(p->tree->child[i], "host_hash") ? with++ : without++;
    if (p->in->release >= 22703 || p->in->release < 22100 || !with || !without)
        return 0;
    snprintf(p->err->text, sizeof(p->err->text), "a cpu that is needed is not in the file");
    return GV_NCCL_CRASH;
}

static void mark_detected(struct prepare *p, int ncpus_in_file)
{
    for (int i = ncpus_in_file; i < p->tree->nchild; i++)
        if (ncpus_in_file)
            gv_nt_xml_set(p->tree->child[i], "host_hash", "0x1");
}

static int load(struct prepare *p)
{
    const struct gv_nccl_eval_in *in = p->in;
    int rc = 0;
    if (in->machine_xml)
        rc = gv_nt_xml_parse(in->machine_xml, in->machine_xml_len, 23007, &p->machine, p->err);
    if (!rc && in->xml)
        rc = gv_nt_xml_parse(in->xml, in->xml_len, in->release, &p->tree, p->err);
    if (rc || p->tree)
        return rc;
    if (!p->machine) {
        snprintf(p->err->text, sizeof(p->err->text), "no topology file: NCCL looks into /sys");
        return GV_NCCL_AUTODETECT;
    }
    p->detected = true;
    p->tree = gv_nt_xml_clone(p->machine);
    return 0;
}

int gv_nt_prepare(
    const struct gv_nccl_eval_in *in, struct gv_nt_elem **out, struct gv_nt_error *err)
{
    struct prepare p = {.in = in, .err = err};
    int rc = load(&p);
    if (!rc) {
        int ncpus = p.tree->nchild;
        struct gv_nt_elem *cpu = gv_nt_xml_find(p.tree, "cpu", NULL, NULL);
        p.cpu_lacks = cpu ? missing_of_cpu(cpu) : NULL;
        clear_marks(p.tree);
        for (int r = 0; r < in->ngpus && !rc; r++)
            rc = keep_gpu(&p, r);
        rc = rc ? rc : keep_network(&p);
        mark_detected(&p, ncpus);
        rc = rc ? rc : check_hosts(&p);
    }
    gv_nt_xml_free(p.machine);
    if (rc) {
        gv_nt_xml_free(p.tree);
        return rc;
    }
    if (in->release >= 22200)
        merge_order(p.tree);
    *out = p.tree;
    return 0;
}
