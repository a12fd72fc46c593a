/* Open MPI's --tag-output. It tags what it got in one piece, not whole lines: a rank's line may
 * stop in the middle, and go on under its tag behind that of another rank: [1,0]<stdout>:
 * both_ways_gbs: {median: 25.1[1,1]<stdout>:gv100_profile: 1 [1,0]<stdout>:45} (seen with 4.1.4).
 * So a tag counts wherever it stands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/fleet/fleet.h"

struct rank {
    const char *tag; /* "[1,0]<stdout>:" */
    size_t len;
    struct gv_str text;
};

/* The next tag at or after `text`: its start, and its length in `*len`; NULL: none. */
static const char *next_tag(const char *text, size_t *len)
{
    for (const char *p = strstr(text, "]<std"); p; p = strstr(p + 1, "]<std")) {
        const char *start = p, *end = p + 1;
        while (start > text && *start != '[' && *start != '\n')
            start--;
        if (!strncmp(end, "<stdout>:", 9) || !strncmp(end, "<stderr>:", 9))
            end += 9;
        if (*start != '[' || end == p + 1 || !memchr(start, ',', (size_t)(p - start)))
            continue;
        *len = (size_t)(end - start);
        return start;
    }
    return NULL;
}

bool gv_fleet_is_tagged(const char *text)
{
    size_t len;
    return next_tag(text, &len) == text;
}

static struct rank *rank_of(struct rank **ranks, int *n, const char *tag, size_t len)
{
    for (int i = 0; i < *n; i++)
        if ((*ranks)[i].len == len && !memcmp((*ranks)[i].tag, tag, len))
            return &(*ranks)[i];
    struct rank *one = gv_fleet_grow(ranks, n, sizeof(*one));
    if (one)
        *one = (struct rank){.tag = tag, .len = len};
    return one;
}

static int separate(const char *text, struct rank **ranks, int *n)
{
    size_t len = 0, next_len = 0;
    for (const char *tag = next_tag(text, &len), *next; tag; tag = next, len = next_len) {
        struct rank *rank = rank_of(ranks, n, tag, len);
        next = next_tag(tag + len, &next_len);
        if (!rank)
            return -1;
        gv_str_add_n(&rank->text, tag + len, next ? (size_t)(next - tag) - len : strlen(tag + len));
        if (rank->text.failed)
            return -1;
    }
    return 0;
}

int gv_fleet_take_tagged(
    struct gv_fleet *fleet, const char *text, const char *name, struct gv_error *err)
{
    struct rank *ranks = NULL;
    int n = 0, rc = separate(text, &ranks, &n) ? gv_fleet_no_memory(err) : 0;
    for (int i = 0; i < n; i++) {
        char of[256];
        snprintf(
            of, sizeof(of), "%.160s, %.*s", name, (int)(ranks[i].len < 80 ? ranks[i].len - 1 : 79),
            ranks[i].tag);
        if (!rc && ranks[i].text.len)
            rc = gv_fleet_take_stream(fleet, ranks[i].text.data, ranks[i].text.len, of, err);
        gv_str_free(&ranks[i].text);
    }
    free(ranks);
    return rc;
}
