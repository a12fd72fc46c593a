/* The output of another program, with a bound on how long it may take. */
#ifndef GV_CLI_CAPTURE_H
#define GV_CLI_CAPTURE_H

#include "base/gv_str.h"

/* Runs argv[0] (looked up on PATH), standard input and errors going to /dev/null, and adds what it
 * prints (64 KiB at most) to `out`. After `timeout_ms` it is killed. Returns 0 where it ended with
 * status 0 in time, else -1. */
int gv_capture(const char *const argv[], int timeout_ms, struct gv_str *out);

#endif
