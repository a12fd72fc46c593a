/* The current device is kept by the driver library, where a plugin looks for it. */
#include <dlfcn.h>

#include "testbench/host/engine.h"
#include "testbench/host/gv_fakecuda.h"

void gvh_set_device(int device)
{
    gv_fakecuda_set_device(device);
}

int gvh_get_device(void)
{
    return gv_fakecuda_device();
}

int gvh_gpu(int device)
{
    return gv_fakecuda_gpu(device);
}
