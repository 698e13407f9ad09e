"""Merging many large runs: its time, and its memory, which must not grow with the samples."""

import json
import os
import subprocess
import sys
import unittest

from program import PROGRAM, ProgramTest

RUNS = 40
ROWS = 1000
NUMBERS = ["err_max_abs", "err_max_rel", "err_norm", "prepare_ns", "verify_ns", "elapsed_ns",
           "others_share", "calls_per_sample", "min_ns", "median_ns", "median_lo_ns", "median_hi_ns",
           "p5_ns", "p95_ns", "mad_ns", "outliers_mild", "outliers_severe", "spread_within",
           "spread_between", "flops", "bytes", "floor_ns", "chain_steps", "chain_ns",
           "floor_multiple", "checked_calls", "order_seed", "input_sets", "call_bytes",
           "working_set_bytes", "deterministic", "weights_bytes", "gradients_bytes",
           "reserve_bytes", "workspace_bytes", "peak_bytes", "sm_mhz", "memory_mhz",
           "temperature_c"]


def header(node, shard):
    return {"kind": "header", "schema": 2, "started": "2026-01-31T12:00:00Z",
            "environment": {"host": f"node{node}", "cpu": "Made-up CPU", "threads": 2},
            "command": ["bench-lstm", "--sweep"], "seed": 1,
            "shard": {"index": shard + 1, "count": RUNS, "plan": "0123456789abcdef"}}


def row_text(samples):
    """A row as the program writes it, with %d for H, which is all that differs between rows."""
    row = {"kind": "row", "case": "cpu_simd/T25_B16_I64_H%d/f32/infer", "impl": "cpu_simd",
           "variant": "", "seq_len": 25, "batch": 16, "input": 64, "hidden": "%d", "layers": 1,
           "directions": 1, "dtype": "f32", "pass": "infer", "math": "ieee", "ragged": False,
           "act": "tanh", "launch": "stream", "cache": "hot", "timing": "isolated", "threads": 1,
           "verdict": "ok", "reason": "", "description": "AVX2, 6x16 tiles", "warning": "",
           "kernels_reason": "", "stop_reason": "precision", "flags": "", "hash": "0123456789abcdef"}
    row.update({key: 12345.6789 for key in NUMBERS})
    row.update({"deterministic": 1, "kernels": None, "samples_ns": [12345.5] * samples,
                "blocks": [samples], "reference_ns": [1000.5], "processes": [1]})
    return json.dumps(row, separators=(",", ":")).replace('"%d"', "%d") + "\n"


class MergeSpeed(ProgramTest):
    def write_runs(self, name, runs, samples):
        text = row_text(samples)
        for shard in range(runs):
            folder = self.path(f"{name}/{shard}")
            os.makedirs(folder)
            with open(os.path.join(folder, "run.jsonl"), "w", encoding="utf-8") as file:
                file.write(json.dumps(header(shard % 20, shard), separators=(",", ":")) + "\n")
                for i in range(ROWS):
                    size = 1 + shard + runs * i
                    file.write(text % (size, size))
                file.write('{"kind":"footer","finished":"2026-01-31T13:00:00Z","rows":%d,'
                           '"interrupted":false}\n' % ROWS)

    def merge(self, name, out):
        """Seconds of CPU time, which other work does not change, and the largest resident memory in
        bytes of a merge."""
        measure = ("import resource, subprocess, sys\n"
                   "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
                   "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
                   "print(used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss)\n"
                   "sys.exit(code)")
        done = subprocess.run([sys.executable, "-c", measure, PROGRAM, "--merge", self.path(out),
                               self.path(name)], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        seconds, memory = done.stdout.split()
        return float(seconds), int(memory)

    def test_many_runs_are_merged_in_little_time_and_memory(self):
        self.write_runs("runs", RUNS, 30)
        seconds, memory = self.merge("runs", "merged")
        with open(self.path("merged/run.jsonl"), encoding="utf-8") as lines:
            rows = sum(line.startswith('{"kind":"row"') for line in lines)
        self.assertEqual(rows, RUNS * ROWS)
        self.assertLess(seconds, 10) # a million rows take about a minute
        self.assertLess(memory, 100e6)

    def test_memory_does_not_grow_with_samples(self):
        self.write_runs("few", 4, 20)
        self.write_runs("many", 4, 2000)
        few, many = self.merge("few", "few_merged")[1], self.merge("many", "many_merged")[1]
        self.assertLess(many, 1.2 * few)


if __name__ == "__main__":
    unittest.main()
