#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates tokens with a small Llama of random weights on the CPU, for docs/inference.md.

    sonde record --hooks transformers:component:every=4 -- python3 examples/generate.py --batch 4

Needs transformers and PyTorch 2 (tools/venv torch2 installs them). Nothing is downloaded.
"""

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=128, help="tokens of each prompt")
    parser.add_argument("--tokens", type=int, default=48, help="to be made for each")
    parser.add_argument("--requests", type=int, default=3, help="one after the other")
    parser.add_argument("--layers", type=int, default=8)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # threads of a pool that wait take time from others on a busy machine
    config = LlamaConfig(
        vocab_size=8192, hidden_size=512, intermediate_size=1408, num_hidden_layers=arguments.layers,
        num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=4096,
    )
    model = LlamaForCausalLM(config).eval()
    try:
        import sonde

        sonde.mark("run", "sonde.run", {
            "model": "llama-%d" % arguments.layers, "precision": "fp32",
            "parameters": sum(weight.numel() for weight in model.parameters()), "layers": arguments.layers,
            "kv_heads": 4, "head_dim": 64, "kv_number_bytes": 4,
        })
    except ImportError:
        pass  # not recorded

    options = {"max_new_tokens": arguments.tokens, "min_new_tokens": arguments.tokens, "do_sample": False,
               "pad_token_id": 0}
    for _ in range(arguments.requests):
        prompt = torch.randint(1, config.vocab_size, (arguments.batch, arguments.prompt))
        model.generate(prompt, attention_mask=torch.ones_like(prompt), **options)


if __name__ == "__main__":
    main()
