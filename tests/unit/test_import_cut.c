/* A file that is cut anywhere is refused, or nothing of its figures is missing. Every whole file of
 * tests/cases is cut behind each of its bytes. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "profiler/import/gv_import.h"
#include "tests/gv_test.h"

struct counts {
    int gpus, pairs, samples, rings;
};

/* -1: refused. */
static int count(const char *text, size_t len, struct counts *out)
{
    struct gv_import im = {.options = {.op = -1, .edit = -1}};
    struct gv_error err = {0};
    int rc = gv_import_text(&im, text, len, "file", GV_IMPORT_AUTO, &err);
    *out = (struct counts){0};
    for (int i = 0; i < im.nsources && !rc; i++) {
        out->gpus += im.sources[i].ngpus;
        out->pairs += im.sources[i].npairs;
        out->samples += im.sources[i].nsamples;
        out->rings += im.sources[i].nrings;
    }
    if (rc)
        assert_string_not_equal(err.text, "");
    gv_import_finish(&im);
    return rc;
}

/* Kinds that a paste holds one after the other: the first may be whole without the second. */
static bool several(const char *name)
{
    return strstr(name, "then-p2p") != NULL;
}

static int cut(const char *name, char *text, size_t len)
{
    struct counts whole, part;
    int refused = 0;
    if (count(text, len, &whole))
        return 0;
    for (size_t n = 1; n < len; n++) {
        char kept = text[n];
        text[n] = '\0';
        bool said_no = count(text, n, &part) != 0;
        text[n] = kept;
        refused += said_no;
        if (!said_no && !several(name) && memcmp(&whole, &part, sizeof(whole)))
            fail_msg(
                "%s cut behind byte %zu was read: %d GPUs, %d pairs, %d samples", name, n,
                part.gpus, part.pairs, part.samples);
    }
    return refused;
}

static int one(const char *folder, const char *name)
{
    char path[PATH_MAX + 256 + 2], text[32768];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t len = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    assert_true(len < sizeof(text) - 1);
    text[len] = '\0';
    return cut(name, text, len);
}

static void test_folder(const char *kind, int at_least)
{
    char folder[PATH_MAX];
    int files = 0;
    snprintf(folder, sizeof(folder), "%s/tests/cases/%s", gv_test_dir("GV_SOURCE_DIR"), kind);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *item; (item = readdir(dir));)
        if (item->d_name[0] != '.')
            files += one(folder, item->d_name) > 0;
    closedir(dir);
    assert_true(files >= at_least);
}

static void test_matrices(void **state)
{
    (void)state;
    test_folder("topo", 14);
}

static void test_tables(void **state)
{
    (void)state;
    test_folder("nccl-tests", 3);
}

static void test_xml(void **state)
{
    (void)state;
    test_folder("xml", 4);
    test_folder("hwloc", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_xml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
