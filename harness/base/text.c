/* Texts in buffers, and the small files in which the system describes itself. */
#include "base/text.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length in bytes of the UTF-8 character at the start. 0 when there is no valid one: a stray or
 * incomplete sequence, an overlong form, a surrogate, or a code above U+10FFFF. Source: RFC 3629,
 * section 4. */
static size_t character_bytes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    static const struct {
        unsigned char first, last; /* of the first byte */
        unsigned char least, most; /* of the second */
        size_t length;
    } forms[] = {
        {0x01, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (at[0] < forms[i].first || at[0] > forms[i].last)
            continue;
        if (forms[i].length > 1 && (at[1] < forms[i].least || at[1] > forms[i].most))
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if (at[k] < 0x80 || at[k] > 0xbf) /* the terminator ends it too */
                return 0;
        return forms[i].length;
    }
    return 0;
}

void lb_append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
    if (added < 0 || (size_t)added < size - used)
        return;
    size_t last = size - 1; /* where the last character begins, once the loop has ended */
    while (last > used && ((unsigned char)text[--last] & 0xc0) == 0x80)
        ;
    if (character_bytes(text + last) == 0)
        text[last] = '\0';
}

bool lb_next_item(const char **list, char *item, size_t size)
{
    if (!*list)
        return false;
    size_t length = strcspn(*list, ",");
    snprintf(item, size, "%.*s", (int)length, *list);
    *list = (*list)[length] ? *list + length + 1 : NULL;
    return true;
}

void lb_format_bytes(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32, "%.*f %s", unit == 0 || bytes >= 100 ? 0 : 1, bytes, units[unit]);
    if (!isfinite(bytes))
        snprintf(text, 32, "more than any memory");
}

void lb_clean_text(char *text)
{
    unsigned char *to = (unsigned char *)text;
    for (const unsigned char *from = to; *from;) {
        size_t length = character_bytes((const char *)from);
        if (length == 0) {
            *to++ = '?';
            from++;
        } else if (*from < ' ' || *from == 0x7f ||
                   (length == 2 && from[0] == 0xc2 && from[1] < 0xa0)) {
            *to++ = ' ';
            from += length;
        } else {
            while (length-- > 0)
                *to++ = *from++;
        }
    }
    *to = '\0';
}

bool lb_is_utf8(const char *text)
{
    for (size_t length; (length = character_bytes(text)) > 0;)
        text += length;
    return !*text;
}

const char *lb_json_text(const json_t *object, const char *key, const char *fallback)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : fallback;
}

size_t lb_json_number(json_t *table, const char *text, size_t next)
{
    const json_t *known = json_object_get(table, text);
    if (known)
        return (size_t)json_integer_value(known);
    json_object_set_new(table, text, json_integer((json_int_t)next));
    return next;
}

bool lb_read_line(const char *path, const char *word, char *text, size_t size)
{
    char *line = NULL;
    size_t capacity = 0, length = strlen(word);
    bool found = false;
    FILE *file = fopen(path, "r");
    while (file && !found && getline(&line, &capacity, file) > 0)
        found = strncmp(line, word, length) == 0;
    snprintf(text, size, "%s", found ? line + length : "");
    text[strcspn(text, "\n")] = '\0';
    free(line);
    if (file)
        fclose(file);
    return found;
}

double lb_read_number(const char *path, const char *word)
{
    char text[64], *end;
    lb_read_line(path, word, text, sizeof(text));
    double number = strtod(text, &end);
    return end != text ? number : (double)NAN;
}
