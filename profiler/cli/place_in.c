/* What `gv100 place` reads: sizes, a list of jobs. */
#include <stdlib.h>
#include <string.h>

#include "base/gv_file.h"
#include "base/gv_size.h"
#include "profiler/cli/cli.h"
#include "profiler/cli/place.h"

int gv_memory_parse(const char *text, int *out_mib, struct gv_error *err)
{
    uint64_t bytes;
    if (gv_size_parse(text, &bytes, err))
        return -1;
    if (bytes < (1u << 20) || bytes >> 20 > 1u << 30)
        return gv_error_set(
            err, "'%.40s' is no size of memory; write it as in 24G (G = 1024*1024*1024)", text);
    *out_mib = (int)(bytes >> 20);
    return 0;
}

static int number(const char *value, int *out, struct gv_error *err)
{
    char *end;
    long n = strtol(value, &end, 10);
    if (*end || end == value || n < 1 || n > GV_MAX_GPUS)
        return gv_error_set(err, "gpus: '%.40s' is no number from 1 to %d", value, GV_MAX_GPUS);
    *out = (int)n;
    return 0;
}

static int set(struct gv_request *job, const char *key, const char *value, struct gv_error *err)
{
    if (!value || !*value)
        return gv_error_set(err, "'%.40s' has no value", key);
    if (!strcmp(key, "gpus"))
        return number(value, &job->gpus, err);
    if (!strcmp(key, "memory"))
        return gv_memory_parse(value, &job->memory_mib, err);
    if (strcmp(key, "kind") != 0)
        return gv_error_set(err, "'%.40s' is none of gpus, kind, memory", key);
    int work = gv_work_from_name(value);
    if (work < 0)
        return gv_error_set(err, "kind: '%.40s' is none of sync, pair, memory, independent", value);
    job->work = (enum gv_work)work;
    return 0;
}

static int parse_job(char *line, struct gv_request *job, struct gv_error *err)
{
    static const char blanks[] = " \t\r";
    char *rest = NULL, *word = strtok_r(line, blanks, &rest);
    memset(job, 0, sizeof(*job));
    if (*word == ':')
        return gv_error_set(err, "a job without a name: write NAME gpus=N kind=KIND");
    snprintf(job->name, sizeof(job->name), "%.*s", (int)strcspn(word, ":"), word);
    while ((word = strtok_r(NULL, blanks, &rest))) {
        bool option = !strncmp(word, "--", 2);
        char *key = option ? word + 2 : word, *equals = strchr(key, '='), *value = NULL;
        if (equals) {
            *equals = '\0';
            value = equals + 1;
        } else if (option) {
            value = strtok_r(NULL, blanks, &rest);
        }
        if (set(job, key, value, err))
            return -1;
    }
    if (!job->gpus)
        job->gpus = job->work == GV_WORK_SYNC || job->work == GV_WORK_PAIR ? 2 : 1;
    return 0;
}

static int parse_jobs(char *text, const char *path, struct gv_request *out, struct gv_error *err)
{
    int n = 0;
    unsigned line = 1;
    for (char *p = text; *p; line++) {
        size_t len = strcspn(p, "\n");
        bool more = p[len];
        struct gv_error why;
        p[len] = '\0';
        p[strcspn(p, "#")] = '\0';
        if (p[strspn(p, " \t\r")]) {
            if (n == GV_PLACE_JOBS)
                return gv_error_at(err, path, line, 0, "over %d jobs", GV_PLACE_JOBS);
            if (parse_job(p, &out[n++], &why))
                return gv_error_at(err, path, line, 0, "%s", why.text);
        }
        p += len + more;
    }
    return n ? n : gv_error_at(err, path, 0, 0, "no job: write NAME gpus=N kind=KIND, one a line");
}

int gv_jobs_read(const char *path, struct gv_request out[GV_PLACE_JOBS], struct gv_error *err)
{
    size_t len;
    char *text = gv_file_read(path, GV_FILE_ANY, 1u << 20, &len, err);
    if (!text)
        return -1;
    int n = parse_jobs(text, path, out, err);
    free(text);
    return n;
}
