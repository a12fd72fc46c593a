#include "profiler/cli/decisions.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* (communicator, GPUs) already counted. NCCL 2.28.9 gives shrunk communicators an id that was used
 * before, so the id alone is no key. */
struct seen {
    char **keys;
    int n;
};

static const char *text_of(const json_t *line, const char *key)
{
    const char *text = json_string_value(json_object_get(line, key));
    return text ? text : "";
}

/* 1: new, 0: known, -1: no memory. */
static int note(struct seen *s, const char *comm, const char *gpus)
{
    char *key;
    if (asprintf(&key, "%s\n%s", comm, gpus) < 0)
        return -1;
    int known = 0;
    for (int i = 0; i < s->n && !known; i++)
        known = !strcmp(s->keys[i], key);
    char **more = known ? NULL : realloc(s->keys, (size_t)(s->n + 1) * sizeof(*more));
    if (!more) {
        free(key);
        return known ? 0 : -1;
    }
    s->keys = more;
    s->keys[s->n++] = key;
    return 1;
}

static void seen_finish(struct seen *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->keys[i]);
    free(s->keys);
}

static struct gv_decision *same(struct gv_decisions *d, const json_t *line)
{
    for (int i = 0; i < d->n; i++)
        if (!strcmp(d->list[i].gpus, text_of(line, "gpus")) &&
            !strcmp(d->list[i].transport, text_of(line, "transport")) &&
            !strcmp(d->list[i].reason, text_of(line, "reason")))
            return &d->list[i];
    return NULL;
}

static int append(struct gv_decisions *d, const json_t *line)
{
    void *more = realloc(d->list, (size_t)(d->n + 1) * sizeof(*d->list));
    if (!more)
        return -1;
    d->list = more;
    struct gv_decision *x = &d->list[d->n++];
    snprintf(x->comm, sizeof(x->comm), "%s", text_of(line, "comm"));
    snprintf(x->gpus, sizeof(x->gpus), "%s", text_of(line, "gpus"));
    snprintf(x->transport, sizeof(x->transport), "%s", text_of(line, "transport"));
    snprintf(x->evidence, sizeof(x->evidence), "%s", text_of(line, "evidence"));
    snprintf(x->reason, sizeof(x->reason), "%s", text_of(line, "reason"));
    const json_t *gain = json_object_get(line, "gain");
    x->gain = json_is_number(gain) ? json_number_value(gain) : NAN;
    x->times = 1;
    return 0;
}

static int decision(struct gv_decisions *d, struct seen *s, const json_t *line)
{
    int fresh = note(s, text_of(line, "comm"), text_of(line, "gpus"));
    if (fresh <= 0)
        return fresh;
    d->communicators++;
    struct gv_decision *x = same(d, line);
    if (!x)
        return append(d, line);
    x->times++;
    return 0;
}

/* Every rank says the same. */
static int warning(struct gv_decisions *d, struct seen *s, const char *text)
{
    int fresh = note(s, "warning", text);
    if (fresh > 0 && d->warnings++ == 0)
        snprintf(d->warning, sizeof(d->warning), "%s", text);
    return fresh < 0 ? -1 : 0;
}

static int take(struct gv_decisions *d, struct seen *s, const char *text)
{
    json_t *line = json_loads(text, 0, NULL);
    if (!json_is_object(line)) {
        d->unread++;
        json_decref(line);
        return 0;
    }
    int rc = 0;
    const char *event = text_of(line, "event");
    if (!strcmp(event, "decision"))
        rc = decision(d, s, line);
    else if (!strcmp(event, "warning"))
        rc = warning(d, s, text_of(line, "text"));
    json_decref(line);
    return rc;
}

int gv_decisions_read(const char *path, long from, struct gv_decisions *out)
{
    memset(out, 0, sizeof(*out));
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    struct seen seen = {0};
    char *text = NULL;
    size_t cap = 0;
    int rc = fseek(f, from, SEEK_SET) ? -1 : 0;
    while (!rc && getline(&text, &cap, f) > 0)
        if (text[strspn(text, " \t\r\n")])
            rc = take(out, &seen, text);
    free(text);
    seen_finish(&seen);
    fclose(f);
    return rc;
}

void gv_decisions_finish(struct gv_decisions *d)
{
    free(d->list);
    memset(d, 0, sizeof(*d));
}

static void one(const struct gv_decision *x, struct gv_str *out)
{
    gv_str_addf(out, "GPUs %s ", x->gpus[0] ? x->gpus : "not known");
    if (x->times > 1)
        gv_str_addf(out, "(%d times) ", x->times);
    gv_str_add(out, x->transport);
    if (strcmp(x->transport, "default") != 0) {
        gv_str_add(out, " (");
        if (isfinite(x->gain))
            gv_str_addf(out, "%+.0f %%, ", x->gain * 100);
        gv_str_addf(out, "%s)", x->evidence);
    }
    /* "measured: ..." need not be said twice */
    size_t said = strlen(x->evidence);
    bool twice = !strncmp(x->reason, x->evidence, said) && !strncmp(x->reason + said, ": ", 2);
    gv_str_addf(out, ": %s", x->reason + (twice ? said + 2 : 0));
    while (out->len && out->data[out->len - 1] == '.') /* the list has its own stops */
        out->data[--out->len] = '\0';
}

void gv_decisions_sentence(const struct gv_decisions *d, int most, struct gv_str *out)
{
    for (int i = 0; i < d->n && i < most; i++) {
        gv_str_add(out, i ? "; " : "");
        one(&d->list[i], out);
    }
    if (d->n > most)
        gv_str_addf(out, "; and %d more", d->n - most);
    if (d->warnings)
        gv_str_addf(
            out, "%s%d warning%s, the first: %s", d->n ? "; " : "", d->warnings,
            d->warnings > 1 ? "s" : "", d->warning);
}
