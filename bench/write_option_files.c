/* Writes what is installed beside the program and follows from the table of options: its man page
 * and the completions of bash and zsh. The build runs it:
 *
 *   write-option-files man|bash|zsh VERSION >FILE */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

static void print_escaped(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        printf("%s%c", text[i] == '-' || text[i] == '\\' ? "\\" : "", text[i]);
}

static void write_man(const char *version)
{
    static const char *const titles[LB_GROUP_COUNT] = {[LB_GROUP_COMMANDS] = "COMMANDS",
                                                       [LB_GROUP_CASES] = "CASES",
                                                       [LB_GROUP_SETTINGS] = "SETTINGS"};
    printf(".TH BENCH-LSTM 1 \"\" \"bench-lstm %s\" \"User Commands\"\n"
           ".SH NAME\nbench-lstm \\- compare LSTM implementations, with every number checked\n"
           ".SH SYNOPSIS\n.B bench-lstm\n.I COMMAND\n[\\fICASES\\fR] [\\fISETTINGS\\fR]\n"
           ".SH DESCRIPTION\nRuns implementations of the same LSTM, checks each against a "
           "double-precision oracle, times them, and writes records, tables and pictures.\n",
           version);
    for (int group = 0; group < LB_GROUP_COUNT; group++) {
        printf(".SH %s\n", titles[group]);
        for (size_t i = 0; i < lb_option_count; i++) {
            const struct lb_option *option = &lb_option_table[i];
            if ((int)option->group != group)
                continue;
            fputs(".TP\n\\fB", stdout);
            print_escaped(option->name, strlen(option->name));
            if (option->short_name) {
                fputs("\\fR, \\fB", stdout);
                print_escaped(option->short_name, strlen(option->short_name));
            }
            printf("\\fR%s\\fI%s\\fR\n\\&", option->placeholder && !option->joined ? " " : "",
                   option->placeholder ? option->placeholder : "");
            print_escaped(option->help, strlen(option->help));
            putchar('\n');
        }
    }
    fputs(".SH EXIT CODES AND EXAMPLES\n.nf\n", stdout);
    for (const char *line = lb_help_epilogue; *line; line += strcspn(line, "\n") + 1) {
        fputs("\\&", stdout);
        print_escaped(line, strcspn(line, "\n"));
        putchar('\n');
    }
    fputs(".fi\n", stdout);
}

/* After an option that takes a value, bash completes the names of files or nothing, else options.
 */
static void write_bash(void)
{
    static const char *const files[] = {"DIR", "FILE", "RUN", "BASE", "PROGRAM"};
    fputs("# Completion of bench-lstm for bash.\n_bench_lstm() {\n"
          "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "  COMPREPLY=()\n  case $previous in\n",
          stdout);
    for (size_t i = 0; i < lb_option_count; i++) {
        const struct lb_option *option = &lb_option_table[i];
        bool takes_file = false;
        if (!option->placeholder || option->joined)
            continue;
        for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++)
            takes_file |= strstr(option->placeholder, files[k]) != NULL;
        printf("  %s%s%s) %sreturn ;;\n", option->name, option->short_name ? " | " : "",
               option->short_name ? option->short_name : "",
               takes_file ? "mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); " : "");
    }
    fputs("  esac\n  mapfile -t COMPREPLY < <(compgen -W '", stdout);
    for (size_t i = 0; i < lb_option_count; i++)
        if (!lb_option_table[i].joined)
            printf("%s %s ", lb_option_table[i].name,
                   lb_option_table[i].short_name ? lb_option_table[i].short_name : "");
    fputs("' -- \"$current\")\n}\ncomplete -o filenames -o bashdefault -F _bench_lstm bench-lstm\n",
          stdout);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    if (strcmp(kind, "man") == 0 && argc == 3) {
        write_man(argv[2]);
    } else if (strcmp(kind, "bash") == 0) {
        write_bash();
    } else if (strcmp(kind, "zsh") == 0) {
        puts("#compdef bench-lstm\n_gnu_generic"); /* which asks the program for --help */
    } else {
        fprintf(stderr, "usage: %s man VERSION | bash | zsh\n", argv[0]);
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
