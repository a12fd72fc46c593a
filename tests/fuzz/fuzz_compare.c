/* A saved comparison: what is accepted is sound, and is written and read back equal. */
#include <math.h>

#include "profiler/compare/gv_compare.h"
#include "tests/fuzz/fuzz.h"

static char *written(const struct gv_compared *c)
{
    json_t *value = gv_compared_json(c);
    char *text = json_dumps(value, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    json_decref(value);
    GV_MUST(text);
    return text;
}

static void check(const struct gv_compared *c)
{
    const struct gv_collective *run = &c->run;
    GV_MUST(run->nranks > 0 && run->nranks <= GV_MAX_GPUS);
    GV_MUST(run->nsteers > 0 && run->nsteers <= GV_MAX_STEERS);
    GV_MUST(c->base >= 0 && c->base < run->nsteers);
    GV_MUST(run->ncases > 0 && run->ncases <= GV_MAX_CASES);
    for (int i = 0; i < c->nrows; i++) {
        GV_MUST(c->rows[i].other != c->base && c->rows[i].k < run->ncases);
        GV_MUST(gv_judgement(c->rows[i].verdict)[0]);
    }
    for (int i = 0; i < c->nwitness; i++)
        GV_MUST(c->witness[i].steer >= 0 && c->witness[i].steer < run->nsteers);
    for (int s = 0; s < run->nsteers; s++)
        GV_MUST(c->ring[s].slowest < (c->ring[s].n ? c->ring[s].n : 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gv_compared c, again; /* large */
    struct gv_error err = {0};
    if (gv_compared_load(gv_fuzz_file(data, size), &c, &err)) {
        GV_MUST(err.text[0]);
        return 0;
    }
    check(&c);
    char *first = written(&c);
    if (gv_compared_load(gv_fuzz_file((const uint8_t *)first, strlen(first)), &again, &err)) {
        dprintf(2, "%s\n%s\n", err.text, first);
        GV_MUST(!"what was written cannot be read");
    }
    char *second = written(&again);
    GV_MUST(!strcmp(first, second));
    gv_compared_finish(&c);
    gv_compared_finish(&again);
    free(first);
    free(second);
    return 0;
}
