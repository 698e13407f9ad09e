"""Trains two small LSTMs on the text of this tree and writes them, with inputs and the outputs that
PyTorch computes from them in double precision, beside this file:

    next   one layer, 32 units: which character comes next
    gap    two layers, both directions, 16 units: which character is missing

NAME.safetensors holds the weights, NAME_x.npy characters as one-hot vectors [T, B, 32], NAME_y.npy the
layer's outputs [T, B, D*H]. Run it with the Python of bench/frameworks/setup.sh:

    ~/.cache/bench-lstm/frameworks/bin/python3 tests/frameworks/trained/make_trained.py
"""

import pathlib
import sys

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "bench" / "frameworks"))

from to_safetensors import write # pylint: disable=wrong-import-position

ALPHABET = "abcdefghijklmnopqrstuvwxyz \n.,-"
OTHER = len(ALPHABET)  # any other character; in `gap`, the missing one too
CLASSES = OTHER + 1
T, B = 24, 3  # of the inputs that are kept


def read_text():
    """The tree's documents as one tensor of character numbers, OTHER for those not in ALPHABET."""
    files = sorted(path for path in ROOT.glob("**/*.md") if "build" not in path.parts)
    text = "\n".join(path.read_text(encoding="utf-8") for path in files).lower()
    return torch.tensor([ALPHABET.find(c) if c in ALPHABET else OTHER for c in text])


class Model(torch.nn.Module):
    """An LSTM over characters, and a linear layer that turns its outputs into predictions."""

    def __init__(self, hidden, layers, both):
        super().__init__()
        self.lstm = torch.nn.LSTM(CLASSES, hidden, layers, bidirectional=both)
        self.head = torch.nn.Linear(hidden * (2 if both else 1), CLASSES)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


def draw(text, steps, batch, gap):
    """Inputs [steps, batch] and the targets, the characters to predict, -1 where there is none."""
    starts = torch.randint(len(text) - steps - 1, (batch,))
    x = torch.stack([text[s:s + steps] for s in starts], 1)
    if not gap:
        return x, torch.stack([text[s + 1:s + steps + 1] for s in starts], 1)
    missing = torch.rand(x.shape) < 0.15
    return x.masked_fill(missing, OTHER), x.masked_fill(~missing, -1)


def one_hot(x, dtype=torch.float32):
    return torch.nn.functional.one_hot(x, CLASSES).to(dtype)


def train(text, model, gap):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(600):
        x, targets = draw(text, 64, 32, gap)
        loss = torch.nn.functional.cross_entropy(
            model(one_hot(x)).flatten(0, 1), targets.flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def main():
    torch.manual_seed(1)
    text = read_text()
    for name, hidden, layers, gap in (("next", 32, 1, False), ("gap", 16, 2, True)):
        model = Model(hidden, layers, gap)
        train(text, model, gap)
        lstm = model.lstm
        write(HERE / f"{name}.safetensors",
              {key: value.detach().numpy() for key, value in lstm.state_dict().items()})
        x = one_hot(draw(text, T, B, gap)[0], torch.float64)
        with torch.no_grad():
            y = lstm.double()(x)[0]
        numpy.save(HERE / f"{name}_x.npy", x.numpy().astype("f2"))
        numpy.save(HERE / f"{name}_y.npy", y.numpy())


if __name__ == "__main__":
    main()
