# SPDX-License-Identifier: Apache-2.0
"""Three steps of a small transformer, profiled by PyTorch with its modules: docs/trace-report.md."""
import sys

import torch
from torch.profiler import ProfilerActivity, profile


class Block(torch.nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attention = torch.nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y)[0]
        return x + self.mlp(self.norm2(x))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
with profile(activities=[ProfilerActivity.CPU], with_stack=True) as profiler:
    for _ in range(3):
        net(torch.randn(8, 64, 256)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        profiler.step()
profiler.export_chrome_trace(sys.argv[1])
