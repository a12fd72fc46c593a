#include "profiler/report/view.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The profile's GPU with this bus id, or -1. */
static int by_bus_id(const struct gv_profile *profile, const char *bus_id)
{
    for (int i = 0; bus_id[0] && i < profile->ngpus; i++)
        if (!strcmp(profile->gpus[i].bus_id, bus_id))
            return i;
    return -1;
}

/* Profiles that match by shape number GPUs as the machine does, and their bus ids may be another
 * machine's: so bus ids count only where all of the run's are there. */
static bool bus_ids_hold(const struct gv_profile *profile, const struct gv_compared *c)
{
    for (int i = 0; i < c->run.nranks; i++)
        if (by_bus_id(profile, c->bus_id[i]) < 0)
            return false;
    return true;
}

void gv_view_init(struct gv_view *view, const struct gv_report *report)
{
    const struct gv_compared *c = report->compared;
    const struct gv_profile *p = report->profile;
    *view = (struct gv_view){.compared = c, .profile = p, .report = report};
    for (int i = 0; i < GV_MAX_GPUS; i++)
        view->to_profile[i] = view->from_profile[i] = p && i < p->ngpus ? i : -1;
    if (!p || !c || !bus_ids_hold(p, c))
        return;
    for (int i = 0; i < c->run.nranks; i++) {
        int own = by_bus_id(p, c->bus_id[i]);
        view->to_profile[c->run.gpu[i]] = own;
        view->from_profile[own] = c->run.gpu[i];
    }
}

const struct gv_profile_gpu *gv_view_gpu(const struct gv_view *view, int gpu)
{
    int own = gpu >= 0 && gpu < GV_MAX_GPUS ? view->to_profile[gpu] : -1;
    return own >= 0 ? &view->profile->gpus[own] : NULL;
}

gv_gpuset gv_view_gpus(const struct gv_view *view)
{
    gv_gpuset set = 0;
    for (int i = 0; view->compared && i < view->compared->run.nranks; i++)
        set |= GV_GPU_BIT(view->compared->run.gpu[i]);
    return set;
}

gv_gpuset gv_view_profile_gpus(const struct gv_view *view)
{
    gv_gpuset set = 0;
    for (gv_gpuset rest = gv_view_gpus(view); rest; rest &= rest - 1) {
        int own = view->to_profile[gv_gpuset_first(rest)];
        if (own >= 0)
            set |= GV_GPU_BIT(own);
    }
    return set;
}

gv_gpuset gv_view_shown(const struct gv_view *view, gv_gpuset profile_gpus)
{
    gv_gpuset set = 0;
    for (gv_gpuset rest = profile_gpus; rest; rest &= rest - 1) {
        int shown = view->from_profile[gv_gpuset_first(rest)];
        if (shown >= 0)
            set |= GV_GPU_BIT(shown);
    }
    return set;
}

#define STYLES 8

/* The base comes first, whatever its place among the variants. */
static int style_of(const struct gv_view *view, int steer)
{
    int base = view->compared ? view->compared->base : 0;
    int place = steer == base ? 0 : steer < base ? steer + 1 : steer;
    return place == 0 ? 0 : 1 + (place - 1) % (STYLES - 1);
}

const char *gv_view_class(const struct gv_view *view, int steer)
{
    static const char *const names[STYLES] = {"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7"};
    return names[style_of(view, steer)];
}

void gv_mark_open(struct gv_html *h, const struct gv_view *view, int steer, double x, double y)
{
    static const char *const shapes[STYLES] = {
        "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0-5 0Z", /* circle */
        "M0-5.5L5.5 0L0 5.5L-5.5 0Z",         /* diamond */
        "M-4-4H4V4H-4Z",                      /* square */
        "M0-5L5 4H-5Z",                       /* triangle */
        "M0 5L5-4H-5Z",                       /* triangle, point down */
        "M-5-2H-2V-5H2V-2H5V2H2V5H-2V2H-5Z",  /* cross */
        "M-5-3H5V3H-5Z",                      /* flat */
        "M-3-5H3V5H-3Z",                      /* upright */
    };
    int style = style_of(view, steer);
    gv_open(h, "path");
    gv_attrf(h, "class", "mark v%d", style);
    gv_attr(h, "d", shapes[style]);
    gv_attrf(h, "transform", "translate(%.1f %.1f)", x, y);
}

void gv_view_key(struct gv_html *h, const struct gv_view *view)
{
    gv_open_class(h, "ul", "key");
    for (int s = 0; s < view->compared->run.nsteers; s++) {
        gv_open(h, "li");
        gv_open(h, "svg");
        gv_attr(h, "viewBox", "0 0 30 14");
        gv_attr(h, "width", "30");
        gv_attr(h, "height", "14");
        gv_attr(h, "aria-hidden", "true");
        gv_open(h, "path");
        gv_attrf(h, "class", "line %s", gv_view_class(view, s));
        gv_attr(h, "d", "M1 7H29");
        gv_close(h);
        gv_mark_open(h, view, s, 15, 7);
        gv_close_n(h, 2);
        gv_textf(h, " %s", view->compared->run.steer[s].name);
        gv_close(h);
    }
    gv_close(h);
}

void gv_fact(struct gv_html *h, const char *name, const char *text)
{
    if (!text[0])
        return;
    gv_element(h, "dt", name);
    gv_element(h, "dd", text);
}

void gv_factf(struct gv_html *h, const char *name, const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    gv_fact(h, name, text);
}

double gv_axis_step(double most)
{
    if (!(most > 0))
        return 1;
    double ten = pow(10, floor(log10(most / 4))), parts = most / 4 / ten;
    return ten * (parts < 1.5 ? 1 : parts < 3 ? 2 : parts < 7 ? 5 : 10);
}
