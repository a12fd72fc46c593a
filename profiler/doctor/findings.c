#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/doctor/gv_doctor.h"

/* Takes what cannot be kept; never shown, since `failed` is. */
static struct gv_finding nowhere;

struct gv_finding *gv_finding_add(
    struct gv_findings *all, const char *step, enum gv_step_verdict verdict, const char *next,
    const char *fmt, ...)
{
    struct gv_finding *f = &nowhere;
    void *more = realloc(all->list, ((size_t)all->n + 1) * sizeof(*all->list));
    if (more) {
        all->list = more;
        f = &all->list[all->n++];
    } else {
        all->failed = true;
    }
    memset(f, 0, sizeof(*f));
    f->step = step;
    f->verdict = verdict;
    snprintf(f->next, sizeof(f->next), "%s", next ? next : "");
    va_list args;
    va_start(args, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, args);
    va_end(args);
    return f;
}

void gv_finding_error(
    struct gv_findings *all, const char *step, enum gv_step_verdict verdict, const char *next,
    const struct gv_error *err)
{
    struct gv_finding *f = gv_finding_add(all, step, verdict, next, "%s", err->text);
    snprintf(f->file, sizeof(f->file), "%s", err->file);
    f->line = err->line;
}

bool gv_findings_ready(const struct gv_findings *all)
{
    for (int i = 0; i < all->n; i++)
        if (all->list[i].verdict == GV_VERDICT_NO)
            return false;
    return !all->failed;
}

void gv_findings_finish(struct gv_findings *all)
{
    free(all->list);
    memset(all, 0, sizeof(*all));
}

const char *gv_verdict_name(enum gv_step_verdict v)
{
    static const char *const names[GV_VERDICTS] = {"ok", "note", "warn", "no", "unknown"};
    return names[v];
}

const char *gv_root(void)
{
    const char *root = secure_getenv("GV100_ROOT");
    return root ? root : "";
}
