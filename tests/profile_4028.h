/* The reference machine's published profile. */
#ifndef GV_PROFILE_4028_H
#define GV_PROFILE_4028_H

#include <limits.h>
#include <stdio.h>

#include "config/gv_profile.h"
#include "tests/gv_test.h"

static inline struct gv_profile *read_4028(void)
{
    char path[PATH_MAX];
    struct gv_error err = {0};
    snprintf(path, sizeof(path), "%s/config/profiles/4028.yaml", gv_test_dir("GV_SOURCE_DIR"));
    struct gv_profile *p = gv_profile_read(path, &err);
    if (!p)
        fail_msg("%s:%u: %s", path, err.line, err.text);
    return p;
}

#endif
