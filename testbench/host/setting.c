/* NCCL_ALGO and NCCL_PROTO: "Ring,Tree", "^Tree", and from 2.24 "allreduce:ring;broadcast:tree". */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "testbench/host/engine.h"

static const char *const algo_names[] = {"Tree", "Ring",     "CollnetDirect", "CollnetChain",
                                         "NVLS", "NVLSTree", "PAT",           NULL};
static const char *const proto_names[] = {"LL", "LL128", "Simple", NULL};

static unsigned bits_of(char *list, const char *const *names)
{
    bool but = *list == '^';
    unsigned bits = 0;
    char *rest = NULL;
    for (char *item = strtok_r(list + but, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
        for (int i = 0; names[i]; i++)
            if (!strcasecmp(item, names[i]))
                bits |= 1u << i;
    return but ? ~bits : bits;
}

/* The bits that hold for AllReduce. */
static unsigned read_setting(const char *value, const char *const *names)
{
    unsigned bits = ~0u;
    char *copy, *rest = NULL;

    if (!value || !*value || !(copy = strdup(value)))
        return bits;
    for (char *part = strtok_r(copy, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
        char *colon = strchr(part, ':');
        if (colon)
            *colon = 0;
        if (!colon || !strcasecmp(part, "allreduce"))
            bits = bits_of(colon ? colon + 1 : part, names);
    }
    free(copy);
    return bits;
}

void gvh_read_choice(struct gvh_choice *out)
{
    out->protos = read_setting(gvh_getenv("NCCL_PROTO"), proto_names);
    out->algos = read_setting(gvh_getenv("NCCL_ALGO"), algo_names);
    gvh_lookups(GVH_AT_MODEL);
}
