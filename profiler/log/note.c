/* Lines that are kept as they are: plugins, settings, warnings, our own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "profiler/log/log.h"

#define MOST 4096

static void keep(
    struct gv_nlog_reader *r, struct gv_nlog_notes *notes, const char *text, int comm,
    unsigned line, bool once)
{
    struct gv_nlog_note note = {.line = line, .comm = comm};
    snprintf(note.text, sizeof(note.text), "%s", text);
    for (int i = 0; once && i < notes->n; i++)
        if (!strcmp(notes->list[i].text, note.text))
            return;
    if (notes->n >= MOST)
        return;
    void *grown = gv_nlog_grow(r, notes->list, notes->n, sizeof(note));
    if (!grown)
        return;
    notes->list = grown;
    notes->list[notes->n++] = note;
}

/* The name in `text` up to a blank, "(" or the end, without a full stop behind it. */
static void in_use(struct gv_nlog *log, const char *name)
{
    size_t n = strcspn(name, " (,");
    if (n && name[n - 1] == '.')
        n--;
    if (!n)
        return;
    log->tuner = GV_NLOG_TUNER_PLUGIN;
    snprintf(log->tuner_name, sizeof(log->tuner_name), "%.*s", (int)(n < 159 ? n : 159), name);
}

/* How the releases say that a tuner is in use: "Using tuner plugin X" (to 2.25), "TUNER/Plugin:
 * Using X (v4)" (2.26 on), "Successfully loaded external tuner plugin X" (2.28 on); and that none
 * is: "Using internal tuner", "Could not find", "Failed to find ... symbol". */
static void tuner(struct gv_nlog *log, const char *text)
{
    static const char *const uses[] = {
        "Using tuner plugin ", "TUNER/Plugin: Using ", "loaded external tuner plugin "};
    bool about = strstr(text, "TUNER") || strcasestr(text, "tuner plugin") ||
                 strcasestr(text, "internal tuner");
    if (!about)
        return;
    bool none = strcasestr(text, "internal tuner") || strstr(text, "Could not find") ||
                strstr(text, "Failed to find") || strstr(text, "unsupported");
    for (int i = 0; !none && i < 3; i++) {
        const char *at = strstr(text, uses[i]);
        if (at) {
            in_use(log, at + strlen(uses[i]));
            return;
        }
    }
    if (none && log->tuner == GV_NLOG_TUNER_UNKNOWN)
        log->tuner = GV_NLOG_TUNER_INTERNAL;
}

static bool about_plugin(const char *text)
{
    static const char *const words[] = {"TUNER/Plugin",        "NET/Plugin",
                                        "ENV/Plugin",          "PROFILER/Plugin",
                                        "Using tuner plugin",  "external tuner plugin",
                                        "external env plugin", "internal tuner"};
    if (!strcasestr(text, "plugin") && !strcasestr(text, "tuner"))
        return false;
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasestr(text, words[i]))
            return true;
    return false;
}

bool gv_nlog_take_note(
    struct gv_nlog_reader *r, const struct gv_nlog_line *line, int comm, unsigned number)
{
    struct gv_nlog *log = r->log;
    const char *text = line->text;
    if (!strncmp(text, "gv100: ", 7))
        keep(r, &log->ours, text + 7, comm, number, true);
    else if (about_plugin(text)) {
        tuner(log, text);
        keep(r, &log->plugins, text, comm, number, true);
    } else if (strstr(text, " set by environment to "))
        keep(r, &log->settings, text, comm, number, true);
    else if (line->warn)
        keep(r, &log->warnings, text, comm, number, false);
    else
        return false;
    return true;
}
