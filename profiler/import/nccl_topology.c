/* NCCL's topology file (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): GPUs, their CPUs and switches. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "profiler/import/xml.h"

struct link {
    int gpu;
    char target[20];
    int count;
    unsigned line;
};

struct reader {
    const struct gv_text *t;
    struct gv_error *err;
    struct gv_import_source *s;
    struct link links[GV_MAX_GPUS * 32];
    int nlinks, devs[GV_MAX_GPUS];
    bool listed;  /* a gpu element was seen */
    int switches; /* NVLinks to switches: said once */
};

static int fail(const struct reader *r, const xmlNode *node, const char *text)
{
    return gv_error_at(r->err, r->t->path, gv_xml_line(node), 0, "%s", text);
}

static bool bus_id_of(const xmlNode *node, const char *name, char out[20])
{
    char text[32];
    if (!gv_xml_text(node, name, text, sizeof(text)) || !gv_import_bus_id(text, out))
        return false;
    return true;
}

static int read_link(struct reader *r, const xmlNode *node, int gpu)
{
    char target[20], class[16];
    long count = gv_xml_int(node, "count", -1);
    gv_xml_text(node, "tclass", class, sizeof(class));
    if (count < 1 || count > 64 || !bus_id_of(node, "target", target))
        return fail(r, node, "an nvlink needs a target (PCI address) and a count");
    if (!strcmp(target, r->s->gpus[gpu].bus_id)) {
        gv_import_note(
            r->s, gv_xml_line(node),
            "an NVLink whose target is the GPU itself says nothing of a pair: not taken");
        return 0;
    }
    if (!strncmp(class, "0x0680", 6)) {
        if (!r->switches++)
            gv_import_note(
                r->s, gv_xml_line(node), "NVLinks to a switch: which pairs they join is not said");
        return 0;
    }
    if (r->nlinks == (int)(sizeof(r->links) / sizeof(r->links[0])))
        return fail(r, node, "too many nvlinks");
    struct link *link = &r->links[r->nlinks++];
    *link = (struct link){.gpu = gpu, .count = (int)count, .line = gv_xml_line(node)};
    memcpy(link->target, target, sizeof(link->target));
    return 0;
}

/* "16.0 GT/s PCIe", "16 GT/s" to 4 */
static int generation(const char *speed)
{
    static const double rates[] = {2.5, 5, 8, 16, 32, 64};
    char *end;
    double rate = strtod(speed, &end);
    for (int i = 0; i < 6 && !strncmp(end, " GT/s", 5); i++)
        if (rate == rates[i])
            return i + 1;
    return -1;
}

static void numbers(struct gv_import_gpu *g, const xmlNode *pci)
{
    char text[32];
    long width = gv_xml_int(pci, "link_width", -1);
    g->link_width = width > 0 && width <= 64 ? (int)width : -1;
    if (g->link_width > 0 && gv_xml_text(pci, "link_speed", text, sizeof(text)))
        g->link_gen = generation(text);
    long vendor = gv_xml_int(pci, "vendor", 0), device = gv_xml_int(pci, "device", 0);
    if (vendor > 0 && vendor <= 0xffff && device > 0 && device <= 0xffff) {
        g->pci_vendor = (uint16_t)vendor;
        g->pci_device = (uint16_t)device;
    }
}

static int
read_gpu(struct reader *r, const xmlNode *pci, const xmlNode *gpu, const char *island, int numa)
{
    struct gv_import_gpu *g = gv_import_gpu(r->s, gv_xml_line(pci));
    if (!g)
        return fail(r, pci, "more than 64 GPUs");
    r->devs[g->index] = -1;
    bus_id_of(pci, "busid", g->bus_id);
    for (int i = 0; i < g->index; i++)
        if (!strcmp(r->s->gpus[i].bus_id, g->bus_id))
            return fail(r, pci, "this PCI address stands twice");
    snprintf(g->island, sizeof(g->island), "%s", island);
    g->numa_node = numa;
    numbers(g, pci);
    if (!gpu)
        return 0;
    long dev = gv_xml_int(gpu, "dev", -1), sm = gv_xml_int(gpu, "sm", -1);
    if (dev < 0 || dev >= GV_MAX_GPUS)
        return fail(r, gpu, "a gpu needs a dev, a number from 0");
    r->devs[g->index] = (int)dev;
    r->listed = true;
    g->sm = sm >= 10 && sm < 1000 ? (int)sm : -1;
    GV_XML_EACH(child, gpu)
    if (gv_xml_is(child, "nvlink") && read_link(r, child, g->index))
        return -1;
    return 0;
}

