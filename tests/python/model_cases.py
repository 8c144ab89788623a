# SPDX-License-Identifier: Apache-2.0
"""Models of Hugging Face transformers, made from small configurations with random weights, that generate tokens while
they are watched; with a double of the extension. Run by test_watch.py.

The arguments are families and cases; without any all run. The program prints what each of them raised, "" where it
passed.
"""

import json
import sys
import threading
import traceback

import core_double
from core_double import state, take, tree

core_double.install()

import torch  # noqa: E402
import transformers  # noqa: E402
from sonde.hooks import registry  # noqa: E402

registry.activate("transformers")
import transformers.generation.utils  # noqa: E402

registry.apply("transformers.generation.utils")

import sonde  # noqa: E402
from transformers import StoppingCriteria, StoppingCriteriaList  # noqa: E402

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()

COMMON = dict(vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=None)
ATTENTION, GATED = ("q", "k", "v", "o"), ("gate", "up", "down")

# For each family what differs in its configuration, and the components of a layer in the order of their calls.
FAMILIES = {
    "llama": ({}, ("norm1", *ATTENTION, "norm2", *GATED)),
    "mistral": ({}, ("norm1", *ATTENTION, "norm2", *GATED)),
    "qwen2": ({}, ("norm1", *ATTENTION, "norm2", *GATED)),
    "qwen3": ({"head_dim": 8}, ("norm1", *ATTENTION, "qk_norm", "norm2", *GATED)),
    "qwen2_moe": (
        {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "decoder_sparse_step": 1,
         "shared_expert_intermediate_size": 16},
        ("norm1", *ATTENTION, "norm2", "router", "experts", "shared_expert",
         "shared_expert_gate"),
    ),
    "qwen3_moe": (
        {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "decoder_sparse_step": 1,
         "head_dim": 8},
        ("norm1", *ATTENTION, "qk_norm", "norm2", "router", "experts"),
    ),
    "gemma": ({"head_dim": 8}, ("norm1", *ATTENTION, "norm2", *GATED)),
    "gemma2": ({"head_dim": 8}, ("norm1", *ATTENTION, "norm2", "norm3", *GATED, "norm4")),
    "gemma3_text": ({"head_dim": 8}, ("norm1", *ATTENTION, "qk_norm", "norm2", "norm3", *GATED, "norm4")),
    "phi": ({"num_key_value_heads": 4}, ("norm1", *ATTENTION, "up", "down")),
    "phi3": ({}, ("norm1", "qkv", "o", "norm2", "gate_up", "down")),
    "phimoe": ({"num_local_experts": 4, "num_experts_per_tok": 2}, ("norm1", *ATTENTION, "norm2", "router", "experts")),
    "stablelm": ({}, ("norm1", *ATTENTION, "norm2", *GATED)),
    "mixtral": ({"num_local_experts": 4}, ("norm1", *ATTENTION, "norm2", "router", "experts")),
    "gpt2": (
        {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 128},
        ("norm1", "qkv", "o", "norm2", "up", "down"),
    ),
    "gpt_neox": ({}, ("norm1", "qkv", "o", "norm2", "up", "down")),
}


def model_of(family, seed=3, **more):
    torch.manual_seed(seed)
    config = transformers.AutoConfig.for_model(family, **{**COMMON, **FAMILIES[family][0], **more})
    return transformers.AutoModelForCausalLM.from_config(config).eval()


PROMPT = torch.tensor([[5, 6, 7, 8, 9]])


def generate(model, tokens=4, prompt=PROMPT, **more):
    return model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, min_new_tokens=tokens,
                          do_sample=False, **more)


def hooks_in(model):
    """With what is in the place of a module's forward."""
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) + ("forward" in module.__dict__)
        for module in model.modules()
    )


def tokens_of(taken):
    """{request: [(index, phase)…]}"""
    found = {}
    for kind, index, fields, _ in taken:
        if kind == "token":
            found.setdefault(fields["request"], []).append((index, fields["phase"]))
    return found


def whole(tokens):
    return [(0, "prefill"), *((index, "decode") for index in range(tokens))]


def roles(layer):
    """The components of a layer, in the order of their first calls, without what holds them."""
    found = {}
    for one in layer.inside:
        if one.fields["role"] in ("self_attn", "mlp"):
            found.update(dict.fromkeys(roles(one)))
        else:
            found[one.fields["role"]] = None
    return list(found)


