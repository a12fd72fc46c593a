#include "base/gv_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ctype.h>

static const char suffixes[] = "KMGT";

int gv_size_parse(const char *text, uint64_t *out_bytes, struct gv_error *err)
{
    char *end = NULL;
    long double value = strtold(text, &end); /* holds every 64-bit number */
    if (end == text || !isdigit((unsigned char)text[0]))
        goto bad;
    const char *suffix = *end ? strchr(suffixes, toupper((unsigned char)*end)) : NULL;
    if (suffix) {
        end++;
        value *= (long double)(1ULL << 10 * (suffix - suffixes + 1));
        if (*end == 'i' && (end[1] == 'B'))
            end += 2;
        else if (*end == 'B')
            end++;
    } else if (*end == 'B') {
        end++;
    }
    if (*end || value < 0 || value >= 9.2e18L || value != (long double)(uint64_t)value)
        goto bad;
    *out_bytes = (uint64_t)value;
    return 0;
bad:
    return gv_error_set(
        err,
        "size '%.40s' is not a whole number of bytes; write it as in 1M, 320M or 1G (M = "
        "1024*1024)",
        text);
}

const char *gv_size_format(uint64_t bytes, char *out, size_t out_size)
{
    int power = 0;
    while (power < 4 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        power++;
    }
    if (power)
        snprintf(out, out_size, "%llu%c", (unsigned long long)bytes, suffixes[power - 1]);
    else
        snprintf(out, out_size, "%llu", (unsigned long long)bytes);
    return out;
}
