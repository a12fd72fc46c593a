/* A file that may be a libnccl.so.2: only its bytes are read, whatever its tables say. */
#include "profiler/cli/cli.h"
#include "profiler/cli/nccl.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gv_nccl out;
    struct gv_error err = {0};
    const char *path = gv_fuzz_file(data, size);
    out.version = -7;
    if (gv_nccl_read(path, &out, &err)) {
        GV_MUST(out.version == -7 && err.text[0]);
        return 0;
    }
    GV_MUST(out.version >= 0 && out.version <= 99999 && !strcmp(out.path, path));
    /* a release is there only if the file says so */
    GV_MUST(!out.version || memmem(data, size, "NCCL version ", 13));
    return 0;
}
