/* What a framework asks of a layer before it runs its fast kernel: rules read from a file of
 * bench/criteria, and the check of a layer's settings against them. */
#ifndef LB_EXPLAIN_LAYER_H
#define LB_EXPLAIN_LAYER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

/* The criteria of one framework, and a layer. bench/criteria/README.md describes the file. */
struct lb_criteria {
    json_t *file;  /* as it was read; owned */
    json_t *layer; /* object: the value of each setting as a text, first its default; owned */
};

/* Reads the criteria of that name ("keras") among those that come with the program. LB_INVALID:
 * there are none of that name, err suggests one or lists all; or the file is wrong, err says where.
 */
enum lb_status lb_criteria_read(const char *name, struct lb_criteria *criteria,
                                struct lb_error *err);

/* Sets settings from a text such as "units=512, activation=relu". LB_INVALID: err names the part
 * that is wrong and what is allowed. */
enum lb_status lb_criteria_set(struct lb_criteria *criteria, const char *layer,
                               struct lb_error *err);

void lb_criteria_free(struct lb_criteria *criteria); /* accepts a zeroed one */

/* Whether the fast kernel runs: all criteria are met. */
bool lb_criteria_met(const struct lb_criteria *criteria);

/* The name of the algorithm that the fast kernel takes; NULL: the file does not say. */
const char *lb_criteria_algorithm(const struct lb_criteria *criteria);

/* The command that measures the price, with the layer's settings in place, and its projection where
 * it has one. */
void lb_criteria_price(const struct lb_criteria *criteria, char *text, size_t size);

#endif
