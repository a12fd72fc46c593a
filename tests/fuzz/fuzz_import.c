/* Files of other tools: what is taken has a place and is a figure, what becomes a profile is marked
 * as imported and proves no P2P, and a refusal has a reason. The first byte chooses the options. */
#include <math.h>

#include "profiler/import/gv_import.h"
#include "tests/fuzz/fuzz.h"

static unsigned lines_of(const char *text, size_t size)
{
    unsigned n = 1;
    for (size_t i = 0; i < size; i++)
        n += text[i] == '\n';
    return n;
}

static void check_source(const struct gv_import_source *s, unsigned lines)
{
    GV_MUST(s->ngpus >= 0 && s->ngpus <= GV_MAX_GPUS);
    for (int i = 0; i < s->nsamples; i++) {
        const struct gv_import_sample *x = &s->samples[i];
        GV_MUST(isfinite(x->busbw_gbs) && x->busbw_gbs >= 0 && x->line <= lines);
        GV_MUST(
            x->op < GV_OP_COUNT && x->algorithm < GV_ALGO_COUNT && x->protocol < GV_PROTO_COUNT);
    }
    for (int i = 0; i < s->npairs; i++) {
        const struct gv_import_pair *p = &s->pairs[i];
        GV_MUST(p->from != p->to && p->from >= 0 && p->from < GV_MAX_GPUS);
        GV_MUST(p->to >= 0 && p->to < GV_MAX_GPUS && p->line <= lines && !isinf(p->write_gbs));
    }
    for (int i = 0; i < s->nsingles; i++)
        GV_MUST(s->singles[i].gpu >= 0 && s->singles[i].gpu < GV_MAX_GPUS);
    for (int i = 0; i < s->nrings; i++)
        GV_MUST(s->rings[i].n > 0 && s->rings[i].n <= GV_MAX_GPUS);
}

static void check_profile(const struct gv_profile *p)
{
    GV_MUST(p->provenance.kind == GV_IMPORTED && p->ngpus > 0 && p->ngpus <= GV_MAX_GPUS);
    for (int i = 0; i < p->npaths; i++)
        GV_MUST(p->paths[i].p2p == GV_P2P_UNVERIFIED || p->paths[i].p2p == GV_P2P_REFUSED);
    for (int i = 0; i < p->ngroups; i++)
        for (int k = 0; k < p->groups[i].nvariants; k++)
            for (int r = 0; r < p->groups[i].variants[k].nruns; r++)
                GV_MUST(p->groups[i].variants[k].runs[r].source[0]);
}

/* The last eight GPUs and an operation as if they had been named. */
static void choose(struct gv_import_options *o, uint8_t how)
{
    *o = (struct gv_import_options){.op = how & 1 ? (how >> 4) % GV_OP_COUNT : -1, .edit = -1};
    for (int i = 0; how & 2 && i < 2 + (how >> 5); i++)
        o->gpus[o->ngpus++] = i;
    o->in_place = how & 4;
    o->edit = how & 8 ? GV_EDIT_NONE : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gv_import im = {0};
    struct gv_error err = {0};
    if (!size)
        return 0;
    /* seeds are plain files: a first letter of text means no options at all */
    choose(&im.options, data[0] >= 0x80 ? data[0] : 0);
    size_t skip = data[0] >= 0x80;
    char *text = gv_fuzz_text(data + skip, size - skip);
    int rc = gv_import_text(&im, text, size - skip, "file.txt", GV_IMPORT_AUTO, &err);
    GV_MUST(rc == 0 || err.text[0]);
    GV_MUST(err.line <= lines_of(text, size - skip) + 1);
    for (int i = 0; !rc && i < im.nsources; i++)
        check_source(&im.sources[i], lines_of(text, size - skip));
    struct gv_profile *p = rc ? NULL : gv_import_profile(&im, NULL, "fuzz", &err);
    GV_MUST(rc || p || err.text[0]);
    if (p)
        check_profile(p);
    gv_profile_free(p);
    gv_import_finish(&im);
    free(text);
    return 0;
}
