/* GPU lists, sizes, errors and "did you mean", as tables. */
#include "tests/gv_test.h"

#include <string.h>

#include "base/gv_error.h"
#include "base/gv_gpuset.h"
#include "base/gv_nearest.h"
#include "base/gv_size.h"
#include "base/gv_str.h"

static void gpu_lists(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        gv_gpuset set;
        const char *back;
        unsigned column; /* of the error; 0: none */
    } rows[] = {
        {"0", 0x1, "0", 0},
        {"0-5,7", 0xbf, "0-5,7", 0},
        {" 3 , 1 - 2", 0xe, "1-3", 0},
        {"63", 1ULL << 63, "63", 0},
        {"0-63", ~0ULL, "0-63", 0},
        {"", 0, NULL, 1},
        {"0,,1", 0, NULL, 3},
        {"5-2", 0, NULL, 1},
        {"64", 0, NULL, 1},
        {"1,1", 0, NULL, 3},
        {"0-", 0, NULL, 3},
        {"0;5", 0, NULL, 2},
        {"99999999999999999999", 0, NULL, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        gv_gpuset set = 0x5a;
        struct gv_error err = {0};
        int rc = gv_gpuset_parse(rows[i].text, &set, &err);
        if (rows[i].column) {
            assert_int_equal(rc, -1);
            assert_int_equal(err.column, rows[i].column);
            assert_true(set == 0x5a);
            continue;
        }
        char back[256];
        assert_int_equal(rc, 0);
        assert_true(set == rows[i].set);
        assert_string_equal(gv_gpuset_format(set, back, sizeof(back)), rows[i].back);
    }
}

static void gpu_lists_keep_order(void **state)
{
    (void)state;
    int list[GV_MAX_GPUS];
    assert_int_equal(gv_gpulist_parse("4,0-2", list, NULL), 4);
    assert_int_equal(list[0], 4);
    assert_int_equal(list[1], 0);
    assert_int_equal(list[3], 2);
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
        const char *back; /* NULL: refused */
    } rows[] = {
        {"8", 8, "8"},
        {"1M", 1048576, "1M"},
        {"320M", 335544320, "320M"},
        {"9007199254740993", 9007199254740993, "9007199254740993"},
        {"1.5k", 1536, "1536"},
        {"1G", 1073741824, "1G"},
        {"4GiB", 4294967296, "4G"},
        {"512KB", 524288, "512K"},
        {"0", 0, "0"},
        {"", 0, NULL},
        {"-1", 0, NULL},
        {"1X", 0, NULL},
        {"0.3", 0, NULL},
        {"nan", 0, NULL},
        {"1M1", 0, NULL},
        {"99999999T", 0, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t bytes = 77;
        struct gv_error err = {0};
        int rc = gv_size_parse(rows[i].text, &bytes, &err);
        if (!rows[i].back) {
            assert_int_equal(rc, -1);
            assert_true(err.text[0]);
            assert_int_equal(bytes, 77);
            continue;
        }
        if (getenv("GV_VALGRIND") && rows[i].bytes >> 53)
            continue; /* its long double has 53 bits */
        char back[32];
        assert_int_equal(rc, 0);
        assert_true(bytes == rows[i].bytes);
        if (bytes)
            assert_string_equal(gv_size_format(bytes, back, sizeof(back)), rows[i].back);
    }
}

static void nearest(void **state)
{
    (void)state;
    static const char *const words[] = {"machine", "memory", "paths", NULL, "groups", "policy"};
    static const struct {
        const char *word, *found;
    } rows[] = {
        {"machne", "machine"}, {"group", "groups"}, {"polciy", "policy"},
        {"xylophone", NULL},   {"", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *found = gv_nearest(rows[i].word, words, 6);
        if (rows[i].found)
            assert_string_equal(found, rows[i].found);
        else
            assert_null(found);
    }
}

static void errors_name_the_place(void **state)
{
    (void)state;
    struct gv_error err;
    char out[600];
    assert_int_equal(gv_error_at(&err, "a.yaml", 3, 7, "unknown key '%s'", "x"), -1);
    assert_string_equal(gv_error_format(&err, out, sizeof(out)), "a.yaml:3:7: unknown key 'x'");
    gv_error_set(&err, "no file");
    assert_string_equal(gv_error_format(&err, out, sizeof(out)), "no file");
}

static void text_grows(void **state)
{
    (void)state;
    struct gv_str s = {0};
    for (int i = 0; i < 1000; i++)
        gv_str_addf(&s, "%d,", i);
    assert_int_equal(s.len, strlen(s.data));
    assert_int_equal(s.len, 10 * 2 + 90 * 3 + 900 * 4);
    assert_false(s.failed);
    gv_str_free(&s);
    assert_null(s.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpu_lists),
        cmocka_unit_test(gpu_lists_keep_order),
        cmocka_unit_test(sizes),
        cmocka_unit_test(nearest),
        cmocka_unit_test(errors_name_the_place),
        cmocka_unit_test(text_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
