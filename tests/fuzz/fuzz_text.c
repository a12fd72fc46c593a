/* GPU lists, sizes and lists of operations. */
#include <ctype.h>

#include "base/gv_gpuset.h"
#include "base/gv_size.h"
#include "config/gv_profile.h"
#include "tests/fuzz/fuzz.h"

static void gpus(const char *text)
{
    gv_gpuset set = 12345, again;
    int list[GV_MAX_GPUS];
    struct gv_error err = {0};
    int n = gv_gpulist_parse(text, list, &err);
    if (gv_gpuset_parse(text, &set, &err)) {
        GV_MUST(n < 0 && set == 12345 && err.text[0]);
        return;
    }
    char out[256];
    GV_MUST(n > 0 && n == gv_gpuset_count(set));
    for (int i = 0; i < n; i++)
        GV_MUST(gv_gpuset_has(set, list[i]));
    GV_MUST(!gv_gpuset_parse(gv_gpuset_format(set, out, sizeof(out)), &again, &err));
    GV_MUST(set == again && strlen(out) < 255);
}

static void size(const char *text)
{
    uint64_t bytes = 12345, again;
    struct gv_error err = {0};
    if (gv_size_parse(text, &bytes, &err)) {
        GV_MUST(bytes == 12345 && err.text[0]);
        return;
    }
    char out[32];
    GV_MUST(!gv_size_parse(gv_size_format(bytes, out, sizeof(out)), &again, &err));
    GV_MUST(bytes == again);
    size_t digits = strspn(text, "0123456789");
    if (!text[digits])
        GV_MUST(bytes == strtoull(text, NULL, 10));
}

static void operations(const char *text)
{
    unsigned bits = 12345, again;
    char out[256] = "";
    struct gv_error err = {0};
    if (gv_ops_parse(text, &bits, &err)) {
        GV_MUST(bits == 12345 && err.text[0]);
        return;
    }
    GV_MUST(bits && !(bits >> GV_OP_COUNT));
    for (int op = 0; op < GV_OP_COUNT; op++)
        if (bits & GV_OP_BIT(op)) {
            if (out[0])
                strcat(out, ",");
            strcat(out, gv_op_name((enum gv_op)op));
        }
    GV_MUST(!gv_ops_parse(out, &again, &err) && again == bits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = gv_fuzz_text(data, n);
    gpus(text);
    size(text);
    operations(text);
    free(text);
    return 0;
}
