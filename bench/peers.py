#!/usr/bin/env python3
"""Times other programs' LSTMs on the same problems and writes them as a run of bench-lstm, so that
--compare and --plot take them beside its own. No part of the build; needs python3-torch.

    bench/peers.py OUT --cases cpu --pass infer,train --threads 1,2
    bench/peers.py OUT --name cpu_simd && bench-lstm --compare RUN OUT    PyTorch against cpu_simd
    bench/peers.py OUT --device cuda --cases gpu --dtype f16,bf16,f32,tf32 --against RUN.jsonl

PyTorch's nn.LSTM, on the CPU in f32, a process for each number of threads, since PyTorch starts its
own once; or on a GPU, where it calls cuDNN. Every case is checked before it is timed, against
PyTorch's nn.LSTM in double precision on the same weights and inputs (outputs, and in training the
gradients of weights and inputs); wrong ones have no speed. Weights and inputs are drawn by PyTorch,
uniform in +-1/sqrt(H) and normal: the same sizes and the same work as the program's, not the same
numbers. Training: gradients are zeroed, forward, backward from a given dy, timed together; the
optimiser's step is left out. A GPU is timed by an event before and one after a call, nothing else
on its stream, as the program does it; short calls hold PyTorch's own overhead. --against prints
each median beside that of the cuDNN algorithm that PyTorch's rule picks, from a run of the program,
and says which are more than 3 % apart. Exit code 77: no PyTorch, or no GPU for it.
"""

import argparse
import datetime
import importlib.metadata
import importlib.util
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
# Most norm of the difference over the norm, each tensor, by precision.
MOST_ERROR = {"f32": 1e-4, "tf32": 2e-2, "f16": 2e-2, "bf16": 1e-1}
APART = 0.03  # of two medians that should be the same
SKIPPED = 77
SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "results" / "run.schema.json"


def read_cases(name):
    """Problems of a case file or a shipped one's name: (T, B, I, H, L, D, pass or None)."""
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


class Timed:
    """A call and the clock it is timed by: the host's, or two events on the GPU's stream."""

    def __init__(self, torch, call, cuda):
        self.torch, self.call = torch, call
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if cuda else None

    def __call__(self):
        if not self.events:
            before = time.monotonic_ns()
            self.call()
            return time.monotonic_ns() - before
        self.torch.cuda.synchronize()
        self.events[0].record()
        self.call()
        self.events[1].record()
        self.events[1].synchronize()
        return self.events[0].elapsed_time(self.events[1]) * 1e6


def flops_of(T, B, I, H, L, D, train):
    inputs = [I] + [D * H] * (L - 1)
    forward = sum(2 * T * B * 4 * H * (width + H) * D for width in inputs)
    return forward * (3 if train else 1)


def bytes_of(T, B, I, H, L, D, train, size):
    """Every input read once, every output written once, forward and backward each: as
    harness/api/problem.c counts them."""
    inputs = [I] + [D * H] * (L - 1)
    weights = sum(4 * H * (width + H + 2) * D for width in inputs)
    sequences, states = T * B * (I + D * H), L * D * B * H
    return size * (3 * (weights + sequences) + 10 * states if train
                   else weights + sequences + 4 * states)


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


def measure(timed, seconds, least=20, most=5000):
    """Samples in ns: at least `least` where the time allows, until the median is within 1 %."""
    for _ in range(3):
        timed()
    samples, start = [], time.monotonic()
    while len(samples) < most:
        samples.append(timed())
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
    """nn.LSTM on one problem, in a precision and in double."""

    def __init__(self, torch, T, B, I, H, L, D, device="cpu", dtype="f32"):
        torch.manual_seed(1)
        self.torch = torch
        kind = {"f16": torch.float16, "bf16": torch.bfloat16}.get(dtype, torch.float32)
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"

        def to(tensor):
            return tensor.to(device=device, dtype=kind)

        self.net = to(torch.nn.LSTM(I, H, L, bidirectional=D == 2))
        self.right = torch.nn.LSTM(I, H, L, bidirectional=D == 2).double().to(device)
        self.right.load_state_dict(self.net.state_dict())
        self.x = to(torch.randn(T, B, I))
        self.state = (to(torch.randn(L * D, B, H)), to(torch.randn(L * D, B, H)))
        self.dy = to(torch.randn(T, B, D * H))

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
        self.right = None # it is large, and no longer needed
        return max(float((a.detach().double() - b.detach()).norm() / b.detach().norm())
                   for a, b in zip(now, right))


