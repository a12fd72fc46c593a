/* lstopo's XML (hwloc 1 and 2): NVIDIA's GPUs, their bridges, NUMA nodes and what NVML said. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/xml.h"

struct reader {
    const struct gv_text *t;
    struct gv_error *err;
    struct gv_import_source *s;
    long indexes[GV_MAX_GPUS][8]; /* gp_index of each GPU's OS devices */
    int nindexes[GV_MAX_GPUS];
};

static bool is_type(const xmlNode *node, const char *type)
{
    char text[24];
    return gv_xml_is(node, "object") && gv_xml_text(node, "type", text, sizeof(text)) &&
           !strcmp(text, type);
}

/* The NUMA node that holds the object: the nearest ancestor that is one, or has exactly one. */
static int numa_of(const xmlNode *node)
{
    for (const xmlNode *at = node->parent; gv_xml_is(at, "object"); at = at->parent) {
        long found = -1;
        int n = 0;
        if (is_type(at, "NUMANode"))
            return (int)gv_xml_int(at, "os_index", -1);
        GV_XML_EACH(child, at)
        if (is_type(child, "NUMANode")) {
            found = gv_xml_int(child, "os_index", -1);
            n++;
        }
        if (n)
            return n == 1 && found >= 0 && found < 1024 ? (int)found : -1;
    }
    return -1;
}

/* The topmost bridge below the host's (type 1-1), as sysfs has it for the profile's islands. */
static void island_of(const xmlNode *node, char out[24])
{
    char type[8], bus[20];
    for (const xmlNode *at = node->parent; is_type(at, "Bridge"); at = at->parent)
        if (gv_xml_text(at, "bridge_type", type, sizeof(type)) && !strcmp(type, "1-1") &&
            gv_xml_text(at, "pci_busid", bus, sizeof(bus)))
            snprintf(out, 24, "%s", bus);
}

static void take_info(struct gv_import_gpu *g, const xmlNode *info)
{
    char name[40], value[64];
    long kib;
    if (!gv_xml_text(info, "name", name, sizeof(name)) ||
        !gv_xml_text(info, "value", value, sizeof(value)))
        return;
    if (!strcmp(name, "GPUModel"))
        memcpy(g->model, value, sizeof(g->model));
    else if (!strcmp(name, "NVIDIAUUID"))
        snprintf(g->uuid, sizeof(g->uuid), "%.47s", value);
    else if (
        !strcmp(name, "CUDAGlobalMemorySize") && sscanf(value, "%ldKiB", &kib) == 1 && kib > 0 &&
        kib < 1L << 40)
        g->memory_mib = (int)(kib / 1024);
}

static int take_gpu(struct reader *r, const xmlNode *node, unsigned device)
{
    struct gv_import_gpu *g = gv_import_gpu(r->s, gv_xml_line(node));
    char bus[24];
    if (!g)
        return gv_error_at(r->err, r->t->path, gv_xml_line(node), 0, "more than 64 GPUs");
    if (!gv_xml_text(node, "pci_busid", bus, sizeof(bus)) || !gv_import_bus_id(bus, g->bus_id))
        return gv_error_at(
            r->err, r->t->path, gv_xml_line(node), 0, "a PCI device without pci_busid");
    g->pci_vendor = 0x10de;
    g->pci_device = (uint16_t)device;
    g->numa_node = numa_of(node);
    snprintf(g->island, sizeof(g->island), "%s", g->bus_id);
    island_of(node, g->island);
    GV_XML_EACH(os, node)
    {
        if (!is_type(os, "OSDev"))
            continue;
        if (r->nindexes[g->index] < 8)
            r->indexes[g->index][r->nindexes[g->index]++] = gv_xml_int(os, "gp_index", -1);
        GV_XML_EACH(info, os)
        if (gv_xml_is(info, "info"))
            take_info(g, info);
    }
    return 0;
}

/* "0302 [10de:1db8] [...] a1 00": display controllers of NVIDIA */
static int walk(struct reader *r, const xmlNode *node)
{
    char type[64];
    unsigned class, vendor, device;
    if (is_type(node, "PCIDev") && gv_xml_text(node, "pci_type", type, sizeof(type)) &&
        sscanf(type, "%4x [%4x:%4x]", &class, &vendor, &device) == 3 && vendor == 0x10de &&
        (class == 0x0300 || class == 0x0302) && take_gpu(r, node, device))
        return -1;
    if (is_type(node, "Package"))
        GV_XML_EACH(info, node)
        {
            char name[32], value[32];
            if (gv_xml_is(info, "info") && gv_xml_text(info, "name", name, sizeof(name)) &&
                !strcmp(name, "CPUVendor") && gv_xml_text(info, "value", value, sizeof(value)))
                snprintf(
                    r->s->cpu_vendor, sizeof(r->s->cpu_vendor), "%s",
                    strstr(value, "Intel") ? "intel"
                    : strstr(value, "AMD") ? "amd"
                                           : "");
        }
    GV_XML_EACH(child, node)
    if (gv_xml_is(child, "object") && walk(r, child))
        return -1;
    return 0;
}

