#!/usr/bin/env python3
"""Writes mutants of a family of fused kernels: each is a copy of the kernels' source with one edit.

  mutate.py FAMILY MUTANTS.CSV CUDA_DIR OUT.CPP

The kernels have no test code: a row of the table names the text to find, which must be in the
source exactly once, and its replacement. Each mutant is a namespace of its own in OUT.CPP, so that all
are compiled together. The table at the end of OUT.CPP is what its main runs.

Columns: number, kernel (a key of the family's kernels), tile (its numbers), shape (T B H D ragged),
the detectors that must catch it in check and in fast mode (as in ../mutants.csv), what it breaks,
find, replace. Both may contain \\n.
"""

import csv
import os
import re
import sys

STEP = {"f64": ("plain_product<double>", "LB_F64, LB_IEEE"),
        "f32": ("plain_product<float>", "LB_F32, LB_IEEE"),
        "tf32": ("tensor_product<float>", "LB_F32, LB_TF32"),
        "f16": ("tensor_product<__half>", "LB_F16, LB_IEEE")}

GRID = ["f16", "bf16", "f32", "tf32"]

# How the mutants of a family are made. {S} is the scope of a mutant, {tile} its tile as a type,
# {figures} its tile as numbers, and {manner} how it is launched, in a table with that column. Includes
# may not be inside a namespace, so that those of the sources are listed here.
FAMILIES = {
    "cluster": {
        "headers": ["../common/recurrence.cuh", "cluster.cuh", "forward.cuh", "backward.cuh"],
        "includes": ["<cooperative_groups.h>", "<cuda_bf16.h>", "<cuda_fp16.h>",
                     '"cuda/common/ptx.cuh"', '"cuda/common/scalar.cuh"'],
        "run": "cluster_run.h", "subject": "simt_cluster::subject", "scope": "lb_cluster",
        "kernels": {
            "forward": "{S}fused_cluster_forward_kernel<__half, {tile}, false>, nullptr, {figures}, LB_F16, "
                       "false",
            "train": "{S}fused_cluster_forward_kernel<__half, {tile}, true>, nullptr, {figures}, LB_F16, true",
            "backward": "nullptr, {S}fused_cluster_backward_kernel<__half, {tile}>, {figures}, LB_F16, false",
        },
    },
    "grid": {
        "headers": ["../common/recurrence.cuh", "grid.cuh", "forward.cuh", "backward.cuh"],
        "includes": ["<cuda_bf16.h>", "<cuda_fp16.h>", '"cuda/fused/grid/grid.h"',
                     '"cuda/common/ptx.cuh"', '"cuda/common/scalar.cuh"'],
        "run": "grid_run.h", "subject": "simt_grid::mutated", "scope": "lb_grid",
        "kernels": {
            **{"forward " + name: "{S}fused_grid_forward_kernel<{S}%s_math, {tile}>, nullptr, "
                                  "{figures}, {S}%s_math::figure, true, simt_grid::{manner}"
                                  % (name, name) for name in GRID},
            **{"backward " + name: "nullptr, {S}fused_grid_backward_kernel<{S}%s_math, {tile}>, "
                                   "{figures}, {S}%s_math::figure, true, simt_grid::{manner}"
                                   % (name, name) for name in GRID},
        },
    },
    "step": {
        "headers": ["step.cuh", "forward.cuh", "backward.cuh"],
        "includes": ["<cuda_bf16.h>", "<cuda_fp16.h>", 
                     '"cuda/common/ptx.cuh"', '"cuda/common/scalar.cuh"'],
        "run": "step_run.h", "subject": "simt_step::subject", "scope": "lb_step",
        "kernels": {
            **{"forward " + name: "{S}fused_step_forward_kernel<{S}%s, {tile}>, nullptr, {figures}, "
                                  "%s, LB_ACT_TANH, true" % kind for name, kind in STEP.items()},
            **{"backward " + name: "nullptr, {S}fused_step_backward_kernel<{S}%s, {tile}>, {figures}, "
                                   "%s, LB_ACT_RELU, true" % kind for name, kind in STEP.items()},
        },
    },
}


def read_source(folder, headers):
    """Returns the headers as one text, without what may not be inside a namespace."""
    text = ""
    for name in headers:
        with open(os.path.join(folder, name)) as file:
            source = file.read()
        source = re.sub(r"^#(ifndef|define) LB_\w+_CUH\n", "", source, flags=re.M)
        source = source[:source.rindex("#endif")]  # the guard's
        text += re.sub(r"^#include.*\n", "", source, flags=re.M)
    return text


def mutate(source, row):
    find, replace = (row[column].replace("\\n", "\n") for column in ("find", "replace"))
    if source.count(find) != 1:
        sys.exit("mutant %s: its text must be in the source once and is there %d times: %s"
                 % (row["number"], source.count(find), find))
    return source.replace(find, replace)


def table_row(family, row):
    scope = "mutant_%s::%s::" % (row["number"], family["scope"])
    figures = row["tile"].replace(" ", ", ")
    subject = family["kernels"][row["kernel"]]
    for name, value in (("{S}", scope), ("{tile}", "%stile<%s>" % (scope, figures)),
                        ("{figures}", "{%s}" % figures), ("{manner}", row.get("manner", ""))):
        subject = subject.replace(name, value)
    return "{%s, \"%s\", \"%s\", \"%s\", {\"mutant %s\", %s}, {%s}}" % (
        row["number"], row["check"], row["fast"], row["breaks"], row["number"], subject,
        row["shape"].replace(" ", ", "))


def main():
    name, table, folder, out = sys.argv[1:5]
    family = FAMILIES[name]
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    source = read_source(os.path.join(folder, "fused", name), family["headers"])
    with open(out, "w") as file:
        file.write("/* Generated by mutate.py. */\n#include \"family.h\"\n#include \"%s\"\n\n#include <cstdlib>\n"
                   % family["run"])
        for include in family["includes"]:
            file.write("#include %s\n" % include)
        for row in rows:
            file.write("\nnamespace mutant_%s\n{\n%s}\n" % (row["number"], mutate(source, row)))
        file.write("\nstatic const simt_fused::mutant<%s> mutants[] = {\n    %s};\n"
                   % (family["subject"], ",\n    ".join(table_row(family, row) for row in rows)))
        file.write("\nint main(int argc, char **argv)\n{\n"
                   "    return simt_test::test_mutants(mutants, argc > 1 ? atoi(argv[1]) : 0);\n}\n")


if __name__ == "__main__":
    main()
