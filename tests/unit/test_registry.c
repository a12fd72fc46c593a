/* The registry: who is in, and one word for all, whatever happens to single ranks. */
#include "tests/gv_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugin/registry/gv_registry.h"
#include "plugin/registry/gv_spare.h"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/gv-registry-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int files_in(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *item; dir && (item = readdir(dir));)
        n += item->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static int tear_down(void **state)
{
    (void)state;
    gv_registry_sweep(folder, 1000);
    return rmdir(folder);
}

struct rank {
    pthread_t thread;
    uint64_t key, plan;
    int gpu, nranks, wait_ms;
    pthread_barrier_t *all_in;
    enum gv_verdict verdict;
    struct gv_registry_members seen;
};

static void *run_rank(void *arg)
{
    struct rank *r = arg;
    struct gv_registry_entry *entry = gv_registry_join(folder, r->key, r->gpu, NULL);
    pthread_barrier_wait(r->all_in); /* NCCL's all-gather */
    r->seen = gv_registry_members(entry);
    r->verdict = gv_registry_decide(entry, r->plan, r->nranks, r->wait_ms);
    gv_registry_leave(entry);
    return NULL;
}

static void run_ranks(struct rank *ranks, int n)
{
    pthread_barrier_t all_in;
    pthread_barrier_init(&all_in, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        ranks[i].all_in = &all_in;
        pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]);
    }
    for (int i = 0; i < n; i++)
        pthread_join(ranks[i].thread, NULL);
    pthread_barrier_destroy(&all_in);
}

static void verdicts(void **state)
{
    (void)state;
    static const struct {
        int n, nranks; /* that come, that are expected */
        uint64_t odd;  /* what the last rank prepares instead of 7 */
        int same_gpu;
        enum gv_verdict verdict;
    } table[] = {
        {1, 1, 7, 0, GV_COMMITTED},      {6, 6, 7, 0, GV_COMMITTED},
        {64, 64, 7, 0, GV_COMMITTED},    {6, 6, 8, 0, GV_ABORT_MISMATCH},
        {5, 6, 7, 0, GV_ABORT_TIMEOUT},  {4, 4, 7, 1, GV_COMMITTED},
        {3, 2, 7, 0, GV_ABORT_MISMATCH},
    };
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        struct rank ranks[64];
        memset(ranks, 0, sizeof(ranks));
        for (int i = 0; i < table[row].n; i++)
            ranks[i] = (struct rank){
                .key = 100 + row,
                .plan = i == table[row].n - 1 ? table[row].odd : 7,
                .gpu = table[row].same_gpu ? 3 : i,
                .nranks = table[row].nranks,
                .wait_ms = 300};
        run_ranks(ranks, table[row].n);
        for (int i = 0; i < table[row].n; i++) {
            assert_int_equal(ranks[i].verdict, table[row].verdict);
            assert_int_equal(ranks[i].seen.count, table[row].n);
            assert_int_equal(ranks[i].seen.on_one_gpu, table[row].same_gpu ? table[row].n - 1 : 0);
        }
        assert_int_equal(files_in(folder), 0);
    }
}

/* A rank that gives up, or dies before it prepared, ends it for all; one that prepared and left
 * does not. */
static void one_rank_goes(void **state)
{
    (void)state;
    struct gv_registry_entry *a = gv_registry_join(folder, 5, 0, NULL);
    struct gv_registry_entry *b = gv_registry_join(folder, 5, 1, NULL);
    gv_registry_leave(b);
    assert_int_equal(gv_registry_decide(a, 1, 2, 1000), GV_ABORT_RANK);
    gv_registry_leave(a);

    a = gv_registry_join(folder, 6, 0, NULL);
    b = gv_registry_join(folder, 6, 1, NULL);
    gv_registry_prepare(b, 1, 2);
    gv_registry_leave(b);
    assert_int_equal(gv_registry_decide(a, 1, 2, 1000), GV_COMMITTED);
    gv_registry_leave(a);
}

