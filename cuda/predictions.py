#!/usr/bin/env python3
"""Compares measurements with predictions.csv: cuda/predictions.py FILE...

Of a run (RUN.jsonl) it reads replayed calls only, which include no work of the host: the /graph rows of f16
with T = 128 that bench/gpu-check.sh runs for each family. The expected time of a family's call is that of its
steps, plus the time of the GEMMs over all steps, which is that of the predicted family's call beyond its own
steps.

Of any other file (the test.log of bench/gpu-check.sh) it reads what try_fused printed of whole steps, steps
without the product and steps without the exchange, for the tiles that are predicted. A part costs what a
step saves without it; the rest is what remains without both."""

import collections
import csv
import json
import pathlib
import re
import statistics
import sys

HERE = pathlib.Path(__file__).parent
STEPS = 128
CASE = re.compile(rf"fused:(\w+)/T{STEPS}_B(\d+)_I(\d+)_H\3/f16/(infer|train)/graph$")
PASSES = {"infer": ("forward",), "train": ("forward", "backward")}
# What precedes the lines of a program, and what these measure.
PROGRAMS = {"try_fused whole steps": "whole", "try_fused -DLB_FUSED_PRODUCT=0": "no product",
            "try_fused -DLB_FUSED_EXCHANGE=0": "no exchange"}
LINE = re.compile(r"(\w+ (?:forward|backward)) H(\d+) B(\d+): (.*?): ([\d.]+) us")


def expected(cell, family, kind):
    """us of a call, or None where the family has no plan."""
    steps = [cell[f"{family}_{part}_step_us"] for part in PASSES[kind]]
    if not all(steps):
        return None
    products = float(cell[f"{kind}_T{STEPS}_us"]) - STEPS * sum(
        float(cell[f"{part}_step_us"]) for part in PASSES[kind])
    return STEPS * sum(map(float, steps)) + max(products, 0)


def calls(path, cells):
    """(case, family and pass, expected us, measured us) of a run's rows that there is a prediction for."""
    by_size = {(cell["hidden"], cell["batch"]): cell for cell in cells}
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines(True):
        row = json.loads(line) if line.endswith("\n") else {"kind": "cut off"}
        case = row["kind"] == "row" and row["verdict"] == "ok" and CASE.match(row["case"])
        cell = case and by_size.get((case[3], case[2]))
        us = cell and expected(cell, case[1], case[4])
        if us:
            yield row["case"], f"{case[1]} {case[4]}", us, row["median_ns"] / 1e3


def lines_of(path):
    """{(family and pass, H, B, plan): {what was measured: us}}. A plan is the numbers by which a line
    describes a tile."""
    found, program = collections.defaultdict(dict), None
    for line in pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        if line in PROGRAMS or line.startswith("try_fused "):
            program = PROGRAMS.get(line)
        match = LINE.match(line)
        if match and program:
            plan = " ".join(re.findall(r"\d+", match[4]))
            found[match[1], match[2], match[3], plan][program] = float(match[5])
    return found


def parts_of(name, cell, us):
    """(part, expected us, measured us) of a tile's lines; cell is its prediction."""
    step, product, exchange = (float(cell[f"{name.replace(' ', '_')}_{part}_us"])
                               for part in ("step", "product", "exchange"))
    whole, no_product, no_exchange = map(us.get, PROGRAMS.values())
    if whole:
        yield "step", step, whole
    if whole and no_product:
        yield "product", product, whole - no_product
    if whole and no_exchange:
        yield "exchange", exchange, whole - no_exchange
    if whole and no_product and no_exchange:
        yield "rest", step - product - exchange, no_product + no_exchange - whole


def terms(path, cells):
    """(part and size, part, expected us, measured us) of each part that there is a prediction for."""
    for (name, hidden, batch, plan), us in lines_of(path).items():
        for cell in cells:
            if (hidden, batch, plan) == (cell["hidden"], cell["batch"], cell[name.replace(" ", "_") + "_plan"]):
                for part, expect, measured in parts_of(name, cell, us):
                    yield f"{name} {part}, H{hidden} B{batch}", f"{name} {part}", expect, measured


def main(paths):
    ratios = collections.defaultdict(list)
    with open(HERE / "predictions.csv", encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    for path in paths:
        for what, group, us, measured in (calls if path.endswith(".jsonl") else terms)(path, cells):
            ratios[group].append(measured / us)
            print(f"{what:<48} expected {us:8.3f} us, measured {measured:8.3f}, "
                  f"{measured / us:5.2f}")
    for group, each in sorted(ratios.items()):
        print(f"{group}: measured over expected, of {len(each)}: median "
              f"{statistics.median(each):.2f}, {min(each):.2f} to {max(each):.2f}")
    if not ratios:
        print("no measurement that there is a prediction for")


if __name__ == "__main__":
    main(sys.argv[1:])
