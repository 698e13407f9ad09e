/* Tuned choices: which way of running an implementation measured to be fastest, kept from run to
 * run in a small text file (base/given_files.h) with one key and one value per line. */
#ifndef LB_TUNED_CHOICES_H
#define LB_TUNED_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/status.h"

/* Copies the key's value into value [size], cut where it does not fit. LB_ABSENT: there is no file,
 * or it does not have the key. LB_INVALID: it is not a file of tuned choices, or a line is damaged.
 * LB_IO: it can't be read. */
enum lb_status lb_tuned_find(const char *key, char *value, size_t size, struct lb_error *why);

/* Replaces the file by one with this value of the key, neither of which may contain a tab or a
 * newline. Errors are those of lb_tuned_find; the file is then unchanged. */
enum lb_status lb_tuned_store(const char *key, const char *value, struct lb_error *err);

/* Names the file as it is now, for the header of a run that it decides: its path, the time of its
 * last change in seconds since 1970, and a hash of its bytes. False where there is no file. */
bool lb_tuned_file(char path[4096], int64_t *changed_s, uint64_t *hash);
#endif
