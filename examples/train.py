#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer on the CPU: something real to profile.

The model reads byte strings that are made of repeated random words and learns to tell the next byte. Data loading,
forward pass, loss, backward pass and optimizer step are separate functions, so that a profile shows them by name.
Works with PyTorch 1.13 and later, needs nothing else and downloads nothing.

    python3 examples/train.py --seconds 10 --threads 2
"""

import argparse
import math
import random
import time
import warnings

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

VOCABULARY = 64
CONTEXT = 32


class RepeatedWords(Dataset):
    """Rows of CONTEXT + 1 symbols in which a random word repeats: easy to predict once the word is seen."""

    def __init__(self, count, seed):
        self.count = count
        self.seed = seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = random.Random(self.seed * 1_000_003 + index)
        word = [draw.randrange(VOCABULARY) for _ in range(draw.randrange(4, 12))]
        row = (word * (CONTEXT // len(word) + 2))[: CONTEXT + 1]
        return torch.tensor(row, dtype=torch.long)


class CausalTransformer(nn.Module):
    def __init__(self, width, layers, heads):
        super().__init__()
        self.symbols = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, dim_feedforward=4 * width, dropout=0.0, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, VOCABULARY)
        mask = torch.triu(torch.full((CONTEXT, CONTEXT), -math.inf), diagonal=1)
        self.register_buffer("mask", mask)

    def forward(self, rows):
        length = rows.shape[1]
        embedded = self.symbols(rows) + self.positions(torch.arange(length, device=rows.device))
        return self.head(self.encoder(embedded, self.mask[:length, :length]))


def endless(loader):
    while True:
        yield from loader


def load_batch(batches):
    rows = next(batches)
    return rows[:, :-1], rows[:, 1:]


def forward_and_loss(model, inputs, targets):
    predicted = model(inputs)
    return nn.functional.cross_entropy(predicted.reshape(-1, VOCABULARY), targets.reshape(-1))


def backward(loss):
    loss.backward()


def update_weights(optimizer):
    optimizer.step()
    optimizer.zero_grad()


def train_step(model, optimizer, batches):
    inputs, targets = load_batch(batches)
    loss = forward_and_loss(model, inputs, targets)
    backward(loss)
    update_weights(optimizer)
    return loss.item()


def train(model, arguments):
    """Returns the duration of every step in seconds."""
    loader = DataLoader(RepeatedWords(1 << 20, arguments.seed), batch_size=arguments.batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    batches = endless(loader)
    durations = []
    begin = time.monotonic()
    while len(durations) < arguments.steps and time.monotonic() - begin < arguments.seconds:
        step_begin = time.monotonic()
        loss = train_step(model, optimizer, batches)
        durations.append(time.monotonic() - step_begin)
        step = len(durations)
        if step == 1 or step % arguments.every == 0:
            print(f"step {step:5}  loss {loss:.3f}  {1000 * durations[-1]:.1f} ms", flush=True)
    return durations


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1 << 62, help="stop after so many steps")
    parser.add_argument("--seconds", type=float, default=10, help="stop after so long (10)")
    parser.add_argument("--threads", type=int, default=0, help="threads of PyTorch (its default)")
    parser.add_argument("--batch", type=int, default=8, help="rows in a batch (8)")
    parser.add_argument("--width", type=int, default=64, help="width of the model (64)")
    parser.add_argument("--layers", type=int, default=2, help="layers of the model (2)")
    parser.add_argument("--every", type=int, default=20, help="print every so many steps (20)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    arguments = read_arguments()
    torch.manual_seed(arguments.seed)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    model = CausalTransformer(arguments.width, arguments.layers, heads=4)
    count = sum(weights.numel() for weights in model.parameters())
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, {count} weights", flush=True)
    begin, cpu_begin = time.monotonic(), time.process_time()
    durations = sorted(train(model, arguments))
    seconds, cpu_seconds = time.monotonic() - begin, time.process_time() - cpu_begin
    if durations:
        print(f"{len(durations)} steps, median {1000 * durations[len(durations) // 2]:.1f} ms")
    print(f"worked for {seconds:.3f} s, {cpu_seconds:.3f} s of CPU time; {time.process_time():.3f} s with the start")


if __name__ == "__main__":
    main()