def check_family(family):
    """What is found is what the family has, in calls and in the summary; tokens are the same to the bit."""
    model = model_of(family)
    with torch.no_grad():
        logits = model(PROMPT).logits
        with sonde.watch(model, level="component") as watch:
            assert torch.equal(logits, model(PROMPT).logits)
    text, wanted = str(watch), FAMILIES[family][1]
    assert "(%s)" % family in text and "not found" not in text and "3 layers, " in text, text
    (step,) = tree(take())
    layers = [one for one in step.inside if one.fields["role"] == "layer"]
    assert [one.fields["layer"] for one in layers] == [0, 1, 2]
    for layer in layers:
        assert sorted(roles(layer)) == sorted(wanted), (roles(layer), wanted)
    outside = [one.fields["role"] for one in step.inside if one.fields["role"] != "layer"]
    assert outside[0] == "embed" and outside[-2:] == ["final_norm", "head"], outside
    state["open"] = False
    plain = generate(model)
    state["open"] = True
    take()
    assert torch.equal(plain, generate(model)) and hooks_in(model) == 0
    taken = take()
    steps = tree(taken)
    assert [one.fields["phase"] for one in steps] == ["prefill", "decode", "decode", "decode"]
    assert len({one.fields["request"] for one in steps}) == 1 and all(one.inside for one in steps)
    assert list(tokens_of(taken).values()) == [whole(4)]


def case_the_configuration_says_what_a_run_is_of():
    wanted = {
        "llama": {"precision": "fp32", "kv_heads": 2, "head_dim": 8, "kv_number_bytes": 4},
        "mixtral": {"precision": "bf16", "experts": 4, "kv_number_bytes": 2},
    }
    for family, fields in wanted.items():
        model = model_of(family).to(torch.bfloat16 if fields["precision"] == "bf16" else torch.float32)
        with torch.no_grad(), sonde.watch(model):
            model(PROMPT)
        (said,) = [found for kind, name, found, _ in take() if kind == "mark" and name == "configuration"]
        assert all(said[key] == value for key, value in fields.items()), said
        assert said["parameters"] == sum(one.numel() for one in model.parameters()), said
        inside = sum(one.numel() for name, one in model.named_parameters() if ".experts." in name)
        assert ("active_parameters" in said) == (family == "mixtral")
        assert family == "llama" or said["active_parameters"] == said["parameters"] - inside // 2, (said, inside)


def case_choices_of_fused_experts_are_counted():
    """Fused experts are one module: the router's choices are counted, with the statistics."""
    model = model_of("qwen3_moe")
    kept = {}
    for number, layer in enumerate(model.model.layers):
        layer.mlp.gate.register_forward_hook(lambda _m, _a, out, n=number: kept.setdefault(n, []).append(out))
    with sonde.watch(model, level="component"):
        model(PROMPT)
    assert not [name for kind, name, *_ in take() if kind == "mark" and name.startswith("moe.")]
    kept.clear()
    with torch.no_grad(), sonde.watch(model, level="stats") as watch:
        model(PROMPT)
        model(PROMPT)
    taken = [(name, fields) for kind, name, fields, of in take() if kind == "mark" and name.startswith("moe.")]
    assert watch.error is None, watch.error
    for number, outputs in kept.items():
        ids = [out[2] for out in outputs]
        shares = torch.softmax(torch.cat([out[0] for out in outputs]), -1)
        (routed,) = [fields for name, fields in taken if name == "moe.routed" and fields["layer"] == number]
        assert (routed["experts"], routed["top_k"], routed["calls"]) == (4, 2, 2), routed
        assert routed["tokens"] == 2 * PROMPT.numel() and routed["outside"] == 0
        (counts,) = [fields for name, fields in taken if name == "moe.experts" and fields["layer"] == number]
        true = torch.bincount(torch.cat(ids).reshape(-1), minlength=4).tolist()
        assert [counts.get(str(expert), 0) for expert in range(4)] == true, (counts, true)
        (sums,) = [fields for name, fields in taken if name == "moe.probabilities" and fields["layer"] == number]
        assert all(abs(sums[str(expert)] - shares[:, expert].sum()) < 1e-5 for expert in range(4)), (sums, shares)
        entropy = float(-(shares * shares.log2()).sum())
        assert routed["routed_tokens"] == routed["tokens"] and abs(routed["router_entropy_bits"] - entropy) < 1e-4


