/* Adding facts. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/import.h"

/* Facts of one file at most; a larger number is no honest table. */
#define MOST 200000

static void *grow(void **array, int *n, size_t size)
{
    if (*n >= MOST)
        return NULL;
    if (!(*n & (*n - 1))) {
        void *more = reallocarray(*array, *n ? (size_t)*n * 2 : 1, size);
        if (!more)
            return NULL;
        *array = more;
    }
    void *at = (char *)*array + (size_t)(*n)++ * size;
    memset(at, 0, size);
    return at;
}

struct gv_import_source *
gv_import_source(struct gv_import *im, const struct gv_text *t, enum gv_import_format format)
{
    void *list = im->sources;
    struct gv_import_source *s = grow(&list, &im->nsources, sizeof(*s));
    im->sources = list;
    if (!s)
        return NULL;
    s->format = format;
    snprintf(s->path, sizeof(s->path), "%s", t->path);
    return s;
}

struct gv_import_gpu *gv_import_gpu(struct gv_import_source *s, unsigned line)
{
    if (s->ngpus == GV_MAX_GPUS)
        return NULL;
    struct gv_import_gpu *g = &s->gpus[s->ngpus];
    *g = (struct gv_import_gpu){
        .index = s->ngpus++,
        .bus = -1,
        .numa_node = -1,
        .sm = -1,
        .memory_mib = -1,
        .link_gen = -1,
        .link_width = -1,
        .line = line};
    return g;
}

struct gv_import_pair *gv_import_pair(struct gv_import_source *s, int from, int to, unsigned line)
{
    for (int i = 0; i < s->npairs; i++)
        if (s->pairs[i].from == from && s->pairs[i].to == to && s->pairs[i].line == line)
            return &s->pairs[i];
    void *list = s->pairs;
    struct gv_import_pair *p = grow(&list, &s->npairs, sizeof(*p));
    s->pairs = list;
    if (p)
        *p = (struct gv_import_pair){
            .from = from,
            .to = to,
            .write_gbs = NAN,
            .read_gbs = NAN,
            .both_ways_gbs = NAN,
            .latency_us = NAN,
            .host_path_gbs = NAN,
            .line = line};
    return p;
}

struct gv_import_single *gv_import_single(struct gv_import_source *s, int gpu, unsigned line)
{
    void *list = s->singles;
    struct gv_import_single *p = grow(&list, &s->nsingles, sizeof(*p));
    s->singles = list;
    if (p)
        *p = (struct gv_import_single){
            .gpu = gpu, .copy_gbs = NAN, .to_device_gbs = NAN, .to_host_gbs = NAN, .line = line};
    return p;
}

struct gv_import_sample *gv_import_sample(struct gv_import_source *s, unsigned line)
{
    void *list = s->samples;
    struct gv_import_sample *p = grow(&list, &s->nsamples, sizeof(*p));
    s->samples = list;
    if (p)
        *p = (struct gv_import_sample){
            .algorithm = GV_ALGO_ANY, .protocol = GV_PROTO_ANY, .algbw_gbs = NAN, .line = line};
    return p;
}

struct gv_import_ring *gv_import_ring(struct gv_import_source *s, unsigned line)
{
    void *list = s->rings;
    struct gv_import_ring *p = grow(&list, &s->nrings, sizeof(*p));
    s->rings = list;
    if (p)
        p->line = line;
    return p;
}

struct gv_import_choice *gv_import_choice(struct gv_import_source *s, unsigned line)
{
    void *list = s->choices;
    struct gv_import_choice *p = grow(&list, &s->nchoices, sizeof(*p));
    s->choices = list;
    if (p)
        p->line = line;
    return p;
}

bool gv_import_choices_alone(const struct gv_import *im)
{
    bool any = false;
    for (int i = 0; i < im->nsources; i++) {
        if (im->sources[i].format != GV_IMPORT_TUNER)
            return false;
        any = true;
    }
    return any && !im->options.ngpus;
}

void gv_import_note(struct gv_import_source *s, unsigned line, const char *fmt, ...)
{
    void *list = s->notes;
    struct gv_import_note *p = grow(&list, &s->nnotes, sizeof(*p));
    s->notes = list;
    if (!p)
        return;
    va_list ap;
    va_start(ap, fmt);
    p->line = line;
    vsnprintf(p->text, sizeof(p->text), fmt, ap);
    va_end(ap);
}

#undef gv_import_no_memory
int gv_import_no_memory(struct gv_error *err)
{
    return gv_error_set(err, "there is not enough memory, or the file is too large");
}

bool gv_import_bus_id(const char *text, char out[20])
{
    unsigned domain = 0, bus, device, function = 0;
    int used = 0;
    if (sscanf(text, "%8x:%2x:%2x%n", &domain, &bus, &device, &used) != 3) {
        domain = used = 0;
        if (sscanf(text, "%2x:%2x%n", &bus, &device, &used) != 2)
            return false;
    }
    if (text[used] == '.') {
        int more = 0;
        if (sscanf(text + used, ".%1x%n", &function, &more) != 1)
            return false;
        used += more;
    }
    if (text[used] || domain > 0xffff || device > 31 || function > 7)
        return false;
    snprintf(out, 20, "%04x:%02x:%02x.%x", domain, bus, device, function);
    return true;
}

void gv_import_finish(struct gv_import *im)
{
    for (int i = 0; i < im->nsources; i++) {
        free(im->sources[i].pairs);
        free(im->sources[i].singles);
        free(im->sources[i].samples);
        free(im->sources[i].rings);
        free(im->sources[i].choices);
        free(im->sources[i].notes);
    }
    free(im->sources);
    im->sources = NULL;
    im->nsources = 0;
}
