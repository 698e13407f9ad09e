/* Writing JSON documents for people and other tools. */
#include "base/json_out.h"

enum lb_status lb_json_write(json_t *document, bool whole, const char *what, FILE *out,
                             struct lb_error *err)
{
    if (document && whole) {
        whole = json_dumpf(document, out, JSON_INDENT(2)) == 0 || ferror(out);
        fputc('\n', out);
    }
    whole = document && whole;
    json_decref(document);
    return whole ? LB_OK : lb_fail(err, LB_OOM, "%s: out of memory", what);
}