def case_weights_of_eager_attention():
    """As the model itself returns them; a fused kernel has none, and the summary says so."""
    model = model_of("llama", attn_implementation="eager")
    with torch.no_grad():
        true = model(PROMPT, output_attentions=True).attentions
        with sonde.watch(model, level="stats") as watch:
            model(PROMPT)
    assert "weights of attention" not in str(watch)
    found = {fields["layer"]: fields for kind, name, fields, _ in take() if kind == "mark" and name == "attention"}
    assert sorted(found) == [0, 1, 2]
    for layer, fields in found.items():
        last = true[layer][:, :, -1]
        entropy = -(last * last.log2()).sum(-1).mean()
        assert abs(fields["entropy_bits"] - entropy) < 1e-4 and (fields["heads"], fields["keys"]) == (4, 5)
        assert abs(fields["largest"] - last.max()) < 1e-6
    fused = model_of("llama")
    with torch.no_grad(), sonde.watch(fused, level="stats") as watch:
        fused(PROMPT)
    assert "weights of attention: a kernel of sdpa has none to show" in str(watch)
    assert not [name for kind, name, *_ in take() if kind == "mark" and name == "attention"]


# ---- generation ----


def case_a_batch_and_no_streamer():
    model = model_of("llama")
    generate(model, prompt=PROMPT.repeat(3, 1))
    taken = take()
    (top,) = tree(taken, "transformers")
    assert top.name == "generate" and top.fields["batch"] == 3 and top.names() == ["prefill", "decode"]
    assert list(tokens_of(taken).values()) == [whole(4)]
    assert tree(taken)[0].fields["batch"] == 3


def case_beams():
    """Each step of the search is a token of each beam."""
    model = model_of("llama")
    generate(model, num_beams=3)
    taken = take()
    assert list(tokens_of(taken).values()) == [whole(4)] and len(tree(taken)) == 4
    assert tree(taken, "transformers")[0].names() == ["prefill", "decode"]


def case_a_streamer():
    """It gets the prompt first, which is no token."""

    class Streamer:
        def __init__(self):
            self.puts = []

        def put(self, value):
            self.puts.append(len(tokens_of(core_double.events).get(request(), [])))

        def end(self):
            self.puts.append("end")

    def request():
        return next(iter(tokens_of(core_double.events)), None)

    model, streamer = model_of("llama"), Streamer()
    generate(model, streamer=streamer)
    assert list(tokens_of(take()).values()) == [whole(4)]
    assert streamer.puts == [1, 1, 2, 3, 4, "end"], streamer.puts  # with the mark of the prefill


def case_one_token_has_no_decode():
    model = model_of("llama")
    generate(model, tokens=1)
    taken = take()
    assert list(tokens_of(taken).values()) == [whole(1)]


def case_assisted_decoding():
    """The tokens of the request are those that it returns, and its assistant's are none of them."""
    model, assistant = model_of("llama"), model_of("llama")
    made = generate(model, tokens=9, assistant_model=assistant)
    taken = take()
    ((_, tokens),) = tokens_of(taken).items()
    assert tokens == whole(made.shape[1] - PROMPT.shape[1]), (tokens, made.shape)
    (top,) = tree(taken, "transformers")
    assert top.name == "generate" and {one.name for one in top.inside} == {"prefill", "decode"}
    assert any(one.name == "assistant" for phase in top.inside for one in phase.inside)
    phases = [one.fields["phase"] for one in tree(taken)]
    assert "assistant" in phases and "decode" in phases and hooks_in(assistant) == 0


def case_several_threads():
    """Requests are apart, each with its own tokens; the hooks go with the last call."""
    model = model_of("llama")
    both = threading.Barrier(2, timeout=60)

    class Together(StoppingCriteria):
        def __call__(self, input_ids, scores, **kwargs):
            both.wait()
            return torch.zeros(input_ids.shape[0], dtype=torch.bool)

    def work():
        generate(model, stopping_criteria=StoppingCriteriaList([Together()]))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = tokens_of(take())
    assert len(found) == 2 and all(tokens == whole(4) for tokens in found.values()), found
    assert hooks_in(model) == 0


class Cancel(StoppingCriteria):
    def __init__(self, after, error=None):
        self.after, self.error, self.calls = after, error, 0

    def __call__(self, input_ids, scores, **kwargs):
        self.calls += 1
        if self.calls >= self.after and self.error is not None:
            raise self.error
        return torch.full((input_ids.shape[0],), self.calls >= self.after)


