"""Every GPU implementation on a real GPU, held against the oracle. Skipped (77) where there is none.

    LB_BUILD=build/ci tests/cli/test_gpu_device.py [--small] [--plugin FILE] [PREFIX...]

--small: a few cases of the project's own kernels, for running under compute-sanitizer. --plugin: on its implementation
instead, one with a device in host memory, and on few cases: to see that this runs. PREFIX: words that the program is
run under, such as compute-sanitizer and its flags."""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

from program import PROGRAM, read_rows

PLUGIN = "gpu_fault_none" # what a --plugin must be called
FAILURES = {"wrong", "crash", "timeout", "error", "oom"}
PASSES = "infer,forward,backward,train"
DTYPES = "f64,f32,f16,bf16"

SHAPES = ["T7_B3_I5_H6", "T9_B5_I4_H8/ragged", "T6_B5_I3_H5_D2/ragged", "T11_B3_I4_H5_L3",
          "T33_B4_H64_L4", "T5_B2_H192_L2_D2", "T16_B8_H128", "T20_B16_I128_H256", "T8_B16_H768",
          "T6_B8_I128_H1100", "T1_B1_I1_H1"]
SMALL = ["T7_B3_I5_H6", "T6_B5_I3_H8_L2_D2/ragged", "T4_B8_H128"]
LOOPS = "cuda_naive,cuda_step"
SLOW = ["cudnn:auto", "cudnn:persist_dynamic"] # compile kernels or time all algorithms


def variants(name):
    """name:variant, as the program lists them."""
    listed = subprocess.run([PROGRAM, "--list"], capture_output=True, text=True, check=False).stdout
    return re.findall(rf"^# +({name}:\w+)$", listed, re.MULTILINE)


def sweeps(small, plugin):
    """What is run: cases, and the axes to run them over."""
    own = plugin or ",".join(variants("fused") + [LOOPS])
    fast = plugin or ",".join([name for name in variants("cudnn") if name not in SLOW] + [own])
    shapes, dtypes = (SHAPES[:2], "f32,f16") if plugin else (SHAPES, DTYPES)
    if small:
        yield SMALL[:len(shapes)], ["--impl", own, "--dtype", dtypes, "--pass", "infer,train"]
        return
    yield shapes, ["--impl", fast, "--dtype", dtypes, "--pass", PASSES]
    if not plugin: # slow to set up, so few
        yield SHAPES[6:8], ["--impl", ",".join(SLOW), "--dtype", "f32,f16", "--pass", "infer,train"]
    yield SHAPES[:2], ["--impl", fast, "--dtype", "f32", "--math", "tf32,half", "--pass", "train"]
    yield SHAPES[:2], ["--impl", own, "--dtype", dtypes, "--act", "relu", "--pass", "train"]
    few = shapes[6:8] or shapes
    yield few, ["--impl", fast, "--dtype", "f16", "--launch", "stream,graph",
                "--cache", "hot,cold", "--pass", PASSES]
    yield few[:1], ["--impl", fast, "--dtype", "f16", "--timing", "batched",
                    "--pass", "infer,train"]


def run_sweep(cases, axes, prefix, plugin, folder):
    arguments = [*prefix, PROGRAM, "--sweep", "--out", folder, "--case-time", "0.02", *axes]
    if plugin:
        arguments += ["--plugin", plugin]
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--plugin")
    parser.add_argument("prefix", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    name = options.plugin and PLUGIN
    if not options.plugin and not has_device():
        return 77
    verdicts, failed = collections.Counter(), []
    for cases, axes in sweeps(options.small, name):
        with tempfile.TemporaryDirectory() as scratch:
            rows, clean = run_sweep(cases, axes, options.prefix, options.plugin,
                                    os.path.join(scratch, "run"))
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
