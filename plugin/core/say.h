/* Private to the log. */
#ifndef GV_SAY_H
#define GV_SAY_H

#include "plugin/core/gv_log.h"

/* One line on stderr, where NCCL_DEBUG asks for that level (unset: nothing, as NCCL itself). Never
 * blocks, and a stderr that is closed or full loses the line. */
void gv_say(enum gv_level level, const char *text);

#endif
