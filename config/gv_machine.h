/* The machine as its sysfs describes it: which GPUs, under which bridges, on which NUMA node. Needs
 * no CUDA and no NVML, so it says the same in every process of a job, whatever that process may
 * see. */
#ifndef GV_MACHINE_H
#define GV_MACHINE_H

#include <stdint.h>

#include "base/gv_error.h"
#include "base/gv_gpuset.h"
#include "config/gv_profile.h"

struct gv_machine_gpu {
    char bus_id[20];    /* "0000:1a:00.0", lower case */
    char root_port[20]; /* topmost bridge above it; GPUs that share it are one island. "" where
                           there is none: then it is an island alone */
    uint16_t pci_vendor, pci_device;
    int numa_node;
    int link_width; /* current_link_width, -1 not known */
    int link_width_max;
    char uuid[48]; /* from /proc/driver/nvidia where readable (in a replayed machine from
                      <sysfs>/gv100/gpus/<bus id>/uuid), else "" */
};

struct gv_machine {
    struct gv_machine_gpu gpus[GV_MAX_GPUS]; /* PCI order (domain, bus, device, function) */
    int ngpus;
    char driver[32];  /* version from <sysfs>/module/nvidia/version; "" not known */
    char boot_id[40]; /* from /proc/sys/kernel/random/boot_id; in a replayed machine from
                         <sysfs>/gv100/boot_id if there, else "" */
    char host[65];    /* host name; in a replayed machine from <sysfs>/gv100/host if there */
    bool replayed;    /* the sysfs root was not /sys: a machine that is not here */
};

/* The sysfs root: $GV100_SYSFS where set (secure_getenv), else "/sys". */
const char *gv_sysfs_root(void);

/* Reads the machine below `sysfs` (as /sys). NVIDIA GPUs are PCI functions with vendor 10de and
 * class 0x0300xx or 0x0302xx. No GPU is no error (ngpus 0); over 64, or a folder that cannot be
 * read, is: -1 with `err`. */
int gv_machine_read(const char *sysfs, struct gv_machine *out, struct gv_error *err);

/* Whether the profile was made for this machine. On success fills map[machine index] = profile
 * index (-1 for a GPU the profile does not know, only for match uuid/bus-id) and returns 0. Else
 * -1, and `err` names the first field that differs ("GPU 6: PCI device 1db6 here, 1df6 in the
 * profile"). SHAPE compares number, PCI ids, NUMA nodes and the partition into islands in PCI order
 * (island names do not matter). A field the profile does not know is not compared, except that
 * SHAPE needs every GPU's PCI device and island: a profile without them would match machines that
 * it was not made for. UUID and BUS_ID compare PCI ids, NUMA nodes and islands too, since a board
 * that was moved to another slot has other paths. A GPU whose UUID this process cannot read (a
 * container may hide it) is found by its bus id if the profile has it. */
int gv_profile_matches(
    const struct gv_profile *profile, const struct gv_machine *machine, int map[GV_MAX_GPUS],
    struct gv_error *err);

/* Looks a profile up in this order: $GV100_PROFILE (a path, or the name of a shipped profile), then
 * every *.yaml in $XDG_CONFIG_HOME/gv100 (or ~/.config/gv100), /etc/gv100, the shipped folder; the
 * first that matches `machine`. `machine` may be NULL with GV100_PROFILE set: then no match is
 * asked for and `map` is not filled. Files that cannot be read are reported only when named by
 * GV100_PROFILE or when nothing else matches. `path_out` (may be NULL, PATH_MAX) receives where it
 * was found. Returns the profile or NULL with `err` (cause and next step). */
struct gv_profile *gv_profile_find(
    const struct gv_machine *machine, int map[GV_MAX_GPUS], char *path_out, struct gv_error *err);

/* Resolves a profile argument: a path if it holds a '/' or ends in .yaml, else a shipped profile's
 * name. Folders looked in: $GV100_PROFILE_DIR, the folder config/profiles beside the build or the
 * installed share folder. Returns 0 and fills out[PATH_MAX], or -1 with `err` naming the nearest
 * shipped name. */
int gv_profile_resolve(const char *name_or_path, char *out, struct gv_error *err);

/* The folder of shipped profiles: $GV100_PROFILE_DIR; else the first that is there of
 * ../share/gv100/profiles and ../../share/gv100/profiles (seen from the file that holds this code:
 * the command or the plugin; the build tree has the same layout), `profiles` beside it, the
 * installed share folder. Returns 0 and fills out[PATH_MAX], or -1 with `err`. */
int gv_profile_shipped_folder(char *out, struct gv_error *err);

#endif
