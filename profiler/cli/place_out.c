/* What `gv100 place` prints. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/place.h"
#include "profiler/cli/text.h"

static const char *shown(const struct gv_source *s, gv_gpuset gpus, char out[256])
{
    return gv_gpuset_format(gv_source_shown(s, gpus), out, 256);
}

/* "0-4 (one switch), 7,9 (NVLink), 10": what others can still do with what is left. */
static void left_over(
    const struct gv_source *s, const struct gv_place *place, gv_gpuset left, char *out, size_t size)
{
    size_t n = 0;
    char list[256];
    out[0] = '\0';
    while (left && n < size) {
        int gpu = gv_gpuset_first(left);
        gv_gpuset group = place->island[gpu] & left;
        group |= GV_GPU_BIT(gpu);
        n += (size_t)snprintf(
            out + n, size - n, "%s%s%s", n ? "; " : "", shown(s, group, list),
            gv_gpuset_count(group) > 1 ? " (one switch)" : "");
        left &= ~group;
    }
}

static void row_of(
    const struct gv_source *s, const char *first, const struct gv_group_place *g,
    struct gv_table_text *t)
{
    char list[256], busbw[24], copy[24], memory[24];
    snprintf(memory, sizeof(memory), "%.1f", g->memory_mib / 1024.0);
    const char *const cells[] = {
        first,
        shown(s, g->gpus, list),
        gv_number(g->busbw_gbs, busbw),
        g->known == GV_KNOWN_NOT ? "" : gv_known_name(g->known),
        g->memory_mib > 0 ? memory : "-",
        gv_number(g->copy_gbs, copy)};
    gv_text_row(t, cells, GV_PLAIN);
}

static void start(struct gv_table_text *t, const char *first)
{
    const char *const head[] = {first, "GPUs", "busbw GB/s", "", "least GiB", "memory GB/s"};
    *t = (struct gv_table_text){.columns = 6};
    gv_text_row(t, head, GV_DIM);
}

static void print_left(const struct gv_source *s, const struct gv_place *place, gv_gpuset left)
{
    char text[512];
    left_over(s, place, left, text, sizeof(text));
    gv_print_field("left", text[0] ? text : "nothing");
}

void gv_place_print(
    const struct gv_source *s, const struct gv_place *place, const struct gv_request *request,
    const struct gv_group_place *groups, int n, gv_gpuset free_gpus)
{
    struct gv_table_text t;
    char text[320], number[16];
    start(&t, "");
    for (int i = 0; i < n; i++) {
        snprintf(number, sizeof(number), "%d.", i + 1);
        row_of(s, number, &groups[i], &t);
    }
    gv_text_print(&t, 0);
    putchar('\n');
    gv_print_field("why", gv_place_reason(place, request->work, &groups[0], text, sizeof(text)));
    print_left(s, place, free_gpus & ~groups[0].gpus);
}

void gv_place_print_jobs(
    const struct gv_source *s, const struct gv_place *place, const struct gv_request *jobs,
    const struct gv_group_place *groups, int n, gv_gpuset free_gpus)
{
    struct gv_table_text t;
    char text[320];
    start(&t, "job");
    for (int i = 0; i < n; i++)
        row_of(s, jobs[i].name, &groups[i], &t);
    gv_text_print(&t, 0);
    putchar('\n');
    for (int i = 0; i < n; i++) {
        gv_print_field(
            jobs[i].name, gv_place_reason(place, jobs[i].work, &groups[i], text, sizeof(text)));
        free_gpus &= ~groups[i].gpus;
    }
    print_left(s, place, free_gpus);
}

static void
visible(const struct gv_source *s, const struct gv_allocation *a, gv_gpuset gpus, char out[256])
{
    size_t n = 0;
    out[0] = '\0';
    for (gv_gpuset rest = gpus; rest && n < 256; rest &= rest - 1)
        n += (size_t)snprintf(
            out + n, 256 - n, "%s%d", n ? "," : "",
            a->number[s->from_profile[gv_gpuset_first(rest)]]);
}

json_t *gv_place_json(
    const struct gv_source *s, const struct gv_place *place, const struct gv_request *request,
    const struct gv_allocation *allocation, const struct gv_group_place *g, gv_gpuset free_gpus)
{
    char text[320];
    char list[256];
    json_t *o = json_object();
    visible(s, allocation, g->gpus, list);
    json_object_set_new(o, "gpus", gv_json_gpus(gv_source_shown(s, g->gpus)));
    json_object_set_new(o, "cuda_visible_devices", json_string(list));
    json_object_set_new(o, "busbw_gbs", gv_json_number(g->busbw_gbs));
    json_object_set_new(o, "evidence", json_string(gv_known_name(g->known)));
    json_object_set_new(o, "p2p", json_boolean(g->p2p));
    json_object_set_new(
        o, "memory_gib", gv_json_number(g->memory_mib > 0 ? g->memory_mib / 1024.0 : NAN));
    json_object_set_new(o, "memory_gbs", gv_json_number(g->copy_gbs));
    json_object_set_new(
        o, "reason", json_string(gv_place_reason(place, request->work, g, text, sizeof(text))));
    json_object_set_new(o, "left", gv_json_gpus(gv_source_shown(s, free_gpus & ~g->gpus)));
    return o;
}

