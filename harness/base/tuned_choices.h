/* Tuned choices: which way of running an implementation measured to be fastest, kept from run to
 * run in a small text file with one key and one value per line. A person can read, edit and copy
 * it. */
#ifndef LB_TUNED_CHOICES_H
#define LB_TUNED_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/status.h"

/* The file is that of base/given_files.h, which also says whether to tune. */

/* Whether choices that the file does not have are to be measured. */
bool lb_tuning(void);

/* Copies the key's value into value [size], cut where it does not fit. LB_ABSENT: there is no file,
 * or it does not have the key. LB_INVALID: it is not a file of tuned choices, or a line is damaged.
 * LB_IO: it can't be read. */
enum lb_status lb_tuned_find(const char *key, char *value, size_t size, struct lb_error *why);

/* Stores the key's value and drops an older one. The file is replaced as a whole, so readers never
 * see half of it. Neither key nor value may contain a tab or a newline. LB_INVALID: it is not a
 * file of tuned choices, or a line is damaged; the file is then left unchanged. LB_IO: it can't be
 * read or written. */
enum lb_status lb_tuned_store(const char *key, const char *value, struct lb_error *err);

/* Names the file as it is now, for the header of a run that it decides: its path, the time of its
 * last change in seconds since 1970, and a hash of its bytes. False where there is no file. */
bool lb_tuned_file(char path[4096], int64_t *changed_s, uint64_t *hash);
#endif
