"""The NVTX events that a program emitted, and what is wrong with them."""

import glob
import json

DOMAIN = "bench-lstm"

# Name and category of a case's phases, in order.
PHASES = [("plan", "plan"), ("oracle", "verify"), ("prepare", "prepare"), ("verify", "verify"),
          ("warm-up", "warm-up"), ("timed", "timed"), ("recheck", "verify"),
          ("teardown", "teardown")]
NAMES = [name for name, _ in PHASES]
COLORS = {"cpu_ref": "ff7f7f7f", "cpu_simd": "ffd55e00"}


def read_events(out):
    """The recorder's events by process, in order."""
    processes = []
    for path in sorted(glob.glob(glob.escape(out) + ".*")):
        with open(path, encoding="utf-8") as lines:
            processes.append([json.loads(line) for line in lines])
    return processes


def balance(events):
    """Ranges as [(name, depth, event)], and complaints about their nesting."""
    ranges, wrong, stack = [], [], []
    for event in events:
        if event["event"] == "push":
            ranges.append((event["name"], len(stack), event))
            stack.append(event)
        elif event["event"] == "pop" and not stack:
            wrong.append("a pop without a push")
        elif event["event"] == "pop":
            if stack.pop()["domain"] != event["domain"]:
                wrong.append("a pop in another domain than its push")
        elif event["event"] in ("mark", "start", "end"):
            wrong.append(f"a {event['event']} where only push and pop are used")
    wrong += [f"left open: {event['name']}" for event in stack]
    return ranges, wrong


def cases_of(ranges):
    """The ranges grouped by case: [(case event, [phase event, ...]), ...], and complaints."""
    cases, wrong = [], []
    for name, depth, event in ranges:
        if depth == 0:
            cases.append((event, []))
        elif depth == 1:
            cases[-1][1].append(event)
        else:
            wrong.append(f"{name} at depth {depth}")
    return cases, wrong


def wrong_attributes(event, category, row):
    """Complaints about the attributes of a range."""
    problem = {"schema": "problem", "T": row["seq_len"], "B": row["batch"], "I": row["input"],
               "H": row["hidden"], "L": row["layers"], "D": row["directions"],
               "dtype": row["dtype"], "pass": row["pass"]}
    expected = {"domain": DOMAIN, "registered": True, "category": category, "payload": problem,
                "color": COLORS.get(row["impl"], event["color"])}
    return [f"{event['name']}: {key} is {event[key]}, not {value}"
            for key, value in expected.items() if event[key] != value]


def wrong_phases(names, verdict):
    """Complaints about the phases of a case: each must come once and in order if the case ran; if
    it failed, those up to the failure, and the teardown."""
    if verdict == "ok":
        return [] if names == NAMES else [f"phases are {names}"]
    left = iter(NAMES)
    in_order = all(name in left for name in names)
    return [] if in_order and names[-1] == "teardown" else [f"phases are {names}: {verdict}"]


def complaints(events, rows):
    """Everything wrong with the events of a process that ran these rows' cases, in their order."""
    ranges, wrong = balance(events)
    cases, more = cases_of(ranges)
    wrong += more
    if len(cases) != len(rows):
        wrong.append(f"{len(cases)} cases in place of {len(rows)}")
    for (event, phases), row in zip(cases, rows):
        if event["name"] != row["case"]:
            wrong.append(f"{row['case']} is called {event['name']}")
        wrong += wrong_attributes(event, "", row)
        wrong += wrong_phases([phase["name"] for phase in phases], row["verdict"])
        for phase in phases:
            wrong += wrong_attributes(phase, dict(PHASES).get(phase["name"]), row)
    return wrong


def timed_regions(events):
    """The events between two readings of the clock, in phases that take times, where they include a
    call of the implementation: [(phase, [event, ...]), ...]."""
    regions, region, stack = [], [], []
    for event in events:
        if event["event"] == "clock":
            if stack and stack[-1] in ("warm-up", "timed") and \
                    any(inner["event"] == "call" for inner in region):
                regions.append((stack[-1], region))
            region = []
            continue
        region.append(event)
        if event["event"] == "push":
            stack.append(event["name"])
        elif event["event"] == "pop" and stack:
            stack.pop()
    return regions


def emitted_inside(events):
    """The NVTX events within timed regions."""
    return [event for _, region in timed_regions(events) for event in region
            if event["event"] not in ("call", "return")]
