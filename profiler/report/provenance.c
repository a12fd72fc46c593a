/* Where the figures come from, and how to get them again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/collective/gv_release.h"
#include "profiler/report/view.h"

static int repeats_of(const struct gv_compared *c)
{
    int most = 0;
    for (int i = 0; i < c->run.nsteers * c->run.ncases; i++)
        if (c->run.cell[i].count > most)
            most = c->run.cell[i].count;
    return most;
}

static void again(struct gv_html *h, const struct gv_compared *c)
{
    struct gv_str line = {0};
    gv_compared_command(c, &line);
    gv_element(h, "p", c->measured ? "Measure again:" : "Show again:");
    gv_open(h, "pre");
    gv_attr(h, "tabindex", "0");
    gv_attr(h, "data-again", c->measured ? "measure" : "show");
    gv_element(h, "code", line.data ? line.data : "");
    gv_close(h);
    gv_str_free(&line);
}

static void origins(struct gv_html *h, const struct gv_compared *c)
{
    static const char *const headings[] = {"file", "kind", "variants",   "host",
                                           "date", "NCCL", "measured by"};
    if (!c->norigins)
        return;
    gv_table(h, "Where the samples come from", headings, 7);
    for (int i = 0; i < c->norigins; i++) {
        const struct gv_compared_origin *o = &c->origin[i];
        gv_open(h, "tr");
        gv_open(h, "th");
        gv_attr(h, "scope", "row");
        gv_text(h, o->file);
        gv_close(h);
        gv_element(h, "td", o->profile ? "profile" : "run");
        gv_elementf(h, "td", "%s%s", o->label, o->label[0] ? " ..." : "all");
        gv_element(h, "td", o->host);
        gv_element(h, "td", o->date);
        gv_element(h, "td", o->nccl);
        gv_open_class(h, "td", "note");
        gv_element(h, "code", o->command ? o->command : "-");
        gv_close_n(h, 2);
    }
    gv_table_end(h);
}

/* How many elements of each result were looked at. */
static void checks(struct gv_html *h, const struct gv_compared *c)
{
    char size[32];
    if (c->settings.check_bytes)
        gv_factf(
            h, "checked", "%s at both ends of each result",
            gv_size_text(c->settings.check_bytes, size));
    else
        gv_fact(
            h, "checked", c->virtual_machine ? "both ends of each result" : "all of each result");
    if (c->settings.iterations)
        gv_factf(h, "calls a sample", "%d", c->settings.iterations);
    else
        gv_fact(h, "calls a sample", "by size");
    gv_fact(
        h, "workers", c->settings.threads ? "threads of one process" : "a process for each rank");
    if (c->settings.ranks_per_gpu > 1)
        gv_factf(h, "ranks on a GPU", "%d", c->settings.ranks_per_gpu);
}

static void environment(struct gv_html *h, const struct gv_compared *c)
{
    for (int i = 0; i < c->settings.nenvironment; i++) {
        gv_element(h, "dt", i ? "" : "environment");
        gv_element(h, "dd", c->settings.environment[i]);
    }
}

static void run_facts(struct gv_html *h, const struct gv_compared *c)
{
    char version[16];
    gv_open_class(h, "article", "card");
    gv_element(h, "h3", "The run");
    gv_open(h, "dl");
    gv_factf(h, "host", "%s%s", c->host, c->virtual_machine ? " (virtual machine)" : "");
    gv_fact(h, "date", c->date);
    gv_fact(h, "driver", c->driver);
    gv_fact(
        h, "NCCL",
        c->run.nccl_version ? gv_nccl_format(c->run.nccl_version, version) : "not known");
    if (c->measured)
        gv_fact(h, "library", c->settings.nccl[0]);
    if (c->measured && c->settings.nccl[1][0])
        gv_fact(h, "and", c->settings.nccl[1]);
    gv_fact(h, "tool", c->tool);
    gv_factf(h, "ranks", "%d", c->run.nranks);
    if (c->measured)
        gv_factf(h, "communicators", "%d of each variant, in turn, each new", repeats_of(c));
    gv_factf(
        h, "thresholds", "gain from %.3g %%, loss bound %.3g %%", 100 * c->min_gain,
        100 * c->max_loss);
    if (c->measured) {
        checks(h, c);
        environment(h, c);
    }
    gv_close_n(h, 2);
}

