/* What a user gives for all cases: trained weights, inputs, and choices that were tuned before. The
 * program sets it from its command line, and sends it with every request to its workers. */
#ifndef LB_GIVEN_FILES_H
#define LB_GIVEN_FILES_H

#include <stdbool.h>

struct lb_given_files {
    const char *weights; /* file of weights (model/tensor_files.h); NULL: they are drawn */
    const char *prefix;  /* of its tensors' names; NULL: none */
    const char *inputs;  /* file of x (model/tensor_files.h); NULL: it is drawn */
    const char *tuned;   /* file of tuned choices; NULL: tuned.txt in the program's cache folder */
    bool batch_first;    /* the file of x is [B, T, I] */
    bool tune;           /* measure choices that the file does not have */
};

/* Copies what is given for this process. */
void lb_give_files(const struct lb_given_files *given);

/* Valid until the next lb_give_files that changes something. */
const struct lb_given_files *lb_given_files(void);

/* Rises whenever lb_give_files changes something. */
unsigned lb_given_files_version(void);
#endif
