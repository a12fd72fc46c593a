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

#endif
