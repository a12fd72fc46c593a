/* The tables of the profile. Order here is the order in which a profile is written. */
#include "config/schema.h"

#include <math.h>

#include "config/check.h"
#include "config/gv_profile.h"
#include "config/schema_table.h"

static const struct gv_field gpu_fields[] = {
    INT(gv_profile_gpu, index, 0, GV_MAX_GPUS - 1, -1, REQUIRED,
        DOC "Number of the GPU in PCI order, from 0 without gaps."),
    TEXT(gv_profile_gpu, model, REQUIRED, DOC "Name of the board as the driver gives it."),
    PLAIN(gv_profile_gpu, pci_vendor, GV_T_HEX16, DOC "PCI vendor id, 0x10de for NVIDIA."),
    PLAIN(gv_profile_gpu, pci_device, GV_T_HEX16, DOC "PCI device id."),
    PLAIN(
        gv_profile_gpu, bus_id, GV_T_BUS_ID,
        DOC "PCI address, as in \"0000:1a:00.0\"; needed for `match: bus-id`."),
    TEXT(gv_profile_gpu, uuid, DOC "UUID of the board; needed for `match: uuid`."),
    INT(gv_profile_gpu, memory_mib, 0, 1e9, -1, DOC "Memory in MiB."),
    INT(gv_profile_gpu, numa_node, 0, 1023, -1, DOC "NUMA node of its PCI slot."),
    TEXT(
        gv_profile_gpu, island,
        DOC "GPUs with the same name are under one PCIe switch; a GPU alone has its own name."),
    INT(gv_profile_gpu, sm, 10, 999, -1, DOC "Compute capability without the point: 70, 80, 90."),
    INT(gv_profile_gpu, link_gen, 1, 16, -1, DOC "PCIe generation as trained under load."),
    INT(gv_profile_gpu, link_width, 1, 64, -1, DOC "PCIe lanes as trained under load."),
    INT(gv_profile_gpu, link_gen_max, 1, 16, -1, DOC "PCIe generation that board and slot could."),
    INT(gv_profile_gpu, link_width_max, 1, 64, -1, DOC "PCIe lanes that board and slot could."),
    INT(gv_profile_gpu, power_limit_w, 0, 100000, -1,
        DOC "Power limit in W that was in force when measured: a setting, not a property."),
    INT(gv_profile_gpu, app_core_mhz, 0, 100000, -1, DOC "Application clock of the core in MHz."),
    INT(gv_profile_gpu, max_core_mhz, 0, 100000, -1, DOC "Highest clock of the core in MHz."),
    INT(gv_profile_gpu, memory_mhz, 0, 100000, -1, DOC "Clock of the memory in MHz."),
    TEXT(gv_profile_gpu, note, DOC "A remark for people."),
    TEXT(gv_profile_gpu, source, DOC "File and line that imported figures are from."),
};
static OBJECT(
    gpu_object, gv_profile_gpu, "gpu", gpu_fields, gv_check_gpu,
    "One GPU. All other sections name GPUs by its `index`.");

static const struct gv_field machine_fields[] = {
    ENUM(
        gv_profile, match, match, GV_MATCH_SHAPE, REQUIRED,
        DOC "How the profile finds its machine: by UUIDs, by PCI addresses, or by shape (PCI ids, "
            "NUMA nodes and islands in PCI order; then it holds for every machine of the kind)."),
    TEXT(gv_profile, cpu_vendor, DOC "intel, amd, arm; left out where not known."),
    LIST(gv_profile, gpus, GV_MAX_GPUS, &gpu_object, REQUIRED, DOC "Every GPU of the machine."),
};
static OBJECT(
    machine_object, gv_profile, "machine", machine_fields, gv_check_machine,
    "The machine that the figures belong to.");

