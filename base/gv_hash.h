/* FNV-1a, 64 bits: equal content, equal number, on every machine. Not for security. */
#ifndef GV_HASH_H
#define GV_HASH_H

#include <stddef.h>
#include <stdint.h>

#define GV_HASH_START 14695981039346656037ull

static inline uint64_t gv_hash_bytes(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211ull;
    return h;
}

static inline uint64_t gv_hash_u64(uint64_t h, uint64_t value)
{
    return gv_hash_bytes(h, &value, sizeof(value));
}

#endif
