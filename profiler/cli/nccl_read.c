/* The release of a libnccl.so.2 from its bytes. */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/nccl.h"

struct image {
    const unsigned char *data;
    size_t size;
};

static int map(const char *path, struct image *out, struct gv_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
        st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
        if (fd >= 0)
            close(fd);
        return gv_error_at(err, path, 0, 0, "cannot be read as a library; name a libnccl.so.2");
    }
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED)
        return gv_error_at(err, path, 0, 0, "cannot be mapped: %m");
    out->data = data;
    out->size = (size_t)st.st_size;
    return 0;
}

static bool is_elf64(const struct image *file)
{
    return !memcmp(file->data, ELFMAG, SELFMAG) && file->data[EI_CLASS] == ELFCLASS64 &&
           file->data[EI_DATA] == ELFDATA2LSB;
}

/* Section `index`, or NULL where the file is cut. */
static const Elf64_Shdr *section(const struct image *file, unsigned index)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)file->data;
    if (index >= head->e_shnum || head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shoff % 8)
        return NULL;
    size_t below = (size_t)index * sizeof(Elf64_Shdr);
    if (head->e_shoff > file->size || below + sizeof(Elf64_Shdr) > file->size - head->e_shoff)
        return NULL;
    return (const Elf64_Shdr *)(file->data + head->e_shoff + below);
}

static bool is_constants(const struct image *file, const Elf64_Shdr *s, const Elf64_Shdr *names)
{
    if (s->sh_type != SHT_PROGBITS || names->sh_offset >= file->size)
        return false;
    size_t at = names->sh_offset + s->sh_name;
    return at + sizeof(".rodata") <= file->size &&
           !memcmp(file->data + at, ".rodata", sizeof(".rodata"));
}

/* The constants alone: GPU code makes up most of the library. The whole file where there is no
 * section table. */
static struct image constants(const struct image *file)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)file->data;
    const Elf64_Shdr *names = section(file, head->e_shstrndx);
    for (unsigned i = 0; names && i < head->e_shnum; i++) {
        const Elf64_Shdr *s = section(file, i);
        if (s && is_constants(file, s, names) && s->sh_offset < file->size &&
            s->sh_size <= file->size - s->sh_offset)
            return (struct image){file->data + s->sh_offset, s->sh_size};
    }
    return *file;
}

static int version_in(struct image part)
{
    static const char mark[] = "NCCL version ";
    const size_t n = sizeof(mark) - 1;
    while (part.size > n) {
        const unsigned char *hit = memmem(part.data, part.size, mark, n);
        if (!hit)
            return 0;
        size_t at = (size_t)(hit - part.data) + n, rest = part.size - at;
        char text[24];
        size_t take = rest < sizeof(text) - 1 ? rest : sizeof(text) - 1;
        memcpy(text, part.data + at, take);
        text[take] = '\0';
        int version = gv_nccl_parse(text);
        if (version)
            return version;
        part.data += at;
        part.size = rest;
    }
    return 0;
}

/* libnccl.so.2.28.9: Debian's and Red Hat's packages name it so. */
static int version_in_name(const char *path)
{
    char real[PATH_MAX];
    const char *base = realpath(path, real) ? strrchr(real, '/') : NULL;
    const char *so = base ? strstr(base, ".so.") : NULL;
    return so ? gv_nccl_parse(so + 4) : 0;
}

int gv_nccl_read(const char *path, struct gv_nccl *out, struct gv_error *err)
{
    struct image file = {0};
    if (map(path, &file, err))
        return -1;
    bool elf = is_elf64(&file);
    int version = elf ? version_in(constants(&file)) : 0;
    munmap((void *)file.data, file.size);
    if (!elf)
        return gv_error_at(err, path, 0, 0, "is no 64-bit library; name a libnccl.so.2");
    out->version = version ? version : version_in_name(path);
    snprintf(out->path, sizeof(out->path), "%s", path);
    return 0;
}