static const struct gv_field provenance_fields[] = {
    ENUM(
        gv_profile_provenance, kind, provenance, GV_PUBLISHED, REQUIRED,
        DOC "Where the figures come from: `cuda` was measured by gv100, `virtual` by its testbench "
            "(never used on a real machine)."),
    TEXT(gv_profile_provenance, date, DOC "Day of the measurement, as in 2026-08-23."),
    TEXT(gv_profile_provenance, driver, DOC "Version of the NVIDIA driver."),
    TEXT(gv_profile_provenance, cuda, DOC "CUDA version that the measuring code was built with."),
    TEXT(gv_profile_provenance, nccl, DOC "NCCL version, as in 2.28.9."),
    TEXT(gv_profile_provenance, tool, DOC "Program that measured, with its version."),
    TEXT(gv_profile_provenance, nccl_tests, DOC "Version of nccl-tests, where it measured."),
    TEXT(gv_profile_provenance, source, DOC "Publication or file that the figures are from."),
    TEXT(gv_profile_provenance, kernel, DOC "Linux kernel."),
    TEXT(gv_profile_provenance, container, DOC "Container image, where measured in one."),
};
static OBJECT(
    provenance_object, gv_profile_provenance, "provenance", provenance_fields, NULL,
    "Where the figures come from.");

static const struct gv_field host_fields[] = {
    TEXT(gv_profile_host, cpu_model, DOC "Processor, as the host names it."),
    TEXT(
        gv_profile_host, iommu,
        DOC "`off`, or how the IOMMU treats the GPUs: identity, DMA, DMA-FQ (these translate); or "
            "`unknown`."),
    INT(gv_profile_host, shm_mib, 0, 1e9, -1,
        DOC "Size of /dev/shm in MiB; left out where not known."),
    INT(gv_profile_host, peers, 0, GV_MAX_GPUS, -1,
        DOC "P2P connections that the first GPU held at once (CUDA allows 8); left out where not "
            "tried."),
};
static OBJECT(
    host_object, gv_profile_host, "host", host_fields, NULL,
    "The host when it was measured. `gv100 check` compares it with what it finds.");

static const struct gv_field memory_fields[] = {
    PLAIN(gv_profile_memory, gpus, GV_T_GPUS, REQUIRED, DOC "GPUs that the figures hold for."),
    NUMBER(gv_profile_memory, theoretical_gbs, 1e9, NAN, DOC "Bus width times clock, in GB/s."),
    FIGURE(
        gv_profile_memory, copy_gbs,
        DOC "Copy inside the GPU in GB/s, bytes read plus bytes written."),
    FIGURE(gv_profile_memory, read_gbs, DOC "Reads in GB/s."),
    FIGURE(gv_profile_memory, write_gbs, DOC "Writes in GB/s."),
    FIGURE(gv_profile_memory, triad_gbs, DOC "a = b + s * c in GB/s, reads plus writes."),
    TEXT(gv_profile_memory, note, DOC "A remark for people, such as \"mean of six\"."),
    TEXT(gv_profile_memory, source, DOC "File and line that imported figures are from."),
};
static OBJECT(
    memory_object, gv_profile_memory, "memory", memory_fields, NULL,
    "Bandwidth of the GPUs' own memory.");

static const struct gv_field host_link_fields[] = {
    PLAIN(
        gv_profile_host_link, gpus, GV_T_GPUS, REQUIRED,
        DOC "One GPU, or the GPUs that ran together."),
    PLAIN(
        gv_profile_host_link, together, GV_T_BOOL,
        DOC "true: all of `gpus` at once, figures are each GPU's share."),
    PLAIN(
        gv_profile_host_link, root_port, GV_T_BUS_ID,
        DOC "PCI address of the topmost bridge above them."),
    FIGURE(gv_profile_host_link, to_device_gbs, DOC "Host memory to GPU in GB/s."),
    FIGURE(gv_profile_host_link, to_host_gbs, DOC "GPU to host memory in GB/s."),
    TEXT(gv_profile_host_link, source, DOC "File and line that imported figures are from."),
};
static OBJECT(
    host_link_object, gv_profile_host_link, "host link", host_link_fields, NULL,
    "Transfers between host memory and GPUs.");