def case_cancelled_by_a_criterion():
    model = model_of("llama")
    generate(model, tokens=9, stopping_criteria=StoppingCriteriaList([Cancel(3)]))
    taken = take()
    assert list(tokens_of(taken).values()) == [whole(3)] and hooks_in(model) == 0
    tree(taken), tree(taken, "transformers")


def case_cancelled_by_an_exception():
    """In the first step: there is no first token, and none is made up."""
    model = model_of("llama")
    for error, after in ((RuntimeError("stop"), 1), (KeyboardInterrupt(), 1), (RuntimeError("stop"), 3)):
        try:
            generate(model, tokens=9, stopping_criteria=StoppingCriteriaList([Cancel(after, error)]))
        except type(error) as raised:
            assert raised is error
        taken = take()
        assert list(tokens_of(taken).values()) == [whole(after - 1)], tokens_of(taken)
        assert tree(taken, "transformers")[0].names() == (["prefill"] if after == 1 else ["prefill", "decode"])
        tree(taken)
        assert hooks_in(model) == 0


def case_a_forward_that_raises():
    model = model_of("llama")
    for error in (RuntimeError("broken"), KeyboardInterrupt()):
        def fail(*_args):
            raise error
        handle = model.model.layers[1].mlp.register_forward_pre_hook(fail)
        try:
            generate(model)
        except type(error) as raised:
            assert raised is error
        handle.remove()
        taken = take()
        (step,) = tree(taken)
        assert list(tokens_of(taken).values()) == [[(0, "prefill")]] and step.fields["phase"] == "prefill"
        assert hooks_in(model) == 0
    generate(model)
    assert list(tokens_of(take()).values()) == [whole(4)]


def case_a_window_that_opens_late():
    """The first token that is recorded is not the first of the request, and does not say so."""
    model = model_of("llama")

    class Open(StoppingCriteria):
        calls = 0

        def __call__(self, input_ids, scores, **kwargs):
            self.calls += 1
            state["open"] = self.calls >= 2
            return torch.zeros(input_ids.shape[0], dtype=torch.bool)

    state["open"] = False
    generate(model, tokens=5, stopping_criteria=StoppingCriteriaList([Open()]))
    taken = take()
    assert list(tokens_of(taken).values()) == [[(1, "decode"), (2, "decode"), (3, "decode"), (4, "decode")]]


def case_slow_continuous_batching():
    """Requests of generate_batch() arrive, and each of their tokens comes in the thread that runs the batch."""
    import transformers.generation.continuous_batching  # noqa: F401

    for module in ("requests", "continuous_api"):
        registry.apply("transformers.generation.continuous_batching." + module)
    model = model_of("llama", attn_implementation="sdpa")
    take()
    prompts = [[5, 6, 7, 8], [9, 10, 11]]
    config = transformers.GenerationConfig(max_new_tokens=5, do_sample=False, eos_token_id=-1, pad_token_id=0)
    results = model.generate_batch(prompts, generation_config=config, warmup=False)
    taken = take()
    assert len(results) == 2 and all(len(one.generated_tokens) == 5 for one in results.values()), results
    marks = {}
    for kind, index, fields, _ in taken:
        if kind == "token":
            marks.setdefault(fields["request"], []).append((index, fields["phase"]))
    assert marks == {name: [(0, "queued"), *((i, "decode") for i in range(5))] for name in results}, marks
    steps = tree(taken)
    assert len(steps) >= 5 and all(step.name == "step" for step in steps) and hooks_in(model) == 0


def case_a_loop_of_another_decoder():
    """A decoder of its own, in the call of generate(): its tokens are those of the one request."""
    model = model_of("llama")

    def decoder(model, input_ids, **kwargs):
        return model.generate(input_ids, attention_mask=torch.ones_like(input_ids), max_new_tokens=3, min_new_tokens=3,
                              do_sample=False)

    generate(model, custom_generate=decoder)
    taken = take()
    assert list(tokens_of(taken).values()) == [whole(3)], tokens_of(taken)
    assert len(tree(taken, "transformers")) == 1


def case_a_model_that_the_program_watches():
    """It is left to the program, with its level."""
    model = model_of("llama")
    with sonde.watch(model, level="layer") as watch:
        generate(model)
        assert watch.steps == 4 and hooks_in(model) > 0
    steps = tree(take())
    assert len(steps) == 4 and not steps[0].inside[0].inside and steps[0].fields["phase"] == "prefill"


