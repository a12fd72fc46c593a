/* Where the dynamic loader would find a library, and what a program is linked with. */
#ifndef GV_CLI_LOADER_H
#define GV_CLI_LOADER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The loader's search for `name` in a program without a run path: LD_LIBRARY_PATH, ld.so.cache,
 * the system's folders. Returns how many existing files it would meet in that order (`max` at
 * most). */
int gv_loader_search(const char *name, char out[][PATH_MAX], int max);

/* The program that `command` starts, looked up on PATH as execvp does; links are kept. 0 or -1. */
int gv_program_path(const char *command, char out[PATH_MAX]);

/* Where the loader finds `name` among the libraries that the dynamically linked program `path`
 * names; the loader only lists them, the program does not start. 0, or -1: not linked with it, or
 * no such program. */
int gv_loader_linked(const char *path, const char *name, char out[PATH_MAX]);

/* The interpreter named in a script's first line ("#!"), without its arguments; of "/usr/bin/env X"
 * the X. 0 or -1. */
int gv_script_interpreter(const char *path, char *out, size_t out_size);

#endif
