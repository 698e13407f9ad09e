#!/usr/bin/env python3
"""Times PyTorch's nn.LSTM on a GPU by CUDA events, without the plug-in:

    bench/frameworks/torch_events.py CASE... > torch.csv

CASE is T_B_I_H/dtype/pass[/tf32][/graph], such as T1024_B16_I768_H768/f16/infer. It serves machines whose Python has
PyTorch but no headers, where the plug-in can't be built. Results are not checked. Each call is timed alone
between two events after a synchronisation, as `--timing isolated` does; the row has the median and the quartiles."""

import re
import statistics
import sys

CASE = re.compile(r"T(\d+)_B(\d+)(?:_I(\d+))?_H(\d+)(?:_L(\d+))?(?:_D(\d+))?/(b?f16|f32|f64)/"
                  r"(infer|forward|train)(/tf32)?(/graph)?$")
DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
WARM_UP, CALLS = 5, 30


def prepare(torch, match):
    """The call of a case, as a user of PyTorch would write it."""
    steps, batch, size, hidden, layers, directions = (int(text) if text else None for text in match.groups()[:6])
    dtype, kind = getattr(torch, DTYPES[match.group(7)]), match.group(8)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = bool(match.group(9))
    layer = torch.nn.LSTM(size or hidden, hidden, layers or 1, bidirectional=directions == 2,
                          device="cuda", dtype=dtype).train(kind != "infer")
    x = torch.randn(steps, batch, size or hidden, device="cuda", dtype=dtype, requires_grad=kind == "train")
    dy = torch.randn(steps, batch, hidden * (directions or 1), device="cuda", dtype=dtype)

    def infer():
        with torch.inference_mode():
            layer(x)

    def train():
        y, _ = layer(x)
        torch.autograd.grad(y, [x, *layer.parameters()], dy)
    return {"infer": infer, "forward": lambda: layer(x), "train": train}[kind]


def captured(torch, call):
    """The call as a graph that is replayed."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())  # which fills the call's tensors
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def times_us(torch, call):
    for _ in range(WARM_UP):
        call()
    times = []
    for _ in range(CALLS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return sorted(times)


def main(cases):
    for name in cases:
        if not CASE.match(name):
            print(f"torch_events.py: {name}: a case is T_B_I_H/dtype/pass[/tf32][/graph]", file=sys.stderr)
            return 2
    try:
        import torch
    except ImportError:
        print("there is no PyTorch here", file=sys.stderr)
        return 77
    if not torch.cuda.is_available():
        print("this PyTorch sees no GPU", file=sys.stderr)
        return 77
    print(f"# PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, "
          f"{torch.cuda.get_device_name()}, {CALLS} calls")
    print("case,median_us,lower_quartile_us,upper_quartile_us")
    failed = 0
    for name in cases:
        try:
            call = prepare(torch, CASE.match(name))
            call = captured(torch, call) if name.endswith("/graph") else call
            times = times_us(torch, call)
        except RuntimeError as error:
            failed = 1
            print(f"# {name}: {str(error).splitlines()[0]}", flush=True)
            continue
        print(f"pytorch_cuda/{name},{statistics.median(times):.1f},{times[CALLS // 4]:.1f},"
              f"{times[3 * CALLS // 4]:.1f}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
