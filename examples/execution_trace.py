#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the transformer of train.py for a few steps, and has PyTorch write what it did: an execution trace and a
Kineto trace of the same steps, which docs/traces.md links, converts and reads. Needs PyTorch 2.1 or later.

    python3 examples/execution_trace.py run            writes run/et_0.json and run/kineto_0.json
"""

import os
import sys

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader
from train import CausalTransformer, RepeatedWords, endless, train_step

STEPS = 3


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "run"
    rank = os.environ.get("RANK", "0")
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = CausalTransformer(width=64, layers=2, heads=4).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = DataLoader(RepeatedWords(1 << 20, seed=1), batch_size=8)
    batches = (rows.to(device) for rows in endless(loader))

    observer = ExecutionTraceObserver().register_callback(os.path.join(folder, f"et_{rank}.json"))
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] if device == "cuda" else [ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=STEPS),
        record_shapes=True,
        execution_trace_observer=observer,  # in the same profile: both name operators by the same ids
        on_trace_ready=lambda prof: prof.export_chrome_trace(os.path.join(folder, f"kineto_{rank}.json")),
    ) as prof:
        for _ in range(2 + STEPS):
            train_step(model, optimizer, batches)
            prof.step()


if __name__ == "__main__":
    main()
