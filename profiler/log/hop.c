/* Lines about channels: orders of rings and connections. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/log/log.h"

static const char *blanks(const char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    return s;
}

/* A number without sign of at most six digits. */
static const char *number(const char *s, int *out)
{
    if (!isdigit((unsigned char)*s))
        return NULL;
    char *end;
    long value = strtol(s, &end, 10);
    if (end - s > 6)
        return NULL;
    *out = (int)value;
    return end;
}

/* "Channel 00/02 :" (of so many channels, or the connection), "Channel 00 :", "Ring 00 :". Returns
 * what is behind the colon. */
static const char *head(const char *s, int *channel, int *second, bool *ring)
{
    *second = 0;
    *ring = !strncmp(s, "Ring ", 5);
    if (!*ring && strncmp(s, "Channel ", 8))
        return NULL;
    s = number(blanks(s + (*ring ? 5 : 8)), channel);
    if (s && *s == '/')
        s = number(s + 1, second);
    if (!s)
        return NULL;
    s = blanks(s);
    return *s == ':' ? blanks(s + 1) : NULL;
}

/* "3[c0]" or "3" */
static const char *end_of_rank(const char *s, int *rank, char label[24])
{
    *label = 0;
    s = number(s, rank);
    if (!s || *s != '[')
        return s;
    size_t n = strspn(s + 1, "0123456789abcdefABCDEF");
    if (s[1 + n] != ']' || n == 0 || n > 22)
        return NULL;
    memcpy(label, s + 1, n);
    label[n] = 0;
    return s + 2 + n;
}

/* Also as web pages write it. */
static const char *arrow(const char *s)
{
    static const char *const arrows[] = {"->", "-&gt;", "\xe2\x86\x92"};
    s = blanks(s);
    for (unsigned i = 0; i < sizeof(arrows) / sizeof(arrows[0]); i++)
        if (!strncmp(s, arrows[i], strlen(arrows[i])))
            return blanks(s + strlen(arrows[i]));
    return NULL;
}

static const struct {
    const char *word;
    enum gv_nlog_transport transport;
} ways[] = {
    {"P2P/", GV_NLOG_P2P},   {"P2P ", GV_NLOG_P2P},
    {"SHM", GV_NLOG_SHM},    {"direct shared memory", GV_NLOG_SHM},
    {"NET/", GV_NLOG_NET},   {"COLLNET", GV_NLOG_OTHER},
    {"NVLS", GV_NLOG_OTHER}, {"GIN", GV_NLOG_OTHER},
};

/* A way cut in the middle ("P2", "direct sha") is none. */
static bool way(const char *s, struct gv_nlog_hop *out)
{
    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strncmp(s, ways[i].word, strlen(ways[i].word)))
            continue;
        out->transport = ways[i].transport;
        size_t n = strcspn(s, "\r\n");
        const char *comm = strstr(s, " comm 0x"); /* 2.8 to 2.17 name it here */
        if (comm && (size_t)(comm - s) < n)
            n = (size_t)(comm - s);
        while (n && s[n - 1] == ' ')
            n--;
        snprintf(out->via, sizeof(out->via), "%.*s", (int)(n < 47 ? n : 47), s);
        return true;
    }
    return false;
}

static bool connection(const char *s, struct gv_nlog_hop *out)
{
    s = blanks(s);
    if (*s == '[') {
        out->receive = !strncmp(s, "[receive]", 9);
        s = strchr(s, ']');
        s = s ? blanks(s + 1) : "";
    }
    return !strncmp(s, "via ", 4) && way(s + 4, out);
}

bool gv_nlog_hop(const char *text, struct gv_nlog_hop *out)
{
    bool ring;
    *out = (struct gv_nlog_hop){0};
    const char *s = head(text, &out->channel, &out->connection, &ring);
    s = s ? end_of_rank(s, &out->from, out->from_label) : NULL;
    s = s ? arrow(s) : NULL;
    s = s ? end_of_rank(s, &out->to, out->to_label) : NULL;
    return s && out->from != out->to && connection(s, out);
}

static bool order(const char *s, struct gv_nlog_event *out)
{
    int rank, list[GV_NLOG_MAX_RANKS];
    out->n = 0;
    for (s = blanks(s); *s; s = blanks(s)) {
        s = number(s, &rank);
        if (!s || (*s && *s != ' ' && *s != '\t') || out->n == GV_NLOG_MAX_RANKS)
            return false;
        list[out->n++] = rank;
    }
    if (out->n < 1)
        return false;
    out->order = malloc((size_t)out->n * sizeof(int));
    if (!out->order)
        return false;
    memcpy(out->order, list, (size_t)out->n * sizeof(int));
    out->kind = EVENT_ORDER;
    return true;
}

/* "0 -> 1 -> 2": the ranks before and behind 1 */
static bool triple(const char *s, struct gv_nlog_event *out)
{
    int before;
    char label[24];
    s = end_of_rank(s, &before, label);
    s = s ? arrow(s) : NULL;
    s = s ? end_of_rank(s, &out->hop.from, label) : NULL;
    s = s ? arrow(s) : NULL;
    s = s ? end_of_rank(s, &out->hop.to, label) : NULL;
    out->kind = EVENT_TRIPLE;
    return s && !*blanks(s);
}

static bool channels(const char *text, struct gv_nlog_event *out)
{
    const char *s = number(text, &out->channels);
    out->kind = EVENT_CHANNELS;
    return s && !strncmp(s, " coll channels,", 15);
}

bool gv_nlog_event(const char *text, struct gv_nlog_event *out)
{
    bool ring;
    int second;
    if (!strncmp(text, "Connected all rings", 19)) {
        out->kind = EVENT_CONNECTED;
        return true;
    }
    if (gv_nlog_hop(text, &out->hop)) {
        out->kind = EVENT_HOP;
        return true;
    }
    const char *s = head(text, &out->hop.channel, &second, &ring);
    if (!s)
        return channels(text, out);
    if (ring && triple(s, out))
        return true;
    return !strstr(s, "->") && order(s, out);
}
