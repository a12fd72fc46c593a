#include "profiler/doctor/gv_doctor.h"

struct row {
    int from; /* NCCL release that asks for it first */
    int version;
};

/* From the symbols that each release looks up: sources of 2.19.3 to 2.30.7, and the strings of the
 * published libraries up to 2.32.3. Every one of these the plugin exports. */
static const struct row tuner[] = {{21900, 1}, {22105, 2}, {22203, 3}, {22403, 4},
                                   {22803, 5}, {23003, 6}, {0}};
static const struct row net[] = {{21900, 7},  {22000, 8},  {22403, 9}, {22602, 10},
                                 {22803, 11}, {23003, 12}, {0}};
static const struct row env[] = {{22807, 1}, {23007, 2}, {0}};

static int newest(const struct row *rows, int release)
{
    int version = 0;
    for (; rows->from; rows++)
        if (release >= rows->from)
            version = rows->version;
    return version;
}

void gv_slots_of(int nccl_version, struct gv_slots *out)
{
    out->tuner = newest(tuner, nccl_version);
    out->net = newest(net, nccl_version);
    out->env = newest(env, nccl_version);
}
