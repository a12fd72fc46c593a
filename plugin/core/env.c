#include "plugin/core/gv_env.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* libc reaches its own getenv inside secure_getenv, and we do so through it: `getenv` is ours when
 * preloaded. A program that runs with another user's rights gets NULL from there, so the list is
 * walked by hand for it. */
const char *gv_env_get(const char *name)
{
    if (!getauxval(AT_SECURE))
        return secure_getenv(name);
    size_t len = strlen(name);
    for (char **p = environ; p && *p; p++)
        if (!strncmp(*p, name, len) && (*p)[len] == '=')
            return *p + len + 1;
    return NULL;
}

bool gv_env_set(const char *name)
{
    const char *value = gv_env_get(name);
    return value && *value;
}