def case_parallel_residuals_have_one_norm():
    model = model_of("stablelm", use_parallel_residual=True)
    with sonde.watch(model, level="component") as watch:
        model(PROMPT)
    assert "not found" not in str(watch) and "norm2" not in roles(tree(take())[0].inside[1])


def case_a_base_model_has_no_head():
    model = model_of("llama").model
    with sonde.watch(model, level="component") as watch:
        model(PROMPT)
    assert "not found" not in str(watch) and tree(take())[0].names()[-1] == "final_norm", str(watch)


def case_slow_peft():
    """Adapters around the projections: the roles are those of the model inside."""
    import peft

    model = peft.get_peft_model(model_of("llama"), peft.LoraConfig(target_modules=["q_proj", "v_proj"], r=2))
    plain = generate(model)
    take()
    with sonde.watch(model, level="component") as watch:
        assert torch.equal(plain, generate(model))
    steps = tree(take())
    assert "PeftModel" in str(watch) and "not found" not in str(watch), str(watch)
    assert len(steps) == 4 and {"q", "v"} < set(roles(steps[0].inside[2])), steps[0].names()


def case_slow_quantised():
    model = torch.ao.quantization.quantize_dynamic(model_of("llama"), {torch.nn.Linear}, dtype=torch.qint8)
    plain = generate(model)
    take()
    with sonde.watch(model, level="stats") as watch:
        assert torch.equal(plain, generate(model))
    assert "not found" not in str(watch) and len(tree(take())) == 4


def case_slow_compiled_decoding():
    """Passes in compiled code are counted as not seen, and said; tokens are marked all the same."""
    model = model_of("llama")
    model.forward = torch.compile(model.forward, backend="eager")
    generate(model)
    assert list(tokens_of(take()).values()) == [whole(4)]
    compiled = model_of("llama")
    compiled.compile(backend="eager")
    said = []
    from sonde.hooks import transformers_models
    transformers_models.say, real = lambda *line: said.append(line), transformers_models.say
    try:
        generate(compiled)
    finally:
        transformers_models.say = real
    taken = take()
    assert list(tokens_of(taken).values()) == [whole(4)] and not tree(taken)
    assert any("4 of 4 forward passes" in line[-1] for line in said), said


def case_slow_gemma3_with_images():
    """Its layers are those of the language model, not the more numerous ones of the vision tower."""
    text = {**COMMON, "head_dim": 8, "num_hidden_layers": 2}
    vision = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4, image_size=28,
                  patch_size=14)
    config = transformers.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4)
    torch.manual_seed(3)
    model = transformers.Gemma3ForConditionalGeneration(config).eval()
    with sonde.watch(model, level="component") as watch:
        model(PROMPT)
    assert "2 layers, Gemma3DecoderLayer" in str(watch) and "4 x SiglipEncoderLayer" in str(watch), str(watch)
    assert "not found" not in str(watch), str(watch)
    take()


def case_slow_components_add_up():
    """The times of the layers and of what is outside of them are the time of the pass, within its own ranges."""
    import time

    model = model_of("llama", hidden_size=512, intermediate_size=1024, num_hidden_layers=6, vocab_size=8000)
    core, times, opened = sys.modules["sonde._core"], {}, []
    real = core.range_push, core.range_pop

    def push(name, domain=None, fields=None):
        if domain == "sonde.model":
            opened.append((fields["role"], time.perf_counter_ns()))

    def pop(domain=None):
        if domain == "sonde.model":
            role, begin = opened.pop()
            parent = opened[-1][0] if opened else None
            if parent in (None, "step"):
                times[role] = times.get(role, 0) + time.perf_counter_ns() - begin

    core.range_push, core.range_pop = push, pop
    try:
        with sonde.watch(model, level="component"):
            generate(model, tokens=12)
    finally:
        core.range_push, core.range_pop = real
    parts = sum(value for role, value in times.items() if role != "step")
    assert 0 < parts <= times["step"], times
    take()


def run(names):
    results = {}
    tests = {family: (lambda family=family: check_family(family)) for family in FAMILIES}
    tests.update((name, case) for name, case in globals().items() if name.startswith("case_"))
    for name, test in tests.items():
        if names and name not in names:
            continue
        state.update(open=True, window=1)
        core_double.events.clear()
        try:
            test()
            results[name] = ""
        except BaseException:
            results[name] = traceback.format_exc()
    return results


if __name__ == "__main__":
    print("\n" + json.dumps(run(sys.argv[1:])))