def filter_text(torch, cuda):
    if not cuda:
        return f"on {cpus_text()}"
    version = torch.backends.cudnn.version() or 0
    return f"cuDNN {version // 10000}.{version // 100 % 100}.{version % 100}"


def row_of(torch, name, sizes, kind, threads, seconds, device, dtype):
    T, B, I, H, L, D = sizes
    stored, math = ("f32", "tf32") if dtype == "tf32" else (dtype, "ieee")
    case = f"{name}/T{T}_B{B}_I{I}_H{H}" + (f"_L{L}" if L > 1 else "") + ("_D2" if D == 2 else "")
    case += f"/{stored}/{kind}" + ("/tf32" if math == "tf32" else "")
    case += f"/th{threads}" if threads > 1 else ""
    train, cuda = kind == "train", device == "cuda"
    row = {"kind": "row"} | empty_row()
    row.update({
        "case": case, "impl": name, "seq_len": T, "batch": B, "input": I, "hidden": H, "layers": L,
        "directions": D, "dtype": stored, "pass": kind, "math": math, "ragged": False,
        "act": "tanh", "launch": "stream", "cache": "hot", "timing": "isolated", "threads": threads,
        "chosen": f"PyTorch {torch.__version__} nn.LSTM, checked against itself in double "
                  f"precision, {filter_text(torch, cuda)}",
        "calls_per_sample": 1, "flops": flops_of(*sizes, train),
        "bytes": bytes_of(*sizes, train, 2 if stored in ("f16", "bf16") else 4),
        "stop_reason": "none"})
    try:
        problem = Torch(torch, *sizes, device, dtype)
        row["err_norm"] = problem.errors(train)
        if not row["err_norm"] <= MOST_ERROR[dtype]:
            row["verdict"] = "wrong"
            row["reason"] = f"off by {row['err_norm']:.3g} in norm, allowed {MOST_ERROR[dtype]}"
            return row
        call = problem.train if train else problem.infer
        samples, stop = measure(Timed(torch, call, cuda), seconds)
    except RuntimeError as error: # of which running out of device memory is one
        row["verdict"] = "oom" if "out of memory" in str(error) else "error"
        row["reason"] = str(error).splitlines()[0][:400]
        return row
    row.update(verdict="ok", samples_ns=samples, blocks=[len(samples)], processes=[1],
               stop_reason=stop, median_ns=statistics.median(samples))
    return row


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def environment(gpu):
    """As bench-lstm names things, so that runs can be matched. gpu: its description, or None."""
    cpu = ""
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
    seen = {"gpu": gpu} if gpu else {}
    return seen | {
            "host": platform.node(), "cpu": cpu, "cores": os.cpu_count(), "threads": os.cpu_count(),
            "simd": None, "governor": None, "cache_bytes": None, "version": None, "commit": None,
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "dirty": False, "compiler": None, "flags": None, "build_type": None,
            "libraries": {"PyTorch": importlib.metadata.version("torch")}}


def serve(arguments, out):
    """Rows of one number of threads, to out. Pinned before PyTorch starts any thread, unless those
    only feed a GPU."""
    threads = int(arguments.threads)
    cpus = sorted(os.sched_getaffinity(0))
    if threads <= len(cpus) and arguments.device == "cpu":
        os.sched_setaffinity(0, cpus[len(cpus) - threads:])
    import torch  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(threads)
    work = [(sizes, dtype, kind) for *sizes, only in read_cases(arguments.cases)
            for dtype in arguments.dtypes.split(",") for kind in arguments.passes.split(",")
            if only in (None, kind)]
    for sizes, dtype, kind in work:
        row = row_of(torch, arguments.name, sizes, kind, threads, arguments.case_time,
                     arguments.device, dtype)
        median = row["median_ns"]
        print(f"{row['case']:<48} {row['verdict']:<6}"
              f" {median / 1e6 if median else float('nan'):10.3f} ms", file=sys.stderr)
        print(json.dumps(row, allow_nan=False), file=out, flush=True)


