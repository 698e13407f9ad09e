/* Texts for people, the terminal that they go to, and the progress of a sweep on it. */
#include "support/texts.h"

#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

const char *lb_case_text(const struct lb_case *c, char text[LB_CASE_ID_SIZE])
{
    lb_case_print(c, text);
    return text;
}

const char *lb_problem_text(const struct lb_case *c, char text[LB_CASE_ID_SIZE])
{
    lb_case_print_problem(c, text);
    return text;
}

const char *lb_row_id(const struct lb_row *row, char id[LB_ROW_ID_SIZE])
{
    lb_row_print_id(row, id);
    return id;
}

const char *lb_impl_label(const struct lb_case *c, char label[2 * LB_NAME_SIZE])
{
    snprintf(label, 2 * LB_NAME_SIZE, "%s%s%s", c->impl, c->variant[0] ? ":" : "", c->variant);
    return label;
}

const char *lb_ns_text(double ns, char text[32])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    if (!isfinite(ns))
        return "-";
    while (ns >= 999.5 && unit < 3) {
        ns /= 1000;
        unit++;
    }
    int digits = ns >= 99.95 ? 0 : ns >= 9.995 ? 1 : 2;
    snprintf(text, 32, "%.*f %s", digits, ns, units[unit]);
    return text;
}

const char *lb_bytes_text(double bytes, char text[32])
{
    lb_format_bytes(bytes, text);
    return text;
}

static bool takes_escapes(FILE *stream)
{
    const char *term = getenv("TERM");
    return isatty(fileno(stream)) && !(term && strcmp(term, "dumb") == 0);
}

bool lb_has_style(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR");
    return takes_escapes(stream) && !(no_color && no_color[0]);
}

void lb_warn(const char *text)
{
    if (text[0])
        fprintf(stderr, "warning: %s\n", text);
}

bool lb_reader_left(FILE *stream)
{
    struct pollfd end = {.fd = fileno(stream), .events = POLLOUT};
    return poll(&end, 1, 0) == 1 && (end.revents & (POLLERR | POLLHUP));
}

/* Columns of the stream's terminal; 80 when it is no terminal. */
static int columns_of(FILE *stream)
{
    struct winsize size;
    if (isatty(fileno(stream)) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

/* How many bytes of the text fill the columns; up to the last space, if there is one. Each UTF-8
 * character counts as one column. */
static size_t line_length(const char *text, int columns)
{
    size_t at = 0, space = 0;
    for (int used = 0; text[at]; at++) {
        if (((unsigned char)text[at] & 0xc0) != 0x80 && used++ == columns)
            return space > 0 ? space : at;
        if (text[at] == ' ')
            space = at;
    }
    return at;
}

void lb_print_lines(FILE *stream, int column, int columns, const char *text)
{
    for (size_t length; length = line_length(text, columns - column), text[length];
         text += length) {
        fprintf(stream, "%.*s\n%*s", (int)length, text, column, "");
        length += text[length] == ' ';
    }
    fputs(text, stream);
}

void lb_print_wrapped(FILE *stream, int column, const char *text)
{
    bool breaks = isatty(fileno(stream)) && columns_of(stream) >= column + 20;
    lb_print_lines(stream, column, breaks ? columns_of(stream) : INT_MAX, text);
}

void lb_print_labelled(const char *label, const char *text)
{
    fputs(label, stdout);
    lb_print_wrapped(stdout, (int)strlen(label), text);
    putchar('\n');
}

void lb_shell_word(const char *text, char *word, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./:,@%";
    bool quoted = !text[0] || text[strspn(text, plain)] != '\0';
    size_t used = (size_t)snprintf(word, size, "%s", quoted ? "'" : "");
    for (const char *c = text; *c && used < size; c++) {
        const char one[2] = {*c, '\0'};
        used += (size_t)snprintf(word + used, size - used, "%s", *c == '\'' ? "'\\''" : one);
    }
    if (quoted && used < size)
        snprintf(word + used, size - used, "'");
}

enum { LINE_EVERY_S = 10 /* without a terminal */ };

void lb_progress_start(struct lb_progress *progress, size_t total)
{
    double now = lb_now_ns();
    *progress = (struct lb_progress){
        .total = total, .start_ns = now, .last_ns = now, .terminal = takes_escapes(stderr)};
}

/* "1:05" or "2:03:00" from seconds. */
static void format_clock(double seconds, char text[32])
{
    long whole = (long)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, 32, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(text, 32, "%ld:%02ld", whole / 60, whole % 60);
}

void lb_progress_case(struct lb_progress *progress, const char *id)
{
    double now = lb_now_ns();
    if (progress->quiet || (!progress->terminal && now - progress->last_ns < LINE_EVERY_S * 1e9))
        return;
    progress->last_ns = now;

    char eta[32] = "?", counts[64] = "", line[256];
    double elapsed = (now - progress->start_ns) / 1e9;
    size_t left = progress->total - progress->done;
    if (progress->done > 0)
        format_clock(elapsed / (double)progress->done * (double)left, eta);
    if (progress->failed + progress->skipped > 0)
        snprintf(counts, sizeof(counts), ", %zu failed, %zu skipped", progress->failed,
                 progress->skipped);
    int columns = columns_of(stderr);
    snprintf(line, sizeof(line), "[%zu/%zu, %s left%s] %s", progress->done + 1, progress->total,
             eta, counts, id);
    if (progress->terminal)
        fprintf(stderr, "\r\033[K%.*s", columns - 1, line);
    else
        fprintf(stderr, "%s\n", line);
}

void lb_progress_done(struct lb_progress *progress, bool failed, bool skipped)
{
    progress->done++;
    progress->failed += failed;
    progress->skipped += skipped;
}

void lb_progress_clear(const struct lb_progress *progress)
{
    if (progress->terminal && !progress->quiet)
        fprintf(stderr, "\r\033[K");
}
