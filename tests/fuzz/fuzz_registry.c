/* A registry entry with any content: joining is refused or works, and then every question has a
 * sane answer within its time; whoever leaves last leaves nothing. The input is the entry's file
 * before the ranks come and, from its second half, what overwrites it while they are in. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plugin/registry/entry.h"
#include "tests/fuzz/fuzz.h"

enum { KEY = 7, WAIT_MS = 1 };

static char folder[64];

static void remove_folder(void)
{
    rmdir(folder);
}

static void make_folder(void)
{
    if (folder[0])
        return;
    snprintf(
        folder, sizeof(folder), "%s/gv-fuzz-XXXXXX",
        access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    GV_MUST(mkdtemp(folder));
    atexit(remove_folder);
}

static int files(bool remove_them)
{
    int n = 0;
    DIR *dir = opendir(folder);
    GV_MUST(dir);
    for (struct dirent *item; (item = readdir(dir));) {
        if (item->d_name[0] == '.')
            continue;
        n++;
        if (remove_them)
            unlinkat(dirfd(dir), item->d_name, 0);
    }
    closedir(dir);
    return n;
}

static void plant(const uint8_t *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/c-%016x-0", folder, KEY);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    GV_MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static void ask(struct gv_registry_entry *entry, int nranks)
{
    struct gv_registry_members m = gv_registry_members(entry);
    GV_MUST(m.count >= 0 && m.count <= GV_REGISTRY_RANKS);
    GV_MUST(m.on_one_gpu == m.count - gv_gpuset_count(m.gpus) && m.on_one_gpu >= 0);
    gv_registry_await(entry, nranks, 0);
    enum gv_verdict verdict = gv_registry_decide(entry, 1, nranks, WAIT_MS);
    GV_MUST(verdict != GV_OPEN && verdict == gv_registry_decide(entry, 2, nranks, WAIT_MS));
    GV_MUST(gv_verdict_text(verdict)[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gv_error err = {0};
    struct gv_registry_entry *entry[2];
    make_folder();
    plant(data, size / 2);
    for (int i = 0; i < 2; i++) {
        entry[i] = gv_registry_join(folder, KEY, i, &err);
        GV_MUST(entry[i] || err.text[0]);
    }
    for (int i = 0; i < 2; i++) {
        size_t rest = size - size / 2;
        if (!entry[i])
            continue;
        if (rest > sizeof(struct gv_shared))
            rest = sizeof(struct gv_shared);
        memcpy(entry[i]->shared, data + size / 2, rest);
        ask(entry[i], 1 + (int)(size % 3));
    }
    gv_registry_leave(entry[0]);
    gv_registry_leave(entry[1]);
    gv_registry_sweep(folder, 1000);
    GV_MUST(!files(true));
    return 0;
}
