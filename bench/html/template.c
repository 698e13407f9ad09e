/* Filling a template: text in which {{name}} stands for a part that a function writes. */
#include "html/template.h"

#include <string.h>

static const struct lb_html_part *find_part(const struct lb_html_part *parts, size_t count,
                                            const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(parts[i].name) == length && strncmp(parts[i].name, name, length) == 0)
            return &parts[i];
    return NULL;
}

enum lb_status lb_html_fill(FILE *out, const char *pattern, const struct lb_html_part *parts,
                            size_t count, const void *user, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (const char *open; (open = strstr(pattern, "{{"));) {
        const char *name = open + 2, *close = strstr(name, "}}");
        if (!close)
            return lb_fail(err, LB_INVALID, "the page's template has a {{ without }}");
        size_t length = (size_t)(close - name);
        const struct lb_html_part *part = find_part(parts, count, name, length);
        if (!part)
            return lb_fail(err, LB_INVALID, "the page's template names an unknown part {{%.*s}}",
                           length < 64 ? (int)length : 64, name);
        fwrite(pattern, 1, (size_t)(open - pattern), out);
        LB_TRY(part->write(out, user, err));
        pattern = close + 2;
    }
    fputs(pattern, out);
done:
    return st;
}
