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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GV_MUST(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
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

#endif
