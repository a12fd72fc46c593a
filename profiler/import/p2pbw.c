/* p2pBandwidthLatencyTest of the CUDA samples: a list of devices and matrices below titles.
 *
 * What its figures are (the sample's source): the diagonal is a copy inside one GPU, read and write
 * counted; a pair without P2P goes through the host although the title says enabled; both ways is
 * the sum. "(P2P Writes)" or "(P2P Reads)" stands in the titles since CUDA 10. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/import.h"

enum what {
    NOTHING,
    CONNECTED,
    ONE_WAY_OFF,
    ONE_WAY_ON,
    BOTH_OFF,
    BOTH_ON,
    LATENCY_OFF,
    LATENCY_ON
};

struct reader {
    const struct gv_text *t;
    struct gv_error *err;
    struct gv_import_source *s;
    enum what what;
    bool writes, reads; /* the title says so */
    bool connected[GV_MAX_GPUS][GV_MAX_GPUS], has_connected, has_row[8][GV_MAX_GPUS];
    unsigned title_line[8];
    int columns; /* of the heading that was read last */
};

/* "Device: 0, Tesla V100-PCIE-32GB, pciBusID: 1a, pciDeviceID: 0, pciDomainID:0" */
static int device(struct reader *r, const char *line, int i)
{
    int index, used = 0;
    unsigned bus, dev, domain = 0;
    char model[64];
    if (sscanf(line, "Device: %d, %63[^,],%n", &index, model, &used) != 2 || !used)
        return 0;
    struct gv_import_gpu *g = gv_import_gpu(r->s, (unsigned)i + 1);
    if (!g || index != g->index)
        return gv_error_at(
            r->err, r->t->path, (unsigned)i + 1, 0,
            "device %d is not the next one: lines are missing", index);
    memcpy(g->model, model, sizeof(g->model));
    const char *at = strstr(line, "pciBusID:"), *more = strstr(line, "pciDomainID:");
    if (more)
        sscanf(more, "pciDomainID: %x", &domain);
    if (at && sscanf(at, "pciBusID: %x, pciDeviceID: %x", &bus, &dev) == 2)
        snprintf(
            g->bus_id, sizeof(g->bus_id), "%04x:%02x:%02x.0", domain & 0xffff, bus & 0xff,
            dev & 0x1f);
    return 1;
}

static bool title(struct reader *r, const char *s, int i)
{
    bool on = strstr(s, "P2P=Enabled"), off = strstr(s, "P2P=Disabled");
    enum what what = NOTHING;
    if (strstr(s, "Connectivity Matrix"))
        what = CONNECTED;
    else if ((on || off) && strstr(s, "Unidirectional"))
        what = on ? ONE_WAY_ON : ONE_WAY_OFF;
    else if ((on || off) && strstr(s, "Bidirectional"))
        what = on ? BOTH_ON : BOTH_OFF;
    else if ((on || off) && strstr(s, "Latency"))
        what = on ? LATENCY_ON : LATENCY_OFF;
    if (!what)
        return false;
    r->what = what;
    r->writes = strstr(s, "Writes") != NULL;
    r->reads = strstr(s, "Reads") != NULL;
    r->title_line[what] = (unsigned)i + 1;
    return true;
}

static int no_memory(struct reader *r)
{
    return gv_import_no_memory(r->err);
}

static int inside(struct reader *r, int gpu, double value, unsigned line)
{
    if (r->what != ONE_WAY_OFF)
        return 0;
    struct gv_import_single *one = gv_import_single(r->s, gpu, line);
    if (!one)
        return no_memory(r);
    one->copy_gbs = value;
    return 0;
}

static int between(struct reader *r, int a, int b, double value, unsigned line)
{
    bool p2p = !r->has_connected || r->connected[a][b];
    if (r->what == BOTH_OFF || r->what == LATENCY_OFF || (!p2p && r->what > ONE_WAY_OFF))
        return 0; /* host copies beside the one that is kept */
    if (r->what == ONE_WAY_ON && !r->writes && !r->reads)
        return 0; /* which of the two GPUs copied is not said */
    struct gv_import_pair *p = gv_import_pair(r->s, a, b, line);
    if (!p)
        return no_memory(r);
    if (r->what == CONNECTED) {
        r->connected[a][b] = value == 1;
        p->refused = value == 0;
    } else if (r->what == ONE_WAY_OFF)
        p->host_path_gbs = value;
    else if (r->what == ONE_WAY_ON)
        *(r->reads ? &p->read_gbs : &p->write_gbs) = value;
    else if (r->what == BOTH_ON)
        p->both_ways_gbs = value;
    else if (!r->reads)
        p->latency_us = value;
    return 0;
}

