#include "base/gv_gpuset.h"

#include <stdio.h>
#include <stdlib.h>

static int fail(struct gv_error *err, const char *text, const char *at, const char *why)
{
    return gv_error_at(
        err, NULL, 1, (unsigned)(at - text) + 1,
        "GPU list '%.80s', position %u: %s; write it as in 0-5,7", text, (unsigned)(at - text) + 1,
        why);
}

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* One number from `*p`, which moves behind it and the blanks that follow. */
static int number(const char **p, int *out)
{
    *p = skip_blanks(*p);
    if (!is_digit(**p))
        return -1;
    int value = 0;
    while (is_digit(**p)) {
        if (value < 1000)
            value = value * 10 + (**p - '0');
        (*p)++;
    }
    *p = skip_blanks(*p);
    *out = value;
    return 0;
}

static int parse(const char *text, int *out, gv_gpuset *set, struct gv_error *err)
{
    int n = 0;
    gv_gpuset seen = 0;
    const char *p = text;
    for (;;) {
        const char *at = p;
        int first, last;
        if (number(&p, &first))
            return fail(err, text, at, "a GPU number is missing");
        last = first;
        if (*p == '-') {
            p++;
            if (number(&p, &last))
                return fail(err, text, p, "the end of the range is missing");
        }
        if (first >= GV_MAX_GPUS || last >= GV_MAX_GPUS)
            return fail(err, text, at, "GPUs are numbered 0 to 63");
        if (last < first)
            return fail(err, text, at, "the range runs backwards");
        for (int gpu = first; gpu <= last; gpu++) {
            if (gv_gpuset_has(seen, gpu))
                return fail(err, text, at, "a GPU is named twice");
            seen |= GV_GPU_BIT(gpu);
            out[n++] = gpu;
        }
        if (!*p) {
            *set = seen;
            return n;
        }
        if (*p != ',')
            return fail(err, text, p, "a comma was expected");
        p++;
    }
}

int gv_gpulist_parse(const char *text, int *out, struct gv_error *err)
{
    gv_gpuset set;
    return parse(text, out, &set, err);
}

int gv_gpuset_parse(const char *text, gv_gpuset *out, struct gv_error *err)
{
    int list[GV_MAX_GPUS];
    return parse(text, list, out, err) < 0 ? -1 : 0;
}

const char *gv_gpuset_format(gv_gpuset set, char *out, size_t out_size)
{
    size_t len = 0;
    if (out_size)
        out[0] = '\0';
    for (int gpu = 0; gpu < GV_MAX_GPUS && len < out_size; gpu++) {
        if (!gv_gpuset_has(set, gpu))
            continue;
        int last = gpu;
        while (gv_gpuset_has(set, last + 1))
            last++;
        const char *comma = len ? "," : "";
        if (last == gpu)
            len += (size_t)snprintf(out + len, out_size - len, "%s%d", comma, gpu);
        else
            len += (size_t)snprintf(out + len, out_size - len, "%s%d-%d", comma, gpu, last);
        gpu = last;
    }
    return out;
}
