/* Runs a command as if it had been started directly: its terminal, its signals, its status. */
#ifndef GV_CLI_SUPERVISE_H
#define GV_CLI_SUPERVISE_H

#include <sys/types.h>

/* Starts `argv` (argv[0] looked up on PATH) in this process group, with the environment as it is,
 * and waits. Signals that reach this process alone are passed on; those of the terminal reach the
 * whole group by themselves. `*out_status` receives waitpid's status. Returns 0; or the errno with
 * which it could not be started. */
int gv_supervise(char *const argv[], int *out_status);

/* Ends this process as a shell would report `status`: the same exit status, or the same signal
 * (without a core dump of our own). Returns the exit status to use. */
int gv_supervise_end(int status);

#endif
