/* Profiles as files: what may be opened, and writing whole or not at all. */
#include "tests/gv_test.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/gv_str.h"
#include "config/gv_profile.h"
#include "tests/profile_4028.h"
#include "tests/sysfs.h"

static char dir[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/gv-profile-XXXXXX");
    alarm(60); /* what blocks is a failure, not a hang */
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fake_remove(dir);
    return 0;
}

static const char *in_dir(const char *name)
{
    static _Thread_local char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void refused(const char *path, const char *part)
{
    struct gv_error err = {0};
    struct gv_profile *p = gv_profile_read(path, &err);
    if (p || !strstr(err.text, part) || strcmp(err.file, path))
        fail_msg("%s: expected '%s', got %s: '%s'", path, part, err.file, err.text);
}

static void test_what_is_no_file(void **state)
{
    (void)state;
    refused(in_dir("missing.yaml"), "cannot be opened: No such file or directory");
    refused(dir, "this is a folder, a file is expected");
    assert_int_equal(mkfifo(in_dir("pipe"), 0644), 0);
    refused(in_dir("pipe"), "this is a pipe, a file is expected");
    refused("/dev/zero", "this is a device, a file is expected");
    assert_int_equal(symlink("loop", in_dir("loop")), 0);
    refused(in_dir("loop"), "cannot be opened: Too many levels of symbolic links");
    fake_file(dir, "empty.yaml", "");
    refused(in_dir("empty.yaml"), "the file is empty");
    fake_file(dir, "large.yaml", "a");
    assert_int_equal(truncate(in_dir("large.yaml"), (8 << 20) + 1), 0);
    refused(in_dir("large.yaml"), "has 8388609 bytes, more than the 8388608");
    fake_file(dir, "secret.yaml", "a: b\n");
    assert_int_equal(chmod(in_dir("secret.yaml"), 0), 0);
    if (geteuid() != 0)
        refused(in_dir("secret.yaml"), "cannot be opened: Permission denied");
}

/* Links are fine: /etc may hold one. */
static void test_link(void **state)
{
    (void)state;
    char target[PATH_MAX];
    struct gv_error err = {0};
    snprintf(target, sizeof(target), "%s/config/profiles/4028.yaml", gv_test_dir("GV_SOURCE_DIR"));
    assert_int_equal(symlink(target, in_dir("link.yaml")), 0);
    struct gv_profile *p = gv_profile_read(in_dir("link.yaml"), &err), *q = read_4028();
    assert_non_null(p);
    assert_true(p->hash == q->hash);
    gv_profile_free(p);
    gv_profile_free(q);
}

static int files_in_dir(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void test_write(void **state)
{
    (void)state;
    struct gv_error err = {0};
    struct stat st;
    struct gv_profile *p = read_4028();
    umask(0077);
    assert_int_equal(gv_profile_write(p, in_dir("a/b/out.yaml"), &err), 0);
    assert_int_equal(stat(in_dir("a/b/out.yaml"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    struct gv_profile *q = gv_profile_read(in_dir("a/b/out.yaml"), &err);
    assert_non_null(q);
    assert_true(gv_profile_equal(p, q));
    gv_profile_free(q);
    gv_profile_free(p);
}

/* A profile that would not read back is not written, and the old file stays as it was. */
static void test_write_invalid(void **state)
{
    (void)state;
    struct gv_profile *p = read_4028();
    char line[32] = "";
    fake_file(dir, "out.yaml", "old\n");
    static const struct {
        const char *name, *part;
    } rows[] = {{"a\nb", "control character"}, {"\xff", "not valid YAML"}, {"", "text is empty"}};
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_error err = {0};
        strcpy(p->name, rows[i].name);
        assert_int_equal(gv_profile_write(p, in_dir("out.yaml"), &err), -1);
        if (!strstr(err.text, "not written") || !strstr(err.text, rows[i].part))
            fail_msg("%s", err.text);
    }
    FILE *f = fopen(in_dir("out.yaml"), "r");
    assert_non_null(fgets(line, sizeof(line), f));
    fclose(f);
    assert_string_equal(line, "old\n");
    assert_int_equal(files_in_dir(), 1);
    gv_profile_free(p);
}

static void test_write_fails(void **state)
{
    (void)state;
    struct gv_error err = {0};
    struct gv_profile *p = read_4028();
    assert_int_equal(mkdir(in_dir("taken.yaml"), 0755), 0);
    fake_file(dir, "taken.yaml/inside", "x");
    assert_int_equal(gv_profile_write(p, in_dir("taken.yaml"), &err), -1);
    assert_non_null(strstr(err.text, "this is a folder"));
    assert_int_equal(mkfifo(in_dir("pipe.yaml"), 0600), 0);
    assert_int_equal(symlink("pipe.yaml", in_dir("to-pipe.yaml")), 0); /* as /dev/stdout is */
    assert_int_equal(gv_profile_write(p, in_dir("to-pipe.yaml"), &err), -1);
    assert_non_null(strstr(err.text, "this is a pipe"));
    assert_int_equal(gv_profile_write(p, "", &err), -1);
    assert_non_null(strstr(err.text, "is empty"));
    assert_int_equal(files_in_dir(), 3); /* no temporary file is left, the link is still one */
    fake_file(dir, "file", "x");
    assert_int_equal(gv_profile_write(p, in_dir("file/out.yaml"), &err), -1);
    assert_int_equal(gv_profile_write(p, "/proc/gv100/out.yaml", &err), -1);
    gv_profile_free(p);
}

static void *read_often(void *result)
{
    for (int i = 0; i < 20; i++) {
        struct gv_error err = {0};
        struct gv_profile *p = gv_profile_read(in_dir("x.yaml"), &err);
        *(uint64_t *)result += p ? p->hash : 0;
        gv_profile_free(p);
    }
    return NULL;
}

/* Ranks that are threads read at the same time while the file is replaced: old or new, never half.
 */
static void test_replaced_while_read(void **state)
{
    (void)state;
    struct gv_profile *p = read_4028();
    struct gv_error err = {0};
    pthread_t threads[4];
    uint64_t sums[4] = {0};
    assert_int_equal(gv_profile_write(p, in_dir("x.yaml"), &err), 0);
    struct gv_profile *q = gv_profile_read(in_dir("x.yaml"), &err);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, &sums[i]), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(gv_profile_write(p, in_dir("x.yaml"), &err), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(sums[i] == 20 * q->hash);
    }
    gv_profile_free(q);
    gv_profile_free(p);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_what_is_no_file), IN_DIR(test_link),        IN_DIR(test_write),
        IN_DIR(test_write_invalid),   IN_DIR(test_write_fails), IN_DIR(test_replaced_while_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
