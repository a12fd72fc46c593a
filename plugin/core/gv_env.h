/* The process's environment, read past our own interposed getenv. */
#ifndef GV_ENV_H
#define GV_ENV_H

#include <stdbool.h>

/* libc's getenv. The result belongs to the environment. */
const char *gv_env_get(const char *name);

/* True if the variable is set and not empty. */
bool gv_env_set(const char *name);

#endif