static const struct gv_field path_fields[] = {
    PLAIN(gv_profile_path, from, GV_T_GPUS, REQUIRED, DOC "GPUs at the writing end."),
    PLAIN(
        gv_profile_path, to, GV_T_GPUS, REQUIRED,
        DOC "GPUs at the other end. The entry covers each pair of one of `from` and one of `to`; "
            "no pair may be covered by two entries."),
    PLAIN(
        gv_profile_path, both_directions, GV_T_BOOL,
        DOC "true: it covers the way from `to` to `from` too."),
    ENUM(
        gv_profile_path, nccl_class, path_class, GV_PATH_UNKNOWN,
        DOC "Class of the path as NCCL names it."),
    TEXT(
        gv_profile_path, smi_class,
        DOC "Class as `nvidia-smi topo -m` prints it: PIX, PXB, PHB, NODE, SYS, NV4."),
    INT(gv_profile_path, nvlinks, 0, 64, 0, DOC "Number of NVLinks of the pair."),
    ENUM(
        gv_profile_path, p2p, p2p, GV_P2P_UNVERIFIED,
        DOC "What is known about P2P on it. Only `verified` is ever turned on; `corrupt`, `hung` "
            "and `one-way` pairs are kept apart."),
    FIGURE(gv_profile_path, write_gbs, DOC "P2P writes one way in GB/s."),
    FIGURE(gv_profile_path, read_gbs, DOC "P2P reads one way in GB/s."),
    FIGURE(gv_profile_path, both_ways_gbs, DOC "P2P writes both ways at once, the sum in GB/s."),
    FIGURE(gv_profile_path, latency_us, DOC "Latency of a write by the GPU in microseconds."),
    FIGURE(
        gv_profile_path, loaded_write_gbs,
        DOC "P2P writes in GB/s while other pairs use the same links."),
    FIGURE(
        gv_profile_path, host_path_gbs,
        DOC "Copy through host memory in GB/s, for pairs without P2P; never a P2P figure."),
    TEXT(
        gv_profile_path, acs,
        DOC "`off`, or the bridges between them at which PCIe access control redirects P2P, or "
            "`unknown` (only root may read it)."),
    TEXT(gv_profile_path, note, DOC "A remark for people."),
    TEXT(gv_profile_path, source, DOC "File and line that imported figures are from."),
};
static OBJECT(
    path_object, gv_profile_path, "path", path_fields, gv_check_path,
    "What is known about the way between GPUs. A pair that no entry covers is `unverified`.");

static const struct gv_field run_fields[] = {
    TEXT(gv_profile_run, name, REQUIRED, DOC "\"first\", \"again\", or a date."),
    {.key = "busbw_gbs",
     .type = GV_T_SAMPLES,
     AT(gv_profile_run, busbw_gbs),
     COUNT(gv_profile_run, count),
     .min = 0,
     .max = 1e9,
     .limit = 100000,
     REQUIRED,
     DOC "Every sample in the order taken, bus bandwidth in GB/s as nccl-tests defines it."},
    {.key = "throttled",
     .type = GV_T_FLAGS,
     AT(gv_profile_run, throttled),
     COUNT(gv_profile_run, count),
     .limit = 100000,
     DOC "For each sample: was a GPU throttled meanwhile. Left out where none was."},
    NUMBER(
        gv_profile_run, algbw_gbs, 1e9, NAN,
        DOC "Algorithm bandwidth in GB/s, where published beside it."),
    TEXT(
        gv_profile_run, source,
        DOC "File and line that imported figures are from, or what they rest on."),
};
static OBJECT(
    run_object, gv_profile_run, "run", run_fields, NULL,
    "Samples that were taken together. A group's variants are compared over all runs.");

static const struct gv_field variant_fields[] = {
    ENUM(
        gv_profile_variant, edit, edit, GV_EDIT_NONE, REQUIRED,
        DOC "How it was made to differ from NCCL's default; `none` is the default itself."),
    INT(gv_profile_variant, lend_count, 0, 64, 0,
        DOC "NVLinks in each lent entry; left out: the smallest that suffices."),
    {.key = "lend",
     .type = GV_T_PAIRS,
     AT(gv_profile_variant, lend),
     COUNT(gv_profile_variant, nlend),
     .known_offset = GV_NO_OFFSET,
     .limit = 16,
     DOC "Pairs of GPUs that a link was lent to, as in [[4, 5], [8, 0]]."},
    ENUM(
        gv_profile_variant, algorithm, algo, GV_ALGO_ANY,
        DOC "Algorithm that was forced; left out: NCCL's choice."),
    ENUM(
        gv_profile_variant, protocol, proto, GV_PROTO_ANY,
        DOC "Protocol that was forced; left out: NCCL's choice."),
    INT(gv_profile_variant, channels, 0, 64, 0,
        DOC "Channels that were forced; left out: NCCL's choice."),
    LIST(gv_profile_variant, runs, 256, &run_object, REQUIRED, DOC "The runs, at least one."),
};
static OBJECT(
    variant_object, gv_profile_variant, "variant", variant_fields, gv_check_variant,
    "One way in which the group was measured.");

