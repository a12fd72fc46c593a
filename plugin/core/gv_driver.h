/* Which GPU the calling thread drives, from the CUDA driver that the process already has. */
#ifndef GV_DRIVER_H
#define GV_DRIVER_H

#include <stdbool.h>

/* The bus id ("0000:1a:00.0", lower case) of the calling thread's current device. False where there
 * is no driver or no current device. `object` (may be NULL) is a dlopen handle in whose scope a
 * shared CUDA runtime is looked for as well: before the first CUDA call of a thread only the
 * runtime knows its device. */
bool gv_driver_current(void *object, char out[20]);

/* The same for a device ordinal as CUDA counts them in this process. */
bool gv_driver_ordinal(int ordinal, char out[20]);

#endif
