/* gv-sysfs: writes the sysfs tree of a machine of the testbench, to be named as GV100_SYSFS. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "testbench/machines/gv_bench_machine.h"

int main(int argc, char **argv)
{
    static struct gv_bench_machine machine;
    struct gv_error err = {0};
    char path[PATH_MAX], text[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    if (argc != 3) {
        fputs("Usage: gv-sysfs MACHINE FOLDER\n", stderr);
        return 2;
    }
    if (!gv_bench_machine_resolve(argv[1], GV_MACHINES, path, &err) &&
        !gv_bench_machine_read(path, &machine, &err) &&
        !gv_bench_machine_sysfs(&machine, argv[2], &err))
        return 0;
    fprintf(stderr, "gv-sysfs: %s\n", gv_error_format(&err, text, sizeof(text)));
    return 1;
}