static void a_killed_process_means_timeout(void **state)
{
    (void)state;
    struct gv_registry_entry *a = gv_registry_join(folder, 9, 0, NULL);
    int in[2];
    assert_int_equal(pipe(in), 0);
    pid_t child = fork();
    if (!child) {
        struct gv_registry_entry *b = gv_registry_join(folder, 9, 1, NULL);
        if (write(in[1], b ? "y" : "n", 1) == 1)
            pause();
        _exit(1);
    }
    char ok;
    assert_int_equal(read(in[0], &ok, 1), 1);
    assert_int_equal(ok, 'y');
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(gv_registry_members(a).count, 2);
    assert_int_equal(gv_registry_decide(a, 1, 2, 200), GV_ABORT_TIMEOUT);
    assert_int_equal(gv_registry_decide(a, 1, 2, 200), GV_ABORT_TIMEOUT); /* the word stays */
    gv_registry_leave(a);
    close(in[0]);
    close(in[1]);
    assert_int_equal(files_in(folder), 0);
}

/* A shrunken communicator of 2.28.9 comes with an id that was used before. */
static void a_key_that_comes_again(void **state)
{
    (void)state;
    struct gv_registry_entry *a = gv_registry_join(folder, 7, 0, NULL);
    struct gv_registry_entry *b = gv_registry_join(folder, 7, 1, NULL);
    assert_int_equal(gv_registry_members(a).count, 2);
    gv_registry_prepare(a, 1, 2);
    assert_int_equal(gv_registry_decide(b, 1, 2, 100), GV_COMMITTED);
    struct gv_registry_entry *again = gv_registry_join(folder, 7, 0, NULL);
    assert_int_equal(gv_registry_members(again).count, 1);
    assert_int_equal(gv_registry_decide(again, 2, 1, 100), GV_COMMITTED);
    assert_int_equal(files_in(folder), 2);
    gv_registry_leave(again);
    gv_registry_leave(a);
    gv_registry_leave(b);
    assert_int_equal(files_in(folder), 0);
}

static void waiting_for_all(void **state)
{
    (void)state;
    struct gv_registry_entry *a = gv_registry_join(folder, 8, 0, NULL);
    assert_int_equal(gv_registry_await(a, 1, 0), 0);
    assert_int_equal(gv_registry_await(a, 2, 50), -1);
    struct gv_registry_entry *b = gv_registry_join(folder, 8, 1, NULL);
    assert_int_equal(gv_registry_await(a, 2, 0), 0);
    gv_registry_abort(b, GV_ABORT_RANK);
    assert_int_equal(gv_registry_await(a, 3, 1000000), -1); /* at once: the word is spoken */
    gv_registry_leave(a);
    gv_registry_leave(b);
}

static void more_ranks_than_fit(void **state)
{
    (void)state;
    struct gv_registry_entry *entries[GV_REGISTRY_RANKS];
    for (int i = 0; i < GV_REGISTRY_RANKS; i++)
        entries[i] = gv_registry_join(folder, 11, i, NULL);
    struct gv_error err = {0};
    assert_null(gv_registry_join(folder, 11, 0, &err));
    assert_non_null(strstr(err.text, "more than 64 ranks"));
    assert_int_equal(gv_registry_verdict(entries[0]), GV_ABORT_OVERFLOW);
    for (int i = 0; i < GV_REGISTRY_RANKS; i++)
        gv_registry_leave(entries[i]);
}

/* What somebody else may have put in the place of the folder or of an entry. */
static void planted(void **state)
{
    (void)state;
    char path[128], other[128];
    struct gv_error err = {0};
    snprintf(path, sizeof(path), "%s/folder", folder);
    snprintf(other, sizeof(other), "%s/target", folder);

    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_null(gv_registry_join(path, 1, 0, &err));
    assert_non_null(strstr(err.text, "not a link"));
    unlink(path);

    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_null(gv_registry_join(path, 1, 0, &err));
    assert_non_null(strstr(err.text, "chmod it to 700"));
    assert_int_equal(chmod(path, 0700), 0);

    char entry[256];
    snprintf(entry, sizeof(entry), "%s/c-0000000000000001-0", path);
    assert_int_equal(symlink("/etc/passwd", entry), 0);
    assert_null(gv_registry_join(path, 1, 0, &err));
    unlink(entry);
    assert_int_equal(mkfifo(entry, 0600), 0);
    assert_null(gv_registry_join(path, 1, 0, &err));
    unlink(entry);

    FILE *f = fopen(entry, "w");
    for (int i = 0; i < 20000; i++)
        fputc('x', f);
    fclose(f);
    chmod(entry, 0600);
    assert_null(gv_registry_join(path, 1, 0, &err));
    assert_non_null(strstr(err.text, "another size"));
    unlink(entry);

    f = fopen(entry, "w");
    fputs("garbage in front", f);
    fclose(f);
    chmod(entry, 0600);
    assert_null(gv_registry_join(path, 1, 0, &err));
    assert_non_null(strstr(err.text, "another version"));
    unlink(entry);

    rmdir(path);
    rmdir(other);
}