static void profile_facts(struct gv_html *h, const struct gv_view *view)
{
    const struct gv_profile *p = view->profile;
    const struct gv_profile_provenance *from = &p->provenance;
    gv_open_class(h, "article", "card");
    gv_element(h, "h3", "The profile");
    gv_open(h, "dl");
    gv_fact(h, "name", p->name);
    gv_fact(h, "file", view->report->profile_path ? view->report->profile_path : "");
    gv_factf(h, "hash (FNV-1a 64)", "%016llx", (unsigned long long)p->hash);
    gv_fact(h, "kind", gv_provenance_name(from->kind));
    gv_fact(h, "date", from->date);
    gv_fact(h, "source", from->source);
    gv_fact(h, "driver", from->driver);
    gv_fact(h, "CUDA", from->cuda);
    gv_fact(h, "NCCL", from->nccl);
    gv_fact(h, "nccl-tests", from->nccl_tests);
    gv_fact(h, "tool", from->tool);
    gv_fact(h, "kernel", from->kernel);
    gv_fact(h, "container", from->container);
    gv_fact(h, "matches by", gv_match_name(p->match));
    gv_factf(
        h, "thresholds", "gain from %.3g %%, loss bound %.3g %%", 100 * p->policy.min_gain,
        100 * p->policy.max_loss);
    gv_close_n(h, 2);
}

static const char *bus_id_of(const struct gv_view *view, int gpu)
{
    const struct gv_compared *c = view->compared;
    const struct gv_profile_gpu *g = gv_view_gpu(view, gpu);
    for (int i = 0; c && i < c->run.nranks; i++)
        if (c->run.gpu[i] == gpu && c->bus_id[i][0])
            return c->bus_id[i];
    return !c && g && g->bus_id[0] ? g->bus_id : "-";
}

static void gpu_row(struct gv_html *h, const struct gv_view *view, int gpu)
{
    const struct gv_profile_gpu *g = gv_view_gpu(view, gpu);
    gv_open(h, "tr");
    gv_open(h, "th");
    gv_attr(h, "scope", "row");
    gv_textf(h, "%d", gpu);
    gv_close(h);
    gv_element(h, "td", bus_id_of(view, gpu));
    gv_element(h, "td", g && g->model[0] ? g->model : "-");
    if (g && g->numa_node >= 0)
        gv_elementf(h, "td", "%d", g->numa_node);
    else
        gv_element(h, "td", "-");
    gv_element(h, "td", g && g->island[0] ? g->island : "-");
    if (g && g->link_gen > 0)
        gv_elementf(h, "td", "gen %d x%d", g->link_gen, g->link_width);
    else
        gv_element(h, "td", "-");
    if (g && g->power_limit_w > 0)
        gv_elementf(h, "td", "%d W", g->power_limit_w);
    else
        gv_element(h, "td", "-");
    gv_close(h);
}

static void gpu_table(struct gv_html *h, const struct gv_view *view)
{
    static const char *const headings[] = {"GPU",    "bus id", "model",      "NUMA node",
                                           "switch", "link",   "power limit"};
    gv_gpuset all = gv_view_gpus(view);
    for (int i = 0; !view->compared && i < view->profile->ngpus; i++)
        all |= GV_GPU_BIT(i);
    gv_table(h, "GPUs", headings, 7);
    for (; all; all &= all - 1)
        gpu_row(h, view, gv_gpuset_first(all));
    gv_table_end(h);
}

void gv_part_provenance(struct gv_html *h, const struct gv_view *view)
{
    gv_open_class(h, "div", "cards");
    if (view->compared)
        run_facts(h, view->compared);
    if (view->profile)
        profile_facts(h, view);
    gv_close(h);
    if (view->compared)
        origins(h, view->compared);
    gpu_table(h, view);
    if (view->compared)
        again(h, view->compared);
    if (view->report->json)
        gv_element(
            h, "p",
            "Every sample is in this file too, as JSON in its script element \"run\": it is what "
            "gv100 compare --save keeps, and gv100 compare reads it.");
}
