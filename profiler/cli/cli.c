#include "profiler/cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void gv_cli_parse(const struct gv_command *cmd, int argc, char **argv, unsigned flags, void *input)
{
    argp_err_exit_status = GV_EXIT_USAGE;
    argp_parse(cmd->argp, argc, argv, flags, NULL, input);
}

int gv_cli_fail(const struct gv_command *cmd, int status, const struct gv_error *err)
{
    char text[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    fprintf(stderr, "gv100 %s: %s\n", cmd->name, gv_error_format(err, text, sizeof(text)));
    return status;
}

static bool colour(void)
{
    static int known = -1; /* one answer for the whole run of the command */
    if (known < 0) {
        const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
        known = isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
    }
    return known;
}

const char *gv_style(enum gv_style style)
{
    static const char *const escapes[] = {
        [GV_PLAIN] = "\033[0m", [GV_BOLD] = "\033[1m", [GV_DIM] = "\033[2m",
        [GV_GOOD] = "\033[32m", [GV_BAD] = "\033[31m", [GV_WARN_STYLE] = "\033[33m",
    };
    return colour() ? escapes[style] : "";
}

int gv_json_print(const struct gv_command *cmd, json_t *value, int status)
{
    int rc = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(value);
    putchar('\n');
    if (rc == 0 && fflush(stdout) == 0)
        return status;
    struct gv_error err;
    gv_error_set(&err, "the result could not be written to standard output");
    return gv_cli_fail(cmd, GV_EXIT_FAILED, &err);
}

json_t *gv_json_gpus(gv_gpuset set)
{
    json_t *list = json_array();
    for (gv_gpuset rest = set; rest; rest &= rest - 1)
        json_array_append_new(list, json_integer(gv_gpuset_first(rest)));
    return list;
}
