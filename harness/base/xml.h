/* Writing text into XML, and the counts of a JUnit test suite. */
#ifndef LB_XML_H
#define LB_XML_H

#include <stdio.h>

/* Writes text for use in an element or in a quoted attribute: markup characters become entities,
 * and control characters that XML 1.0 forbids become '?'. */
void lb_xml_text(const char *text, FILE *out);

/* How many test cases a suite has, and how many of them have each kind of element. */
struct lb_junit_counts {
    size_t tests, failures, errors, skipped;
};

/* Adds test cases whose element is "failure", "error" or "skipped", or NULL for passed ones. */
void lb_junit_count(struct lb_junit_counts *counts, const char *element, size_t cases);

/* Writes the attributes of <testsuite>: ` tests="4" failures="1" errors="0" skipped="0"`. */
void lb_junit_attributes(const struct lb_junit_counts *counts, FILE *out);

#endif
