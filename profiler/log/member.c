/* Lines that name a communicator: "comm 0x... rank 0 nranks 4 cudaDev 0 busId 3b000 ...". */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "profiler/log/log.h"

static const char *next_word(const char *s)
{
    s = strchr(s, ' ');
    return s ? s + 1 : NULL;
}

/* The word behind ` key ` in `s`; false where it is missing or nothing ends it (then it may be cut:
 * only the text's end or a blank ends a word). */
static bool value(const char *s, const char *key, char *out, size_t size)
{
    size_t len = strlen(key);
    for (const char *p = s; p; p = next_word(p)) {
        if (strncasecmp(p, key, len) || p[len] != ' ')
            continue;
        size_t n = strcspn(p + len + 1, " \t\r\n");
        if (!n || n >= size)
            return false;
        memcpy(out, p + len + 1, n);
        out[n] = 0;
        return true;
    }
    return false;
}

static int whole(const char *s, const char *key)
{
    char text[16];
    if (!value(s, key, text, sizeof(text)) || strspn(text, "0123456789") != strlen(text) ||
        strlen(text) > 7)
        return -1;
    return atoi(text);
}

bool gv_nlog_bus_id(const char *hex, char out[20])
{
    size_t n = strlen(hex);
    if (!n || n > 12 || strspn(hex, "0123456789abcdefABCDEF") != n)
        return false;
    unsigned long long v = strtoull(hex, NULL, 16);
    if (v >> 36)
        return false;
    snprintf(
        out, 20, "%04llx:%02llx:%02llx.%llx", v >> 20 & 0xffff, v >> 12 & 0xff, v >> 4 & 0xff,
        v & 0xf);
    return true;
}

bool gv_nlog_member(const char *text, struct gv_nlog_member *out)
{
    char bus[16];
    *out = (struct gv_nlog_member){0};
    if (!value(text, "comm", out->pointer, sizeof(out->pointer)) || strncmp(out->pointer, "0x", 2))
        return false;
    out->rank = whole(text, "rank");
    out->nranks = whole(text, "nranks");
    if (out->rank < 0 || out->rank >= out->nranks)
        return false;
    out->nnodes = whole(text, "nNodes");
    out->cuda_dev = whole(text, "cudaDev");
    out->nvml_dev = whole(text, "nvmlDev");
    value(text, "commId", out->id, sizeof(out->id));
    value(text, "parent", out->parent, sizeof(out->parent));
    out->split = whole(text, "splitCount");
    out->color = whole(text, "color");
    memcpy(out->key, out->id, sizeof(out->id));
    if (value(text, "busId", bus, sizeof(bus)))
        gv_nlog_bus_id(bus, out->bus_id);
    out->start = strstr(text, "Init START") != NULL;
    out->complete = strstr(text, "Init COMPLETE") != NULL;
    return true;
}
