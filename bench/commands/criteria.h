/* What a framework asks of a layer before it runs its fast kernel: rules read from a file of
 * bench/criteria, and the check of a layer's settings against them. */
#ifndef LB_CRITERIA_H
#define LB_CRITERIA_H

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
 * LB_OOM. */
enum lb_status lb_criteria_read(const char *name, struct lb_criteria *criteria,
                                struct lb_error *err);

/* Sets settings from a text such as "units=512, activation=relu". LB_INVALID: err names the part
 * that is wrong and what is allowed. LB_OOM. */
enum lb_status lb_criteria_set(struct lb_criteria *criteria, const char *layer,
                               struct lb_error *err);

void lb_criteria_free(struct lb_criteria *criteria); /* accepts a zeroed one */

/* The layer's value of that setting; NULL: there is no such setting. */
const char *lb_criteria_value(const struct lb_criteria *criteria, const char *setting);

/* Whether a condition, ["units", "at-most", "1024"], holds for the layer. NULL always holds. */
bool lb_condition_holds(const struct lb_criteria *criteria, const json_t *condition);

/* Whether all conditions of a criterion, an algorithm or a note hold. A criterion whose "if" does
 * not hold is met. */
bool lb_rule_holds(const struct lb_criteria *criteria, const json_t *rule);

/* Whether the fast kernel runs: all criteria are met. */
bool lb_criteria_met(const struct lb_criteria *criteria);

/* The name of the algorithm that the fast kernel takes; NULL: the file does not say. */
const char *lb_criteria_algorithm(const struct lb_criteria *criteria);

/* What a condition asks for: "tanh", "auto or true", "at most 1024". */
void lb_condition_text(const json_t *condition, char *text, size_t size);

/* What the layer is, with the settings that the file names in place. */
void lb_criteria_title(const struct lb_criteria *criteria, char *text, size_t size);

/* The command that measures the price, with the layer's settings in place, and its projection where
 * it has one. */
void lb_criteria_price(const struct lb_criteria *criteria, char *text, size_t size);

#endif
