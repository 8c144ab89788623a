# SPDX-License-Identifier: Apache-2.0
"""Run by models.py under a recording, in a Python with PyTorch 2 and transformers; prints JSON.

A Llama with random weights decodes tokens, with and without sonde.watch by turns. What is compared is the CPU time of
the thread, of which there is one: other work on the machine takes none of it.

model_costs.py cost PAIRS     of tokens, for each level
model_costs.py sums TOKENS    the time of forward passes, by a clock around them
"""

import json
import sys
import time

import torch
import transformers

LEVELS = ("step", "layer", "component", "stats")


def test_llama():
    """135 million parameters in 30 layers, as the smallest models that people use."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = transformers.LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, tie_word_embeddings=True,
    )
    return transformers.LlamaForCausalLM(config).eval()


class Decoder:
    """One call after the other is a token."""

    def __init__(self, model):
        self.model, self.ids, self.cache = model, torch.ones(1, 16, dtype=torch.long), None

    def seconds(self, clock):
        """Of one token, by the clock."""
        with torch.no_grad():
            begin = clock()
            output = self.model(input_ids=self.ids, past_key_values=self.cache, use_cache=True)
            taken = clock() - begin
            self.cache, self.ids = output.past_key_values, output.logits[:, -1:].argmax(-1)
        return taken


def ratios_of(model, level, pairs):
    """Of the time of a token that is watched to that of one beside it that is not. Both have a watch before, so that
    what it leaves in the caches is the same."""
    import sonde

    decoder, found, plain = Decoder(model), [], []
    decoder.seconds(time.thread_time)  # reads the prompt
    for number in range(2 * pairs):
        watch = sonde.watch(model, level=level)
        is_watched = (number + number // 2) % 2  # off, on, on, off
        watch._change(True)  # hooks are registered once, which is none of a token's time
        if not is_watched:
            watch.close()
        seconds = decoder.seconds(time.thread_time)
        assert watch.error is None and watch.steps == is_watched, str(watch)
        watch.close()
        if number % 2 == 0:
            first = seconds
        else:
            watched, alone = (seconds, first) if is_watched else (first, seconds)
            found.append(watched / alone)
            plain.append(alone)
    return sorted(found), plain


def cost(pairs):
    import sonde

    model = test_llama()
    ratios_of(model, "component", 2)
    ratios, seconds, modules = {}, [], {}
    for level in LEVELS:
        ratios[level], plain = ratios_of(model, level, pairs)
        seconds += plain
        with sonde.watch(model, level=level) as watch:
            modules[level] = len(watch._entries)
            Decoder(model).seconds(time.thread_time)
    return {"torch": torch.__version__, "transformers": transformers.__version__, "pairs": pairs,
            "token_ms": sorted(seconds)[len(seconds) // 2] * 1000, "modules": modules, "ratios": ratios}


def sums(tokens):
    import sonde

    decoder = Decoder(test_llama())
    decoder.seconds(time.perf_counter)
    with sonde.watch(decoder.model, level="component") as watch:
        seconds = sum(decoder.seconds(time.perf_counter) for _ in range(tokens))
        assert watch.instrumented_steps == tokens
    return {"passes": tokens, "seconds": seconds}


def main():
    measure, *numbers = sys.argv[1:]
    print("\n" + json.dumps({"cost": cost, "sums": sums}[measure](*map(int, numbers))))


if __name__ == "__main__":
    main()
