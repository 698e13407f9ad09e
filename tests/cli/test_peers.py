"""bench/peers.py counts work and traffic as the program does, here and in the recorded runs."""

import glob
import importlib.util
import json
import os
import unittest

from program import ProgramTest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RECORDS = sorted(glob.glob(os.path.join(ROOT, "results", "*", "run.jsonl")))
SIZES = ("seq_len", "batch", "input", "hidden", "layers", "directions")


def load_peers():
    spec = importlib.util.spec_from_file_location("peers", os.path.join(ROOT, "bench", "peers.py"))
    peers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peers)
    return peers


class Peers(ProgramTest):
    peers = load_peers()

    def check_counts(self, row):
        sizes, train = [row[key] for key in SIZES], row["pass"] == "train"
        size = {"f64": 8, "f32": 4}.get(row["dtype"], 2)
        self.assertEqual(row["flops"], self.peers.flops_of(*sizes, train), row["case"])
        self.assertEqual(row["bytes"], self.peers.bytes_of(*sizes, train, size), row["case"])

    def test_work_and_traffic_are_the_programs(self):
        rows, _ = self.sweep("-T", "3,5", "-B", "2", "-I", "7", "-H", "4", "-L", "1,3", "-D", "1,2",
                             "--dtype", "f32,f16", "--pass", "infer,train", "--impl", "cpu_ref",
                             "--case-time", "0.01")
        self.assertEqual(len(rows), 32)
        for row in rows.values():
            self.check_counts(row)

    def test_recorded_runs_have_them_too(self):
        self.assertGreater(len(RECORDS), 2)
        for path in RECORDS:
            with open(path, encoding="utf-8") as lines:
                for row in map(json.loads, lines):
                    if row["kind"] == "row":
                        self.check_counts(row)


if __name__ == "__main__":
    unittest.main()
