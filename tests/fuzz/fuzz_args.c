/* The command line: each line of the input is one argument of gv100. The whole of main and every
 * subcommand's own options run, up to where the subcommand would begin its work. What is accepted
 * is accepted without a word and again the next time; what is refused says why. A job's own words
 * are left as they are. */
#include <argp.h>
#include <setjmp.h>

#include "profiler/cli/cli.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_ARGS = 64, ACCEPTED = 1, REFUSED = 2 };

int gv_cli_main(int argc, char **argv); /* main of gv100 */

static jmp_buf done, refused;
static argp_parser_t parser;
static FILE *said;
static char *text;
static size_t len;

/* argp's own way to end is exit(); here the parser returns an error instead, so that argp releases
 * what it has. */
static error_t parse(int key, char *arg, struct argp_state *state)
{
    return setjmp(refused) ? EINVAL : parser(key, arg, state);
}

void __wrap_argp_error(const struct argp_state *state, const char *format, ...);
void __wrap_argp_error(const struct argp_state *state, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "%s: ", state->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    longjmp(refused, 1);
}

static void same_words(char **argv, char **before, int argc, unsigned flags)
{
    for (int i = 0; i < argc; i++) {
        bool found = flags & ARGP_IN_ORDER ? argv[i] == before[i] : false;
        for (int k = 0; k < argc && !found; k++)
            found = argv[i] == before[k];
        GV_MUST(found && (!(flags & ARGP_IN_ORDER) || argv[i] == before[i]));
    }
}

void __wrap_gv_cli_parse(
    const struct gv_command *cmd, int argc, char **argv, unsigned flags, void *input);
void __wrap_gv_cli_parse(
    const struct gv_command *cmd, int argc, char **argv, unsigned flags, void *input)
{
    struct argp argp = *cmd->argp;
    char *before[MOST_ARGS + 1];
    memcpy(before, argv, sizeof(*argv) * (size_t)argc);
    parser = argp.parser;
    argp.parser = parse;
    int rc = argp_parse(&argp, argc, argv, flags | ARGP_NO_EXIT, NULL, input);
    same_words(argv, before, argc, flags);
    longjmp(done, rc ? REFUSED : ACCEPTED);
}

/* argp's own words, which print; and the letter 0xff, which it refuses and then takes for the end of
 * the options. */
static bool of_argp(const char *arg)
{
    static const char *const words[] = {"--help", "--usage", "--program-name", "--version", "-?"};
    size_t n = strcspn(arg, "=");
    for (size_t i = 0; n > 1 && i < sizeof(words) / sizeof(words[0]); i++)
        if (!strncmp(words[i], arg, n))
            return true;
    return arg[0] == '-' && arg[1] != '-' && (strchr(arg, '?') || strchr(arg, '\xff'));
}

static int once(int argc, char **argv)
{
    char *copy[MOST_ARGS + 1];
    memcpy(copy, argv, sizeof(*argv) * (size_t)(argc + 1));
    rewind(said);
    int how = setjmp(done);
    if (!how)
        how = gv_cli_main(argc, copy) ? REFUSED : ACCEPTED;
    fflush(said);
    return how;
}

static void begin(void)
{
    if (said)
        return;
    said = open_memstream(&text, &len);
    GV_MUST(said);
    stderr = said;
    stdout = said;
}

static int split(char *input, char **argv)
{
    static char self[] = "gv100";
    int argc = 0;
    argv[argc++] = self;
    for (char *p = input; p && argc < MOST_ARGS;)
        argv[argc++] = strsep(&p, "\n");
    if (argc > 1 && !argv[argc - 1][0]) /* a file ends with an end of line */
        argc--;
    argv[argc] = NULL;
    return argc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[MOST_ARGS + 1], *input = gv_fuzz_text(data, size);
    int argc = split(input, argv);
    bool speaks = false;
    begin();
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--H", 3) || !strncmp(argv[i], "--man", 5) ||
            !strncmp(argv[i], "--completions", 13))
            goto out; /* argp's --HANG sleeps; the other two write files, for the build */
        speaks = speaks || of_argp(argv[i]);
    }
    bool about = argc > 1 && (!strcmp(argv[1], "help") || !strncmp(argv[1], "-h", 2) ||
                              !strcmp(argv[1], "-V") || !strcmp(argv[1], "--version"));
    int how = once(argc, argv);
    if (how == REFUSED) {
        GV_MUST(len > 1 && text[len - 1] == '\n');
        GV_MUST(speaks || about || argc < 2 || !strncmp(text, "gv100", 5));
    } else {
        if (!speaks && !about && len)
            dprintf(2, "accepted, but: %s", text);
        GV_MUST(speaks || about || !len);
    }
    GV_MUST(once(argc, argv) == how);
out:
    free(input);
    return 0;
}