static bool gpu_class(const xmlNode *pci)
{
    char class[16], vendor[16];
    if (gv_xml_text(pci, "vendor", vendor, sizeof(vendor)) && strcasecmp(vendor, "0x10de"))
        return false;
    return gv_xml_text(pci, "class", class, sizeof(class)) &&
           (!strncmp(class, "0x0302", 6) || !strncmp(class, "0x0300", 6));
}

static int read_pci(struct reader *r, const xmlNode *pci, const char *island, int numa)
{
    char here[20];
    const xmlNode *gpu = NULL;
    bool leaf = true;
    if (!bus_id_of(pci, "busid", here))
        return fail(r, pci, "a pci element needs a busid, as in 0000:1a:00.0");
    const char *top = island ? island : here;
    GV_XML_EACH(child, pci)
    {
        if (gv_xml_is(child, "pci")) {
            leaf = false;
            if (read_pci(r, child, top, numa))
                return -1;
        } else if (gv_xml_is(child, "gpu"))
            gpu = child;
    }
    return gpu || (leaf && gpu_class(pci)) ? read_gpu(r, pci, gpu, top, numa) : 0;
}

static int read_cpu(struct reader *r, const xmlNode *cpu)
{
    char vendor[32];
    long numa = gv_xml_int(cpu, "numaid", LONG_MIN);
    if (numa == LONG_MIN || numa > 1023)
        return fail(r, cpu, "a cpu needs a numaid");
    if (gv_xml_text(cpu, "vendor", vendor, sizeof(vendor)))
        snprintf(
            r->s->cpu_vendor, sizeof(r->s->cpu_vendor), "%s",
            strstr(vendor, "Intel") ? "intel"
            : strstr(vendor, "AMD") ? "amd"
            : strstr(vendor, "ARM") ? "arm"
                                    : "");
    GV_XML_EACH(child, cpu)
    if (gv_xml_is(child, "pci") && read_pci(r, child, NULL, numa < 0 ? -1 : (int)numa))
        return -1;
    return 0;
}

static int take_links(struct reader *r)
{
    for (int i = 0; i < r->nlinks; i++) {
        const struct link *link = &r->links[i];
        int to = 0;
        while (to < r->s->ngpus && strcmp(r->s->gpus[to].bus_id, link->target))
            to++;
        if (to == r->s->ngpus)
            return gv_error_at(
                r->err, r->t->path, link->line, 0, "an NVLink to %s, which is no GPU of this file",
                link->target);
        struct gv_import_pair *p = gv_import_pair(r->s, link->gpu, to, link->line);
        if (!p)
            return gv_import_no_memory(r->err);
        p->nccl_class = GV_PATH_NVL;
        p->nvlinks = link->count;
        snprintf(p->smi_class, sizeof(p->smi_class), "NV%d", link->count);
    }
    return 0;
}

static int check_devs(const struct reader *r)
{
    for (int a = 0; a < r->s->ngpus; a++)
        for (int b = 0; b < a; b++)
            if (r->devs[a] >= 0 && r->devs[a] == r->devs[b])
                return gv_error_at(
                    r->err, r->t->path, r->s->gpus[a].line, 0, "two GPUs have dev %d", r->devs[a]);
    return 0;
}

static int read_system(struct reader *r, const xmlNode *root)
{
    char version[16];
    gv_xml_text(root, "version", version, sizeof(version));
    if (!gv_xml_is(root, "system") || strcmp(version, "1"))
        return gv_error_at(
            r->err, r->t->path, gv_xml_line(root), 0,
            "version '%s': NCCL reads version 1 alone and refuses this file (RCCL writes 2)",
            version);
    GV_XML_EACH(child, root)
    if (gv_xml_is(child, "cpu") && read_cpu(r, child))
        return -1;
    if (!r->s->ngpus)
        return fail(
            r, root, "nothing in it says which devices are GPUs (no gpu element, no class 0x0302)");
    return check_devs(r) ? -1 : take_links(r);
}

int gv_import_nccl_topology(struct gv_import *im, struct gv_text *t, struct gv_error *err)
{
    xmlDoc *doc = gv_xml_read(t, err);
    if (!doc)
        return -1;
    struct reader *r = calloc(1, sizeof(*r));
    int rc = r && (r->s = gv_import_source(im, t, GV_IMPORT_NCCL_TOPOLOGY))
                 ? 0
                 : gv_import_no_memory(err);
    if (!rc) {
        r->t = t;
        r->err = err;
        r->s->whole = true;
        rc = read_system(r, xmlDocGetRootElement(doc));
    }
    free(r);
    xmlFreeDoc(doc);
    return rc;
}
