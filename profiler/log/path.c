/* NCCL's model of the machine, as it prints it when the subsystem GRAPH is on. */
#include <stdio.h>
#include <string.h>

#include "profiler/log/log.h"

#define MOST (64 * 64)

/* "GPU/CE000" (to 2.18), "GPU/0-ce000" (system and number) to a PCI address. Returns what is behind
 * it, NULL where it is none. */
static const char *gpu(const char *s, char out[20])
{
    char hex[16];
    if (strncmp(s, "GPU/", 4))
        return NULL;
    s += 4;
    size_t n = strspn(s, "0123456789abcdefABCDEF");
    if (s[n] == '-') {
        s += n + 1;
        n = strspn(s, "0123456789abcdefABCDEF");
    }
    if (n < 3 || n >= sizeof(hex)) /* shorter ones are numbers of GPUs, not addresses */
        return NULL;
    memcpy(hex, s, n);
    hex[n] = 0;
    return gv_nlog_bus_id(hex, out) ? s + n : NULL;
}

static void add(struct gv_nlog_reader *r, const struct gv_nlog_path *path)
{
    struct gv_nlog *log = r->log;
    for (int i = 0; i < log->npaths; i++)
        if (!strcmp(log->paths[i].from, path->from) && !strcmp(log->paths[i].to, path->to))
            return;
    if (log->npaths >= MOST || !strcmp(path->from, path->to))
        return;
    void *grown = gv_nlog_grow(r, log->paths, log->npaths, sizeof(*path));
    if (!grown)
        return;
    log->paths = grown;
    log->paths[log->npaths++] = *path;
}

bool gv_nlog_take_paths(struct gv_nlog_reader *r, const char *text, unsigned line)
{
    struct gv_nlog_path path = {.line = line};
    const char *s = gpu(text, path.from);
    if (!s || strncmp(s, " :", 2))
        return false;
    for (s = strstr(s + 2, "GPU/"); s; s = strstr(s + 4, "GPU/")) {
        const char *behind = gpu(s, path.to);
        int used = 0;
        if (behind &&
            sscanf(
                behind, " (%d/%lf/%7[A-Z0-9])%n", &path.hops, &path.model_gbs, path.class, &used) ==
                3 &&
            used)
            add(r, &path);
    }
    return true;
}
