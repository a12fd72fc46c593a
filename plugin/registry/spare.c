#include "plugin/registry/gv_spare.h"

#include <string.h>

static void *at(const struct gv_spares *spares, int i)
{
    return (char *)spares->room + (size_t)i * spares->size;
}

void *gv_spare_take(struct gv_spares *spares)
{
    for (int i = 0; i < GV_SPARES; i++)
        if (!atomic_exchange(&spares->taken[i], true))
            return memset(at(spares, i), 0, spares->size);
    return NULL;
}

bool gv_spare_give(struct gv_spares *spares, void *thing)
{
    for (int i = 0; i < GV_SPARES; i++) {
        if (at(spares, i) != thing)
            continue;
        atomic_store(&spares->taken[i], false);
        return true;
    }
    return false;
}
