/* Third-party libraries, each loaded when a case first needs it: the program starts where such a
 * library is missing or broken. Only worker processes and --profile load them. */
#ifndef LB_SHARED_LIBRARY_H
#define LB_SHARED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

struct lb_shared_library {
    const char *name;         /* as records name it: "oneDNN" */
    const char *file;         /* the file name that the dynamic loader looks for: "libdnnl.so.2" */
    const char *built;        /* the version that the program was built against: "2.6.0" */
    const char *const *names; /* [count] the functions that it must have */
    void *functions;          /* [count] a struct of pointers to them, in that order, which loading
                                 fills in */
    size_t count;
    void (*print_version)(char *text, size_t size); /* prints the loaded library's version */
    void *handle;                                   /* the dynamic loader's; NULL: not loaded */
    bool loaded;                                    /* the functions may be called */
};

/* Loads the library, unless it is loaded already, while the calling thread may use all CPUs,
 * because libraries count them and start threads. LB_ABSENT: there is no such library, it is broken
 * or lacks a function. */
enum lb_status lb_shared_library_load(struct lb_shared_library *library, struct lb_error *err);

/* The address of a function that not every version has, also in the libraries that this one needs;
 * NULL where it is missing. The library must have been loaded by this process. */
void *lb_shared_library_find(const struct lb_shared_library *library, const char *name);

/* For lists of functions, which are macros: a member of the struct, and an entry of the names. */
#ifdef __cplusplus
#define LB_FUNCTION_POINTER(name) __typeof__(::name) *name;
#else
#define LB_FUNCTION_POINTER(name) __typeof__(name) *name;
#endif
#define LB_FUNCTION_NAME(name) #name,

/* The members of a struct lb_shared_library that follow from such a list and the struct `table` of
 * its functions. */
#define LB_FUNCTIONS_OF(list, table)                                               \
    .names = (const char *const[]){list(LB_FUNCTION_NAME)}, .functions = &(table), \
    .count = sizeof(table) / sizeof(void (*)(void))

/* "2.6.0", of three macros. */
#define LB_VERSION_TEXT(major, minor, patch) \
    LB_NUMBER_TEXT(major) "." LB_NUMBER_TEXT(minor) "." LB_NUMBER_TEXT(patch)
#define LB_NUMBER_TEXT(macro)    LB_NUMBER_AS_TEXT(macro)
#define LB_NUMBER_AS_TEXT(value) #value

#endif
