/* gv-nccl-static: a program with NCCL inside (nccl_static), of which nothing is exported.
 *   gv-nccl-static GPUS */
#include <stdio.h>

#include "base/gv_gpuset.h"
#include "testbench/host/caller.h"

int main(int argc, char **argv)
{
    int gpus[GV_MAX_GPUS], n = argc == 2 ? gv_gpulist_parse(argv[1], gpus, NULL) : -1;
    if (n < 1)
        return 2;
    gv_caller_run("static", gpus, n, false);
    return 0;
}
