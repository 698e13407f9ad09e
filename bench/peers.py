#!/usr/bin/env python3
"""Times other programs' LSTMs on the same problems and writes them as a run of bench-lstm, so that
--compare and --plot take them beside its own. No part of the build; needs python3-torch.

    bench/peers.py OUT --cases cpu --pass infer,train --threads 1,2
    bench/peers.py OUT --name cpu_blas && bench-lstm --compare RUN OUT    PyTorch against cpu_blas

PyTorch's nn.LSTM, f32, on the CPU. A process for each number of threads: PyTorch starts its own
once. Every case is checked before it is timed, against PyTorch's nn.LSTM in double precision on the
same weights and inputs (outputs, and in training the gradients of weights and inputs); wrong ones
have no speed. Weights and inputs are drawn by PyTorch, uniform in +-1/sqrt(H) and normal: the same
sizes and the same work as the program's, not the same numbers. Training: gradients are zeroed,
forward, backward from a given dy, timed together; the optimiser's step is left out.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time

CASES = pathlib.Path(__file__).resolve().parent / "cases"
SIZES = re.compile(r"^T(\d+)_B(\d+)(?:_I(\d+))?_H(\d+)(?:_L(\d+))?(?:_D(\d))?(?:/(\w+))?$")
MOST_ERROR = 1e-4  # norm of the difference over the norm, each tensor
SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "results" / "run.schema.json"


def read_cases(name):
    """Problems of a case file, or of a shipped one by its name: (T, B, I, H, L, D, pass or None)."""
    path = CASES / f"{name}.txt" if (CASES / f"{name}.txt").exists() else pathlib.Path(name)
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.split("#")[0].strip()
        if not text:
            continue
        match = SIZES.match(text)
        if not match:
            print(f"{path}: left out: {text}", file=sys.stderr)
            continue
        T, B, I, H, L, D = (int(group) if group else None for group in match.groups()[:6])
        yield T, B, I or H, H, L or 1, D or 1, match.group(7)


def flops_of(T, B, I, H, L, D, train):
    inputs = [I] + [D * H] * (L - 1)
    forward = sum(2 * T * B * 4 * H * (width + H) * D for width in inputs)
    return forward * (3 if train else 1)


def bytes_of(T, B, I, H, L, D, train):
    """Every input read once, every output written once, f32: as harness/problem.c counts them."""
    inputs = [I] + [D * H] * (L - 1)
    weights = sum(4 * H * (width + H + 2) * D for width in inputs)
    tensors = T * B * (I + D * H) + 4 * L * D * B * H
    return 4 * (weights + tensors) * (2 if train else 1)


def interval(ordered):
    """95 % order-statistic interval of the median, by the binomial's normal limit; n at least 6."""
    k = max(int((len(ordered) - 1.96 * len(ordered) ** 0.5) / 2), 0)
    return ordered[k], ordered[-1 - k]


def empty_row():
    """Every key of a row, unknown: readers compute what follows from the samples."""
    row = json.loads(SCHEMA.read_text(encoding="utf-8"))["definitions"]["row"]
    empty = {"string": "", "array": []}
    kinds = {key: row["properties"][key].get("type") for key in row["required"]}
    return {key: empty.get(kind) if isinstance(kind, str) else None for key, kind in kinds.items()}


def measure(call, seconds, least=20, most=5000):
    """Samples in ns: at least `least` where the time allows, until the median is within 1 %."""
    for _ in range(3):
        call()
    samples, start = [], time.monotonic()
    while len(samples) < most:
        before = time.monotonic_ns()
        call()
        samples.append(time.monotonic_ns() - before)
        spent = time.monotonic() - start
        if spent > seconds and len(samples) >= 6 or spent > 3 * seconds:
            return samples, "time"
        if len(samples) >= least and len(samples) % 5 == 0:
            low, high = interval(sorted(samples))
            if high - low <= 0.02 * statistics.median(samples):
                return samples, "precision"
    return samples, "count"


def cpus_text():
    cpus = sorted(os.sched_getaffinity(0))
    return f"CPU{'s' if len(cpus) > 1 else ''} {','.join(map(str, cpus))}"


class Torch:
    """nn.LSTM on one problem, in float and in double."""

    def __init__(self, torch, T, B, I, H, L, D):
        torch.manual_seed(1)
        self.torch = torch
        self.net = torch.nn.LSTM(I, H, L, bidirectional=D == 2)
        self.right = torch.nn.LSTM(I, H, L, bidirectional=D == 2).double()
        self.right.load_state_dict(self.net.state_dict())
        self.x = torch.randn(T, B, I)
        self.state = (torch.randn(L * D, B, H), torch.randn(L * D, B, H))
        self.dy = torch.randn(T, B, D * H)

    def infer(self):
        with self.torch.inference_mode():
            return self.net(self.x, self.state)

    def train(self, net=None, x=None, state=None, dy=None):
        net = net or self.net
        x = self.x if x is None else x
        for parameter in net.parameters():
            parameter.grad = None
        x.grad = None
        x.requires_grad_(True)
        y, last = net(x, state or self.state)
        y.backward(self.dy if dy is None else dy)
        return [y, *last, x.grad, *(p.grad for p in net.parameters())]

    def errors(self, train):
        """Norm of the difference to the double evaluation over its norm, of the worst tensor."""
        x, dy = self.x.detach().double(), self.dy.double()
        state = tuple(s.double() for s in self.state)
        if train:
            now, right = self.train(), self.train(self.right, x, state, dy)
        else:
            y, last = self.infer()
            now = [y, *last]
            with self.torch.inference_mode():
                y, last = self.right(x, state)
            right = [y, *last]
        self.x.requires_grad_(train)
        return max(float((a.detach().double() - b.detach()).norm() / b.detach().norm())
                   for a, b in zip(now, right))


