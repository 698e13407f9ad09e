/* Writing text into XML, and JUnit documents. */
#ifndef LB_XML_H
#define LB_XML_H

#include <stdio.h>

/* Writes text for use in an element or in a quoted attribute: markup characters become entities,
 * and control characters that XML 1.0 forbids become '?'. */
void lb_xml_text(const char *text, FILE *out);

/* A test case of a JUnit document. */
struct lb_junit_case {
    const char *group; /* classname "bench-lstm.GROUP" */
    char name[1024];
    double seconds;
    const char *element; /* "failure", "error" or "skipped", which has the message; NULL: passed */
    char message[1024];  /* of a passed one the output; "": none */
};

/* Writes a document of one suite. suite, to: its name, "SUITE to TO" unless to is NULL. describe:
 * fills in a case, zeroed before, by its index below count. output: of the suite; "": none. */
void lb_junit_write(const char *suite, const char *to, size_t count,
                    void (*describe)(const void *user, size_t index, struct lb_junit_case *c),
                    const void *user, const char *output, FILE *out);

#endif
