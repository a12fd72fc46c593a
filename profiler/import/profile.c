/* Facts to a profile. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_str.h"
#include "profiler/import/merge.h"

void *gv_merge_grow(void **array, int *n, size_t size)
{
    void *more = reallocarray(*array, (size_t)*n + 1, size);
    if (!more)
        return NULL;
    *array = more;
    void *at = (char *)more + (size_t)(*n)++ * size;
    memset(at, 0, size);
    return at;
}

int gv_merge_fail(
    struct gv_merge *m, const struct gv_import_source *s, unsigned line, const char *fmt, ...)
{
    char text[GV_ERROR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return gv_error_at(m->err, s->path, line, 0, "%s", text);
}

void gv_merge_source(char *field, const struct gv_import_source *s, unsigned line)
{
    const char *slash = strrchr(s->path, '/');
    char place[120];
    size_t used = strlen(field);
    snprintf(place, sizeof(place), "%.100s:%u", slash && slash[1] ? slash + 1 : s->path, line);
    for (char *c = place; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            *c = '?';
    const char *at = strstr(field, place);
    if (at && (!at[strlen(place)] || at[strlen(place)] == ','))
        return;
    if (used + strlen(place) + 3 < 200)
        snprintf(field + used, 200 - used, "%s%s", used ? ", " : "", place);
}

int gv_merge_figure(
    struct gv_merge *m, const struct gv_import_source *s, unsigned line, const char *name,
    double value, struct gv_figure *to, char *field)
{
    if (isnan(value))
        return 0;
    if (to->count && to->median != value)
        return gv_merge_fail(
            m, s, line, "%s is %.6g here, but %.6g is there already%s%s", name, value, to->median,
            *field ? ", from " : "", field);
    if (!to->count)
        *to = (struct gv_figure){value, value, value, 1};
    gv_merge_source(field, s, line);
    return 0;
}

/* The first word that a source has for a field that is still empty. */
static void text_of(char *to, size_t size, const char *from)
{
    if (!*to && *from)
        snprintf(to, size, "%s", from);
}

