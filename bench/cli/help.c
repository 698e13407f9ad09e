/* The text of --help, written from the table of options. */

#include <string.h>

#include "cli/options.h"
#include "support/terminal.h"

enum { COLUMNS = 80, TEXT_COLUMN = 23 /* where the sentences of an option begin */ };

static const char before_options[] =
    "usage: bench-lstm COMMAND [CASES] [SETTINGS]\n"
    "\n"
    "Runs implementations of the same LSTM, checks each against a double-precision\n"
    "oracle, times them, and writes records, tables and pictures.\n";

static const char *const headings[LB_GROUP_COUNT] = {
    [LB_GROUP_COMMANDS] = "commands",
    [LB_GROUP_CASES] = "cases: an axis takes lists and ranges (1,8,64  64:512:+64  64:1024:x2);\n"
                       "an option that is repeated adds to what it was given before",
    [LB_GROUP_SETTINGS] = "settings",
};

const char lb_help_epilogue[] =
    "exit codes: 0 all is well, 1 a case is wrong or failed, 2 the command line is\n"
    "wrong or a file can't be read or written, 3 a regression was found, 4 a\n"
    "comparison could judge no case or, with --strict, left one open, 5 nothing ran\n"
    "or can be compared or drawn, 6 a merged run lacks shards or rows, 130 the\n"
    "program was interrupted\n"
    "\n"
    "examples\n"
    "  bench-lstm --sweep\n"
    "  bench-lstm --sweep -T 128 -B 1,8,64 -H 128:1024:x2 --pass infer,train\n"
    "  bench-lstm --sweep --cases deepbench --impl cpu_simd --time-budget 600\n"
    "  bench-lstm --list --impl cpu_ref --where 'T*B<=4096' -T 1:1024:x2 -B 1:64:x2 \\\n"
    "             -H 64,256\n"
    "  bench-lstm --explain cpu_simd/T25_B16_I512_H512/f16/train\n";

void lb_help_print(FILE *stream)
{
    fputs(before_options, stream);
    for (int group = 0; group < LB_GROUP_COUNT; group++) {
        fprintf(stream, "\n%s\n", headings[group]);
        for (size_t i = 0; i < lb_option_count; i++) {
            const struct lb_option *option = &lb_option_table[i];
            char names[COLUMNS];
            if ((int)option->group != group)
                continue;
            snprintf(names, sizeof(names), "  %s%s%s%s%s", option->name,
                     option->short_name ? ", " : "", option->short_name ? option->short_name : "",
                     option->placeholder && !option->joined ? " " : "",
                     option->placeholder ? option->placeholder : "");
            if (strlen(names) + 2 > TEXT_COLUMN)
                fprintf(stream, "%s\n%*s", names, TEXT_COLUMN, "");
            else
                fprintf(stream, "%-*s", TEXT_COLUMN, names);
            lb_print_lines(stream, TEXT_COLUMN, COLUMNS, option->help);
            fputc('\n', stream);
        }
    }
    fprintf(stream, "\n%s", lb_help_epilogue);
}
