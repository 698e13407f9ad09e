/* Reads what the system tells in small text files. */
#include "host/system_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool lb_system_text(const char *path, const char *begin, char *text, size_t size)
{
    char *line = NULL;
    size_t capacity = 0, length = strlen(begin);
    bool found = false;
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    while (file && !found && getline(&line, &capacity, file) > 0) {
        found = strncmp(line, begin, length) == 0;
        if (found)
            snprintf(text, size, "%.*s", (int)strcspn(line + length, "\n"), line + length);
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

double lb_system_number(const char *path, const char *begin)
{
    char text[128], *end;
    lb_system_text(path, begin, text, sizeof(text));
    double number = strtod(text, &end);
    return end == text ? (double)NAN : number;
}