def describe_gpu():
    """The GPU that PyTorch would use, asked in a process of its own; None where there is none."""
    ask = ("import json, torch\n"
           "p = torch.cuda.get_device_properties(0)\n"
           "print(json.dumps({'name': p.name, 'sm_count': p.multi_processor_count,"
           " 'memory_bytes': p.total_memory, 'compute': f'{p.major}.{p.minor}'}))")
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    print("no GPU for PyTorch:", done.stderr.strip().splitlines()[-1], file=sys.stderr)
    return None


def rows_in(path):
    with open(path, encoding="utf-8") as lines:
        return [row for row in map(json.loads, lines) if row["kind"] == "row"]


def problem_of(row):
    return row["case"].split("/", 1)[1]


def print_against(ours, peers):
    """PyTorch's medians beside those of the algorithm that its rule picks."""
    rule = re.compile("PyTorch's rule: (\\w+)")
    usual = {}
    for row in ours:
        named = rule.search(row["chosen"])
        if row["verdict"] == "ok" and named and row["variant"] == named.group(1):
            usual[problem_of(row)] = row
    apart = 0
    for row in peers:
        mine = usual.get(problem_of(row))
        if row["verdict"] != "ok" or not mine:
            continue
        ratio = row["median_ns"] / mine["median_ns"]
        apart += abs(ratio - 1) > APART
        print(f"{problem_of(row):<44} PyTorch {row['median_ns'] / 1e6:9.3f} ms, "
              f"{mine['variant']:<15}{mine['median_ns'] / 1e6:9.3f} ms, ratio {ratio:.3f}"
              f"{'  <- apart' if abs(ratio - 1) > APART else ''}")
    print(f"{apart} are more than {100 * APART:.0f} % apart")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("out", help="folder of the run, which must not be there yet")
    parser.add_argument("--cases", default="cpu", help="a case file, or the name of a shipped one")
    parser.add_argument("--pass", dest="passes", default="infer,train")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--dtype", dest="dtypes", default="f32",
                        help="on a GPU also f16, bf16, and tf32 for f32 with TF32 products")
    parser.add_argument("--against", help="run.jsonl of the program, with cudnn's variants")
    parser.add_argument("--threads", default="1", help="a list such as 1,2")
    parser.add_argument("--case-time", type=float, default=10, help="seconds of sampling a case")
    parser.add_argument("--name", default="pytorch",
                        help="implementation that the rows are of: --compare pairs equal names")
    parser.add_argument("--rows", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rows:
        serve(arguments, sys.stdout)
        return 0
    unknown = set(arguments.dtypes.split(",")) - (set(MOST_ERROR) if arguments.device == "cuda"
                                                  else {"f32"})
    if unknown:
        parser.error(f"--dtype {','.join(sorted(unknown))}: not with --device {arguments.device}")
    if not importlib.util.find_spec("torch"):
        print("peers.py: this Python has no PyTorch (python3-torch, or a virtual environment's)",
              file=sys.stderr)
        return SKIPPED
    gpu = describe_gpu() if arguments.device == "cuda" else None
    if arguments.device == "cuda" and not gpu:
        return SKIPPED
    folder = pathlib.Path(arguments.out)
    folder.mkdir()
    interrupted = False
    with open(folder / "run.jsonl", "w", encoding="utf-8") as file:
        header = {"kind": "header", "schema": 1, "started": now(), "environment": environment(gpu),
                  "command": ["bench/peers.py", *sys.argv[1:]], "seed": 1}
        print(json.dumps(header), file=file, flush=True)
        for threads in arguments.threads.split(","):
            command = [sys.executable, __file__, "-", "--rows", "--threads", threads, "--cases",
                       arguments.cases, "--pass", arguments.passes, "--name", arguments.name,
                       "--case-time", str(arguments.case_time), "--device", arguments.device,
                       "--dtype", arguments.dtypes]
            try: # rows are written as cases end: one that is cut short leaves those before it
                done = subprocess.run(command, stdout=file, check=False)
                interrupted = interrupted or done.returncode != 0
            except KeyboardInterrupt:
                interrupted = True
                break
        count = len(rows_in(folder / "run.jsonl"))
        footer = {"kind": "footer", "finished": now(), "rows": count, "interrupted": interrupted}
        print(json.dumps(footer), file=file)
    if arguments.against:
        print_against(rows_in(arguments.against), rows_in(folder / "run.jsonl"))
    return 1 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
