/* NCCL's graph file (NCCL_GRAPH_FILE, NCCL_GRAPH_DUMP_FILE): the rings. Trees and the rest hold
 * nothing that a profile keeps. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/xml.h"

#define RING_ID 0
#define RING_PATTERN 4

static int
fail(const struct gv_text *t, const xmlNode *node, struct gv_error *err, const char *text)
{
    return gv_error_at(err, t->path, gv_xml_line(node), 0, "%s", text);
}

/* dev is decimal to 2.22, "0x1" later. */
static int read_channel(
    const struct gv_text *t, struct gv_import_source *s, const xmlNode *channel, gv_gpuset *members,
    bool ring, struct gv_error *err)
{
    struct gv_import_ring here = {.line = gv_xml_line(channel)};
    gv_gpuset set = 0;
    GV_XML_EACH(child, channel)
    {
        if (gv_xml_is(child, "net"))
            continue;
        long dev = gv_xml_is(child, "gpu") ? gv_xml_int(child, "dev", -1) : -1;
        if (dev < 0 || dev >= GV_MAX_GPUS)
            return fail(t, child, err, "a channel holds gpu elements with a dev from 0 to 63");
        if (gv_gpuset_has(set, (int)dev))
            return fail(t, child, err, "this GPU stands twice in the channel");
        set |= GV_GPU_BIT(dev);
        here.order[here.n++] = (int)dev;
    }
    if (!set)
        return fail(t, channel, err, "the channel is empty");
    if (*members && set != *members)
        return fail(t, channel, err, "the channel has other GPUs than the first one");
    *members = set;
    struct gv_import_ring *to = ring ? gv_import_ring(s, here.line) : NULL;
    if (ring && !to)
        return gv_import_no_memory(err);
    if (to)
        *to = here;
    return 0;
}

static int read_graph(
    const struct gv_text *t, struct gv_import_source *s, const xmlNode *graph, gv_gpuset *members,
    struct gv_error *err)
{
    static const char *const needed[] = {"id", "pattern", "nchannels", "crossnic", "samechannels"};
    long channels = 0;
    char text[16];
    for (unsigned i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (gv_xml_int(graph, needed[i], -1) < 0)
            return gv_error_at(
                err, t->path, gv_xml_line(graph), 0, "the graph lacks '%s', which NCCL needs",
                needed[i]);
    if (!gv_xml_text(graph, "typeintra", text, sizeof(text)) ||
        !gv_xml_text(graph, "typeinter", text, sizeof(text)))
        return fail(
            t, graph, err, "the graph lacks typeintra or typeinter, without which NCCL crashes");
    bool ring = gv_xml_int(graph, "id", -1) == RING_ID;
    if (ring && gv_xml_int(graph, "pattern", -1) != RING_PATTERN)
        return fail(t, graph, err, "graph 0 is the ring, its pattern is 4");
    GV_XML_EACH(child, graph)
    {
        if (!gv_xml_is(child, "channel"))
            return fail(t, child, err, "a graph holds channels alone");
        if (read_channel(t, s, child, members, ring, err))
            return -1;
        channels++;
    }
    if (channels != gv_xml_int(graph, "nchannels", -1))
        return fail(t, graph, err, "nchannels is not the number of channels");
    return 0;
}

static int read_graphs(
    const struct gv_text *t, struct gv_import_source *s, const xmlNode *root, struct gv_error *err)
{
    char version[16];
    gv_gpuset members = 0;
    gv_xml_text(root, "version", version, sizeof(version));
    if (!gv_xml_is(root, "graphs") || strcmp(version, "1"))
        return fail(t, root, err, "version 1 alone is read, as NCCL does");
    GV_XML_EACH(child, root)
    {
        if (!gv_xml_is(child, "graph"))
            return fail(t, child, err, "graphs holds graph elements alone");
        if (read_graph(t, s, child, &members, err))
            return -1;
    }
    if (!s->nrings)
        return fail(t, root, err, "it holds no ring (graph 0)");
    return 0;
}

int gv_import_nccl_graph(struct gv_import *im, struct gv_text *t, struct gv_error *err)
{
    xmlDoc *doc = gv_xml_read(t, err);
    if (!doc)
        return -1;
    struct gv_import_source *s = gv_import_source(im, t, GV_IMPORT_NCCL_GRAPH);
    int rc = s ? read_graphs(t, s, xmlDocGetRootElement(doc), err) : gv_import_no_memory(err);
    xmlFreeDoc(doc);
    return rc;
}
