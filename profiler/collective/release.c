#include "profiler/collective/gv_release.h"

#include <stdio.h>
#include <string.h>

int gv_nccl_parse(const char *text)
{
    unsigned major, minor, patch = 0;
    int used = 0;
    if (sscanf(text, "%3u.%3u%n", &major, &minor, &used) != 2 || major > 9 || minor > 99)
        return 0;
    int more = 0;
    if (text[used] == '.' && (sscanf(text + used, ".%3u%n", &patch, &more) != 1 || patch > 99))
        return 0;
    char end = text[used + more];
    if (end && !strchr("-+ \t\n", end))
        return 0;
    return (int)(major * 10000 + minor * 100 + patch);
}

const char *gv_nccl_format(int version, char out[16])
{
    snprintf(out, 16, "%d.%d.%d", version / 10000 % 100, version / 100 % 100, version % 100);
    return out;
}
