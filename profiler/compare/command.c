/* The command line that makes a comparison again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/gv_size.h"
#include "base/gv_str.h"
#include "profiler/compare/gv_compare.h"

static void add_quoted(struct gv_str *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-_./,:=+@%";
    if (word[0] && strspn(word, plain) == strlen(word)) {
        gv_str_add(out, word);
        return;
    }
    gv_str_add(out, "'");
    for (const char *at = word; *at; at++) {
        if (*at == '\'')
            gv_str_add(out, "'\\''");
        else
            gv_str_add_n(out, at, 1);
    }
    gv_str_add(out, "'");
}

static void add_option(struct gv_str *out, const char *option, const char *value)
{
    gv_str_addf(out, " %s ", option);
    add_quoted(out, value);
}

static void add_number(struct gv_str *out, const char *option, double value)
{
    gv_str_addf(out, " %s %.15g", option, value);
}

static void add_size(struct gv_str *out, const char *option, uint64_t bytes)
{
    char text[32];
    add_option(out, option, gv_size_format(bytes, text, sizeof(text)));
}

static void add_gpus(struct gv_str *out, const struct gv_compared *c)
{
    char text[256];
    gv_gpuset set = 0;
    for (int i = 0; i < c->run.nranks; i++)
        set |= GV_GPU_BIT(c->run.gpu[i]);
    add_option(out, "--gpus", gv_gpuset_format(set, text, sizeof(text)));
}

static void add_operations(struct gv_str *out, unsigned ops)
{
    char list[256] = "";
    for (int op = 0; op < GV_OP_COUNT; op++)
        if (ops >> op & 1)
            snprintf(
                list + strlen(list), sizeof(list) - strlen(list), "%s%s", list[0] ? "," : "",
                gv_op_name((enum gv_op)op));
    add_option(out, "-o", list);
}

/* "NAME=value " before the command, as a shell takes it. */
static void add_environment(struct gv_str *out, const struct gv_compared_settings *s)
{
    for (int i = 0; i < s->nenvironment; i++) {
        const char *equals = strchr(s->environment[i], '=');
        gv_str_add_n(out, s->environment[i], (size_t)(equals - s->environment[i]) + 1);
        if (equals[1])
            add_quoted(out, equals + 1);
        gv_str_add(out, " ");
    }
}

static void add_how(struct gv_str *out, const struct gv_compared_settings *s)
{
    add_option(out, "--type", gv_type_name(s->type));
    add_option(out, "--redop", gv_redop_name(s->redop));
    if (s->in_place)
        gv_str_add(out, " --in-place");
    add_number(out, "--repeats", s->repeats);
    if (s->iterations)
        add_number(out, "--iterations", s->iterations);
    if (s->threads)
        gv_str_add(out, " --threads");
    if (s->ranks_per_gpu > 1)
        add_number(out, "--ranks-per-gpu", s->ranks_per_gpu);
    if (s->timeout_s > 0)
        add_number(out, "--timeout", s->timeout_s);
    if (s->check_bytes)
        add_size(out, "--check", s->check_bytes);
}

static void add_measurement(struct gv_str *out, const struct gv_compared *c)
{
    const struct gv_compared_settings *s = &c->settings;
    if (s->machine[0])
        add_option(out, "--virtual", s->machine);
    add_gpus(out, c);
    if (c->profile[0])
        add_option(out, "--profile", c->profile);
    for (int i = 0; i < 2; i++)
        if (s->nccl[i][0])
            add_option(out, "--nccl", s->nccl[i]);
    add_operations(out, s->ops);
    add_size(out, "-b", s->min_bytes);
    add_size(out, "-e", s->max_bytes);
    add_number(out, "-f", s->factor);
    add_how(out, s);
    for (int i = 0; i < s->nvariants; i++)
        add_option(out, "--variant", s->variant[i]);
    if (s->witness[0])
        add_option(out, "--with", s->witness);
}

static void add_files(struct gv_str *out, const struct gv_compared *c)
{
    bool profile = false;
    for (int i = 0; i < c->norigins; i++) {
        gv_str_add(out, " ");
        add_quoted(out, c->origin[i].file);
        profile |= c->origin[i].profile;
    }
    if (profile)
        add_gpus(out, c);
}

void gv_compared_command(const struct gv_compared *c, struct gv_str *out)
{
    if (c->measured)
        add_environment(out, &c->settings);
    gv_str_add(out, "gv100 compare");
    if (c->measured)
        add_measurement(out, c);
    else
        add_files(out, c);
    if (!c->job.file[0])
        return;
    add_option(out, "--sizes", c->job.file);
    add_number(out, "--steps", c->job.steps);
    if (isfinite(c->job.step_s))
        add_number(out, "--step-time", c->job.step_s);
}
