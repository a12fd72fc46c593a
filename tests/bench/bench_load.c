/* gv-bench-load: what reading a profile costs, one JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/profiles.h"
#include "tests/bench/statistics.h"

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void stop(const struct gv_error *err)
{
    char text[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    fprintf(stderr, "bench: %s\n", gv_error_format(err, text, sizeof(text)));
    exit(3);
}

static struct gv_profile *generate(const char *what, int n)
{
    if (!strcmp(what, "rows"))
        return gv_bench_profile_rows(n, NULL);
    if (!strcmp(what, "samples"))
        return gv_bench_profile_samples(n);
    return n == 64 ? gv_bench_profile_64() : gv_bench_profile_samples(0);
}

static int samples_of(const struct gv_profile *p)
{
    int n = 0;
    for (int g = 0; g < p->ngroups; g++)
        for (int v = 0; v < p->groups[g].nvariants; v++)
            for (int r = 0; r < p->groups[g].variants[v].nruns; r++)
                n += p->groups[g].variants[v].runs[r].count;
    return n;
}

static struct gv_profile *read_back(const char *path)
{
    struct gv_error err = {0};
    struct gv_profile *p = gv_profile_read(path, &err);
    if (!p)
        stop(&err);
    return p;
}

static void measure(const char *path, int repeat)
{
    struct stat st;
    double *us = calloc((size_t)repeat, sizeof(*us));
    struct gv_profile *p = read_back(path);
    if (!us || stat(path, &st))
        abort();
    printf(
        "{\"gpus\":%d,\"groups\":%d,\"samples\":%d,\"bytes\":%lld", p->ngpus, p->ngroups,
        samples_of(p), (long long)st.st_size);
    gv_profile_free(p);
    for (int i = 0; i < repeat; i++) {
        double begin = now_us();
        gv_profile_free(read_back(path));
        us[i] = now_us() - begin;
    }
    gv_sort(us, (size_t)repeat);
    printf(
        ",\"read_us\":%.1f,\"read_p99_us\":%.1f}\n", gv_quantile(us, (size_t)repeat, 0.5),
        gv_quantile(us, (size_t)repeat, 0.99));
    free(us);
}

int main(int argc, char **argv)
{
    char path[] = "/tmp/gv100-bench-profile.XXXXXX";
    struct gv_error err = {0};
    int n = argc == 3 ? atoi(argv[2]) : 0, fd;
    if (argc != 3 || n < 1 ||
        (strcmp(argv[1], "gpus") && strcmp(argv[1], "rows") && strcmp(argv[1], "samples"))) {
        fputs("Usage: gv-bench-load gpus 11|64, rows N or samples N\n", stderr);
        return 2;
    }
    if ((fd = mkstemp(path)) < 0)
        abort();
    close(fd);
    struct gv_profile *p = generate(argv[1], n);
    if (gv_profile_write(p, path, &err))
        stop(&err);
    gv_profile_free(p);
    measure(path, 51);
    unlink(path);
    return 0;
}
