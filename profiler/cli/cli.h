/* What every subcommand of `gv100` shares: the table entry, exit statuses, colour, errors. */
#ifndef GV_CLI_H
#define GV_CLI_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/gv_error.h"
#include "base/gv_gpuset.h"
#include "profiler/collective/gv_release.h"
#include "profiler/compare/number.h"

/* Exit statuses of the command, the same for every subcommand. `run` passes on its command's. */
enum gv_exit {
    GV_EXIT_OK = 0,
    GV_EXIT_NO = 1,     /* the answer is no: `check`, `doctor`; elsewhere only with --exit-code */
    GV_EXIT_USAGE = 2,  /* the command line is wrong */
    GV_EXIT_FAILED = 3, /* the machine, a profile or a file could not be read */
};

/* One subcommand. `argp` holds its options, arguments and prose: help, man page and completions are
 * all made from it, so nothing about an option stands anywhere else. */
struct gv_command {
    const char *name;
    const char *summary; /* one line, without a full stop */
    const struct argp *argp;
    /* `argv[0]` is "gv100 NAME". Returns the exit status. */
    int (*run)(const struct gv_command *self, int argc, char **argv);
};

extern const struct gv_command gv_cmd_calibrate, gv_cmd_check, gv_cmd_place, gv_cmd_compare,
    gv_cmd_doctor, gv_cmd_env, gv_cmd_explain, gv_cmd_fleet, gv_cmd_handoff, gv_cmd_import,
    gv_cmd_bundle, gv_cmd_log, gv_cmd_run, gv_cmd_show, gv_cmd_verify;

/* All of them in the order of `gv100 --help`, ended by NULL. */
extern const struct gv_command *const gv_commands[];

/* argp_parse with the command's own table. A wrong command line ends the process with
 * GV_EXIT_USAGE. `flags` as argp's. */
void gv_cli_parse(const struct gv_command *cmd, int argc, char **argv, unsigned flags, void *input);

/* Writes "gv100 NAME: file:line:column: text" to stderr. Returns `status`. */
int gv_cli_fail(const struct gv_command *cmd, int status, const struct gv_error *err);

/* The man page of `cmd` (NULL: of gv100 itself) as troff, made from the same table as the help. */
void gv_man_write(FILE *out, const struct gv_command *cmd);

/* Completions of all commands, made from the same tables. */
void gv_complete_bash(FILE *out);
void gv_complete_zsh(FILE *out);
void gv_complete_fish(FILE *out);

enum gv_style { GV_PLAIN, GV_BOLD, GV_DIM, GV_GOOD, GV_BAD, GV_WARN_STYLE };

/* The escape sequence that starts a style on stdout, "" where stdout is no terminal or NO_COLOR is
 * set. GV_PLAIN ends any style. */
const char *gv_style(enum gv_style style);

/* Prints a result to stdout, two blanks of indentation, keys in the order they were set; takes the
 * reference. Returns `status`, or GV_EXIT_FAILED where stdout could not be written. */
int gv_json_print(const struct gv_command *cmd, json_t *value, int status);

/* The set as a list of indexes. New reference. */
json_t *gv_json_gpus(gv_gpuset set);

#endif
