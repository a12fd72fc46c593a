/* Completions for bash, zsh and fish, made from the option tables, as the man pages are. */
#include <ctype.h>
#include <string.h>

#include "profiler/cli/cli.h"

static bool shown(const struct argp_option *o)
{
    return o->name && !(o->flags & OPTION_HIDDEN);
}

static bool has_letter(const struct argp_option *o)
{
    return o->key > 0 && o->key < 128 && isalnum(o->key);
}

/* A file or a folder is completed after it; other values are left to the user. */
static bool takes_path(const struct argp_option *o)
{
    return o->arg && (strstr(o->arg, "FILE") || strstr(o->arg, "FOLDER") || strstr(o->arg, "PATH"));
}

static const struct argp_option *end_of(const struct argp_option *o)
{
    while (o->name || o->key || o->doc)
        o++;
    return o;
}

static void commands(FILE *out)
{
    for (int i = 0; gv_commands[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", gv_commands[i]->name);
}

static void bash_options(FILE *out, const struct gv_command *cmd, bool only_paths)
{
    const char *blank = "";
    const struct argp_option *end = end_of(cmd->argp->options);
    for (const struct argp_option *o = cmd->argp->options; o < end; o++) {
        if (!shown(o) || (only_paths && !takes_path(o)))
            continue;
        fprintf(out, "%s--%s", blank, o->name);
        blank = only_paths ? "|" : " ";
        if (only_paths && has_letter(o))
            fprintf(out, "|-%c", o->key);
    }
    if (!only_paths)
        fprintf(out, "%s--help --usage", blank);
}

static bool any_path(const struct gv_command *cmd)
{
    const struct argp_option *end = end_of(cmd->argp->options);
    for (const struct argp_option *o = cmd->argp->options; o < end; o++)
        if (shown(o) && takes_path(o))
            return true;
    return false;
}

void gv_complete_bash(FILE *out)
{
    fputs(
        "# bash completion for gv100, made from its own option tables.\n"
        "_gv100() {\n"
        "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options= "
        "files=\n"
        "  COMPREPLY=()\n"
        "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "    COMPREPLY=($(compgen -W \"",
        out);
    commands(out);
    fputs(
        " --help --version\" -- \"$word\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n", out);
    for (int i = 0; gv_commands[i]; i++) {
        fprintf(out, "  %s)\n    options='", gv_commands[i]->name);
        bash_options(out, gv_commands[i], false);
        fputs("'\n", out);
        if (any_path(gv_commands[i])) {
            fputs("    case $before in ", out);
            bash_options(out, gv_commands[i], true);
            fputs(") files=1 ;; esac\n", out);
        }
        fputs("    ;;\n", out);
    }
    fputs(
        "  esac\n"
        "  if [ -z \"$files\" ] && [ \"${word#-}\" != \"$word\" ]; then\n"
        "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
        "  else\n"
        "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
        "  fi\n"
        "}\n"
        "complete -o filenames -F _gv100 gv100\n",
        out);
}

/* Text inside single quotes; what ends a zsh description is left out. */
static void quoted(FILE *out, const char *text, const char *without)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (!strchr(without, *text))
            fputc(*text, out);
    }
}

static void zsh_option(FILE *out, const struct argp_option *o)
{
    fputs("        ", out);
    if (has_letter(o))
        fprintf(
            out, "'(-%c --%s)'{-%c%s,--%s%s}", o->key, o->name, o->key, o->arg ? "+" : "", o->name,
            o->arg ? "=" : "");
    else
        fprintf(out, "--%s%s", o->name, o->arg ? "=" : "");
    fputs("'[", out);
    quoted(out, o->doc ? o->doc : "", "[]:");
    fputc(']', out);
    if (o->arg) {
        fputc(':', out);
        quoted(out, o->arg, ":");
        fputs(takes_path(o) ? ":_files" : ": ", out);
    }
    fputs("' \\\n", out);
}

void gv_complete_zsh(FILE *out)
{
    fputs(
        "#compdef gv100\n# Made from gv100's own option tables.\n_gv100() {\n"
        "  local -a commands\n  commands=(\n",
        out);
    for (int i = 0; gv_commands[i]; i++) {
        fprintf(out, "    '%s:", gv_commands[i]->name);
        quoted(out, gv_commands[i]->summary, ":");
        fputs("'\n", out);
    }
    fputs(
        "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
        "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n",
        out);
    for (int i = 0; gv_commands[i]; i++) {
        fprintf(out, "    %s)\n      _arguments -s \\\n", gv_commands[i]->name);
        const struct argp_option *end = end_of(gv_commands[i]->argp->options);
        for (const struct argp_option *o = gv_commands[i]->argp->options; o < end; o++)
            if (shown(o))
                zsh_option(out, o);
        fputs("        '--help[what it does]' '--usage[a short form]' '*:file:_files' ;;\n", out);
    }
    fputs("  esac\n}\n_gv100 \"$@\"\n", out);
}

static void fish_option(FILE *out, const char *command, const struct argp_option *o)
{
    fprintf(out, "complete -c gv100 -n '__fish_seen_subcommand_from %s'", command);
    if (has_letter(o))
        fprintf(out, " -s %c", o->key);
    fprintf(out, " -l %s%s -d '", o->name, !o->arg ? "" : takes_path(o) ? " -r -F" : " -x");
    for (const char *p = o->doc ? o->doc : ""; *p; p++)
        fprintf(out, *p == '\'' || *p == '\\' ? "\\%c" : "%c", *p);
    fputs("'\n", out);
}

void gv_complete_fish(FILE *out)
{
    fputs("# fish completion for gv100, made from its own option tables.\n", out);
    for (int i = 0; gv_commands[i]; i++) {
        fprintf(
            out, "complete -c gv100 -n __fish_use_subcommand -f -a %s -d '", gv_commands[i]->name);
        quoted(out, gv_commands[i]->summary, "'");
        fputs("'\n", out);
    }
    for (int i = 0; gv_commands[i]; i++) {
        const struct argp_option *end = end_of(gv_commands[i]->argp->options);
        for (const struct argp_option *o = gv_commands[i]->argp->options; o < end; o++)
            if (shown(o))
                fish_option(out, gv_commands[i]->name, o);
    }
}
