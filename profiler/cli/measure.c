#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profiler/cli/measure.h"

static volatile sig_atomic_t stopped; /* set by the handler alone */

static void on_interrupt(int signal)
{
    (void)signal;
    stopped = 1;
}

bool gv_measuring_stopped(void)
{
    return stopped;
}

double gv_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *gv_duration(double seconds, char out[24])
{
    int s = (int)lround(seconds < 0 ? 0 : seconds);
    if (s >= 60)
        snprintf(out, 24, "%dm%02ds", s / 60, s % 60);
    else
        snprintf(out, 24, "%ds", s);
    return out;
}

static void
bar(void *data, const struct gv_calibration *cal, const struct gv_item *item, double done,
    double all)
{
    static const char full[] = "####################", none[] = "                    ";
    char left[24];
    (void)data, (void)cal;
    if (!item) {
        fputs("\r\033[K", stderr);
        return;
    }
    int cells = all > 0 ? (int)(20 * done / all) : 0;
    cells = cells > 20 ? 20 : cells;
    fprintf(
        stderr, "\r\033[K[%.*s%.*s] %3.0f %%  %s, about %s left", cells, full, 20 - cells, none,
        all > 0 ? 100 * done / all : 0, item->label, gv_duration(all - done, left));
    fflush(stderr);
}

int gv_measuring_init(struct gv_measuring *m, const char *machine, struct gv_error *err)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    ssize_t n = readlink("/proc/self/exe", m->self, sizeof(m->self) - 1);
    m->self[n > 0 ? n : 0] = 0;
    m->started_s = gv_seconds();
    m->options.self = m->self;
    m->options.stop = &stopped;
    if (isatty(STDERR_FILENO))
        m->options.progress = bar;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!machine)
        return 0;
    if (gv_virtual_use(machine, true, &m->virtual_files, err))
        return -1;
    m->options.virtual_machine = true;
    m->options.machine_name = machine;
    m->options.cuda_path = m->virtual_files.cuda;
    m->options.nvml_path = m->virtual_files.nvml;
    return 0;
}

void gv_measuring_finish(struct gv_measuring *m)
{
    gv_virtual_finish(&m->virtual_files);
}

/* Calls `each` for every warning, without its end of line. */
static void over_warnings(
    const struct gv_calibration *cal, void (*each)(void *data, const char *line), void *data)
{
    for (const char *p = cal->warnings.data; p && *p;) {
        size_t n = strcspn(p, "\n");
        char line[520];
        snprintf(line, sizeof(line), "%.*s", (int)n, p);
        each(data, line);
        p += n + (p[n] == '\n');
    }
}

static void print_one(void *data, const char *line)
{
    fprintf(stderr, "gv100 %s: warning: %s\n", (const char *)data, line);
}

void gv_print_warnings(const struct gv_command *cmd, const struct gv_calibration *cal)
{
    over_warnings(cal, print_one, (void *)(uintptr_t)cmd->name);
}

static void append_one(void *data, const char *line)
{
    json_array_append_new(data, json_string(line));
}

json_t *gv_json_warnings(const struct gv_calibration *cal)
{
    json_t *list = json_array();
    over_warnings(cal, append_one, list);
    return list;
}
