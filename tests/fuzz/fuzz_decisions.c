/* What the plugin wrote in a job: counts add up, and a sentence can be made of anything. The file
 * twice over is the same decisions, since each counts once. */
#include "profiler/cli/decisions.h"
#include "tests/fuzz/fuzz.h"

static char *sentence(const struct gv_decisions *d)
{
    struct gv_str out = {0};
    gv_decisions_sentence(d, 3, &out);
    GV_MUST(!out.failed && (!out.data || !strchr(out.data, '\0')[0]));
    return out.data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gv_decisions d, twice;
    char *text = malloc(2 * size + 2);
    GV_MUST(text);
    memcpy(text, data, size);
    text[size] = '\n';
    memcpy(text + size + 1, data, size);
    text[2 * size + 1] = '\n';
    GV_MUST(!gv_decisions_read(gv_fuzz_file((uint8_t *)text, size + 1), 0, &d));
    int sum = 0;
    for (int i = 0; i < d.n; i++)
        sum += d.list[i].times;
    GV_MUST(sum == d.communicators && d.n <= d.communicators && d.unread >= 0);
    GV_MUST(d.warnings || !d.warning[0]);
    GV_MUST(!gv_decisions_read(gv_fuzz_file((uint8_t *)text, 2 * size + 2), 0, &twice));
    GV_MUST(d.n == twice.n && d.communicators == twice.communicators);
    GV_MUST(d.warnings == twice.warnings && 2 * d.unread == twice.unread);
    char *a = sentence(&d), *b = sentence(&twice);
    GV_MUST((!a && !b) || !strcmp(a, b));
    free(a);
    free(b);
    free(text);
    gv_decisions_finish(&d);
    gv_decisions_finish(&twice);
    return 0;
}
