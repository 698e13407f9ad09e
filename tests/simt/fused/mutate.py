#!/usr/bin/env python3
"""Writes mutants of a family of fused kernels: each is a copy of the kernels' source with one edit.

  mutate.py FAMILY MUTANTS.CSV CUDA_DIR OUT.CPP

The kernels have no test code: a row of the table names the text to find, which must be in the
source exactly once, and its replacement. Each mutant is a namespace of its own in OUT.CPP, so that all
are compiled together. The table at the end of OUT.CPP is what its main runs.

Columns: number, kernel (pass and kind), tile (its numbers), shape (T B H D ragged), manner (fields of
struct manner), the detectors that must catch it in check and in fast mode (as in ../mutants.csv), what it
breaks, find, replace. Both may contain \\n.
"""

import csv
import os
import re
import sys

# The kinds of kernels of a family: the template argument, and the dtype and the math of the subject.
HALF = {"f16": ("__half", "LB_F16, LB_IEEE")}
GRID = {"f16": ("{S}f16_math", "LB_F16, LB_IEEE"), "bf16": ("{S}bf16_math", "LB_BF16, LB_IEEE"),
        "f32": ("{S}f32_math", "LB_F32, LB_IEEE"), "tf32": ("{S}tf32_math", "LB_F32, LB_TF32")}
STEP = {"f64": ("{S}plain_product<double>", "LB_F64, LB_IEEE"),
        "f32": ("{S}plain_product<float>", "LB_F32, LB_IEEE"),
        "tf32": ("{S}tensor_product<float>", "LB_F32, LB_TF32"),
        "f16": ("{S}tensor_product<__half>", "LB_F16, LB_IEEE")}

# How the mutants of a family are made: each pass's subject behind its name. {S} is the scope of a mutant,
# {kind} and {types} are those of a kind, {tile} is its tile as a type and {figures} as numbers.
FAMILIES = {
    "cluster": {
        "headers": ["../common/recurrence.cuh", "cluster.cuh", "forward.cuh", "backward.cuh"],
        "kinds": HALF,
        "forward": "cluster_kernel{{figures}, {S}fused_cluster_forward_kernel<{kind}, {tile}, false>, nullptr}, "
                   "{types}, false",
        "train": "cluster_kernel{{figures}, {S}fused_cluster_forward_kernel<{kind}, {tile}, true>, nullptr}, "
                 "{types}, true",
        "backward": "cluster_kernel{{figures}, nullptr, {S}fused_cluster_backward_kernel<{kind}, {tile}>}, {types}",
    },
    "grid": {
        "headers": ["../common/recurrence.cuh", "grid.cuh", "ffma.cuh", "forward.cuh", "backward.cuh"],
        "kinds": GRID,
        "forward": "grid_kernel{{figures}, {kind}::figure, {S}fused_grid_forward_kernel<{kind}, {tile}>, nullptr}, "
                   "{types}, true",
        "backward": "grid_kernel{{figures}, {kind}::figure, nullptr, {S}fused_grid_backward_kernel<{kind}, {tile}>}, "
                    "{types}",
    },
    "step": {
        "headers": ["../common/recurrence.cuh", "step.cuh", "forward.cuh", "backward.cuh"],
        "kinds": STEP,
        "forward": "step_kernel{{figures}, {S}fused_step_forward_kernel<{kind}, {tile}>, nullptr}, {types}, true",
        "relu": "step_kernel{{figures}, {S}fused_step_forward_kernel<{kind}, {tile}>, nullptr}, {types}, true, "
                "LB_ACT_RELU",
        "backward": "step_kernel{{figures}, nullptr, {S}fused_step_backward_kernel<{kind}, {tile}>}, {types}, "
                    "false, LB_ACT_RELU",
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


def table_row(name, row):
    family, scope = FAMILIES[name], "mutant_%s::lb_%s::" % (row["number"], name)
    figures = row["tile"].replace(" ", ", ")
    which, _, kind = row["kernel"].partition(" ")
    kind, types = family["kinds"][kind or "f16"]
    subject = family[which]
    for part, value in (("{kind}", kind), ("{types}", types), ("{S}", scope),
                        ("{tile}", "%stile<%s>" % (scope, figures)), ("{figures}", "{%s}" % figures)):
        subject = subject.replace(part, value)
    manner = ", ".join("." + word.replace("=", " = ") for word in row["manner"].split())
    return "{%s, \"%s\", \"%s\", \"%s\", {{\"mutant %s\", %s}, {%s}, {%s}}}" % (
        row["number"], row["check"], row["fast"], row["breaks"], row["number"], subject,
        row["shape"].replace(" ", ", "), manner)


def main():
    name, table, folder, out = sys.argv[1:5]
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    source = read_source(os.path.join(folder, "fused", name), FAMILIES[name]["headers"])
    includes = [
        "<cuda_bf16.h>", "<cuda_fp16.h>", "<cstdlib>", '"run.h"', '"cuda/common/ptx.cuh"', '"cuda/common/scalar.cuh"']
    with open(out, "w") as file:
        file.write("/* Generated by mutate.py. */\n" + "".join("#include %s\n" % include for include in includes))
        for row in rows:
            file.write("\nnamespace mutant_%s\n{\n%s}\n" % (row["number"], mutate(source, row)))
        file.write("\nusing namespace simt_fused;\nstatic const mutant mutants[] = {\n    %s};\n"
                   % ",\n    ".join(table_row(name, row) for row in rows))
        file.write("\nint main(int argc, char **argv)\n{\n"
                   "    return simt_test::test_mutants(mutants, argc > 1 ? atoi(argv[1]) : 0);\n}\n")


if __name__ == "__main__":
    main()
