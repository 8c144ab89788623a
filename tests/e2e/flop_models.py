# SPDX-License-Identifier: Apache-2.0
"""Runs models forward and backward, under torch.profiler and under torch.utils.flop_counter.FlopCounterMode.

    flop_models.py FOLDER       writes FOLDER/MODEL.json, the traces; prints what FlopCounterMode counted, as JSON:
                                {MODEL: {operator: FLOP}}

Runs in the environment of `tools/venv torch2`. Models have their real code and small sizes.
"""

import json
import sys

import torch
import transformers as tf
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

SMALL = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}


class Block(torch.nn.Module):
    """Of ResNet: two convolutions, and one around them where sizes change."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.one = torch.nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.norm1, self.norm2 = torch.nn.BatchNorm2d(out), torch.nn.BatchNorm2d(out)
        self.two = torch.nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.around = torch.nn.Conv2d(channels, out, 1, stride, bias=False) if stride > 1 else torch.nn.Identity()

    def forward(self, x):
        y = torch.relu(self.norm1(self.one(x)))
        return torch.relu(self.norm2(self.two(y)) + self.around(x))


class ResNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 7, 2, 3), torch.nn.MaxPool2d(3, 2, 1), Block(16, 16, 1), Block(16, 32, 2),
            Block(32, 32, 1), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10))

    def forward(self, x):
        return self.layers(x)


class AutoEncoder(torch.nn.Module):
    """Convolutions along one, two and three dimensions, dilated and transposed."""

    def __init__(self):
        super().__init__()
        self.down = torch.nn.Conv2d(3, 8, 3, 2, 1)
        self.wide = torch.nn.Conv2d(8, 8, 3, padding=2, dilation=2)
        self.up = torch.nn.ConvTranspose2d(8, 3, 3, 2, 1, output_padding=1)
        self.line = torch.nn.Conv1d(3, 4, 5, padding=2)
        self.cube = torch.nn.Conv3d(1, 2, 3, padding=1)

    def forward(self, x):
        y = self.up(torch.relu(self.wide(torch.relu(self.down(x)))))
        return self.line(y.flatten(2)).sum() + self.cube(y[:, None]).sum()


def tokens(**more):
    return {"input_ids": torch.arange(2 * 24).reshape(2, 24) % 89 + 1, **more}


def pictures():
    return torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def gpt2():
    config = tf.GPT2Config(vocab_size=97, n_embd=64, n_layer=2, n_head=4, n_positions=64)
    return tf.GPT2LMHeadModel(config), tokens()


def t5():
    config = tf.T5Config(vocab_size=97, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, pad_token_id=0,
                         decoder_start_token_id=0)
    return tf.T5ForConditionalGeneration(config), tokens(decoder_input_ids=torch.ones(2, 7, dtype=torch.long))


def vit():
    config = tf.ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=32,
                          patch_size=8)
    return tf.ViTModel(config), {"pixel_values": pictures()}


def qwen3_moe():
    config = tf.Qwen3MoeConfig(**SMALL, head_dim=16, moe_intermediate_size=48, num_experts=4, num_experts_per_tok=2)
    return tf.Qwen3MoeForCausalLM(config), tokens()


def plain(kind, config, **more):
    return lambda: (getattr(tf, kind)(getattr(tf, config)(**{**SMALL, **more})), tokens())


MODELS = {
    "llama": plain("LlamaForCausalLM", "LlamaConfig"),
    "mistral": plain("MistralForCausalLM", "MistralConfig", sliding_window=16),
    "qwen2": plain("Qwen2ForCausalLM", "Qwen2Config"),
    "qwen3_moe": qwen3_moe,
    "gemma": plain("GemmaForCausalLM", "GemmaConfig", head_dim=16),
    "phi": plain("PhiForCausalLM", "PhiConfig"),
    "gpt2": gpt2,
    "gpt_neox": plain("GPTNeoXForCausalLM", "GPTNeoXConfig"),
    "bert": plain("BertModel", "BertConfig"),
    "t5": t5,
    "vit": vit,
    "resnet": lambda: (ResNet(), {"x": pictures()}),
    "autoencoder": lambda: (AutoEncoder(), {"x": pictures()}),
    "llama_eager": plain("LlamaForCausalLM", "LlamaConfig", attn_implementation="eager"),
}


def run(model, inputs):
    output = model(**inputs)
    tensor = output if torch.is_tensor(output) else output[0]
    tensor.float().sum().backward()
    model.zero_grad()


def attention(query, key, value, *_arguments, **_more):
    return sdpa_flop_count(query, key, value)


def attention_backward(gradient, query, key, value, *_arguments, **_more):
    return sdpa_backward_flop_count(gradient, query, key, value)


# PyTorch has no formula for the CPU's fused attention: it is given that of the others.
OF_CPU = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: attention,
          torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward}


def measure(name, path):
    torch.manual_seed(1)
    model, inputs = MODELS[name]()
    model.train()
    run(model, inputs)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        run(model, inputs)
    profile.export_chrome_trace(path)
    with FlopCounterMode(display=False, custom_mapping=OF_CPU) as counter:
        run(model, inputs)
    counts = counter.get_flop_counts()["Global"]
    return {str(op).replace("aten.", "aten::"): flop for op, flop in counts.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps({name: measure(name, f"{sys.argv[1]}/{name}.json") for name in MODELS}))
