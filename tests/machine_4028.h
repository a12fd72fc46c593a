/* The reference machine as its sysfs shows it, and its profile, for the tests of both. */
#ifndef GV_MACHINE_4028_H
#define GV_MACHINE_4028_H

#include <limits.h>
#include <stdio.h>

#include "config/gv_machine.h"
#include "tests/profile_4028.h"
#include "tests/sysfs.h"

static const struct fake_machine reference = {fake_4028, FAKE_4028_N, "580.173.02", "boot-1", "h"};

static inline void read_machine(const struct fake_machine *m, struct gv_machine *out)
{
    char root[64];
    struct gv_error err = {0};
    fake_sysfs(m, root);
    if (gv_machine_read(root, out, &err))
        fail_msg("%s: %s", err.file, err.text);
    fake_remove(root);
}

/* The reference machine, read once: most tests change a copy. */
static struct gv_machine machine_4028;

static inline int read_reference(void **state)
{
    (void)state;
    read_machine(&reference, &machine_4028);
    return 0;
}

#endif
