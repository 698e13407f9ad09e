#!/usr/bin/env python3
"""Shows that budgets.py fails where it should: each broken table, and each kernel that breaks a
limit, against reports that the good table passes with.

  test_budgets.py REPORTS [CACHE] NVCC
"""

import os
import re
import sys
import tempfile

from budgets import (COLUMNS, RECORDED, after_barrier, broken_budgets, check_kernel, compile_one, for_arch,
                     read_reports, read_rows, table_of)


def changed(**fields):
    """The first row, with other fields."""
    return lambda rows: [dict(rows[0], **fields)] + rows[1:]


BROKEN_TABLES = {
    "a kernel without a row": (lambda rows: rows[1:], "no row in the table"),
    "a row without a kernel": (lambda rows: rows + [dict(rows[0], kernel="gone")],
                               "a row, but no kernel"),
    "more threads than registers for them": (changed(threads="65536"), "register file"),
    "more shared memory than the architecture has": (changed(dynamic_shared="300000"),
                                                     "bytes of shared memory per block"),
    "an instruction that is not there": (changed(ptx="wgmma.mma_async"), "no wgmma.mma_async"),
}

# The first is given 200000 more bytes by its launch. The second spills: 300 values live, 32 registers.
BROKEN_KERNELS = """
__global__ void too_much_shared(int *out)
{
    __shared__ int values[10000];
    values[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = values[9999 - threadIdx.x];
}
__global__ void __launch_bounds__(1024, 2) spilling(float *out)
{
    float values[300];
#pragma unroll
    for (int i = 0; i < 300; i++)
        values[i] = out[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 300; i++)
        out[i * 1024 + threadIdx.x] = values[299 - i] * values[i];
}
"""


def check_broken_kernels(nvcc, folder):
    """The table's registers hold for one release of nvcc alone, and the other limits for each."""
    source = os.path.join(folder, "broken.cu")
    report = os.path.join(folder, os.path.basename(folder) + "-broken.txt")
    with open(source, "w") as file:
        file.write(BROKEN_KERNELS)
    compile_one(nvcc, folder, source, ["sm_90a"])
    row = dict.fromkeys(COLUMNS, "") | {"threads": "32", "sm_90a": "8", "static_shared": "0",
                                        "dynamic_shared": "0"}
    table = table_of([dict(row, kernel="too_much_shared", static_shared="30000",
                           dynamic_shared="200000"),
                      dict(row, kernel="spilling")])
    with open(report) as file:
        compiled = file.read()
    wrong = []
    for release, registers_hold in (RECORDED, True), ("99.9", False):
        with open(report, "w") as file:
            file.write(re.sub(r"(compilation tools, release )[\d.]+", r"\g<1>" + release, compiled))
        said = "\n".join(broken_budgets(table, read_reports(folder, None)))
        for part in ("static_shared 40000, budget 30000",
                     "240000 bytes of shared memory per block, the architecture has 232448",
                     "spilling sm_90a: spill_bytes"):
            if part not in said:
                wrong.append("broken kernels without '%s':\n%s" % (part, said))
        if (": registers " in said) != registers_hold:
            wrong.append("registers of release %s:\n%s" % (release, said))
    return wrong


# Two barriers, and behind the last one four instructions, of which one is padding.
MACHINE_CODE = """
        /*0010*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0020*/                   LDS.128 R4, [R3] ;
        /*0030*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
.L_x_1:
        /*0040*/              @!P0 BRA `(.L_x_1) ;
        /*0050*/                   STG.E.128 desc[UR6][R10.64], R4 ;
        /*0060*/                   EXIT ;
        /*0070*/                   NOP;
"""


def check_instruction_counts():
    """Machine code is counted behind its last barrier, and held to the table for one release alone."""
    row = {"threads": 32, "spill_bytes": 0, "static_shared": 0, "registers": 8, "dynamic_shared": 0,
           "ptx": "", "sass": ""}
    wrong = [] if after_barrier(MACHINE_CODE) == 3 else [
        "3 instructions counted as %d" % after_barrier(MACHINE_CODE)]
    for release, budget, expected in ((RECORDED, 2, 1), (RECORDED, 3, 0), (RECORDED, None, 0),
                                      ("99.9", 2, 0)):
        kernel = dict(row, release=release, sass=MACHINE_CODE)
        said = list(check_kernel(kernel, dict(row, after_barrier=budget), 1024))
        if len(said) != expected:
            wrong.append("budget '%s' of release %s: %s" % (budget, release, said))
    return wrong


def check_architectures():
    """A row is read for each architecture: registers, empty bodies, and what only sm_90 has."""
    row = {"kernel": "k", "threads": "64", "sm_80": "24", "sm_90a": "32", "sm_100": "-", "sm_120": "",
           "static_shared": "4", "dynamic_shared": "9", "ptx": "bar.sync @mapa", "sass": "@STAS",
           "after_barrier": "5 6 7"}
    read = [for_arch(row, arch) for arch in ("sm_80", "sm_90a", "sm_100")]
    right = ([r["registers"] for r in read] == [24, 32, 8] and
             [r["ptx"] for r in read] == ["bar.sync", "bar.sync mapa", ""] and
             [r["sass"] for r in read] == ["", "STAS", ""] and
             [r["dynamic_shared"] for r in read] == [9, 9, 0] and
             [r["after_barrier"] for r in read] == [5, 6, 7])
    return [] if right else ["a row is read as %s" % read]


def main():
    reports, *nvcc = sys.argv[1:]
    rows = read_rows()[:2]
    kernels = [kernel for kernel in read_reports(reports, None)
               if kernel["kernel"] in {row["kernel"] for row in rows}]
    wrong = list(broken_budgets(table_of(rows), kernels))
    for name, (change, expected) in BROKEN_TABLES.items():
        said = "\n".join(broken_budgets(table_of(change(rows)), kernels))
        if expected not in said:
            wrong.append("%s: not '%s' but %s" % (name, expected, said))
        else:
            print("ok caught: " + name)
    with tempfile.TemporaryDirectory() as folder:
        wrong += check_broken_kernels(nvcc, folder) + check_instruction_counts()
        wrong += check_architectures()
    print("\n".join(wrong) if wrong else "ok caught: shared memory past the limit, spills, "
          "too many registers and instructions of the recorded release")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
