/* Man pages from the option tables, so that help and man page cannot disagree. */
#include <ctype.h>
#include <string.h>

#include "profiler/cli/cli.h"

/* Text with troff's own characters made harmless. */
static void escaped(FILE *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else if ((text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n'))
            fprintf(out, "\\&%c", text[i]);
        else
            fputc(text[i], out);
    }
}

/* Prose: a line that begins with blanks is an example and stays as it is, an empty line ends a
 * paragraph. */
static void prose(FILE *out, const char *text)
{
    bool example = false;
    while (*text) {
        size_t n = strcspn(text, "\n");
        bool indented = n && text[0] == ' ';
        if (indented != example && n) {
            fputs(indented ? ".nf\n" : ".fi\n", out);
            example = indented;
        }
        if (!n)
            fputs(example ? "\n" : ".PP\n", out);
        else {
            escaped(out, text, n);
            fputc('\n', out);
        }
        text += n + (text[n] == '\n');
    }
    if (example)
        fputs(".fi\n", out);
}

static void option(FILE *out, const struct argp_option *o)
{
    if (o->flags & OPTION_HIDDEN || !o->name)
        return;
    fputs(".TP\n", out);
    if (o->key > 0 && o->key < 256 && isprint(o->key))
        fprintf(out, "\\fB\\-%c\\fR, ", o->key);
    fputs("\\fB\\-\\-", out);
    escaped(out, o->name, strlen(o->name));
    fputs("\\fR", out);
    if (o->arg)
        fprintf(out, o->flags & OPTION_ARG_OPTIONAL ? "[=\\fI%s\\fR]" : "=\\fI%s\\fR", o->arg);
    fputc('\n', out);
    escaped(out, o->doc, strlen(o->doc));
    fputc('\n', out);
}

static void heading(FILE *out, const char *page)
{
    fprintf(out, ".TH %s 1 \"\" \"gv100 %s\" \"User Commands\"\n.SH NAME\n", page, GV_VERSION);
}

static void foot(FILE *out)
{
    fputs(
        ".SH EXIT STATUS\n"
        "0: done. 1: the answer is no (only \\fBcheck\\fR, \\fBdoctor\\fR and \\fBverify\\fR, or with\n"
        "\\fB\\-\\-exit\\-code\\fR). 2: the command line is wrong. 3: the machine could not be\n"
        "measured, or the machine, a profile or a file could not be read.\n"
        ".SH ENVIRONMENT\n"
        ".TP\n\\fBGV100_PROFILE\\fR\nA profile's path or the name of a shipped one.\n"
        ".TP\n\\fBGV100_PLUGIN\\fR\nThe plugin to use instead of the installed one.\n"
        ".TP\n\\fBGV100_SYSFS\\fR\nAnother root instead of /sys, to replay a machine.\n"
        ".TP\n\\fBGV100_DISABLE\\fR\n1: the plugin does nothing at all.\n"
        ".TP\n\\fBNO_COLOR\\fR\nNo colour on a terminal either.\n",
        out);
}

static void page_of_all(FILE *out)
{
    heading(out, "gv100");
    fputs(
        "gv100 \\- make NCCL use what was measured on this machine\n"
        ".SH SYNOPSIS\n\\fBgv100\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...]\n"
        ".SH DESCRIPTION\n"
        "NCCL chooses transports from rules of thumb. \\fBgv100\\fR and its plugin let it choose\n"
        "from measurements of the machine, for each communicator by itself.\n"
        ".SH COMMANDS\n",
        out);
    for (int i = 0; gv_commands[i]; i++) {
        fprintf(out, ".TP\n\\fBgv100\\-%s\\fR(1)\n", gv_commands[i]->name);
        escaped(out, gv_commands[i]->summary, strlen(gv_commands[i]->summary));
        fputc('\n', out);
    }
    foot(out);
}

static void page_of_command(FILE *out, const struct gv_command *cmd)
{
    char page[64];
    snprintf(page, sizeof(page), "gv100-%s", cmd->name);
    heading(out, page);
    fprintf(out, "gv100\\-%s \\- ", cmd->name);
    escaped(out, cmd->summary, strlen(cmd->summary));
    fprintf(out, "\n.SH SYNOPSIS\n\\fBgv100 %s\\fR [\\fIOPTION\\fR...]", cmd->name);
    if (cmd->argp->args_doc)
        fprintf(out, " %s", cmd->argp->args_doc);
    fputs("\n.SH DESCRIPTION\n", out);
    const char *doc = cmd->argp->doc, *after = strchr(doc, '\v');
    char before[4096];
    size_t n = after ? (size_t)(after - doc) : strlen(doc);
    snprintf(before, sizeof(before), "%.*s", (int)n, doc);
    prose(out, before);
    fputs(".SH OPTIONS\n", out);
    for (const struct argp_option *o = cmd->argp->options; o->name || o->doc; o++)
        option(out, o);
    if (after) {
        fputs(".SH NOTES\n", out);
        prose(out, after + 1);
    }
    foot(out);
    fputs(".SH SEE ALSO\n\\fBgv100\\fR(1)\n", out);
}

void gv_man_write(FILE *out, const struct gv_command *cmd)
{
    if (cmd)
        page_of_command(out, cmd);
    else
        page_of_all(out);
}
