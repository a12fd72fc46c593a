/* The variables of a job: its environment, and what NCCL adds to it from files. */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_file.h"
#include "profiler/doctor/gv_doctor.h"

#define CONF_MAX (1u << 20)

extern char **environ;

const struct gv_variable *gv_variable_of(const struct gv_variables *all, const char *name)
{
    for (int i = 0; i < all->n; i++)
        if (!strcmp(all->list[i].name, name))
            return &all->list[i];
    return NULL;
}

void gv_variables_finish(struct gv_variables *all)
{
    free(all->list);
    memset(all, 0, sizeof(*all));
}

static bool is_ours(const char *name)
{
    return !strncmp(name, "NCCL_", 5) || !strncmp(name, "GV100_", 6);
}

/* "NAME=VALUE". The first who sets a name wins, as setenv without overwriting does. */
static void add(struct gv_variables *all, const char *text, const char *file, unsigned line)
{
    struct gv_variable v = {.line = line};
    size_t n = strcspn(text, "=");
    if (text[n] != '=' || n >= sizeof(v.name) || !is_ours(text))
        return;
    memcpy(v.name, text, n);
    snprintf(v.value, sizeof(v.value), "%.1023s", text + n + 1);
    snprintf(v.file, sizeof(v.file), "%.255s", file);
    if (gv_variable_of(all, v.name))
        return;
    void *more = realloc(all->list, ((size_t)all->n + 1) * sizeof(v));
    if (!more) {
        all->failed = true;
        return;
    }
    all->list = more;
    all->list[all->n++] = v;
}

/* NCCL takes each line that is no comment at its first '='; nothing is trimmed. */
static void add_lines(struct gv_variables *all, char *text, const char *file)
{
    unsigned line = 1;
    for (char *p = text; *p; line++) {
        size_t n = strcspn(p, "\n");
        bool more = p[n];
        p[n] = '\0';
        if (*p != '#')
            add(all, p, file, line);
        p += n + more;
    }
}

/* A file that is not there is no error unless it was named. */
static void
add_file(struct gv_variables *all, const char *path, bool named, struct gv_findings *findings)
{
    size_t len;
    struct gv_error err = {0};
    if (!named && access(path, F_OK) && errno == ENOENT)
        return;
    char *text = gv_file_read(path, GV_FILE_ANY, CONF_MAX, &len, &err);
    if (text)
        add_lines(all, text, path);
    else
        gv_finding_error(
            findings, "settings", GV_VERDICT_WARN,
            "NCCL passes over it without a word: correct it, or unset NCCL_CONF_FILE", &err);
    free(text);
}

static const char *home(void)
{
    const char *dir = getenv("HOME");
    if (dir && *dir)
        return dir;
    struct passwd *pw = getpwuid(geteuid());
    return pw ? pw->pw_dir : NULL;
}

void gv_variables_read(struct gv_variables *out, struct gv_findings *findings)
{
    char path[PATH_MAX];
    memset(out, 0, sizeof(*out));
    for (char **e = environ; *e; e++)
        add(out, *e, "", 0);
    const char *named = getenv("NCCL_CONF_FILE"), *dir = home();
    if (named && *named)
        add_file(out, named, true, findings);
    else if (dir && snprintf(path, sizeof(path), "%s/.nccl.conf", dir) < (int)sizeof(path))
        add_file(out, path, false, findings);
    if (snprintf(path, sizeof(path), "%s/etc/nccl.conf", gv_root()) < (int)sizeof(path))
        add_file(out, path, false, findings);
}