static const char *uuid_of(const struct gv_source *s, int profile_gpu)
{
    int gpu = s->from_profile[profile_gpu];
    if (s->has_machine && gpu >= 0 && s->machine.gpus[gpu].uuid[0])
        return s->machine.gpus[gpu].uuid;
    return s->profile->gpus[profile_gpu].uuid;
}

int gv_place_env(
    const struct gv_source *s, const struct gv_allocation *allocation, gv_gpuset gpus, bool by_uuid,
    const char *name, struct gv_error *err)
{
    char list[256];
    for (gv_gpuset rest = gpus; rest && by_uuid; rest &= rest - 1)
        if (!uuid_of(s, gv_gpuset_first(rest))[0])
            return gv_error_set(
                err, "the UUID of GPU %d is not known here; --format env names it by number",
                s->from_profile[gv_gpuset_first(rest)]);
    if (name)
        printf("# %s\n", name);
    if (!by_uuid) {
        visible(s, allocation, gpus, list);
        printf("export CUDA_DEVICE_ORDER=PCI_BUS_ID\nexport CUDA_VISIBLE_DEVICES=%s\n", list);
        return 0;
    }
    fputs("export CUDA_VISIBLE_DEVICES=", stdout);
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1) {
        fputs(uuid_of(s, gv_gpuset_first(rest)), stdout);
        putchar(rest & (rest - 1) ? ',' : '\n');
    }
    return 0;
}

/* A model's name as Slurm takes it: lower case, no blanks. */
static void type_of(const struct gv_profile_gpu *gpu, char out[64])
{
    size_t n = 0;
    for (const char *p = gpu->model; *p && n < 63; p++)
        out[n++] = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '-';
    out[n] = '\0';
    if (!n)
        snprintf(out, 64, "gpu");
}

/* Slurm prefers GPUs with many links between them: 1 under one switch, 1 more for each NVLink. */
static int links(const struct gv_place *place, int a, int b)
{
    if (a == b)
        return -1;
    const struct gv_profile_path *path = gv_profile_path_of(place->profile, a, b);
    int nvlinks = path && path->nvlinks > 0 ? path->nvlinks : 0;
    return nvlinks + gv_gpuset_has(place->island[a], b);
}

/* "gpu:tesla-v100-pcie-32gb:6,gpu:quadro-gv100:2": slurm.conf must count the same types. */
static void count_types(const struct gv_source *s, const struct gv_place *place)
{
    char type[64], other[64];
    fputs("# slurm.conf: GresTypes=gpu, and of the node Gres=", stdout);
    for (int i = 0, printed = 0; i < s->ngpus; i++) {
        int n = 0, before = 0;
        if (s->to_profile[i] < 0)
            continue;
        type_of(&place->profile->gpus[s->to_profile[i]], type);
        for (int k = 0; k < s->ngpus; k++) {
            if (s->to_profile[k] < 0)
                continue;
            type_of(&place->profile->gpus[s->to_profile[k]], other);
            before += k < i && !strcmp(type, other);
            n += !strcmp(type, other);
        }
        if (!before)
            printf("%sgpu:%s:%d", printed++ ? "," : "", type, n);
    }
    putchar('\n');
}

void gv_place_gres(const struct gv_source *s, const struct gv_place *place)
{
    char type[64];
    printf(
        "# gres.conf of a host like profile %s. Links: 1 under one PCIe switch, 1 more for each "
        "NVLink.\n"
        "# File: check the minor numbers against /proc/driver/nvidia/gpus/*/information.\n",
        place->profile->name);
    count_types(s, place);
    puts("AutoDetect=off");
    for (int i = 0; i < s->ngpus; i++) {
        int gpu = s->to_profile[i];
        if (gpu < 0)
            continue;
        type_of(&place->profile->gpus[gpu], type);
        printf("Name=gpu Type=%s File=/dev/nvidia%d Links=", type, i);
        for (int k = 0; k < s->ngpus; k++)
            printf(
                "%s%d", k ? "," : "",
                s->to_profile[k] < 0 ? 0 : links(place, gpu, s->to_profile[k]));
        putchar('\n');
    }
}
