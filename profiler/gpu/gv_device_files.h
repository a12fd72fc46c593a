/* /dev/nvidiactl, /dev/nvidia0 and on, /dev/nvidia-uvm: a driver that may not open them says that
 * there is no GPU, or that something is unknown. */
#ifndef GV_DEVICE_FILES_H
#define GV_DEVICE_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* True where one of them is there and this user may not open it; then which, who may and who asked
 * is in `out`. They are looked for in $GV100_DEV, /dev without it. */
bool gv_device_file_closed(char *out, size_t size);

#endif