static void provenance(struct gv_merge *m, const struct gv_profile *base)
{
    struct gv_profile_provenance *o = &m->p->provenance;
    const char *kind = base ? gv_provenance_name(base->provenance.kind) : NULL;
    char *list = o->source;
    o->kind = GV_IMPORTED;
    if (base && base->provenance.kind != GV_IMPORTED)
        snprintf(list, sizeof(o->source), "%.60s (%s) and ", base->name, kind);
    for (int k = 0; k < m->im->nsources; k++) {
        const struct gv_import_source *s = &m->im->sources[k];
        const char *slash = strrchr(s->path, '/'), *name = slash && slash[1] ? slash + 1 : s->path;
        size_t used = strlen(list);
        if (!strstr(list, name) && used + strlen(name) + 3 < sizeof(o->source)) {
            strcat(list, used && list[used - 1] != ' ' ? ", " : "");
            strcat(list, name);
        }
        text_of(o->nccl, sizeof(o->nccl), s->nccl);
        text_of(o->nccl_tests, sizeof(o->nccl_tests), s->nccl_tests);
        text_of(o->driver, sizeof(o->driver), s->driver);
        text_of(o->cuda, sizeof(o->cuda), s->cuda);
        text_of(m->p->cpu_vendor, sizeof(m->p->cpu_vendor), s->cpu_vendor);
    }
    for (char *c = list; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            *c = '?';
    snprintf(o->tool, sizeof(o->tool), "gv100 %s import", GV_VERSION);
}

/* What the schema needs of each GPU. */
static void tidy_gpus(struct gv_profile *p)
{
    for (int i = 0; i < p->ngpus; i++) {
        struct gv_profile_gpu *g = &p->gpus[i];
        if (!*g->model)
            strcpy(g->model, "not known");
        for (char *c = g->model; *c; c++)
            if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
                *c = '?';
    }
}

static bool complete_shape(const struct gv_profile *p)
{
    for (int i = 0; i < p->ngpus; i++)
        if (!p->gpus[i].pci_device || !*p->gpus[i].island)
            return false;
    return true;
}

/* By shape where that is enough, else by address where all are known. */
static void choose_match(struct gv_profile *p)
{
    bool addresses = true;
    for (int i = 0; i < p->ngpus; i++)
        addresses &= *p->gpus[i].bus_id != 0;
    p->match = complete_shape(p) || !addresses ? GV_MATCH_SHAPE : GV_MATCH_BUS_ID;
}

static struct gv_profile *copy_of(const struct gv_profile *p, struct gv_error *err)
{
    struct gv_str text = {0};
    struct gv_profile *copy = NULL;
    if (gv_profile_format(p, &text) || text.failed)
        gv_import_no_memory(err);
    else
        copy = gv_profile_parse(text.data, text.len, "the imported profile", err);
    gv_str_free(&text);
    return copy;
}

/* Islands: a source's groups of GPUs, as letters. A second source must cut the machine alike. */
static int islands(struct gv_merge *m, const struct gv_import_source *s, const int *map)
{
    for (int a = 0; a < s->ngpus; a++)
        for (int b = 0; b < a; b++) {
            const struct gv_profile_gpu *x = &m->p->gpus[map[a]], *y = &m->p->gpus[map[b]];
            if (!*s->gpus[a].island || !*s->gpus[b].island || !*x->island || !*y->island)
                continue;
            bool here = !strcmp(s->gpus[a].island, s->gpus[b].island);
            if (here != !strcmp(x->island, y->island))
                return gv_merge_fail(
                    m, s, s->gpus[a].line,
                    "GPU %d and %d are %s one switch here, elsewhere they are%s", y->index,
                    x->index, here ? "under" : "not under", here ? " not" : "");
        }
    for (int a = 0; a < s->ngpus; a++) {
        struct gv_profile_gpu *g = &m->p->gpus[map[a]];
        if (*g->island || !*s->gpus[a].island)
            continue;
        int letter = 0;
        for (int b = 0; b < a; b++)
            if (!strcmp(s->gpus[a].island, s->gpus[b].island) && *m->p->gpus[map[b]].island)
                memcpy(g->island, m->p->gpus[map[b]].island, sizeof(g->island));
        for (bool free = *g->island; !free; letter++) {
            snprintf(
                g->island, sizeof(g->island), letter < 26 ? "%c" : "I%d",
                letter < 26 ? 'A' + letter : letter);
            free = true;
            for (int i = 0; i < m->p->ngpus; i++)
                free &= i == map[a] || strcmp(m->p->gpus[i].island, g->island) != 0;
        }
    }
    return 0;
}

static int all_islands(struct gv_merge *m)
{
    for (int k = 0; k < m->im->nsources; k++)
        if (m->im->sources[k].whole && islands(m, &m->im->sources[k], m->map[k]))
            return -1;
    return 0;
}

static int merge(struct gv_merge *m, const struct gv_profile *base)
{
    if (gv_merge_gpus(m) || all_islands(m) || gv_merge_paths(m) || gv_merge_singles(m) ||
        gv_merge_groups(m) || gv_merge_choices(m))
        return -1;
    tidy_gpus(m->p);
    if (!base)
        choose_match(m->p);
    provenance(m, base);
    return 0;
}

struct gv_profile *gv_import_profile(
    struct gv_import *im, const struct gv_profile *base, const char *name, struct gv_error *err)
{
    struct gv_merge m = {.im = im, .err = err};
    struct gv_profile *out = NULL;
    if (!im->nsources) {
        gv_error_set(err, "no file was read");
        return NULL;
    }
    m.p = base ? copy_of(base, err) : gv_profile_new();
    m.map = calloc((size_t)im->nsources, sizeof(*m.map));
    if (!m.p || !m.map) {
        if (!m.map || !base)
            gv_import_no_memory(err);
    } else {
        if (!base)
            snprintf(m.p->name, sizeof(m.p->name), "%s", name);
        if (!merge(&m, base))
            out = copy_of(m.p, err); /* read back: whatever the schema demands is checked */
    }
    free(m.map);
    gv_profile_free(m.p);
    return out;
}
