/* The page: head, summary, and the parts that there is something to say in. */
#include "profiler/report/gv_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/collective/gv_release.h"
#include "profiler/report/view.h"

struct part {
    const char *id, *title;
    bool compared, profile; /* needs one */
    void (*write)(struct gv_html *h, const struct gv_view *view);
};

static const struct part parts[] = {
    {"busbw", "Bus bandwidth over size", true, false, gv_part_busbw},
    {"ring", "The ring on the PCI tree", true, false, gv_part_ring},
    {"job", "What it would bring to a job", true, false, gv_part_job},
    {"decisions", "Decisions and reasons", false, false, gv_part_decisions},
    {"paths", "P2P matrix", false, true, gv_part_paths},
    {"host-links-part", "Host links", false, true, gv_part_host_links},
    {"handoffs", "Stage hand-offs", false, true, gv_part_handoffs},
    {"groups", "What the profile measured", false, true, gv_part_groups},
    {"witness", "nccl-tests as a witness", true, false, gv_part_witness},
    {"provenance", "Provenance and settings", false, false, gv_part_provenance},
};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

static bool is_wanted(const struct part *part, const struct gv_view *view)
{
    if (part->write == gv_part_handoffs && view->profile && !view->profile->nhandoffs)
        return false;
    if (part->write == gv_part_job && (!view->compared || !view->compared->job.file[0]))
        return false;
    if (part->write == gv_part_witness && (!view->compared || !view->compared->witness_program[0]))
        return false;
    return (view->compared || !part->compared) && (view->profile || !part->profile);
}

/* "NCCL on GPUs 0-5 of HOST: tuned against default". */
static void title_of(const struct gv_view *view, char *out, size_t size)
{
    const struct gv_compared *c = view->compared;
    char set[256], others[160] = "";
    gv_gpuset_format(gv_view_gpus(view), set, sizeof(set));
    for (int s = 0; c && s < c->run.nsteers; s++) {
        size_t n = strlen(others);
        if (s != c->base)
            snprintf(others + n, sizeof(others) - n, "%s%s", n ? ", " : "", c->run.steer[s].name);
    }
    if (!c)
        snprintf(out, size, "Profile %s", view->profile->name);
    else if (!others[0])
        snprintf(out, size, "NCCL on GPUs %s of %s", set, c->host);
    else
        snprintf(
            out, size, "NCCL on GPUs %s of %s: %s against %s", set, c->host, others,
            c->run.steer[c->base].name);
}

static void verdicts(struct gv_html *h, const struct gv_compared *c, int s)
{
    int count[4] = {0};
    double best = NAN, worst = NAN;
    for (int i = 0; i < c->nrows; i++) {
        if (c->rows[i].other != s)
            continue;
        count[c->rows[i].verdict]++;
        best = fmax(best, c->rows[i].gain);
        worst = fmin(worst, c->rows[i].gain);
    }
    gv_open(h, "p");
    gv_attr(h, "data-summary", c->run.steer[s].name);
    gv_element(h, "strong", c->run.steer[s].name);
    gv_textf(
        h, " against %s: gain in %d, tie in %d, loss in %d", c->run.steer[c->base].name,
        count[GV_GAIN], count[GV_SAME], count[GV_LOSS]);
    if (count[GV_NOT_MEASURED])
        gv_textf(h, ", not measured in %d", count[GV_NOT_MEASURED]);
    if (isfinite(best))
        gv_textf(h, "; from %+.1f %% to %+.1f %%", 100 * worst, 100 * best);
    gv_text(h, ".");
    gv_close(h);
}

static void checked(struct gv_html *h, const struct gv_compared *c)
{
    unsigned long long wrong = 0;
    int samples = 0;
    for (int i = 0; i < c->run.nsteers * c->run.ncases; i++) {
        samples += c->run.cell[i].count;
        wrong += c->run.cell[i].wrong;
    }
    gv_open_class(h, "p", wrong ? "alarm" : "fine");
    gv_attrf(h, "data-nwrong", "%llu", wrong);
    gv_textf(h, "%d samples, results checked: %llu wrong elements.", samples, wrong);
    gv_close(h);
}

/* The same cause is told once, with the first case that it struck. */
static void errors(struct gv_html *h, const struct gv_compared *c)
{
    char size[32];
    for (int s = 0; s < c->run.nsteers; s++) {
        const char *last = "";
        for (int k = 0; k < c->run.ncases; k++) {
            const struct gv_cell *cell = gv_cell_of(&c->run, s, k);
            if (!cell->error[0] || !strcmp(cell->error, last))
                continue;
            last = cell->error;
            gv_open_class(h, "p", "alarm");
            gv_textf(
                h, "%s, %s of %s: %s", c->run.steer[s].name, gv_op_name(c->run.cases[k].op),
                gv_size_text(c->run.cases[k].bytes, size), cell->error);
            gv_close(h);
        }
    }
}

