"""Every GPU implementation on a real GPU, held against the oracle. Skipped (77) where there is none,
or no implementation was built.

    LB_BUILD=build/ci tests/cli/test_gpu_device.py [--part own,cudnn,...] [PREFIX...]

PREFIX: words that the program is run under, such as compute-sanitizer and its flags; with part `small`, a few cases of
the project's own kernels. Failures are printed as they happen, counts as each sweep ends."""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from program import PROGRAM

SKIPPED = 77
FAILURES = {"wrong", "crash", "timeout", "error", "oom"}
PASSES = "infer,forward,backward,train"
DTYPES = "f64,f32,f16,bf16"
PARTS = ["own", "cudnn", "modes", "slow"] # and `small`, for sanitizers; `tiny`, `twice` and `kernels`

# LONG is long enough for the layers of `fused` to go in a wavefront; H256 is the first size at which
# warps of a cluster split the depth.
SHAPES = ["T7_B3_I5_H6", "T9_B5_I4_H8/ragged", "T6_B5_I3_H5_D2/ragged", "T11_B3_I4_H5_L3",
          "T33_B4_H64_L4", "T5_B2_H192_L2_D2", "T16_B8_H128", "T20_B16_I128_H256", "T8_B16_H768",
          "T6_B8_I128_H1100", "T1_B1_I1_H1"]
LONG = ["T512_B4_H64_L3"]
SMALL = ["T7_B3_I5_H6", "T6_B5_I3_H8_L2_D2/ragged", "T4_B8_H128", "T4_B8_H256"]
LOOPS = ["cuda_naive", "cuda_step"]
SLOW = ["cudnn:auto", "cudnn:persist_dynamic"] # compile kernels or time all algorithms


def variants(name):
    """name:variant, as the program lists them."""
    listed = subprocess.run([PROGRAM, "--list"], capture_output=True, text=True, check=False).stdout
    return re.findall(rf"^# +({name}:\w+)$", listed, re.MULTILINE)


def by_risk(fused):
    """The project's own implementations. The one most likely to hang runs last and alone, when the others
    are done."""
    return [LOOPS + ["fused:step"], *([name] for name in reversed(fused) if name != "fused:step")]


def sweeps(part, stand_in):
    """The sweeps of a part: cases, and the axes to run them over. stand_in: an implementation to run
    instead, on few cases, on machines without a GPU."""
    fused = [stand_in] if stand_in else variants("fused")
    own = fused if stand_in else fused + LOOPS
    fast = [stand_in] if stand_in else [name for name in variants("cudnn") if name not in SLOW]
    both = [stand_in] if stand_in else fast + own
    shapes, dtypes = (SHAPES[:2], "f32,f16") if stand_in else (SHAPES, DTYPES)
    few, long = (shapes, shapes[1:]) if stand_in else (SHAPES[6:8], LONG)
    if part == "own":
        for impls in [own] if stand_in else by_risk(fused):
            yield shapes, impls, ["--dtype", dtypes, "--pass", PASSES]
        yield long, fused, ["--dtype", "f32,f16", "--pass", "infer,train"]
    elif part == "cudnn":
        yield shapes, fast, ["--dtype", dtypes, "--pass", PASSES]
    elif part == "slow": # these take long to set up, so only a few cases run
        yield few, [stand_in] if stand_in else SLOW, ["--dtype", "f32,f16", "--pass", "infer,train"]
    elif part == "tiny": # does each implementation run at all?
        yield ["T3_B2_I3_H8"], both, ["--dtype", "f32,f16", "--pass", "infer"]
    elif part == "twice": # one after the other in one worker: deterministic results keep their bits
        yield SHAPES[:1] + ["T4_B8_H128"], both, ["--dtype", "f16", "--launch", "graph", "--pass",
                                                  "train,backward", "--timing", "isolated,batched"]
    elif part == "kernels": # traced by CUPTI
        yield (["T5_B8_H128", "T6_B8_H128", "T9_B8_H128"], both[:1],
               ["--dtype", "f16", "--launch", "graph", "--pass", "infer", "--kernels"])
    elif part == "small": # fused:auto runs one of the other variants
        yield (SMALL[:2] if stand_in else SMALL,
               [name for name in own if name != "fused:auto"],
               ["--dtype", "f32,f16", "--pass", "infer,train"])
    else:
        yield SHAPES[:2], both, ["--dtype", "f32", "--math", "tf32,half", "--pass", "train"]
        yield SHAPES[:2], own, ["--dtype", dtypes, "--act", "relu", "--pass", "train"]
        yield few, both, ["--dtype", "f16", "--launch", "graph", "--pass", PASSES]
        yield long, fused, ["--dtype", "f16", "--launch", "graph", "--pass", "infer,train"]
        yield few[:1], both, ["--dtype", "f16", "--cache", "cold", "--pass", PASSES]
        yield few[:1], both, ["--dtype", "f16", "--timing", "batched", "--pass", "infer,train"]


def new_rows(file):
    """The rows that were written since the last call; an incomplete line is left for a later call."""
    while True:
        start = file.tell()
        line = file.readline()
        if not line.endswith("\n"):
            file.seek(start)
            return
        entry = json.loads(line)
        if entry["kind"] == "row":
            yield entry


def follow(process, path):
    """The rows of a run as they are written, until the process has ended."""
    ended = False
    while not os.path.exists(path):
        if process.poll() is not None:
            return
        time.sleep(0.05)
    with open(path, encoding="utf-8") as file:
        while not ended:
            ended = process.poll() is not None # rows that are written after this are read below
            yield from new_rows(file)
            time.sleep(0 if ended else 0.2)


