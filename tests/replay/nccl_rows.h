/* Tables of data/nccl-rings: fields between bars, lists, releases. */
#ifndef GV_TEST_NCCL_ROWS_H
#define GV_TEST_NCCL_ROWS_H

#include "tests/gv_test.h"

#include <stdio.h>
#include <string.h>

#include "base/gv_gpuset.h"
#include "base/gv_str.h"

/* The whole file, terminated; the test frees it. */
static inline char *gv_rows_file(const char *folder, const char *name, size_t *len)
{
    char path[2048], *text = malloc(1 << 20);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot open %s", path);
    *len = fread(text, 1, (1 << 20) - 1, file);
    text[*len] = '\0';
    fclose(file);
    return text;
}

static inline const char *gv_rows_folder(void)
{
    static char folder[1024];
    snprintf(
        folder, sizeof(folder), "%s/tests/replay/data/nccl-rings", gv_test_dir("GV_SOURCE_DIR"));
    return folder;
}

/* The next line that is neither empty nor a comment, or NULL. */
static inline char *gv_rows_line(char **rest)
{
    char *line;
    while ((line = strsep(rest, "\n")) && (!*line || *line == '#'))
        ;
    return line;
}

/* The next field of a line, without the blanks around it. */
static inline char *gv_rows_field(char **rest)
{
    char *text = strsep(rest, "|");
    assert_non_null(text);
    text += strspn(text, " ");
    for (size_t n = strlen(text); n && text[n - 1] == ' ';)
        text[--n] = '\0';
    return text;
}

static inline int gv_rows_list(const char *text, int *list)
{
    struct gv_error err = {0};
    int n = gv_gpulist_parse(text, list, &err);
    if (n < 0)
        fail_msg("%s: %s", text, err.text);
    return n;
}

/* A set of devices; "-" and the empty text are the empty set. */
static inline uint64_t gv_rows_set(const char *text)
{
    uint64_t set = 0;
    if (*text && strcmp(text, "-"))
        assert_int_equal(0, gv_gpuset_parse(text, &set, NULL));
    return set;
}

/* "2.28.9" (and whatever follows) as 22809. */
static inline int gv_rows_release(const char *text)
{
    int major, minor, patch;
    assert_int_equal(3, sscanf(text, "%d.%d.%d", &major, &minor, &patch));
    return major * 10000 + minor * 100 + patch;
}

#endif
