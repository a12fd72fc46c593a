/* Where the figures come from, and how to get them again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/collective/gv_release.h"
#include "profiler/report/view.h"

/* One word of a shell's command line. */
static void add_word(struct gv_str *out, const char *word)
{
    bool plain = word[0] && strspn(
                                word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789-_./,:=+@%") == strlen(word);
    gv_str_add(out, plain ? " " : " '");
    for (const char *at = word; *at; at++) {
        if (*at == '\'')
            gv_str_add(out, "'\\''");
        else
            gv_str_add_n(out, at, 1);
    }
    gv_str_add(out, plain ? "" : "'");
}

static void add_option(struct gv_str *out, const char *option, const char *value)
{
    gv_str_addf(out, " %s", option);
    add_word(out, value);
}

/* Sizes as they were asked for: operations in pieces run a few bytes less. */
static void add_sizes(struct gv_str *out, const struct gv_compared *c)
{
    uint64_t low = UINT64_MAX, high = 0, second = UINT64_MAX;
    char text[32];
    for (int k = 0; k < c->run.ncases; k++) {
        uint64_t bytes = c->run.cases[k].bytes;
        if (c->run.cases[k].op != c->run.cases[0].op)
            continue;
        if (bytes < low) {
            second = low;
            low = bytes;
        } else if (bytes > low && bytes < second)
            second = bytes;
        high = bytes > high ? bytes : high;
    }
    add_option(out, "-b", gv_size_text(low, text));
    add_option(out, "-e", gv_size_text(high, text));
    if (second != UINT64_MAX) {
        snprintf(text, sizeof(text), "%.4g", round(100.0 * (double)second / (double)low) / 100);
        add_option(out, "-f", text);
    }
}

static void add_operations(struct gv_str *out, const struct gv_compared *c)
{
    char list[256] = "";
    unsigned seen = 0;
    for (int k = 0; k < c->run.ncases; k++) {
        enum gv_op op = c->run.cases[k].op;
        size_t n = strlen(list);
        if (!(seen & GV_OP_BIT(op)))
            snprintf(list + n, sizeof(list) - n, "%s%s", n ? "," : "", gv_op_name(op));
        seen |= GV_OP_BIT(op);
    }
    add_option(out, "-o", list);
}

static int repeats_of(const struct gv_compared *c)
{
    int most = 0;
    for (int i = 0; i < c->run.nsteers * c->run.ncases; i++)
        if (c->run.cell[i].count > most)
            most = c->run.cell[i].count;
    return most;
}

static const struct gv_case *reducing(const struct gv_compared *c)
{
    for (int k = 0; k < c->run.ncases; k++)
        if (gv_op_reduces(c->run.cases[k].op))
            return &c->run.cases[k];
    return &c->run.cases[0];
}

static void add_variants(struct gv_str *out, const struct gv_compared *c)
{
    for (int s = 0; s < c->run.nsteers; s++)
        if (c->run.steer[s].force[0] && strcmp(c->run.steer[s].force, "default"))
            add_option(out, "--variant", c->run.steer[s].force);
}

/* Of two releases the run has one path only. */
static void add_nccl(struct gv_str *out, const struct gv_compared *c)
{
    char version[16], words[48];
    int last = 0, first = c->run.wiring[0].nccl_version;
    bool two = false;
    for (int s = 0; s < c->run.nsteers; s++)
        two |= c->run.wiring[s].nccl_version != first;
    if (!two) {
        add_option(out, "--nccl", c->run.nccl_path);
        return;
    }
    for (int s = 0; s < c->run.nsteers; s++) {
        if (c->run.wiring[s].nccl_version == last)
            continue;
        last = c->run.wiring[s].nccl_version;
        snprintf(words, sizeof(words), "libnccl.so.2 of %s", gv_nccl_format(last, version));
        add_option(out, "--nccl", words);
    }
}

static void again(struct gv_html *h, const struct gv_view *view)
{
    const struct gv_compared *c = view->compared;
    struct gv_str line = {0};
    char text[256];
    bool in_place = false;
    for (int k = 0; k < c->run.ncases; k++)
        in_place |= c->run.cases[k].in_place;
    gv_str_add(&line, "gv100 compare");
    if (c->virtual_machine)
        add_option(&line, "--virtual", "MACHINE");
    add_option(&line, "--gpus", gv_gpuset_format(gv_view_gpus(view), text, sizeof(text)));
    if (c->profile[0])
        add_option(&line, "--profile", c->profile);
    add_nccl(&line, c);
    add_operations(&line, c);
    add_sizes(&line, c);
    add_option(&line, "--type", gv_type_name(c->run.cases[0].type));
    add_option(&line, "--redop", gv_redop_name(reducing(c)->redop));
    if (in_place)
        gv_str_add(&line, " --in-place");
    snprintf(text, sizeof(text), "%d", repeats_of(c));
    add_option(&line, "--repeats", text);
    add_variants(&line, c);
    if (c->witness_program[0])
        add_option(&line, "--with", c->witness_program);
    gv_open(h, "p");
    gv_text(h, "Measure again:");
    gv_close(h);
    gv_open(h, "pre");
    gv_attr(h, "tabindex", "0");
    gv_element(h, "code", line.data ? line.data : "");
    gv_close(h);
    gv_str_free(&line);
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
    gv_factf(h, "NCCL", "%s", gv_nccl_format(c->run.nccl_version, version));
    gv_fact(h, "library", c->run.nccl_path);
    gv_fact(h, "tool", c->tool);
    gv_factf(h, "ranks", "%d", c->run.nranks);
    gv_factf(h, "communicators", "%d of each variant, in turn, each new", repeats_of(c));
    gv_factf(
        h, "thresholds", "gain from %.3g %%, loss bound %.3g %%", 100 * c->min_gain,
        100 * c->max_loss);
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
    gpu_table(h, view);
    if (view->compared)
        again(h, view);
    if (view->report->json)
        gv_element(
            h, "p",
            "Every sample is in this file too, as JSON in its script element \"run\": it is what "
            "gv100 compare --save keeps, and gv100 compare reads it.");
}
