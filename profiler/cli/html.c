#include "profiler/cli/html.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/gv_file.h"
#include "config/gv_machine.h"
#include "profiler/report/gv_report.h"

static int write_report(const struct gv_report *report, const char *file, struct gv_error *err)
{
    struct gv_str page = {0};
    int rc = gv_report_html(report, &page) ? gv_error_set(err, "out of memory")
                                           : gv_file_replace(file, page.data, page.len, 0644, err);
    gv_str_free(&page);
    return rc;
}

static struct gv_profile *read_profile(const char *name, char path[PATH_MAX])
{
    struct gv_error err = {0};
    char text[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    path[0] = 0;
    if (!name[0])
        return NULL;
    struct gv_profile *p =
        gv_profile_resolve(name, path, &err) ? NULL : gv_profile_read(path, &err);
    if (!p)
        fprintf(
            stderr,
            "gv100: %s; the report leaves out the PCI tree and the machine's figures (name a "
            "profile with --profile)\n",
            gv_error_format(&err, text, sizeof(text)));
    return p;
}

int gv_html_compared(
    const struct gv_compared *c, const char *profile, const char *file, struct gv_error *err)
{
    char path[PATH_MAX];
    json_t *json = gv_compared_json(c);
    char *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;
    struct gv_profile *p = read_profile(profile ? profile : c->profile, path);
    struct gv_report report = {.compared = c, .profile = p, .profile_path = path, .json = text};
    int rc = text ? write_report(&report, file, err) : gv_error_set(err, "out of memory");
    gv_profile_free(p);
    free(text);
    json_decref(json);
    return rc;
}

int gv_html_profile(
    const struct gv_profile *profile, const char *profile_path, const char *file,
    struct gv_error *err)
{
    struct gv_report report = {.profile = profile, .profile_path = profile_path};
    return write_report(&report, file, err);
}
