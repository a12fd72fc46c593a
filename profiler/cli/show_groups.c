#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_size.h"
#include "base/gv_str.h"
#include "profiler/cli/explain.h"
#include "profiler/cli/show.h"
#include "profiler/cli/text.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int pool(const struct gv_profile_variant *v, double *out)
{
    int n = 0;
    for (int r = 0; r < v->nruns; r++)
        for (int i = 0; i < v->runs[r].count; i++)
            if (!(v->runs[r].throttled && v->runs[r].throttled[i])) {
                if (out)
                    out[n] = v->runs[r].busbw_gbs[i];
                n++;
            }
    return n;
}

double gv_variant_median(const struct gv_profile_variant *v, double *low, double *high, int *count)
{
    int n = pool(v, NULL);
    double *all = n ? malloc((size_t)n * sizeof(*all)) : NULL, median = NAN;
    if (all) {
        pool(v, all);
        qsort(all, (size_t)n, sizeof(*all), by_value);
        median = n % 2 ? all[n / 2] : (all[n / 2 - 1] + all[n / 2]) / 2;
    }
    if (low)
        *low = all ? all[0] : NAN;
    if (high)
        *high = all ? all[n - 1] : NAN;
    if (count)
        *count = n;
    free(all);
    return median;
}

static void choice(const struct gv_profile_variant *v, char *out, size_t out_size)
{
    if (v->algorithm == GV_ALGO_ANY && v->protocol == GV_PROTO_ANY)
        snprintf(out, out_size, "%s", gv_edit_words(v->edit));
    else
        snprintf(
            out, out_size, "%s, %s/%s", gv_edit_words(v->edit), gv_algo_name(v->algorithm),
            gv_proto_name(v->protocol));
}

static void runs(const struct gv_profile_variant *v, char *out, size_t out_size)
{
    struct gv_str s = {0};
    for (int r = 0; r < v->nruns; r++) {
        gv_str_addf(&s, "%s%s", r ? " | " : "", v->runs[r].name);
        for (int i = 0; i < v->runs[r].count && s.len < out_size; i++)
            gv_str_addf(&s, " %.2f", v->runs[r].busbw_gbs[i]);
    }
    snprintf(out, out_size, "%s", s.data ? s.data : "");
    if (s.len >= out_size)
        memcpy(out + out_size - 4, "...", 4);
    gv_str_free(&s);
}

void gv_show_groups(const struct gv_profile *p)
{
    struct gv_table_text t = {.columns = 6};
    const char *const head[] = {"GPUs",       "operation", "variant",
                                "busbw GB/s", "range",     "samples by run"};
    gv_text_row(&t, head, GV_DIM);
    for (int i = 0; i < p->ngroups; i++) {
        const struct gv_profile_group *g = &p->groups[i];
        char list[256], size[32], op[40], variant[40], median[24], range[40], all[40];
        gv_gpuset_format(g->gpus, list, sizeof(list));
        snprintf(
            op, sizeof(op), "%s %s%s", gv_op_name(g->op),
            gv_size_format(g->bytes, size, sizeof(size)), g->loaded ? " loaded" : "");
        for (int k = 0; k < g->nvariants; k++) {
            const struct gv_profile_variant *v = &g->variants[k];
            double low, high;
            int count;
            gv_number(gv_variant_median(v, &low, &high, &count), median);
            choice(v, variant, sizeof(variant));
            if (count > 1)
                snprintf(range, sizeof(range), "%.2f-%.2f", low, high);
            else
                range[0] = '\0';
            runs(v, all, sizeof(all));
            const char *const cells[] = {k ? "" : list, k ? "" : op, variant, median, range, all};
            gv_text_row(&t, cells, v->edit == GV_EDIT_NONE ? GV_PLAIN : GV_GOOD);
        }
    }
    gv_text_print(&t, 2);
}
