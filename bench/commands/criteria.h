/* What a framework asks of a layer before it runs its fast kernel: rules read from a file of
 * bench/criteria, and the check of a layer's settings against them. */
#ifndef LB_CRITERIA_H
#define LB_CRITERIA_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

enum {
    LB_RULE_WORDS = 16,
    LB_RULE_CONDITIONS = 16,
    LB_CRITERIA_SETTINGS = 40,
    LB_CRITERIA_RULES = 60
};

/* A setting of the layer, such as units or activation. Its texts belong to the criteria that it is
 * part of. */
struct lb_setting {
    const char *name; /* as the framework calls it */
    bool is_number;
    char value[64];                    /* what the user gave, else the default */
    bool given;                        /* the user gave the value */
    const char *words[LB_RULE_WORDS];  /* [word_count] the values allowed; none for a number */
    const char *called[LB_RULE_WORDS]; /* [word_count] how options of this program spell them */
    size_t word_count;
};

enum lb_rule_test {
    LB_TEST_IS,
    LB_TEST_IS_NOT,
    LB_TEST_AT_MOST,
    LB_TEST_AT_LEAST,
    LB_TEST_BELOW,
    LB_TEST_ABOVE,
    LB_TEST_MULTIPLE_OF,
    LB_TEST_COUNT
};

/* "units is at most 1024": a setting, a test, and what the test compares it with. */
struct lb_condition {
    const char *setting; /* name of the setting; NULL: there is no condition, and it holds */
    enum lb_rule_test test;
    const char *words[LB_RULE_WORDS]; /* [word_count] words, numbers, or names of settings */
    size_t word_count;
};

/* A criterion (one condition), an algorithm or a note (any number of them, which must all hold). */
struct lb_rule {
    enum lb_rule_kind { LB_CRITERION, LB_ALGORITHM, LB_NOTE } kind;
    const char *text; /* an algorithm's name, or a note's sentences; "" for a criterion */
    struct lb_condition conditions[LB_RULE_CONDITIONS];
    size_t condition_count;
    struct lb_condition only_if; /* a criterion matters only where this holds */
    /* Of a criterion, each "" where the file does not give it: */
    const char *unmet;     /* what the framework does when the criterion is not met */
    const char *suggested; /* the setting that meets it */
    const char *changes;   /* what that setting changes in the results */
};

/* The criteria of one framework, as read from its file. */
struct lb_criteria {
    const char *title;   /* the framework and the layer */
    const char *fast;    /* the fast kernel */
    const char *version; /* of the framework that the criteria were read from */
    const char *source;  /* the files of the framework that hold them */
    const char *instead; /* what runs when a criterion is not met */
    const char *price;   /* the command that measures both, with names of settings in it */
    struct lb_setting settings[LB_CRITERIA_SETTINGS]; /* [setting_count] */
    size_t setting_count;
    struct lb_rule rules[LB_CRITERIA_RULES]; /* [rule_count] in the file's order */
    size_t rule_count;
    char *text; /* the file's text, which all texts above point into; owned */
};

/* Reads the criteria of that name ("keras") among those that come with the program. LB_INVALID:
 * there are none of that name, err suggests one or lists all; or the file is wrong, err says in
 * which line. LB_IO, LB_OOM. */
enum lb_status lb_criteria_read(const char *name, struct lb_criteria *criteria,
                                struct lb_error *err);

/* Sets settings from a text such as "units=512, activation=relu". LB_INVALID: err names the part
 * that is wrong and what is allowed. LB_OOM. */
enum lb_status lb_criteria_set(struct lb_criteria *criteria, const char *layer,
                               struct lb_error *err);

void lb_criteria_free(struct lb_criteria *criteria); /* accepts a zeroed one */

/* The setting of that name; NULL: none. */
const struct lb_setting *lb_criteria_find(const struct lb_criteria *criteria, const char *name);

/* Whether the condition holds for the layer. */
bool lb_condition_holds(const struct lb_criteria *criteria, const struct lb_condition *condition);

/* Whether all conditions of the rule hold. A criterion whose only_if does not hold is met. */
bool lb_rule_holds(const struct lb_criteria *criteria, const struct lb_rule *rule);

/* Whether the fast kernel runs: all criteria are met. */
bool lb_criteria_met(const struct lb_criteria *criteria);

/* What a condition asks for: "tanh", "auto or true", "at most 1024". */
void lb_condition_text(const struct lb_condition *condition, char *text, size_t size);

/* The command that measures the price, with the layer's settings in place, and its projection where
 * it has one. */
void lb_criteria_price(const struct lb_criteria *criteria, char *text, size_t size);

#endif
