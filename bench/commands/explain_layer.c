/* --explain FRAMEWORK 'units=512, ...': whether a framework runs its fast kernel for a layer. */
#include "commands/explain_layer.h"

#include <stdio.h>
#include <string.h>

#include "commands/criteria.h"

enum { WIDTH = 100 };

/* Prints sentences below a label, wrapped. */
static void print_wrapped(const char *label, const char *text)
{
    int indent = (int)strlen(label), column = indent;
    fputs(label, stdout);
    for (const char *word = text + strspn(text, " "); *word; word += strspn(word, " ")) {
        int length = (int)strcspn(word, " ");
        if (column > indent && column + 1 + length > WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        column += printf("%s%.*s", column > indent ? " " : "", length, word);
        word += length;
    }
    putchar('\n');
}

static void print_table(const struct lb_criteria *criteria)
{
    printf("%-22s %-16s %-40s %s\n", "criterion", "yours", "needed", "met");
    for (size_t i = 0; i < criteria->rule_count; i++) {
        const struct lb_rule *rule = &criteria->rules[i];
        char needed[200];
        if (rule->kind != LB_CRITERION)
            continue;
        const struct lb_setting *setting = lb_criteria_find(criteria, rule->conditions[0].setting);
        lb_condition_text(&rule->conditions[0], needed, sizeof(needed));
        bool matters = lb_condition_holds(criteria, &rule->only_if);
        printf("%-22s %-16s %-40s %s\n", setting->name, setting->value, needed,
               !matters                        ? "does not matter"
               : lb_rule_holds(criteria, rule) ? "yes"
                                               : "no");
    }
    putchar('\n');
}

/* What runs, when all criteria are met. */
static void print_fast(const struct lb_criteria *criteria)
{
    printf("runs      %s\n", criteria->fast);
    for (size_t i = 0; i < criteria->rule_count; i++) {
        const struct lb_rule *rule = &criteria->rules[i];
        if (rule->kind != LB_ALGORITHM || !lb_rule_holds(criteria, rule))
            continue;
        printf("algorithm %s\n", rule->text);
        return;
    }
}

/* What runs instead, and the way back, when some are not. */
static void print_slow(const struct lb_criteria *criteria)
{
    printf("runs      not %s\n", criteria->fast);
    print_wrapped("instead   ", criteria->instead);
    for (size_t i = 0; i < criteria->rule_count; i++) {
        const struct lb_rule *rule = &criteria->rules[i];
        if (rule->kind != LB_CRITERION || lb_rule_holds(criteria, rule))
            continue;
        const struct lb_setting *setting = lb_criteria_find(criteria, rule->conditions[0].setting);
        printf("\n%s=%s\n", setting->name, setting->value);
        print_wrapped("  then    ", rule->unmet);
        print_wrapped("  nearest ", rule->nearest);
        print_wrapped("  changes ", rule->changes);
    }
}

enum lb_status lb_explain_layer(const char *name, const char *layer, struct lb_error *err)
{
    struct lb_criteria criteria = {0};
    struct lb_error why;
    char price[1000];
    enum lb_status st = lb_criteria_read(name, &criteria, &why);
    if (st == LB_OK)
        st = lb_criteria_set(&criteria, layer, &why);
    if (st != LB_OK) {
        lb_criteria_free(&criteria);
        return lb_fail(err, st, "--explain %.60s: %.400s", name, why.text);
    }
    printf("%s\n\n", criteria.title);
    print_table(&criteria);
    if (lb_criteria_met(&criteria))
        print_fast(&criteria);
    else
        print_slow(&criteria);
    putchar('\n');
    for (size_t i = 0; i < criteria.rule_count; i++)
        if (criteria.rules[i].kind == LB_NOTE && lb_rule_holds(&criteria, &criteria.rules[i]))
            print_wrapped("note      ", criteria.rules[i].text);
    lb_criteria_price(&criteria, price, sizeof(price));
    print_wrapped("price     ", price);
    print_wrapped("version   ", criteria.version);
    print_wrapped("source    ", criteria.source);
    lb_criteria_free(&criteria);
    return LB_OK;
}
