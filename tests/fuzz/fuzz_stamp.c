/* The verification stamp: what is read is written and read back the same; what is refused leaves
 * nothing. */
#include <fcntl.h>
#include <unistd.h>

#include "config/gv_stamp.h"
#include "tests/fuzz/fuzz.h"

static char path[2][64];

static void remove_files(void)
{
    unlink(path[0]);
    unlink(path[1]);
}

static void name_files(void)
{
    if (path[0][0])
        return;
    const char *folder = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof(path[i]), "%s/gv-fuzz-stamp-%d-%d", folder, (int)getpid(), i);
    atexit(remove_files);
}

static void store(const uint8_t *data, size_t size)
{
    int fd = open(path[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    GV_MUST(fd >= 0);
    GV_MUST(write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static void equal(const struct gv_stamp *a, const struct gv_stamp *b)
{
    GV_MUST(!strcmp(a->host, b->host) && !strcmp(a->boot_id, b->boot_id));
    GV_MUST(!strcmp(a->driver, b->driver) && !strcmp(a->date, b->date));
    GV_MUST(!strcmp(a->tool, b->tool) && a->ngpus == b->ngpus);
    for (int i = 0; i < a->ngpus; i++)
        GV_MUST(!strcmp(a->bus_id[i], b->bus_id[i]));
    GV_MUST(!memcmp(a->pair, b->pair, sizeof(a->pair)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gv_stamp stamp, again;
    struct gv_error err = {0};
    name_files();
    store(data, size);
    if (gv_stamp_read(path[0], &stamp, &err)) {
        GV_MUST(err.text[0]);
        return 0;
    }
    GV_MUST(stamp.ngpus >= 0 && stamp.ngpus <= GV_MAX_GPUS);
    if (gv_stamp_write(&stamp, path[1], &err)) {
        fprintf(stderr, "%s\n", err.text);
        GV_MUST(!"what was read cannot be written");
    }
    GV_MUST(!gv_stamp_read(path[1], &again, &err));
    equal(&stamp, &again);
    return 0;
}
