"""Every GPU implementation on a real GPU, held against the oracle. Skipped (77) where there is none.

    LB_BUILD=build/ci tests/cli/test_gpu_device.py [--small] [PREFIX...]

--small: a few cases of the project's own kernels, for running under compute-sanitizer. PREFIX: words that the
program is run under, such as compute-sanitizer and its flags."""

import collections
import os
import subprocess
import sys
import tempfile

from program import PROGRAM, read_rows

FAILURES = {"wrong", "crash", "timeout", "error", "oom"}
PASSES = "infer,forward,backward,train"
DTYPES = "f64,f32,f16,bf16"

SHAPES = ["T7_B3_I5_H6", "T9_B5_I4_H8/ragged", "T6_B5_I3_H5_D2/ragged", "T11_B3_I4_H5_L3",
          "T33_B4_H64_L4", "T5_B2_H192_L2_D2", "T16_B8_H128", "T20_B16_I128_H256", "T8_B16_H768",
          "T6_B8_I128_H1100", "T1_B1_I1_H1"]
SMALL = ["T7_B3_I5_H6", "T6_B5_I3_H8_L2_D2/ragged", "T4_B8_H128"]
LOOPS = "cuda_naive,cuda_step"
FAST = "cudnn:standard,cudnn:persist_static,cudnn:small_h," + LOOPS


def sweeps(small):
    """What is run: cases, and the axes to run them over."""
    if small:
        yield SMALL, ["--impl", LOOPS, "--dtype", DTYPES, "--pass", "infer,train"]
        return
    yield SHAPES, ["--impl", FAST, "--dtype", DTYPES, "--pass", PASSES]
    # These compile kernels or time all algorithms: slow to set up, so fewer.
    yield SHAPES[6:8], ["--impl", "cudnn:auto,cudnn:persist_dynamic", "--dtype", "f32,f16",
                        "--pass", "infer,train"]
    yield SHAPES[:2], ["--impl", FAST, "--dtype", "f32", "--math", "tf32,half", "--pass", "train"]
    yield SHAPES[:2], ["--impl", LOOPS, "--dtype", DTYPES, "--act", "relu", "--pass", "train"]
    yield SHAPES[6:8], ["--impl", FAST, "--dtype", "f16", "--launch", "stream,graph",
                        "--cache", "hot,cold", "--pass", PASSES]
    yield SHAPES[6:7], ["--impl", FAST, "--dtype", "f16", "--timing", "batched",
                        "--pass", "infer,train"]


def run_sweep(cases, axes, prefix, folder):
    arguments = [*prefix, PROGRAM, "--sweep", "--out", folder, "--case-time", "0.02", *axes]
    for case in cases:
        arguments += ["--case", case]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    clean = done.returncode in (0, 1, 5)
    if not clean or prefix:
        print(done.stdout[-6000:], done.stderr[-6000:])
    return read_rows(folder), clean


def has_device():
    done = subprocess.run([PROGRAM, "--list", "--impl", "cuda_step", "-T", "1", "-B", "1",
                           "-H", "1"], capture_output=True, text=True, check=False)
    print(done.stdout.strip())
    return " ok" in done.stdout


def main(arguments):
    small = "--small" in arguments
    prefix = [word for word in arguments if word != "--small"]
    if not has_device():
        return 77
    verdicts, failed = collections.Counter(), []
    for cases, axes in sweeps(small):
        with tempfile.TemporaryDirectory() as scratch:
            rows, clean = run_sweep(cases, axes, prefix, os.path.join(scratch, "run"))
        if not clean:
            failed.append("the sweep, or what it ran under, ended with another exit code")
        for case, row in rows.items():
            verdicts[row["impl"] + " " + row["verdict"]] += 1
            if row["verdict"] in FAILURES:
                failed.append(f"{row['verdict']:8} {case}: {row['reason']}")
    for name, count in sorted(verdicts.items()):
        print(f"{count:6} {name}")
    for line in failed:
        print(line)
    ran = sum(count for name, count in verdicts.items() if name.endswith(" ok"))
    return 1 if failed or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
