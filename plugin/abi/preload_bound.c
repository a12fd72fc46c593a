/* Where an object's calls of NCCL go, read from what the loader wrote into it. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "plugin/abi/preload_real.h"
#include "plugin/core/gv_object.h"

/* What is needed of an object's dynamic section. */
struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * at[2]; /* calls, and data */
    size_t n[2];
};

/* The loader has made these absolute, but not everywhere. */
static const void *absolute(const struct link_map *map, ElfW(Addr) address)
{
    return (const void *)(address < map->l_addr ? map->l_addr + address : address);
}

static void read_tables(const struct link_map *map, struct tables *out)
{
    memset(out, 0, sizeof(*out));
    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
        const void *at = absolute(map, d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            out->symbols = at;
        else if (d->d_tag == DT_STRTAB)
            out->names = at;
        else if (d->d_tag == DT_JMPREL)
            out->at[0] = at;
        else if (d->d_tag == DT_PLTRELSZ)
            out->n[0] = d->d_un.d_val / sizeof(ElfW(Rela));
        else if (d->d_tag == DT_RELA)
            out->at[1] = at;
        else if (d->d_tag == DT_RELASZ)
            out->n[1] = d->d_un.d_val / sizeof(ElfW(Rela));
        else if (d->d_tag == DT_PLTREL && d->d_un.d_val != DT_RELA)
            out->n[0] = out->n[1] = 0; /* no machine that NCCL runs on */
    }
}

/* A call that was not made yet still points into the object itself. */
static bool
leads_to(const struct link_map *map, const struct tables *t, const ElfW(Rela) * r, const void *base)
{
    size_t symbol = ELF64_R_SYM(r->r_info);
    if (!symbol || strncmp(t->names + t->symbols[symbol].st_name, "nccl", 4) != 0)
        return false;
    const void *target;
    memcpy(&target, (const void *)(map->l_addr + r->r_offset), sizeof(target));
    return gv_object_of(target) == base;
}

bool gv_bound_to(const void *caller, const void *base)
{
    Dl_info info;
    struct link_map *map = NULL;
    struct tables t;
    if (!base || !dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return false;
    read_tables(map, &t);
    if (!t.symbols || !t.names)
        return false;
    for (int table = 0; table < 2; table++)
        for (size_t i = 0; t.at[table] && i < t.n[table]; i++)
            if (leads_to(map, &t, &t.at[table][i], base))
                return true;
    return false;
}