static void sweeping(void **state)
{
    (void)state;
    struct gv_registry_entry *a = gv_registry_join(folder, 21, 0, NULL);
    for (int i = 0; i < 50; i++) {
        char stale[128];
        snprintf(stale, sizeof(stale), "%s/c-%016x-0", folder, 4096 + i);
        FILE *f = fopen(stale, "w");
        fclose(f);
    }
    assert_int_equal(gv_registry_sweep(folder, 1000), 50);
    assert_int_equal(files_in(folder), 1);
    /* Swept away under a rank that is in: it goes on with what it has, a newcomer finds a new file.
     */
    char path[128];
    snprintf(path, sizeof(path), "%s/c-%016x-0", folder, 21);
    unlink(path);
    struct gv_registry_entry *b = gv_registry_join(folder, 21, 1, NULL);
    assert_int_equal(gv_registry_members(b).count, 1);
    assert_int_equal(gv_registry_decide(a, 1, 2, 50), GV_ABORT_TIMEOUT);
    gv_registry_leave(a);
    gv_registry_leave(b);
    assert_int_equal(files_in(folder), 0);
}

/* A rank that cannot register is known to the others. */
static void signs(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof(path), "%s/r-%016x", folder, 31);
    assert_false(gv_registry_refused(folder, 31));
    gv_registry_refuse(folder, 31);
    gv_registry_refuse(folder, 31);
    assert_true(gv_registry_refused(folder, 31));
    assert_false(gv_registry_refused(folder, 32));
    assert_int_equal(gv_registry_sweep(folder, 1000), 0);
    gv_registry_take_back(folder, 31);
    assert_false(gv_registry_refused(folder, 31));

    /* Where the folder cannot be had there is another place, which all ranks know. */
    gv_registry_refuse("/proc/gv100", 33);
    assert_true(gv_registry_refused(folder, 33));
    gv_registry_take_back("/proc/gv100", 33);
    assert_false(gv_registry_refused(folder, 33));

    /* What is no folder of this user's alone is no sign. */
    assert_int_equal(symlink("/tmp", path), 0);
    assert_false(gv_registry_refused(folder, 31));
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_false(gv_registry_refused(folder, 31));
    assert_int_equal(chmod(path, 0700), 0);
    assert_true(gv_registry_refused(folder, 31));

    /* One that was left behind goes after an hour. */
    struct timespec old[2] = {{.tv_sec = time(NULL) - 3700}, {.tv_sec = time(NULL) - 3700}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    assert_int_equal(gv_registry_sweep(folder, 1000), 1);
    assert_int_equal(files_in(folder), 0);
}

static void spares(void **state)
{
    (void)state;
    static int room[GV_SPARES];
    struct gv_spares few = {.room = room, .size = sizeof(room[0])};
    int *taken[GV_SPARES], other;
    for (int i = 0; i < GV_SPARES; i++) {
        taken[i] = gv_spare_take(&few);
        assert_non_null(taken[i]);
        for (int k = 0; k < i; k++)
            assert_ptr_not_equal(taken[i], taken[k]);
        *taken[i] = 7;
    }
    assert_null(gv_spare_take(&few));
    assert_false(gv_spare_give(&few, &other));
    assert_true(gv_spare_give(&few, taken[3]));
    int *again = gv_spare_take(&few);
    assert_ptr_equal(again, taken[3]);
    assert_int_equal(*again, 0);
}

static void no_room(void **state)
{
    (void)state;
    struct gv_error err = {0};
    assert_null(gv_registry_join("/proc/gv100", 1, 0, &err));
    assert_non_null(strstr(err.text, "GV100_SHM_DIR"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(one_rank_goes),
        cmocka_unit_test(a_killed_process_means_timeout),
        cmocka_unit_test(a_key_that_comes_again),
        cmocka_unit_test(waiting_for_all),
        cmocka_unit_test(more_ranks_than_fit),
        cmocka_unit_test(planted),
        cmocka_unit_test(sweeping),
        cmocka_unit_test(signs),
        cmocka_unit_test(spares),
        cmocka_unit_test(no_room),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