/* What a reader must know of how it was put together, and of what has changed since. */
static void notes(struct gv_html *h, const struct gv_view *view)
{
    const struct gv_compared *c = view->compared;
    for (int i = 0; i < c->nnotes; i++) {
        gv_open(h, "p");
        gv_attr(h, "data-note", "true");
        gv_text(h, c->note[i]);
        gv_close(h);
    }
    if (view->profile && c->profile_hash && view->profile->hash != c->profile_hash) {
        gv_open_class(h, "p", "alarm");
        gv_attr(h, "data-note", "true");
        gv_text(
            h, "The profile is not the one of that run: what is shown of the machine, and the "
               "policy's decision, are of the file as it is now.");
        gv_close(h);
    }
}

static void summary(struct gv_html *h, const struct gv_view *view)
{
    const struct gv_compared *c = view->compared;
    char version[16];
    if (c ? c->virtual_machine : view->profile->provenance.kind == GV_VIRTUAL) {
        gv_open_class(h, "p", "alarm");
        gv_text(h, "Virtual machine: no figure on this page is a board's.");
        gv_close(h);
    }
    if (!c)
        return;
    gv_open(h, "p");
    gv_textf(
        h, "NCCL %s, %d ranks, %s.",
        c->run.nccl_version ? gv_nccl_format(c->run.nccl_version, version) : "not known",
        c->run.nranks, c->date);
    gv_close(h);
    for (int s = 0; s < c->run.nsteers; s++)
        if (s != c->base)
            verdicts(h, c, s);
    if (c->measured || !c->norigins || !c->origin[0].profile)
        checked(h, c);
    notes(h, view);
    errors(h, c);
    if (!view->profile)
        gv_element(
            h, "p",
            "No profile: the PCI tree, the P2P matrix, host links and the policy are left out.");
}

static void navigation(struct gv_html *h, const struct gv_view *view)
{
    gv_open(h, "nav");
    gv_attr(h, "aria-label", "Parts");
    gv_open(h, "ul");
    for (size_t i = 0; i < PARTS; i++) {
        if (!is_wanted(&parts[i], view))
            continue;
        gv_open(h, "li");
        gv_open(h, "a");
        gv_attrf(h, "href", "#%s", parts[i].id);
        gv_text(h, parts[i].title);
        gv_close_n(h, 2);
    }
    gv_close_n(h, 2);
}

static void content(struct gv_html *h, const struct gv_view *view)
{
    gv_open(h, "main");
    gv_attr(h, "id", "content");
    for (size_t i = 0; i < PARTS; i++) {
        if (!is_wanted(&parts[i], view))
            continue;
        gv_open(h, "section");
        gv_attr(h, "id", parts[i].id);
        gv_attrf(h, "aria-labelledby", "%s-h", parts[i].id);
        gv_open(h, "h2");
        gv_attrf(h, "id", "%s-h", parts[i].id);
        gv_text(h, parts[i].title);
        gv_close(h);
        parts[i].write(h, view);
        gv_close(h);
    }
    gv_close(h);
}

/* JSON has '<', '>' and '&' inside strings only, where they may be written as escapes: so nothing
 * in it can end the element. */
static void keep_json(struct gv_html *h, const char *json)
{
    gv_open(h, "script");
    gv_attr(h, "type", "application/json");
    gv_attr(h, "id", "run");
    gv_raw(h, "\n");
    for (const char *at = json; *at; at++) {
        if (*at == '<' || *at == '>' || *at == '&')
            gv_str_addf(h->out, "\\u%04x", *at);
        else
            gv_str_add_n(h->out, at, 1);
    }
    gv_close(h);
}

int gv_report_html(const struct gv_report *report, struct gv_str *out)
{
    struct gv_html h = {.out = out};
    struct gv_view view;
    char title[512];
    gv_view_init(&view, report);
    title_of(&view, title, sizeof(title));
    gv_page_open(&h, title, "");
    summary(&h, &view);
    gv_close(&h);
    navigation(&h, &view);
    content(&h, &view);
    if (report->json)
        keep_json(&h, report->json);
    gv_close_n(&h, 2);
    gv_str_add(out, "\n");
    return out->failed ? -1 : 0;
}
