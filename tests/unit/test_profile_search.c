/* Folders and GV100_PROFILE in; the profile that is found, or what is said where none is, out. */
#include "tests/machine_4028.h"

#include <string.h>
#include <unistd.h>

static char base[64];

static int set_up(void **state)
{
    (void)state;
    char shipped[PATH_MAX];
    strcpy(base, "/tmp/gv-find-XXXXXX");
    if (!mkdtemp(base))
        return -1;
    snprintf(shipped, sizeof(shipped), "%s/shipped", base);
    fake_file(base, "shipped/readme.txt", "no profile");
    setenv("GV100_PROFILE_DIR", shipped, 1);
    setenv("XDG_CONFIG_HOME", base, 1);
    unsetenv("GV100_PROFILE");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_remove(base);
    return 0;
}

/* Puts a profile with this name; `ngpus` GPUs of 4028 (11 matches). */
static void put(const char *where, const char *name, int ngpus)
{
    char path[PATH_MAX];
    struct gv_error err = {0};
    struct gv_profile *p = read_4028();
    snprintf(path, sizeof(path), "%s/%s", base, where);
    snprintf(p->name, sizeof(p->name), "%s", name);
    struct gv_profile part = *p; /* shares what it points to, owns nothing */
    if (ngpus < 11) {
        part.ngpus = ngpus;
        part.npaths = part.ngroups = part.nmemory = 0;
    }
    if (gv_profile_write(&part, path, &err))
        fail_msg("%s", err.text);
    gv_profile_free(p);
}

/* Finds for the reference machine; the name found or the error's text must have `part`. */
static void finds(const char *part, bool found)
{
    struct gv_machine m = machine_4028;
    struct gv_error err = {0};
    int map[GV_MAX_GPUS];
    char path[PATH_MAX], line[1024];
    struct gv_profile *p = gv_profile_find(&m, map, path, &err);
    const char *said = p ? p->name : gv_error_format(&err, line, sizeof(line));
    if (!p == found || !strstr(said, part))
        fail_msg("expected '%s', got '%s'", part, said);
    if (p) {
        assert_int_equal(access(path, R_OK), 0);
        assert_int_equal(map[10], 10);
    }
    gv_profile_free(p);
}

static void test_search_order(void **state)
{
    (void)state;
    finds("no profile for this machine with 11 GPUs: 0 looked at in", false);
    put("shipped/small.yaml", "small", 3);
    finds("1 looked at (small.yaml: 11 GPUs here, 3 in the profile)", false);
    put("shipped/b.yaml", "shipped-b", 11);
    finds("shipped-b", true);
    put("shipped/a.yaml", "shipped-a", 11);
    finds("shipped-a", true); /* by name within a folder */
    put("gv100/z.yaml", "mine", 11);
    finds("mine", true); /* the user's folder first */
    put("gv100/.hidden.yaml", "hidden", 11);
    put("gv100/a.yaml.tmp", "temporary", 11);
    put("gv100/a.yaml", "other machine", 3);
    finds("mine", true);
    setenv("GV100_PROFILE", "b", 1);
    finds("shipped-b", true);
}

static void test_search_errors(void **state)
{
    (void)state;
    char path[PATH_MAX];
    fake_file(base, "gv100/broken.yaml", "gv100_profile: 1\nnaem: x\n");
    finds(
        "broken.yaml:2:1: unknown key 'naem' in this profile; did you mean 'name'?; and no other "
        "profile is for this machine",
        false);
    put("shipped/right.yaml", "right", 11);
    finds("right", true); /* what is broken is not in the way */
    setenv("GV100_PROFILE", "rigth", 1);
    finds("GV100_PROFILE: there is no shipped profile 'rigth'; did you mean 'right'?", false);
    setenv("GV100_PROFILE", "zzzzzzzzzzzz", 1);
    finds("there is no shipped profile 'zzzzzzzzzzzz' in", false);
    snprintf(path, sizeof(path), "%s/gv100/broken.yaml", base);
    setenv("GV100_PROFILE", path, 1);
    finds("broken.yaml:2:1: unknown key 'naem'", false);
    snprintf(path, sizeof(path), "%s/none.yaml", base);
    setenv("GV100_PROFILE", path, 1);
    finds("none.yaml: cannot be opened: No such file", false);
    put("three.yaml", "three", 3);
    snprintf(path, sizeof(path), "%s/three.yaml", base);
    setenv("GV100_PROFILE", path, 1);
    finds("names a profile of another machine: 11 GPUs here, 3 in the profile", false);
    setenv("GV100_PROFILE", "", 1);
    finds("right", true); /* empty is not set */
}

static void test_without_machine(void **state)
{
    (void)state;
    struct gv_error err = {0};
    put("shipped/right.yaml", "right", 3);
    assert_null(gv_profile_find(NULL, NULL, NULL, &err));
    assert_non_null(strstr(err.text, "GV100_PROFILE"));
    setenv("GV100_PROFILE", "right", 1);
    struct gv_profile *p = gv_profile_find(NULL, NULL, NULL, &err);
    assert_non_null(p);
    assert_int_equal(p->ngpus, 3);
    gv_profile_free(p);
}

static void test_resolve(void **state)
{
    (void)state;
    char path[PATH_MAX], want[PATH_MAX];
    struct gv_error err = {0};
    put("shipped/right.yaml", "right", 3);
    snprintf(want, sizeof(want), "%s/shipped/right.yaml", base);
    assert_int_equal(gv_profile_resolve("right", path, &err), 0);
    assert_string_equal(path, want);
    assert_int_equal(gv_profile_resolve("./right", path, &err), 0);
    assert_string_equal(path, "./right");
    assert_int_equal(gv_profile_resolve("x.yaml", path, &err), 0);
    assert_string_equal(path, "x.yaml");
    assert_int_equal(gv_profile_resolve("", path, &err), -1);
    assert_string_equal(path, "x.yaml"); /* outputs are set on success alone */
    setenv("GV100_PROFILE_DIR", "/nowhere", 1);
    assert_int_equal(gv_profile_resolve("right", path, &err), -1);
    assert_string_equal(err.text, "GV100_PROFILE_DIR is no folder: /nowhere");
    /* Without it: beside this program, as build and installation lay it out. */
    unsetenv("GV100_PROFILE_DIR");
    assert_int_equal(gv_profile_resolve("4028", path, &err), 0);
    assert_int_equal(access(path, R_OK), 0);
}

int main(void)
{
#define SEARCH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        SEARCH(test_search_order),
        SEARCH(test_search_errors),
        SEARCH(test_without_machine),
        SEARCH(test_resolve),
    };
    return cmocka_run_group_tests(tests, read_reference, NULL);
}
