/* The child that checks pairs. It prints "begin F T", then "end F T OUTCOME WRONG FIRST TEXT", or
 * "failed F T CODE TEXT"; whoever reads has the deadline. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/probe/gv_calibration.h"

#define CHECK_BYTES ((size_t)16 << 20)

struct pairs {
    int list[GV_MAX_GPUS * GV_MAX_GPUS][2], n;
};

static int parse(const char *text, int ngpus, struct pairs *out)
{
    out->n = 0;
    while (*text) {
        int from, to, used = 0;
        if (sscanf(text, "%d>%d%n", &from, &to, &used) != 2 || from < 0 || to < 0 ||
            from >= ngpus || to >= ngpus || out->n == GV_MAX_GPUS * GV_MAX_GPUS)
            return -1;
        out->list[out->n][0] = from;
        out->list[out->n++][1] = to;
        text += used + (text[used] == ',');
    }
    return 0;
}

static int check(struct gv_meter *meter, int from, int to, double timeout_s, FILE *out)
{
    struct gv_pair_result result;
    struct gv_error err = {0};
    fprintf(out, "begin %d %d\n", from, to);
    fflush(out);
    meter->last = 0;
    int rc = gv_device_start(meter->gpus, from, &err) || gv_device_start(meter->gpus, to, &err) ||
             gv_pair_check(meter, from, to, CHECK_BYTES, timeout_s, &result, &err);
    if (rc)
        fprintf(out, "failed %d %d %d %s\n", from, to, meter->last, err.text);
    else
        fprintf(
            out, "end %d %d %d %llu %llu %s\n", from, to, result.outcome, result.wrong,
            result.first_wrong, result.text);
    fflush(out);
    if (!rc && result.stuck)
        _exit(0); /* closing the contexts would wait for the kernels */
    return rc;
}

int gv_check_worker(const struct gv_calibration_options *options, const char *text, FILE *out)
{
    static struct gv_gpus gpus; /* large; the worker has one for its whole life */
    static struct pairs pairs;
    struct gv_meter meter;
    struct gv_error err = {0};
    int rc = gv_gpus_open(&gpus, options->cuda_path, options->nvml_path, &err);
    if (!rc && parse(text, gpus.n, &pairs))
        rc = gv_error_set(&err, "'%s' is no list of pairs", text);
    if (!rc && pairs.n)
        rc = gv_device_start(&gpus, pairs.list[0][1], &err);
    if (!rc)
        rc = gv_meter_init(&meter, &gpus, &err);
    if (rc) {
        fprintf(out, "failed -1 -1 0 %s\n", err.text);
        return 3;
    }
    double timeout_s = options->pair_timeout_s > 0 ? options->pair_timeout_s : 2;
    for (int i = 0; i < pairs.n && !rc; i++)
        rc = check(&meter, pairs.list[i][0], pairs.list[i][1], timeout_s, out);
    gv_meter_finish(&meter);
    gv_gpus_close(&gpus);
    return rc ? 3 : 0;
}
