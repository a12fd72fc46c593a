/* A list of jobs to place: what is accepted is within bounds, and is written and read back equal.
 */
#include "base/gv_str.h"
#include "profiler/cli/cli.h"
#include "profiler/cli/place.h"
#include "tests/fuzz/fuzz.h"

static const char *const works[] = {"sync", "pair", "memory", "independent"};

static const char *name_of(enum gv_work work)
{
    for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
        if (gv_work_from_name(works[i]) == (int)work)
            return works[i];
    GV_MUST(!"a kind of work without a name");
    return "";
}

static void again(const struct gv_request *jobs, int n)
{
    static struct gv_request read[GV_PLACE_JOBS];
    struct gv_str text = {0};
    struct gv_error err = {0};
    for (int i = 0; i < n; i++) {
        gv_str_addf(
            &text, "%s gpus=%d --kind %s", jobs[i].name, jobs[i].gpus, name_of(jobs[i].work));
        if (jobs[i].memory_mib)
            gv_str_addf(&text, " memory=%dM", jobs[i].memory_mib);
        gv_str_add(&text, "\n");
    }
    GV_MUST(gv_jobs_read(gv_fuzz_file((const uint8_t *)text.data, text.len), read, &err) == n);
    for (int i = 0; i < n; i++)
        GV_MUST(
            !strcmp(read[i].name, jobs[i].name) && read[i].gpus == jobs[i].gpus &&
            read[i].work == jobs[i].work && read[i].memory_mib == jobs[i].memory_mib);
    gv_str_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gv_request jobs[GV_PLACE_JOBS];
    struct gv_error err = {0};
    int n = gv_jobs_read(gv_fuzz_file(data, size), jobs, &err);
    if (n < 0) {
        GV_MUST(err.text[0]);
        return 0;
    }
    GV_MUST(n > 0 && n <= GV_PLACE_JOBS);
    for (int i = 0; i < n; i++) {
        GV_MUST(jobs[i].gpus >= 1 && jobs[i].gpus <= GV_MAX_GPUS && jobs[i].memory_mib >= 0);
        GV_MUST(memchr(jobs[i].name, 0, sizeof(jobs[i].name)) && jobs[i].name[0]);
    }
    again(jobs, n);
    return 0;
}