class Report:
    """The results of all sweeps, printed and kept as they come."""

    def __init__(self, options):
        self.options, self.failed, self.ok, self.present = options, False, 0, 0
        self.hashes, self.clocks = {}, {} # of results and of samples, by case without its timing
        self.log = open(options.log, "a", encoding="utf-8") if options.log else tempfile.TemporaryFile()
        self.rows = open(options.rows or os.devnull, "a", encoding="utf-8")
        self.end = time.monotonic() + options.seconds

    def say(self, *words):
        print(*words, flush=True)

    def arguments(self, cases, impls, axes, folder):
        options = self.options
        made = [*options.prefix, PROGRAM, "--sweep", "--out", folder, "--case-time", "0.02",
                "--plots", "none", "--call-limit", str(options.call_limit), "--hang-limit", "2", "--time-budget",
                f"{max(self.end - time.monotonic(), 0.1):.1f}", "--impl", ",".join(impls), *axes]
        if options.plugin:
            made += ["--plugin", options.plugin]
        for case in cases:
            made += ["--case", case]
        return made

    def take(self, row, verdicts):
        verdicts[row["impl"], row["variant"] or "", row["verdict"]] += 1
        self.ok += row["verdict"] == "ok"
        self.present += row["verdict"] != "absent"
        print(json.dumps(row), file=self.rows, flush=True)
        self.compare(row)
        self.check_clock(row)
        if row.get("kernels_reason"): # a case that was skipped has no such key
            self.say(f"no kernels of {row['case']}: {row['kernels_reason']}")
        if row["verdict"] in FAILURES:
            self.failed = True
            self.say(f"{row['verdict']:8} {row['case']}: {row['reason']}")

    def compare(self, row):
        """A case that is timed in two ways, in one worker, must give the same bits twice, where the
        implementation says that it is deterministic. cuDNN does not say so."""
        if row["verdict"] != "ok":
            return
        name = row["case"].replace("/batched", "")
        if self.hashes.setdefault(name, row["hash"]) != row["hash"]:
            self.failed = self.failed or row["deterministic"] == 1
            self.say(f"{name}: two runs gave different bits: hashes {self.hashes[name]} and {row['hash']}")

    def check_clock(self, row):
        """The mean clock during the samples is that of a GPU, where one was measured, and about the same
        however calls are timed."""
        clock = row.get("sm_mhz")
        if row["verdict"] == "ok" and clock is not None and not 100 < clock < 5000:
            self.failed = True
            self.say(f"{row['case']}: the clock of the multiprocessors was {clock} MHz")
        if row["verdict"] == "ok" and clock:
            name = row["case"].replace("/batched", "")
            first = self.clocks.setdefault(name, clock)
            if abs(clock - first) > first / 4: # a device that idles between samples counts less
                self.say(f"{name}: clocks of {first:.0f} and {clock:.0f} MHz, with and without pauses "
                         "between calls: the counters may stop while the device idles")

    def sweep(self, cases, impls, axes):
        verdicts = collections.Counter()
        with tempfile.TemporaryDirectory() as scratch:
            folder = os.path.join(scratch, "run")
            with subprocess.Popen(self.arguments(cases, impls, axes, folder), stdout=self.log,
                                  stderr=self.log) as process:
                for row in follow(process, os.path.join(folder, "run.jsonl")):
                    self.take(row, verdicts)
        self.say(" ".join(axes))
        for key, count in sorted(verdicts.items()):
            self.say(f"{count:6} {':'.join(filter(None, key[:2]))} {key[2]}")
        if process.returncode in self.options.codes - {0}:
            self.say(f"exit code {process.returncode}: read {self.options.log}")
        elif process.returncode not in (0, 1, 5):
            self.failed = True
            self.say(f"the sweep, or what it ran under, ended with exit code {process.returncode}")


def has_device():
    done = subprocess.run([PROGRAM, "--list", "--impl", "cuda_step", "-T", "1", "-B", "1",
                           "-H", "1"], capture_output=True, text=True, check=False)
    print(done.stdout.strip(), flush=True)
    return " ok" in done.stdout


def parse(arguments):
    def words(text):
        return set(text.split(","))
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", default=",".join(PARTS),
                        help="a list of own, cudnn, modes, slow, small, tiny, twice, kernels")
    parser.add_argument("--seconds", type=float, default=800, help="after which no case is begun")
    parser.add_argument("--call-limit", type=float, default=30)
    parser.add_argument("--only", type=words, default=set(), help="the implementations to run, if not all")
    parser.add_argument("--except", type=words, default=set(), dest="omit",
                        help="implementations not to run")
    parser.add_argument("--rows", help="a file that the rows are added to")
    parser.add_argument("--log", help="a file that the program's output is added to")
    parser.add_argument("--codes", type=lambda text: set(map(int, text.split(","))), default=set(),
                        help="exit codes of PREFIX that are no failure; the log then says more")
    parser.add_argument("--plugin", help="a plug-in that makes up a device, to try this script without a GPU")
    parser.add_argument("--impl", help="the implementation of --plugin")
    parser.add_argument("prefix", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if not options.plugin and not has_device():
        return SKIPPED
    report = Report(options)
    for part in options.part.split(","):
        for cases, impls, axes in sweeps(part, options.impl):
            left = [name for name in impls if options.impl or name not in options.omit and
                    (not options.only or name in options.only)]
            if left:
                report.sweep(cases, left, axes)
    if not report.failed and not report.present:
        report.say("every implementation is absent")
        return SKIPPED
    return 1 if report.failed or report.ok == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
