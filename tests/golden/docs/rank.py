# SPDX-License-Identifier: Apache-2.0
"""Two ranks, of which the second is late in every third step: docs/python.md. With RANK it is one of them: docs/ranks.md."""
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def straggle(rank, step):
    if rank == 1 and step % 3 == 0:
        time.sleep(0.2)


def train_step(model, batch):
    loss = (model(batch) ** 2).mean()
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= 2


def main(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
    for step in range(30):
        straggle(rank, step)
        train_step(model, torch.randn(128, 256))
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        main(int(os.environ["RANK"]))
    else:
        mp.spawn(main, nprocs=2)
