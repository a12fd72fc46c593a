#include "profiler/cli/loader.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/cli/capture.h"

static bool is_file(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode);
}

static int add(const char *folder, size_t folder_len, const char *name, char *out)
{
    int n = snprintf(out, PATH_MAX, "%.*s/%s", (int)folder_len, folder, name);
    return n > 0 && n < PATH_MAX && is_file(out);
}

/* Each folder of a colon list (`stops` holds what separates them). */
static int
in_list(const char *list, const char *stops, const char *name, char out[][PATH_MAX], int max)
{
    int n = 0;
    while (list && *list && n < max) {
        size_t len = strcspn(list, stops);
        if (len)
            n += add(list, len, name, out[n]);
        list += len + (list[len] != '\0');
    }
    return n;
}

/* The layout of /etc/ld.so.cache since glibc 2.2 (sysdeps/generic/dl-cache.h): offsets of texts
 * count from this header. */
struct cache_head {
    char magic[20]; /* "glibc-ld.so.cache1.1" */
    uint32_t nlibs, len_strings;
    uint8_t flags, pad[3];
    uint32_t extension, unused[3];
};
struct cache_entry {
    int32_t flags;
    uint32_t key, value, os_version;
    uint64_t hwcap;
};
_Static_assert(sizeof(struct cache_head) == 48 && sizeof(struct cache_entry) == 24, "ld.so.cache");

static char *slurp(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return NULL;
    struct gv_str text = {0};
    char part[16384];
    size_t n;
    while ((n = fread(part, 1, sizeof(part), f)) > 0 && text.len < (64u << 20))
        gv_str_add_n(&text, part, n);
    fclose(f);
    *size = text.len;
    return text.data;
}

/* A text inside the cache, or NULL where the offset leads outside. */
static const char *cache_text(const char *base, size_t size, uint32_t at)
{
    return at < size && memchr(base + at, 0, size - at) ? base + at : NULL;
}

static int in_cache(const char *name, char out[][PATH_MAX], int max)
{
    size_t size;
    char *data = slurp("/etc/ld.so.cache", &size);
    static const char magic[] = "glibc-ld.so.cache1.1";
    const char *base = data ? memmem(data, size, magic, sizeof(magic) - 1) : NULL;
    int n = 0;
    if (base) {
        size -= (size_t)(base - data);
        struct cache_head head;
        memcpy(&head, base, size < sizeof(head) ? size : sizeof(head));
        for (uint32_t i = 0; i < head.nlibs && n < max; i++) {
            struct cache_entry e;
            if (sizeof(head) + (i + 1) * sizeof(e) > size)
                break;
            memcpy(&e, base + sizeof(head) + i * sizeof(e), sizeof(e));
            const char *key = cache_text(base, size, e.key);
            const char *value = cache_text(base, size, e.value);
            if (key && value && !strcmp(key, name) && is_file(value))
                snprintf(out[n++], PATH_MAX, "%s", value);
        }
    }
    free(data);
    return n;
}

int gv_loader_search(const char *name, char out[][PATH_MAX], int max)
{
    static const char system[] = "/lib64:/usr/lib64:/lib:/usr/lib";
    int n = in_list(getenv("LD_LIBRARY_PATH"), ":;", name, out, max);
    n += in_cache(name, out + n, max - n);
    return n + in_list(system, ":", name, out + n, max - n);
}

int gv_program_path(const char *command, char out[PATH_MAX])
{
    if (strchr(command, '/')) {
        snprintf(out, PATH_MAX, "%s", command);
        return access(out, X_OK);
    }
    const char *list = getenv("PATH");
    for (list = list ? list : "/usr/bin:/bin"; *list;) {
        size_t len = strcspn(list, ":");
        if (len && add(list, len, command, out) && !access(out, X_OK))
            return 0;
        list += len + (list[len] != '\0');
    }
    return -1;
}

/* The path of the dynamic loader that an ELF program names (PT_INTERP). */
static int program_loader(const char *path, char out[256])
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return -1;
    int rc = -1;
    Elf64_Ehdr head;
    if (fread(&head, sizeof(head), 1, f) == 1 && !memcmp(head.e_ident, ELFMAG, SELFMAG) &&
        head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phentsize == sizeof(Elf64_Phdr)) {
        for (unsigned i = 0; i < head.e_phnum && rc; i++) {
            Elf64_Phdr p;
            if (fseek(f, (long)(head.e_phoff + i * sizeof(p)), SEEK_SET) ||
                fread(&p, sizeof(p), 1, f) != 1)
                break;
            if (p.p_type != PT_INTERP || p.p_filesz < 2 || p.p_filesz > 255)
                continue;
            if (!fseek(f, (long)p.p_offset, SEEK_SET) && fread(out, p.p_filesz, 1, f) == 1) {
                out[p.p_filesz] = '\0';
                rc = 0;
            }
        }
    }
    fclose(f);
    return rc;
}

/* "\tlibnccl.so.2 => /path/libnccl.so.2 (0x...)" */
static int path_in_listing(const char *listing, const char *name, char out[PATH_MAX])
{
    char mark[128];
    snprintf(mark, sizeof(mark), "\t%s => ", name);
    const char *hit = strstr(listing, mark);
    if (!hit || hit[strlen(mark)] != '/')
        return -1;
    hit += strlen(mark);
    snprintf(out, PATH_MAX, "%.*s", (int)strcspn(hit, "\n"), hit);
    char *end = strstr(out, " (0x");
    if (end)
        *end = '\0';
    return is_file(out) ? 0 : -1;
}

int gv_loader_linked(const char *path, const char *name, char out[PATH_MAX])
{
    char loader[256];
    if (program_loader(path, loader))
        return -1;
    const char *argv[] = {loader, "--list", path, NULL};
    struct gv_str listing = {0};
    int rc = gv_capture(argv, 5000, &listing);
    rc = rc || !listing.data ? -1 : path_in_listing(listing.data, name, out);
    gv_str_free(&listing);
    return rc;
}

int gv_script_interpreter(const char *path, char *out, size_t out_size)
{
    char line[512] = "";
    FILE *f = fopen(path, "rbe");
    if (!f)
        return -1;
    bool got = fgets(line, sizeof(line), f) != NULL;
    fclose(f);
    if (!got || strncmp(line, "#!", 2))
        return -1;
    char *rest = NULL, *word = strtok_r(line + 2, " \t\r\n", &rest);
    size_t n = word ? strlen(word) : 0;
    if (n >= 4 && !strcmp(word + n - 4, "/env")) {
        do
            word = strtok_r(NULL, " \t\r\n", &rest);
        while (word && word[0] == '-');
    }
    if (!word)
        return -1;
    snprintf(out, out_size, "%s", word);
    return 0;
}
