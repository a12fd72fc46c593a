/* GPU lists, sizes, sizes of memory, lists of operations and releases of NCCL: what is taken is
 * printed and read back equal, what is refused leaves the result alone. */
#include <ctype.h>

#include "base/gv_gpuset.h"
#include "base/gv_size.h"
#include "config/gv_profile.h"
#include "profiler/cli/cli.h"
#include "profiler/cli/place.h"
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

static void release(const char *text)
{
    char out[16];
    int version = gv_nccl_parse(text);
    GV_MUST(version >= 0 && version <= 99999);
    if (version)
        GV_MUST(gv_nccl_parse(gv_nccl_format(version, out)) == version);
}

static void memory(const char *text)
{
    struct gv_error err = {0};
    int mib = -7, again;
    char out[32];
    if (gv_memory_parse(text, &mib, &err)) {
        GV_MUST(mib == -7 && err.text[0]);
        return;
    }
    GV_MUST(mib > 0);
    GV_MUST(!gv_memory_parse(gv_size_format((uint64_t)mib << 20, out, sizeof(out)), &again, &err));
    GV_MUST(again == mib);
}

static void list(const char *text)
{
    struct gv_error err = {0};
    int gpus[GV_MAX_GPUS], again[GV_MAX_GPUS], n = gv_gpulist_parse(text, gpus, &err);
    char out[4 * GV_MAX_GPUS + 1] = "";
    if (n < 0) {
        GV_MUST(err.text[0] && err.column <= strlen(text) + 1);
        return;
    }
    GV_MUST(n > 0 && n <= GV_MAX_GPUS);
    for (int i = 0; i < n; i++)
        sprintf(out + strlen(out), "%s%d", i ? "," : "", gpus[i]);
    GV_MUST(gv_gpulist_parse(out, again, &err) == n);
    GV_MUST(!memcmp(gpus, again, sizeof(*gpus) * (size_t)n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = gv_fuzz_text(data, n);
    gpus(text);
    size(text);
    operations(text);
    release(text);
    memory(text);
    list(text);
    free(text);
    return 0;
}
