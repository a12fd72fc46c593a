/* Many communicators in one process leave nothing behind: memory, descriptors, registry files. */
#include "tests/gv_test.h"

#include "tests/bench/leaks.h"

#ifdef __SANITIZE_ADDRESS__
#define COMMUNICATORS 2000 /* the sanitizer keeps freed memory back: its own leak check counts */
#define MEMORY_KIB (256 * 1024)
#elif defined(__SANITIZE_THREAD__)
#define COMMUNICATORS 2000
#define MEMORY_KIB (256 * 1024)
#else
#define COMMUNICATORS 20000
#define MEMORY_KIB 1024 /* 52 bytes a communicator; a decision alone is 4 KiB */
#endif

static void communicators_leave_nothing_behind(void **state)
{
    (void)state;
    struct gv_leaks before, after;
    gv_leaks_run(COMMUNICATORS, &before, &after);
    print_message(
        "before: %ld bytes of heap, %ld KiB resident, %d descriptors, %d registry files\n"
        "after:  %ld bytes of heap, %ld KiB resident, %d descriptors, %d registry files\n",
        before.heap_bytes, before.rss_kib, before.descriptors, before.registry_files,
        after.heap_bytes, after.rss_kib, after.descriptors, after.registry_files);
    assert_int_equal(before.registry_files, 0);
    assert_int_equal(after.registry_files, 0);
    assert_int_equal(after.descriptors, before.descriptors);
    assert_true(after.heap_bytes - before.heap_bytes < MEMORY_KIB * 1024l);
    assert_true(after.rss_kib - before.rss_kib < MEMORY_KIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicators_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
