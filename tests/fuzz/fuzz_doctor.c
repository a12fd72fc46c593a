/* What the doctor reads: NCCL's graph file, conf files, what a probe printed, and texts that go
 * into a bundle. The first letter says which: g, c, p, s. */
#include "profiler/bundle/gv_bundle.h"
#include "profiler/doctor/gv_doctor.h"
#include "tests/fuzz/fuzz.h"

static void graph(const uint8_t *data, size_t size)
{
    struct gv_error err = {0};
    const char *path = gv_fuzz_file(data, size);
    int rc = gv_graph_file_check(path, 11, &err);
    GV_MUST(rc ? err.text[0] && !strcmp(err.file, path) : !err.text[0]);
    if (!rc) /* more GPUs refuse nothing that fewer take */
        GV_MUST(!gv_graph_file_check(path, 64, &err));
}

static void conf(const uint8_t *data, size_t size)
{
    struct gv_variables all;
    struct gv_findings findings = {0};
    unsigned lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    setenv("NCCL_CONF_FILE", gv_fuzz_file(data, size), 1);
    setenv("GV100_ROOT", "/nonexistent", 1);
    gv_variables_read(&all, &findings);
    GV_MUST(!all.failed);
    for (int i = 0; i < all.n; i++) {
        const struct gv_variable *v = &all.list[i];
        GV_MUST(!strncmp(v->name, "NCCL_", 5) || !strncmp(v->name, "GV100_", 6));
        GV_MUST(gv_variable_of(&all, v->name) == v && v->line <= lines);
    }
    gv_variables_finish(&all);
    gv_findings_finish(&findings);
}

static void probe(const uint8_t *data, size_t size)
{
    static const char *const keys[] = {"error", "version", "result", "loaded", "getenv"};
    static struct gv_cuda_view view;
    char out[64], *text = gv_fuzz_text(data, size);
    gv_probe_cuda_read(text, &view);
    GV_MUST(view.n >= 0 && view.n <= GV_MAX_GPUS);
    for (int i = 0; i < view.n; i++)
        GV_MUST(memchr(view.bus_id[i], 0, sizeof(view.bus_id[i])));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *answer = gv_probe_answer(text, keys[i], out, sizeof(out));
        GV_MUST(!answer || (answer == out && !strchr(out, '\n')));
    }
    free(text);
}

/* What was scrubbed has nothing left to be scrubbed, and no name in it. */
static void scrub(const uint8_t *data, size_t size)
{
    static struct gv_scrub s, t;
    struct gv_str once = {0}, twice = {0};
    char *text = gv_fuzz_text(data, size);
    memset(&s, 0, sizeof(s));
    strcpy(s.names[0].from, "/home/ann");
    strcpy(s.names[0].to, "/home/user");
    strcpy(s.names[1].from, "ann");
    strcpy(s.names[1].to, "user");
    s.nnames = 2;
    t = s;
    gv_scrub_text(&s, text, &once);
    gv_scrub_text(&t, once.data ? once.data : "", &twice);
    GV_MUST(!once.failed && !twice.failed && s.nuuids <= GV_SCRUB_SEEN);
    GV_MUST(
        s.naddresses <= GV_SCRUB_SEEN && (s.replaced || !once.data || !strcmp(once.data, text)));
    const char *name = once.data ? strstr(once.data, " ann ") : NULL;
    GV_MUST(!name);
    gv_str_free(&once);
    gv_str_free(&twice);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (data[0] == 'g')
        graph(data + 1, size - 1);
    else if (data[0] == 'c')
        conf(data + 1, size - 1);
    else if (data[0] == 'p')
        probe(data + 1, size - 1);
    else if (data[0] == 's')
        scrub(data + 1, size - 1);
    return 0;
}
