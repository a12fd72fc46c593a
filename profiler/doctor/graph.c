/* NCCL's graph file: which GPUs it names. */
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_file.h"
#include "profiler/doctor/gv_doctor.h"

#define GRAPH_FILE_MAX (8u << 20)

struct reading {
    XML_Parser parser;
    const char *path;
    int ngpus, graphs;
    struct gv_error *err;
};

static const char *attribute(const XML_Char **atts, const char *name)
{
    for (; *atts; atts += 2)
        if (!strcmp(atts[0], name))
            return atts[1];
    return NULL;
}

static void fail(struct reading *r, const char *what, const char *value)
{
    char text[300];
    snprintf(text, sizeof(text), what, value ? value : "");
    gv_error_at(
        r->err, r->path, (unsigned)XML_GetCurrentLineNumber(r->parser),
        (unsigned)XML_GetCurrentColumnNumber(r->parser) + 1, "%s", text);
    XML_StopParser(r->parser, XML_FALSE);
}

static void on_start(void *data, const XML_Char *name, const XML_Char **atts)
{
    struct reading *r = data;
    const char *version = attribute(atts, "version"), *dev = attribute(atts, "dev");
    char *end;
    if (!strcmp(name, "graphs") && (!version || strcmp(version, "1") != 0)) {
        fail(r, "version \"%.20s\" is one that NCCL refuses; it reads version 1", version);
        return;
    }
    r->graphs += !strcmp(name, "graph");
    if (strcmp(name, "gpu") != 0)
        return;
    long number = dev ? strtol(dev, &end, 16) : -1;
    if (number < 0 || end == dev || *end)
        fail(r, "gpu without a device number (dev=\"%.20s\")", dev);
    else if (r->ngpus > 0 && number >= r->ngpus)
        fail(r, "names GPU %.20s, which is not on this machine", dev);
}

int gv_graph_file_check(const char *path, int ngpus, struct gv_error *err)
{
    size_t len;
    char *text = gv_file_read(path, GV_FILE_ANY, GRAPH_FILE_MAX, &len, err);
    if (!text)
        return -1;
    struct reading r = {.parser = XML_ParserCreate(NULL), .path = path, .ngpus = ngpus, .err = err};
    err->text[0] = '\0';
    if (r.parser) {
        XML_SetUserData(r.parser, &r);
        XML_SetElementHandler(r.parser, on_start, NULL);
        if (XML_Parse(r.parser, text, (int)len, XML_TRUE) == XML_STATUS_ERROR && !err->text[0])
            fail(&r, "is no whole graph file: %.200s", XML_ErrorString(XML_GetErrorCode(r.parser)));
        if (!err->text[0] && !r.graphs)
            gv_error_at(err, path, 0, 0, "has no graph in it");
    } else {
        gv_error_at(err, path, 0, 0, "out of memory");
    }
    XML_ParserFree(r.parser);
    free(text);
    return err->text[0] ? -1 : 0;
}
