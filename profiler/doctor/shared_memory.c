/* /dev/shm, where ranks meet, and who may sweep it. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/gv_file.h"
#include "profiler/doctor/gv_doctor.h"

#define MIB (1024.0 * 1024)

/* Docker gives a container 64 MiB unless told otherwise; NVIDIA's guide for NCCL in containers
 * (troubleshooting, "Docker") asks for --shm-size=1g. */
#define ENOUGH_MIB 1024

static void room(const char *folder, struct gv_findings *findings)
{
    struct statvfs st;
    if (statvfs(folder, &st)) {
        gv_finding_add(
            findings, "shm", GV_VERDICT_NO, "mount a tmpfs there; in a container --shm-size=1g",
            "%.200s is not there: %s", folder, strerror(errno));
        return;
    }
    double size = (double)st.f_blocks * (double)st.f_frsize / MIB;
    double free_mib = (double)st.f_bavail * (double)st.f_frsize / MIB;
    bool full = free_mib < 1, small = size < ENOUGH_MIB;
    gv_finding_add(
        findings, "shm",
        full    ? GV_VERDICT_NO
        : small ? GV_VERDICT_WARN
                : GV_VERDICT_OK,
        full    ? "free or enlarge it: NCCL's SHM transport and the ranks' registry need it"
        : small ? "NCCL's SHM transport may run out of it: --shm-size=1g in a container"
                : NULL,
        "%.200s has %.0f MiB, %.0f free", folder, size, free_mib);
    if (access(folder, W_OK | X_OK) && !getenv("GV100_SHM_DIR"))
        gv_finding_add(
            findings, "shm", GV_VERDICT_NO,
            "make it writable (mode 1777), or name a folder in GV100_SHM_DIR",
            "%.200s cannot be written by this user, so ranks cannot agree and keep NCCL's default",
            folder);
}

/* "RemoveIPC=no" of logind; the last one read wins. */
static void scan(char *text, const char *path, struct gv_finding *found)
{
    unsigned line = 1;
    for (char *p = text; *p; line++) {
        size_t n = strcspn(p, "\n");
        bool more = p[n];
        p[n] = '\0';
        char value[16];
        if (sscanf(p, " RemoveIPC = %15s", value) == 1) {
            found->line = line;
            snprintf(found->file, sizeof(found->file), "%.255s", path);
            snprintf(found->text, sizeof(found->text), "%s", value);
        }
        p += n + more;
    }
}

static void scan_file(const char *path, struct gv_finding *found)
{
    size_t len;
    char *text = gv_file_read(path, GV_FILE_ANY, 1u << 20, &len, NULL);
    if (text)
        scan(text, path, found);
    free(text);
}

static int is_conf(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 5 && !strcmp(e->d_name + n - 5, ".conf");
}

static void scan_folder(const char *folder, struct gv_finding *found)
{
    struct dirent **files;
    char path[PATH_MAX];
    int n = scandir(folder, &files, is_conf, alphasort);
    for (int i = 0; i < n; i++) {
        if (snprintf(path, sizeof(path), "%s/%s", folder, files[i]->d_name) < (int)sizeof(path))
            scan_file(path, found);
        free(files[i]);
    }
    if (n >= 0)
        free(files);
}

static bool says_no(const char *value)
{
    static const char *const no[] = {"no", "false", "off", "0", "n", "f"};
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        if (!strcasecmp(value, no[i]))
            return true;
    return false;
}

/* System users (below 1000 on the distributions at hand) are exempt in logind. */
static void remove_ipc(struct gv_findings *findings)
{
    static const char *const folders[] = {
        "/usr/lib/systemd/logind.conf.d", "/run/systemd/logind.conf.d",
        "/etc/systemd/logind.conf.d"};
    char path[PATH_MAX];
    struct gv_finding found = {0};
    snprintf(path, sizeof(path), "%s/run/systemd/seats", gv_root());
    if (access(path, F_OK)) {
        gv_finding_add(
            findings, "ipc", GV_VERDICT_OK, NULL,
            "no logind here that would sweep /dev/shm when a user logs out");
        return;
    }
    snprintf(path, sizeof(path), "%s/etc/systemd/logind.conf", gv_root());
    scan_file(path, &found);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", gv_root(), folders[i]);
        scan_folder(path, &found);
    }
    bool off = found.text[0] && says_no(found.text);
    struct gv_finding *f = gv_finding_add(
        findings, "ipc", off ? GV_VERDICT_OK : GV_VERDICT_NOTE,
        off ? NULL
            : "RemoveIPC=no in /etc/systemd/logind.conf, where jobs outlive their user's login",
        off ? "logind leaves /dev/shm alone (RemoveIPC=%s)"
            : "logind sweeps a user's files in /dev/shm at the last logout (RemoveIPC=%s): "
              "communicators made after that keep NCCL's default",
        found.text[0] ? found.text : "yes, its default");
    snprintf(f->file, sizeof(f->file), "%s", found.file);
    f->line = found.line;
}

void gv_doctor_shared_memory(struct gv_findings *findings)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/dev/shm", gv_root());
    room(folder, findings);
    remove_ipc(findings);
}
