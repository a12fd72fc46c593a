/* What a process holds before and after many communicators. */
#ifndef GV_BENCH_LEAKS_H
#define GV_BENCH_LEAKS_H

struct gv_leaks {
    long heap_bytes; /* in use, of malloc's */
    long rss_kib;
    int descriptors, registry_files;
};

/* Makes and ends `n` communicators of three ranks over all groups of three GPUs of the reference
 * machine (165 groups, more than the plugin keeps decisions of; many have a plan, hence a file). In
 * the second half the user has set NCCL_PROTO, which goes around the kept decisions. `before` is
 * taken after one round over all groups in each of both ways. Opens and closes its own world; once
 * in a process. */
void gv_leaks_run(long n, struct gv_leaks *before, struct gv_leaks *after);

#endif
