/* Tuned choices: what an implementation found to be fastest by measuring, kept from run to run in a
 * small text file, a key and a value a line, so that it can be read, edited and carried along. */
#ifndef LB_TUNED_CHOICES_H
#define LB_TUNED_CHOICES_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Environment, so that worker processes know too: set by --tune and --tuned FILE. */
#define LB_TUNE_VARIABLE  "LB_TUNE"  /* not empty: measure what the file does not know yet */
#define LB_TUNED_VARIABLE "LB_TUNED" /* the file; else tuned.txt in the program's cache folder */

/* Whether what is not known yet is to be measured. */
bool lb_tuning(void);

/* The key's value. LB_ABSENT: the file does not know it, or there is none. LB_INVALID: it is not
 * such a file, or line so-and-so is damaged. LB_IO: it can't be read. */
enum lb_status lb_tuned_find(const char *key, char *value, size_t size, struct lb_error *why);

/* Keeps the key's value in the place of an older one. The file is replaced as a whole, so readers
 * never see half of it. Neither key nor value may hold a tab or a line's end. LB_INVALID as above:
 * a file that is not one of these stays as it is. LB_IO: it can't be read or written; LB_OOM. */
enum lb_status lb_tuned_store(const char *key, const char *value, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