static int gpu_of_index(const struct reader *r, long index)
{
    for (int g = 0; g < r->s->ngpus; g++)
        for (int i = 0; i < r->nindexes[g]; i++)
            if (r->indexes[g][i] == index)
                return g;
    return -1;
}

/* The texts of all children of one name, one behind the other. */
static char *gather(const xmlNode *node, const char *name)
{
    char *all = strdup("");
    GV_XML_EACH(child, node)
    {
        xmlChar *text = gv_xml_is(child, name) ? xmlNodeGetContent(child) : NULL;
        char *more = text && all ? malloc(strlen(all) + strlen((char *)text) + 2) : NULL;
        if (more) {
            sprintf(more, "%s %s", all, (char *)text);
            free(all);
            all = more;
        }
        xmlFree(text);
    }
    return all;
}

static int read_indexes(const struct reader *r, const xmlNode *node, int gpu[256])
{
    char *text = gather(node, "indexes"), *save = NULL;
    int n = 0;
    for (char *w = text ? strtok_r(text, " \n\t", &save) : NULL; w && n < 256;
         w = strtok_r(NULL, " \n\t", &save)) {
        const char *colon = strchr(w, ':');
        bool device = !colon || !strncmp(w, "OSDev:", 6);
        gpu[n++] = device ? gpu_of_index(r, strtol(colon ? colon + 1 : w, NULL, 10)) : -1;
    }
    free(text);
    return n;
}

/* NVLinkBandwidth: which pairs are joined. How many links make the bandwidth depends on their
 * generation, which is not said. */
static int take_links(struct reader *r, const xmlNode *node)
{
    int gpu[256], n = read_indexes(r, node, gpu), i = 0;
    char *text = gather(node, "u64values"), *save = NULL;
    for (char *w = text ? strtok_r(text, " \n\t", &save) : NULL; w && i < n * n;
         w = strtok_r(NULL, " \n\t", &save), i++) {
        int a = gpu[i / n], b = gpu[i % n];
        if (a < 0 || b < 0 || a == b || !strcmp(w, "0"))
            continue;
        struct gv_import_pair *p = gv_import_pair(r->s, a, b, gv_xml_line(node));
        if (p)
            p->nccl_class = GV_PATH_NVL;
    }
    free(text);
    if (i != n * n)
        return gv_error_at(
            r->err, r->t->path, gv_xml_line(node), 0,
            "NVLinkBandwidth has %d values for %d objects: it is damaged", i, n);
    return 0;
}

static int read_root(struct reader *r, const xmlNode *root)
{
    char name[32];
    if (!gv_xml_is(root, "topology"))
        return gv_error_at(r->err, r->t->path, gv_xml_line(root), 0, "it is no topology of hwloc");
    GV_XML_EACH(child, root)
    if (gv_xml_is(child, "object") && walk(r, child))
        return -1;
    GV_XML_EACH(child, root)
    if (!strncmp((const char *)child->name, "distances2", 10) &&
        gv_xml_text(child, "name", name, sizeof(name)) && !strcmp(name, "NVLinkBandwidth") &&
        take_links(r, child))
        return -1;
    if (!r->s->ngpus)
        return gv_error_at(
            r->err, r->t->path, gv_xml_line(root), 0,
            "no GPU of NVIDIA is in it; lstopo leaves PCI devices out without --whole-io or where "
            "it may not read them");
    return 0;
}

int gv_import_hwloc(struct gv_import *im, struct gv_text *t, struct gv_error *err)
{
    xmlDoc *doc = gv_xml_read(t, err);
    if (!doc)
        return -1;
    struct reader *r = calloc(1, sizeof(*r));
    int rc = r && (r->s = gv_import_source(im, t, GV_IMPORT_HWLOC)) ? 0 : gv_import_no_memory(err);
    if (!rc) {
        r->t = t;
        r->err = err;
        r->s->whole = true;
        rc = read_root(r, xmlDocGetRootElement(doc));
    }
    free(r);
    xmlFreeDoc(doc);
    return rc;
}
