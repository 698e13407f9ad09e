/* Text inside XML. */
#ifndef LB_XML_H
#define LB_XML_H

#include <stdio.h>

/* Writes text so that it stands in an element or a quoted attribute: markup characters as entities,
 * control characters that XML 1.0 forbids as '?'. */
void lb_xml_text(const char *text, FILE *out);

#endif
