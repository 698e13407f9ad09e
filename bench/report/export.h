/* Exports a run to other tools' formats, which contain nothing that run.jsonl does not have. */
#ifndef LB_EXPORT_H
#define LB_EXPORT_H

#include <stdio.h>

#include "record/run_file.h"

struct lb_export_format {
    const char *name;      /* as in --export NAME */
    const char *file_name; /* of the exported file, in the folder of the run */
    void (*write)(const struct lb_run *run, FILE *out); /* the caller checks out for errors */
};

/* All formats, that of Google Benchmark first; the last one has a NULL name. */
extern const struct lb_export_format lb_export_formats[];

#endif
