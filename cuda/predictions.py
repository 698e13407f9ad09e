#!/usr/bin/env python3
"""Compares a run with predictions.csv: cuda/predictions.py RUN.jsonl

It reads replayed calls only, which include no work of the host: the /graph rows of f16 with T = 128 that
bench/gpu-check.sh runs for each family. The expected time of a family's call is that of its steps, plus the
time of the GEMMs over all steps, which is that of the predicted family's call beyond its own steps."""

import collections
import csv
import json
import pathlib
import re
import statistics
import sys

STEPS = 128
CASE = re.compile(rf"fused:(\w+)/T{STEPS}_B(\d+)_I(\d+)_H\3/f16/(infer|train)/graph$")
PASSES = {"infer": ("forward",), "train": ("forward", "backward")}


def expected(cell, family, kind):
    """us of a call, or None where the family has no plan."""
    steps = [cell[f"{family}_{part}_step_us"] for part in PASSES[kind]]
    if not all(steps):
        return None
    products = float(cell[f"{kind}_T{STEPS}_us"]) - STEPS * sum(
        float(cell[f"{part}_step_us"]) for part in PASSES[kind])
    return STEPS * sum(map(float, steps)) + max(products, 0)


def pairs(rows, cells):
    """(case, family, pass, expected us, measured us) of the rows that there is a prediction for."""
    by_size = {(cell["hidden"], cell["batch"]): cell for cell in cells}
    for row in rows:
        case = CASE.match(row["case"])
        cell = case and by_size.get((case.group(3), case.group(2)))
        if cell and row["verdict"] == "ok":
            us = expected(cell, case.group(1), case.group(4))
            if us:
                yield row["case"], case.group(1), case.group(4), us, row["median_ns"] / 1e3


def rows_of(path):
    """A run's rows; what a run that was cut off has written of one is none."""
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines(True):
        if line.endswith("\n"):
            entry = json.loads(line)
            if entry["kind"] == "row":
                yield entry


def main(path):
    ratios = collections.defaultdict(list)
    with open(pathlib.Path(__file__).with_suffix(".csv"), encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    for case, family, kind, us, measured in pairs(rows_of(path), cells):
        ratios[family, kind].append(measured / us)
        print(f"{case:<48} expected {us:8.1f} us, measured {measured:8.1f}, {measured / us:5.2f}")
    for (family, kind), each in sorted(ratios.items()):
        print(f"{family} {kind}: measured over expected, of {len(each)}: median "
              f"{statistics.median(each):.2f}, {min(each):.2f} to {max(each):.2f}")
    if not ratios:
        print("no row that there is a prediction for")


if __name__ == "__main__":
    main(sys.argv[1])
