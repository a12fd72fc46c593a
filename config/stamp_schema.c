/* The tables of the stamp, and what its file must fulfil beyond them. */
#include "config/schema_table.h"
#include "config/stamp_file.h"

static int check_gpu(struct gv_reader *r, int node, void *object)
{
    const struct gv_stamp_gpu *gpu = object;
    if (gpu->index != r->ngpus)
        return gv_reader_fail(
            r, node, "index: GPUs are listed in order from 0 without gaps; %d is expected here",
            r->ngpus);
    r->ngpus++;
    return 0;
}

static int check_stamp(struct gv_reader *r, int node, void *object)
{
    const struct gv_stamp_file *file = object;
    gv_gpuset covered[GV_MAX_GPUS] = {0};
    for (int i = 0; i < file->npairs; i++) {
        for (gv_gpuset rest = file->pairs[i].from; rest; rest &= rest - 1) {
            int from = gv_gpuset_first(rest);
            gv_gpuset to = file->pairs[i].to & ~GV_GPU_BIT(from);
            if (covered[from] & to)
                return gv_reader_fail(
                    r, node, "pairs: %d to %d stands twice", from,
                    gv_gpuset_first(covered[from] & to));
            covered[from] |= to;
        }
    }
    return 0;
}

static const struct gv_field gpu_fields[] = {
    INT(gv_stamp_gpu, index, 0, GV_MAX_GPUS - 1, -1, REQUIRED, DOC "Number in PCI order."),
    PLAIN(gv_stamp_gpu, bus_id, GV_T_BUS_ID, REQUIRED, DOC "PCI address."),
};
static OBJECT(gpu_object, gv_stamp_gpu, "gpu", gpu_fields, check_gpu, "A GPU of the host.");

static const struct gv_field pairs_fields[] = {
    PLAIN(gv_stamp_pairs, from, GV_T_GPUS, REQUIRED, DOC "GPUs at the writing end."),
    PLAIN(gv_stamp_pairs, to, GV_T_GPUS, REQUIRED, DOC "GPUs at the other end."),
    ENUM(
        gv_stamp_pairs, p2p, p2p, GV_P2P_UNVERIFIED, REQUIRED,
        DOC "What the check found for each of these ordered pairs."),
};
static OBJECT(pairs_object, gv_stamp_pairs, "pair", pairs_fields, NULL, "Pairs that were checked.");

static const struct gv_field stamp_fields[] = {
    {.key = "gv100_stamp",
     .type = GV_T_SCHEMA,
     .max = GV_STAMP_SCHEMA,
     REQUIRED,
     DOC "Number of the schema: 1."},
    TEXT(gv_stamp_file, host, DOC "Name of the host, for people."),
    TEXT(gv_stamp_file, boot_id, DOC "The boot in which it was checked."),
    TEXT(gv_stamp_file, driver, DOC "Version of the driver that was loaded."),
    TEXT(gv_stamp_file, date, DOC "When it was checked."),
    TEXT(gv_stamp_file, tool, DOC "What checked it."),
    LIST(gv_stamp_file, gpus, GV_MAX_GPUS, &gpu_object, REQUIRED, DOC "Every GPU of the host."),
    LIST(
        gv_stamp_file, pairs, GV_MAX_GPUS *GV_MAX_GPUS, &pairs_object,
        DOC "Pairs that were checked."),
    {.key = "complete", .type = GV_T_END, REQUIRED, DOC "Always true, the last line."},
};
OBJECT(
    gv_object_stamp, gv_stamp_file, "stamp", stamp_fields, check_stamp,
    "Proof that P2P was checked on this host since it booted.");