static const struct gv_field group_fields[] = {
    PLAIN(gv_profile_group, gpus, GV_T_GPUS, REQUIRED, DOC "GPUs of the communicator."),
    ENUM(gv_profile_group, op, op, GV_OP_ALL_REDUCE, REQUIRED, DOC "Operation that was measured."),
    PLAIN(
        gv_profile_group, bytes, GV_T_BYTES, REQUIRED,
        DOC "Size of the operation as nccl-tests writes it (1M = 1048576 bytes)."),
    PLAIN(
        gv_profile_group, loaded, GV_T_BOOL, DOC "true: measured while other groups were at work."),
    {.key = "ring",
     .type = GV_T_ORDER,
     AT(gv_profile_group, ring),
     COUNT(gv_profile_group, nring),
     .limit = GV_MAX_GPUS,
     DOC "Order of NCCL's default ring, as in [0, 1, 2]."},
    {.key = "shm_edges",
     .type = GV_T_PAIRS,
     AT(gv_profile_group, shm_edges),
     COUNT(gv_profile_group, nshm_edges),
     .known_offset = offsetof(struct gv_profile_group, shm_edges_known),
     .limit = GV_MAX_GPUS,
     DOC "Edges of the ring that go through shared memory by default, as in [[4, 5], [5, 0]]; [] "
         "says that none does, left out that it is not known."},
    LIST(
        gv_profile_group, variants, 256, &variant_object, REQUIRED,
        DOC "The ways in which it was measured."),
};
static OBJECT(
    group_object, gv_profile_group, "group", group_fields, gv_check_group,
    "Everything measured for one set of GPUs, one operation and one size.");

static const struct gv_field handoff_fields[] = {
    INT(gv_profile_handoff, from, 0, GV_MAX_GPUS - 1, -1, REQUIRED, DOC "GPU of the stage before."),
    INT(gv_profile_handoff, to, 0, GV_MAX_GPUS - 1, -1, REQUIRED, DOC "GPU of the stage after."),
    PLAIN(gv_profile_handoff, bytes, GV_T_BYTES, REQUIRED, DOC "Bytes handed over in each step."),
    NUMBER(
        gv_profile_handoff, compute_us, 1e12, NAN,
        DOC "What a step computes, both stages together, in microseconds."),
    PLAIN(gv_profile_handoff, graph, GV_T_BOOL, DOC "true: steps were replayed from a CUDA graph."),
    PLAIN(
        gv_profile_handoff, host_traffic, GV_T_BOOL,
        DOC "true: both GPUs pulled from host memory meanwhile."),
    PLAIN(
        gv_profile_handoff, data_ok, GV_T_BOOL,
        DOC "true: a pattern arrived right over both paths. Without it the direct path is never "
            "taken by itself."),
    TEXT(
        gv_profile_handoff, host_method,
        DOC "The faster way through the host: mapped (read in place) or staged (copied)."),
    TEXT(
        gv_profile_handoff, peer_method,
        DOC "The faster direct way: copy or read (in place); left out where there is none."),
    FIGURE(gv_profile_handoff, host_us, DOC "The hand-off alone through the host, microseconds."),
    FIGURE(gv_profile_handoff, peer_us, DOC "The hand-off alone from GPU to GPU, microseconds."),
    FIGURE(gv_profile_handoff, host_step_us, DOC "A whole step over the host path, microseconds."),
    FIGURE(gv_profile_handoff, peer_step_us, DOC "A whole step over the direct path."),
    ENUM(
        gv_profile_handoff, verdict, handoff_verdict, GV_HANDOFF_TIE,
        DOC "What the direct path made of the step: gain, tie or loss. Only a gain of at least "
            "`min_gain` is taken by itself."),
};
static OBJECT(
    handoff_object, gv_profile_handoff, "handoff", handoff_fields, gv_check_handoff,
    "A buffer handed from one stage's GPU to the next, over both paths, as part of a step.");

