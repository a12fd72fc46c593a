#include <stdio.h>
#include <string.h>

#include "plugin/topology/tree.h"

/* Reads `digits` (from, to) hex digits; returns how many, or -1. */
static int hex(const char *text, int least, int most, unsigned long *out)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    int n = 0;
    for (*out = 0; n < most && text[n]; n++) {
        const char *at = strchr(digits, text[n]);
        if (!at)
            break;
        *out = *out * 16 + (unsigned long)((at - digits) % 16);
    }
    return n < least ? -1 : n;
}

bool gv_bus_id_normal(const char *text, char out[GV_BUS_ID])
{
    static const struct {
        int least, most;
        char after;
    } part[] = {{4, 8, ':'}, {2, 2, ':'}, {2, 2, '.'}, {1, 1, '\0'}};
    unsigned long value[4];

    for (int i = 0; i < 4; i++) {
        int n = text ? hex(text, part[i].least, part[i].most, &value[i]) : -1;
        if (n < 0 || text[n] != part[i].after)
            return false;
        text += n + 1;
    }
    snprintf(out, GV_BUS_ID, "%04lx:%02lx:%02lx.%lx", value[0], value[1], value[2], value[3]);
    return true;
}
