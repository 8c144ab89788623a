# SPDX-License-Identifier: Apache-2.0
"""A test double of a mixture-of-experts model on vLLM's stand-ins: two layers that route random tokens.

Prints what they chose, counted here, as one JSON object. Before that a window ends early: what they chose in it is
not in the counts.
"""

import collections
import itertools
import json
import sys

import sonde._core
import torch

import vllm  # noqa: F401
from vllm.model_executor.layers.fused_moe.router.base_router import BaseRouter
from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner

EXPERTS, TOP_K, TOKENS = 8, 3, 50


def layers():
    runners = [MoERunner(f"model.layers.{number}.mlp.experts", BaseRouter(TOP_K, EXPERTS)) for number in (3, 11)]
    return [lambda hidden, logits, runner=runner: runner._forward_impl(hidden, logits, None) for runner in runners]


window = 1
sonde._core.window = lambda: window
for route in layers():
    route(torch.zeros(TOKENS, 4), torch.randn(TOKENS, EXPERTS))
window = 2
torch.manual_seed(7)
counts = [collections.Counter() for _ in range(2)]
pairs = [collections.Counter() for _ in range(2)]
for _ in range(20):
    for number, route in enumerate(layers()):
        logits = torch.randn(TOKENS, EXPERTS)
        logits[:, 5] = -100.0  # never chosen
        if number:
            logits[:, 0] += 100.0  # always chosen
        weights, ids = route(torch.zeros(TOKENS, 4), logits)
        assert ids.shape == (TOKENS, TOP_K) and torch.equal(ids, torch.softmax(logits, -1).topk(TOP_K)[1])
        for chosen in ids.tolist():
            counts[number].update(chosen)
            pairs[number].update(itertools.combinations(sorted(chosen), 2))
json.dump({
    "counts": [[count[expert] for expert in range(EXPERTS)] for count in counts],
    "pairs": [[[*pair, count] for pair, count in sorted(one.items())] for one in pairs],
}, sys.stdout)
