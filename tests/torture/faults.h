/* Calls of libc's that can be made to fail. The library stands before libc in the search order of
 * the program that links it, so the plugin's own calls come here too. Only calls of threads that
 * asked for it are counted and fail. */
#ifndef GV_FAULTS_H
#define GV_FAULTS_H

#include <stdbool.h>

enum gv_fault {
    GV_FAULT_MEMORY, /* malloc, calloc, realloc */
    GV_FAULT_OPEN,   /* open, openat, fopen, opendir, fdopendir */
    GV_FAULT_READ,   /* read, readdir */
    GV_FAULT_WRITE,
    GV_FAULT_MMAP,
    GV_FAULT_STAT,     /* stat, lstat, fstat, fstatat */
    GV_FAULT_ALLOCATE, /* posix_fallocate */
    GV_FAULT_LOCK,     /* flock */
    GV_FAULT_MEMFD,    /* memfd_create, fcntl */
    GV_FAULT_FOLDER,   /* mkdir, realpath */
    GV_FAULT_RENAME,   /* rename, mkostemp, fchmod */
    GV_FAULT_SYNC,     /* fsync */
    GV_FAULT_DLOPEN,
    GV_FAULTS
};

/* The `n`th call of that kind fails from now on, and all later ones where `stays`; 0: none fails.
 * Counts from 0 again. */
void gv_faults_set(enum gv_fault kind, long n, bool stays);
/* Calls of that kind since then. */
long gv_faults_seen(enum gv_fault kind);
/* Allocations since then that were not given back; free counts where malloc does. */
long gv_faults_live(void);
/* Whether this thread's calls count. */
void gv_faults_here(bool on);

const char *gv_fault_name(enum gv_fault kind);

#endif
