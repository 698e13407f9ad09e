/* Text inside XML, and what JUnit's suites have in common. */
#ifndef LB_XML_H
#define LB_XML_H

#include <stdio.h>

/* Writes text so that it stands in an element or a quoted attribute: markup characters as entities,
 * control characters that XML 1.0 forbids as '?'. */
void lb_xml_text(const char *text, FILE *out);

/* Test cases of a suite by the element that each has. */
struct lb_junit_counts {
    size_t tests, failures, errors, skipped;
};

/* Adds so many test cases with that element: "failure", "error", "skipped", or NULL: passed. */
void lb_junit_count(struct lb_junit_counts *counts, const char *element, size_t cases);

/* Writes the attributes of <testsuite>: ` tests="4" failures="1" errors="0" skipped="0"`. */
void lb_junit_attributes(const struct lb_junit_counts *counts, FILE *out);

#endif
