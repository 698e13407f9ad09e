"""What PyTorch itself decides on this CPU: reads layers as JSON lines; writes true where nn.LSTM runs
oneDNN's layer, false where its own loop, null where it refuses the layer. The first line written says
which 16-bit types oneDNN takes on this CPU."""

import json
import sys
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode

warnings.simplefilter("ignore")


class Seen(TorchDispatchMode):
    """Notes the operators that are called."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(str(function))
        return function(*args, **(kwargs or {}))


def runs_fast(layer):
    dtype = getattr(torch, layer["dtype"])
    torch.backends.mkldnn.set_flags(layer["mkldnn"] == "enabled")
    try:
        module = torch.nn.LSTM(3, int(layer["hidden_size"]), int(layer["num_layers"]),
                               bias=layer["bias"] == "true", dtype=dtype,
                               batch_first=layer["batch_first"] == "true",
                               dropout=float(layer["dropout"]),
                               bidirectional=layer["bidirectional"] == "true",
                               proj_size=int(layer["proj_size"]))
    except ValueError:
        return None
    x = torch.zeros(2, 2, 3, dtype=dtype)
    if layer["packed"] == "true":
        x = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 1]),
                                                    batch_first=layer["batch_first"] == "true")
    with Seen() as seen, torch.set_grad_enabled(layer["pass"] == "train"):
        module(x)
    return any("mkldnn_rnn_layer" in name for name in seen.names)


def main():
    takes = torch.ops.mkldnn
    print(json.dumps({"bf16_cpu": bool(takes._is_mkldnn_bf16_supported()),
                      "fp16_cpu": bool(takes._is_mkldnn_fp16_supported()),
                      "bf16_flattened": torch.bfloat16 in torch.backends.cudnn.CUDNN_TENSOR_DTYPES}),
          flush=True)
    for line in sys.stdin:
        print(json.dumps(runs_fast(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
