/* cmocka with what it needs before it, and the places that CMake tells a test. */
#ifndef GV_TEST_H
#define GV_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* The value of GV_SOURCE_DIR, GV_BIN_DIR or GV_LIB_DIR; a test that is started by hand without them
 * fails here, with the name. */
static inline const char *gv_test_dir(const char *name)
{
    const char *dir = getenv(name);
    if (!dir)
        fail_msg("%s is not set: run the tests with ctest", name);
    return dir;
}

/* How many of `rounds` are made: a sanitizer makes each several times slower (GV_SLOW). */
static inline int gv_test_rounds(int rounds)
{
    const char *slow = getenv("GV_SLOW");
    int by = slow ? atoi(slow) : 1;
    return by > 1 ? rounds / by : rounds;
}

#endif
