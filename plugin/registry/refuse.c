/* A rank that cannot register leaves a sign instead: a folder, since making one needs neither
 * memory nor a descriptor. It lies beside the entries, and in /tmp for a rank whose /dev/shm is
 * not there or full. */
#include "plugin/registry/entry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void gv_registry_second_folder(char *out, unsigned long out_size)
{
    const char *own = secure_getenv("GV100_SIGN_DIR");
    if (own && own[0] == '/')
        snprintf(out, out_size, "%s", own);
    else
        snprintf(out, out_size, "/tmp/gv100-%u", (unsigned)geteuid());
}

static void name_sign(const char *folder, uint64_t key, char *out, size_t size)
{
    snprintf(out, size, "%s/" GV_SIGN_PREFIX "%016" PRIx64, folder, key);
}

/* A folder of this user's alone, not a link. */
static bool is_ours(const char *path)
{
    struct stat st;
    return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           !(st.st_mode & 077);
}

static bool leave_sign(const char *folder, uint64_t key)
{
    char sign[512];
    name_sign(folder, key, sign, sizeof(sign));
    bool made = !mkdir(folder, 0700);
    if (!made && errno != EEXIST)
        return false;
    if (is_ours(folder) && (!mkdir(sign, 0700) || errno == EEXIST))
        return true;
    if (made)
        rmdir(folder);
    return false;
}

void gv_registry_refuse(const char *folder, uint64_t key)
{
    char second[256];
    gv_registry_second_folder(second, sizeof(second));
    if (!leave_sign(folder, key))
        leave_sign(second, key);
}

static bool has_sign(const char *folder, uint64_t key)
{
    char sign[512];
    name_sign(folder, key, sign, sizeof(sign));
    return is_ours(sign) && is_ours(folder);
}

bool gv_registry_refused(const char *folder, uint64_t key)
{
    char second[256];
    gv_registry_second_folder(second, sizeof(second));
    return has_sign(folder, key) || has_sign(second, key);
}

void gv_registry_take_back(const char *folder, uint64_t key)
{
    char second[256], sign[512];
    gv_registry_second_folder(second, sizeof(second));
    name_sign(folder, key, sign, sizeof(sign));
    if (is_ours(folder))
        rmdir(sign);
    name_sign(second, key, sign, sizeof(sign));
    if (is_ours(second) && !rmdir(sign))
        rmdir(second); /* stays where another sign is in it */
}