static int row(struct reader *r, const struct gv_word *w, int n, int i)
{
    unsigned line = (unsigned)i + 1;
    int a = gv_small(w[0].s), gpus = r->s->ngpus;
    if (a < 0 || a >= gpus || n != gpus + 1)
        return gv_error_at(
            r->err, r->t->path, line, 0,
            "the row has %d cells, the machine %d GPUs: it is cut or two cells are glued", n - 1,
            gpus);
    if (r->has_row[r->what][a])
        return gv_error_at(
            r->err, r->t->path, line, 0, "a second row %d: two results were pasted together", a);
    r->has_row[r->what][a] = true;
    for (int b = 0; b < gpus; b++) {
        double value;
        if (!gv_is_number(w[b + 1].s, &value) || (r->what == CONNECTED && value != 0 && value != 1))
            return gv_error_at(
                r->err, r->t->path, line, w[b + 1].column, "'%.24s' is no figure of this matrix",
                w[b + 1].s);
        if (a == b ? inside(r, a, value, line) : between(r, a, b, value, line))
            return -1;
    }
    r->has_connected |= r->what == CONNECTED;
    return 0;
}

/* No line 'Device: 0, ...' stands above: the GPUs are numbers, as many as the heading has. */
static int unnamed(struct reader *r, int n, unsigned line)
{
    if (!r->columns)
        return gv_error_at(
            r->err, r->t->path, line, 0,
            "neither a line 'Device: 0, ...' nor a heading 'D\\D 0 1' stands above: which GPUs "
            "these "
            "are is not said");
    if (n != r->columns)
        return gv_error_at(
            r->err, r->t->path, line, 0,
            "the row has %d cells, its heading %d: it is cut or two cells are glued", n,
            r->columns);
    for (int i = 0; i < r->columns; i++)
        if (!gv_import_gpu(r->s, line))
            return gv_error_at(r->err, r->t->path, line, 0, "more than 64 GPUs");
    gv_import_note(
        r->s, line, "no line names the devices: they are taken in CUDA's order as GPUs 0 to %d",
        r->columns - 1);
    return 0;
}

/* "D\D 0 1 2"; 0 where it is none. */
static int heading(const struct gv_word *w, int n)
{
    for (int i = 1; i < n; i++)
        if (gv_small(w[i].s) != i - 1)
            return 0;
    return n - 1;
}

static int line(struct reader *r, char *s, int i)
{
    struct gv_word w[GV_MAX_WORDS];
    s += strspn(s, " \t");
    int done = device(r, s, i);
    if (done || title(r, s, i))
        return done < 0 ? -1 : 0;
    int n = gv_words(s, 0, w);
    if (n && !strcmp(w[0].s, "CPU"))
        r->what = NOTHING; /* latency as the CPU sees it: launching, not the link */
    if (n > 1 && (!strcmp(w[0].s, "D\\D") || !strcmp(w[0].s, "GPU"))) {
        r->columns = heading(w, n);
        return 0;
    }
    if (n < 2 || r->what == NOTHING)
        return 0;
    if (!gv_is_digits(w[0].s)) {
        r->what = NOTHING;
        return 0;
    }
    if (!r->s->ngpus && unnamed(r, n - 1, (unsigned)i + 1))
        return -1;
    return row(r, w, n, i);
}

static int complete(struct reader *r)
{
    int any = 0;
    for (int what = CONNECTED; what <= LATENCY_ON; what++)
        for (int a = 0; a < r->s->ngpus && r->title_line[what]; a++, any++)
            if (!r->has_row[what][a])
                return gv_error_at(
                    r->err, r->t->path, r->title_line[what], 0,
                    "row %d of this matrix is missing: the output is cut", a);
    if (r->title_line[ONE_WAY_ON] && !r->writes && !r->reads && r->s->ngpus > 1)
        gv_import_note(
            r->s, r->title_line[ONE_WAY_ON],
            "the titles do not say whether P2P wrote or read: one-way figures with P2P are not "
            "taken");
    return any ? 0
               : gv_error_at(
                     r->err, r->t->path, 0, 0, "no matrix of p2pBandwidthLatencyTest is in it");
}

int gv_import_p2p_bandwidth(struct gv_import *im, struct gv_text *t, struct gv_error *err)
{
    struct reader *r = calloc(1, sizeof(*r));
    struct gv_import_source *s = r ? gv_import_source(im, t, GV_IMPORT_P2P_BANDWIDTH) : NULL;
    int rc = s ? 0 : gv_import_no_memory(err);
    if (s) {
        s->whole = true;
        r->t = t;
        r->err = err;
        r->s = s;
    }
    for (int i = 0; i < t->n && !rc; i++) {
        char *room = strdup(t->lines[i]);
        rc = room ? line(r, room, i) : gv_import_no_memory(err);
        free(room);
    }
    if (!rc)
        rc = complete(r);
    free(r);
    return rc;
}