static const struct gv_field tuner_fields[] = {
    ENUM(
        gv_profile_tuner, op, op, GV_OP_ALL_REDUCE, REQUIRED,
        DOC "Operation. A tuner is not asked about SendRecv and AllToAll."),
    PLAIN(
        gv_profile_tuner, min_bytes, GV_T_BYTES,
        DOC "Smallest size that the row holds for, as NCCL gives it to a tuner; left out: 0."),
    PLAIN(
        gv_profile_tuner, max_bytes, GV_T_BYTES,
        DOC "Largest size that the row holds for, itself included; left out: no end."),
    ENUM(gv_profile_tuner, algorithm, algo, GV_ALGO_ANY, REQUIRED, DOC "Algorithm to take."),
    ENUM(gv_profile_tuner, protocol, proto, GV_PROTO_ANY, REQUIRED, DOC "Protocol to take."),
    INT(gv_profile_tuner, channels, 0, 64, 0, DOC "Channels; left out: NCCL's own number."),
    INT(gv_profile_tuner, nodes, 1, 1e6, -1,
        DOC "Nodes of the communicator; left out: any. Rows for several nodes are kept and never "
            "used."),
    INT(gv_profile_tuner, ranks, 1, 1e6, -1, DOC "Ranks of the communicator; left out: any."),
    INT(gv_profile_tuner, pipe_ops, 1, 1e6, -1,
        DOC "Operations in the pipeline; left out: any. A row that asks for a number is kept and "
            "never used."),
    INT(gv_profile_tuner, registered, 0, 1, -1,
        DOC "1: registered user buffers, 0: others; left out: either. A row that asks for one kind "
            "is kept and never used."),
    TEXT(gv_profile_tuner, source, DOC "File and line that the row is from."),
};
static OBJECT(
    tuner_object, gv_profile_tuner, "tuner row", tuner_fields, gv_check_tuner,
    "Choices that somebody wrote down, without figures (`gv100 import` reads them from the "
    "configuration of NCCL's example tuner). They hold for operations of which no choice was "
    "measured for the GPUs in question, with any NCCL; of several rows that fit, the first.");

static const struct gv_field policy_fields[] = {
    NUMBER(
        gv_profile_policy, min_gain, 10, 0.03,
        DOC "Smallest gain of medians for which the default is left (0.03 = 3 %)."),
    NUMBER(
        gv_profile_policy, max_loss, 1, 0.05,
        DOC "Largest loss of any other measured operation that is accepted (0.05 = 5 %)."),
    PLAIN(
        gv_profile_policy, operations, GV_T_OPS,
        DOC "Operations that the jobs of this machine use; left out: any."),
};
static OBJECT(
    policy_object, gv_profile_policy, "policy", policy_fields, NULL, "How decisions are made.");

static const struct gv_field profile_fields[] = {
    {.key = "gv100_profile",
     .type = GV_T_SCHEMA,
     .max = GV_PROFILE_SCHEMA,
     REQUIRED,
     DOC "Number of the schema: 1."},
    TEXT(gv_profile, name, REQUIRED, DOC "Name of the machine or of its kind."),
    SECTION("machine", 0, &machine_object, REQUIRED, DOC "The machine."),
    SECTION(
        "provenance", offsetof(struct gv_profile, provenance), &provenance_object, REQUIRED,
        DOC "Where the figures come from."),
    SECTION(
        "host", offsetof(struct gv_profile, host), &host_object, DOC "The host around the GPUs."),
    LIST(gv_profile, memory, 1024, &memory_object, DOC "Memory bandwidth."),
    LIST(gv_profile, host_links, 1024, &host_link_object, DOC "Host links."),
    LIST(gv_profile, paths, 8192, &path_object, DOC "Paths between GPUs."),
    LIST(gv_profile, groups, 4096, &group_object, DOC "Measured collectives."),
    LIST(gv_profile, handoffs, 4096, &handoff_object, DOC "Measured stage hand-offs."),
    LIST(gv_profile, tuner, 1024, &tuner_object, DOC "Choices without figures."),
    SECTION("policy", offsetof(struct gv_profile, policy), &policy_object, DOC "How to decide."),
    {.key = "complete",
     .type = GV_T_END,
     REQUIRED,
     DOC "Always true, the last line: a file that was cut short lacks it."},
};
OBJECT(
    gv_object_profile, gv_profile, "profile", profile_fields, gv_check_profile,
    "What was measured on a machine.");
