"""Writes lstm_*.json: inputs and results of PyTorch's nn.LSTM for small random problems.

    apt-get install python3-torch python3-numpy
    /usr/bin/python3 tests/golden/make_golden.py

Every tensor is a flat list in C order, in the project's shapes. As in the project, PyTorch's
gate order is i, f, g, o, and element l*D + d of states and weights is layer l, direction d. Numbers
are printed so that they read back exactly. The files are committed, so the test needs no PyTorch.
"""

import json
import os

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
SEQ_LEN, BATCH, INPUT, HIDDEN = 5, 3, 4, 3
DTYPES = {"f64": torch.float64, "f32": torch.float32}


def flat(tensor):
    return tensor.detach().to(torch.float64).flatten().tolist()


def parameters(lstm, name, layers, directions, of_gradient):
    """The parameter called name (weight_ih, ...) of every layer and direction, or its gradient."""
    lists = []
    for layer in range(layers):
        for direction in range(directions):
            suffix = f"_l{layer}" + ("_reverse" if direction else "")
            parameter = getattr(lstm, name + suffix)
            lists.append(flat(parameter.grad if of_gradient else parameter))
    return lists


def make(dtype, layers, directions):
    torch.manual_seed(100 * layers + directions)
    lstm = torch.nn.LSTM(INPUT, HIDDEN, layers, bidirectional=directions == 2).to(DTYPES[dtype])
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter, std=0.8)  # larger than the default: gates leave their linear range

    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float32).to(DTYPES[dtype])

    state = (layers * directions, BATCH, HIDDEN)
    x, h0, c0 = draw(SEQ_LEN, BATCH, INPUT), draw(*state), draw(*state)
    dy, dhn, dcn = draw(SEQ_LEN, BATCH, directions * HIDDEN), draw(*state), draw(*state)
    for tensor in (x, h0, c0):
        tensor.requires_grad_()
    y, (hn, cn) = lstm(x, (h0, c0))
    torch.autograd.backward([y, hn, cn], [dy, dhn, dcn])

    golden = {"torch": torch.__version__, "dtype": dtype, "seq_len": SEQ_LEN, "batch": BATCH,
              "input": INPUT, "hidden": HIDDEN, "layers": layers, "directions": directions}
    tensors = {"x": x, "h0": h0, "c0": c0, "y": y, "hn": hn, "cn": cn, "dy": dy, "dhn": dhn,
               "dcn": dcn, "dx": x.grad, "dh0": h0.grad, "dc0": c0.grad}
    golden.update({name: flat(tensor) for name, tensor in tensors.items()})
    names = {"w_ih": "weight_ih", "w_hh": "weight_hh", "b_ih": "bias_ih", "b_hh": "bias_hh"}
    for ours, theirs in names.items():
        golden[ours] = parameters(lstm, theirs, layers, directions, False)
        golden["d" + ours] = parameters(lstm, theirs, layers, directions, True)
    return golden


def main():
    for dtype in DTYPES:
        for layers in (1, 2):
            for directions in (1, 2):
                path = os.path.join(HERE, f"lstm_{dtype}_L{layers}_D{directions}.json")
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(make(dtype, layers, directions), file)
                    file.write("\n")


if __name__ == "__main__":
    main()