def row_of(torch, name, sizes, kind, threads, seconds):
    T, B, I, H, L, D = sizes
    case = f"{name}/T{T}_B{B}_I{I}_H{H}" + (f"_L{L}" if L > 1 else "") + ("_D2" if D == 2 else "")
    case += f"/f32/{kind}" + (f"/th{threads}" if threads > 1 else "")
    train = kind == "train"
    row = {"kind": "row"} | empty_row()
    row.update({
        "case": case, "impl": name, "seq_len": T, "batch": B, "input": I, "hidden": H, "layers": L,
        "directions": D, "dtype": "f32", "pass": kind, "math": "ieee", "ragged": False,
        "act": "tanh", "launch": "stream", "cache": "hot", "timing": "isolated", "threads": threads,
        "chosen": f"PyTorch {torch.__version__} nn.LSTM, checked against itself in double "
                  f"precision, on {cpus_text()}",
        "calls_per_sample": 1, "flops": flops_of(*sizes, train), "bytes": bytes_of(*sizes, train),
        "stop_reason": "none"})
    problem = Torch(torch, *sizes)
    row["err_norm"] = problem.errors(train)
    if not row["err_norm"] <= MOST_ERROR:
        row["verdict"] = "wrong"
        row["reason"] = f"off by {row['err_norm']:.3g} in norm, allowed {MOST_ERROR}"
        return row
    samples, stop = measure(problem.train if train else problem.infer, seconds)
    row.update(verdict="ok", samples_ns=samples, blocks=[len(samples)], processes=[1],
               stop_reason=stop, median_ns=statistics.median(samples))
    return row


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def environment():
    """As bench-lstm names things, so that runs can be matched."""
    cpu = ""
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
    return {"host": platform.node(), "cpu": cpu, "cores": os.cpu_count(), "threads": os.cpu_count(),
            "simd": None, "governor": None, "cache_bytes": None, "version": None, "commit": None,
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "dirty": False, "compiler": None, "flags": None, "build_type": None, "libraries": {}}


def serve(arguments, out):
    """Rows of one number of threads, to out. Pinned before PyTorch starts any thread."""
    threads = int(arguments.threads)
    cpus = sorted(os.sched_getaffinity(0))
    if threads <= len(cpus):
        os.sched_setaffinity(0, cpus[len(cpus) - threads:])
    import torch  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(threads)
    for *sizes, only in read_cases(arguments.cases):
        for kind in arguments.passes.split(","):
            if only and only != kind:
                continue
            row = row_of(torch, arguments.name, sizes, kind, threads,
                         arguments.case_time)
            median = row["median_ns"]
            print(f"{row['case']:<48} {row['verdict']:<6}"
                  f" {median / 1e6 if median else float('nan'):10.3f} ms", file=sys.stderr)
            print(json.dumps(row, allow_nan=False), file=out, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("out", help="folder of the run, which must not be there yet")
    parser.add_argument("--cases", default="cpu", help="a case file, or the name of a shipped one")
    parser.add_argument("--pass", dest="passes", default="infer,train")
    parser.add_argument("--threads", default="1", help="a list such as 1,2")
    parser.add_argument("--case-time", type=float, default=10, help="seconds of sampling a case")
    parser.add_argument("--name", default="pytorch",
                        help="implementation that the rows are of: --compare pairs equal names")
    parser.add_argument("--rows", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rows:
        serve(arguments, sys.stdout)
        return 0
    folder = pathlib.Path(arguments.out)
    folder.mkdir()
    count = 0
    with open(folder / "run.jsonl", "w", encoding="utf-8") as file:
        header = {"kind": "header", "schema": 1, "started": now(), "environment": environment(),
                  "command": sys.argv, "seed": 1}
        print(json.dumps(header), file=file, flush=True)
        for threads in arguments.threads.split(","):
            child = subprocess.run(
                [sys.executable, __file__, "-", "--rows", "--threads", threads, "--cases",
                 arguments.cases, "--pass", arguments.passes, "--name", arguments.name,
                 "--case-time", str(arguments.case_time)],
                stdout=subprocess.PIPE, text=True, check=True)
            file.write(child.stdout)
            count += child.stdout.count("\n")
        footer = {"kind": "footer", "finished": now(), "rows": count, "interrupted": False}
        print(json.dumps(footer), file=file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
