/* What fuzz targets share. A target is one fuzz_NAME.c with LLVMFuzzerTestOneInput, its seeds in
 * seeds/NAME and, where words help, its dictionary in NAME.dict. It checks what must hold for
 * every input, not only that nothing crashes. */
#ifndef GV_FUZZ_H
#define GV_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GV_MUST(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            dprintf(2, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The input as a text that ends. For free(). */
static inline char *gv_fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    GV_MUST(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* The input as a file for functions that want a path: the same path each time, in memory alone. */
static inline const char *gv_fuzz_file(const uint8_t *data, size_t size)
{
    static char path[32];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        GV_MUST(fd >= 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    GV_MUST(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
    return path;
}

#endif
