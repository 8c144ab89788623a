# SPDX-License-Identifier: Apache-2.0
"""What sonde.watch does with models that are made here, with a double of the extension. Run by test_watch.py.

Each function `case_*` is a test; the program prints a JSON object with what each of them raised, "" where it passed.
The names of cases may be given; without any all run.
"""

import copy
import gc
import json
import os
import pickle
import sys
import threading
import traceback
import weakref

import core_double
from core_double import state, take, tree

core_double.install()

import sonde  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

torch.manual_seed(1)
torch.set_num_threads(1)


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(size, size))

    def forward(self, x):
        return self.o_proj(torch.softmax(self.q_proj(x) @ self.k_proj(x).mT, -1) @ self.v_proj(x))


class Feed(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(size, 2 * size), nn.Linear(size, 2 * size)
        self.down_proj = nn.Linear(2 * size, size)
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.self_attn, self.mlp = Attention(size), Feed(size)
        self.fails = None

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        if self.fails is not None:
            raise self.fails
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, size, layers):
        super().__init__()
        self.embed_tokens = nn.Embedding(50, size)
        self.layers = nn.ModuleList(Layer(size) for _ in range(layers))
        self.norm = nn.LayerNorm(size)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Config:
    model_type = "llama"


class TinyForCausalLM(nn.Module):
    """A language model by the names of Llama."""

    def __init__(self, size=16, layers=3):
        super().__init__()
        self.model = Body(size, layers)
        self.lm_head = nn.Linear(size, 50)
        self.config = Config()

    def forward(self, input_ids, again=False):
        if again:
            self(input_ids)
        return self.lm_head(self.model(input_ids))


IDS = torch.arange(12).reshape(2, 6)
IN_LAYER = ["norm1", "self_attn", "norm2", "mlp"]


def hooks_in(model):
    """With what is in the place of a module's forward."""
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) + ("forward" in module.__dict__)
        for module in model.modules()
    )


def passes(model, *shapes):
    with torch.no_grad():
        return [model(torch.zeros(shape, dtype=torch.long)) for shape in shapes]


# ---- what is found and recorded ----


def case_layers_are_ranges_in_the_step():
    model = TinyForCausalLM()
    with sonde.watch(model) as watch:
        model(IDS)
    (step,) = tree(take())
    assert step.name == "step" and step.names() == ["layer 0", "layer 1", "layer 2"]
    assert step.fields == {"role": "step", "step": 0, "instrumented": True, "batch": 2, "tokens": 6,
                           "model": "TinyForCausalLM"}
    assert step.inside[1].fields == {"role": "layer", "layer": 1} and not step.inside[1].inside
    assert watch.steps == watch.instrumented_steps == 1


def case_components_are_ranges_in_the_layers():
    model = TinyForCausalLM()
    with sonde.watch(model, level="component"):
        model(IDS)
    (step,) = tree(take())
    assert step.names() == ["embed", "layer 0", "layer 1", "layer 2", "final_norm", "head"]
    layer = step.inside[2]
    assert [one.fields["role"] for one in layer.inside] == IN_LAYER
    assert all(one.fields["layer"] == 1 for one in layer.inside)
    assert layer.inside[1].names() == ["layer 1 q", "layer 1 k", "layer 1 v", "layer 1 o"]
    assert [one.fields["role"] for one in layer.inside[3].inside] == ["gate", "up", "down"]
    assert step.inside[0].fields == {"role": "embed"}


def case_the_step_level_has_steps_alone():
    model = TinyForCausalLM()
    with sonde.watch(model, level="step"):
        before = hooks_in(model)
        model(IDS)
        assert hooks_in(model) == before == 2
    (step,) = tree(take())
    assert not step.inside and step.fields["instrumented"] is False


def case_the_output_is_the_same_to_the_bit():
    model = TinyForCausalLM()
    plain = model(IDS)
    plain.sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    for level in ("step", "layer", "component", "stats"):
        model.zero_grad()
        with sonde.watch(model, level=level, every=2):
            for _ in range(2):
                model.zero_grad()
                watched = model(IDS)
                assert torch.equal(plain, watched), level
                watched.sum().backward()
                assert all(torch.equal(one, parameter.grad) for one, parameter in zip(gradients, model.parameters()))
    take()


def case_the_summary_says_what_was_found():
    model = TinyForCausalLM()
    text = str(sonde.watch(model, level="component", every=4))
    assert "TinyForCausalLM (llama)" in text and "level component, one forward pass in 4" in text, text
    assert "3 layers, Layer at model.layers" in text and "q 3/3" in text and "norm2 3/3" in text, text
    assert "outside of them: embed, final_norm, head" in text and "not found" not in text, text


def case_what_is_missing_is_said_once():
    model = TinyForCausalLM()
    model.model.layers[1].mlp.gate_proj = None
    model.model.layers[0].post_attention_layernorm = None
    model.model.layers[2].post_attention_layernorm = None
    text = str(sonde.watch(model, level="component"))
    assert text.count("expected, not found: gate in 1 of 3 layers, norm2 in 2 of 3 layers") == 1, text


def case_trees_of_other_names():
    """Any tree: the longest list of one class, raw names where a name says nothing."""

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weird, self.other_norm, self.drop = nn.Linear(4, 4), nn.LayerNorm(4), nn.Dropout()

        def forward(self, x):
            return self.drop(self.weird(self.other_norm(x)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.towers = nn.ModuleList([Mixer()])
            self.deep = nn.ModuleDict({"inner": nn.Sequential(*(Mixer() for _ in range(4)))})
            self.first, self.pool = nn.Linear(4, 4), nn.Flatten()

        def forward(self, x):
            return self.pool(self.deep["inner"](self.towers[0](self.first(x))))

    model = Net()
    with sonde.watch(model, level="component") as watch:
        model(torch.ones(2, 3, 4))
    (step,) = tree(take())
    assert "4 layers, Mixer at deep.inner" in str(watch), watch
    assert step.names() == ["first", "layer 0", "layer 1", "layer 2", "layer 3"], step.names()
    assert step.inside[1].names() == ["layer 0 other_norm", "layer 0 weird"]
    assert "batch" not in step.fields


def case_a_model_without_a_list():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
    with sonde.watch(model, level="component") as watch:
        model(torch.ones(1, 4))
    (step,) = tree(take())
    assert "no list of layers was found" in str(watch) and step.names() == ["0", "2"], (str(watch), step.names())


def case_experts_are_ranges_where_they_are_modules():
    class Moe(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.experts = nn.Linear(8, 3), nn.ModuleList(Feed(8) for _ in range(3))

        def forward(self, x):
            self.gate(x)
            return self.experts[2](self.experts[0](x))

    model = TinyForCausalLM(8, 2)
    for layer in model.model.layers:
        layer.mlp = Moe()
    with sonde.watch(model, level="component") as watch:
        model(IDS)
    (step,) = tree(take())
    mlp = step.inside[1].inside[-1]
    assert mlp.names() == ["layer 0 router", "layer 0 expert 0", "layer 0 expert 2"], mlp.names()
    assert mlp.inside[1].fields == {"role": "experts", "layer": 0, "expert": 0}
    assert "experts 2/2 (6 modules)" in str(watch) and "not found" not in str(watch), str(watch)


# ---- one pass in K ----


def case_one_pass_in_k():
    """Passes that read a prompt and those of one token are counted by themselves."""
    model = TinyForCausalLM()
    with sonde.watch(model, level="component", every=3) as watch:
        passes(model, (1, 5), *[(1, 1)] * 7, (1, 5))
        assert watch.steps == 9 and watch.instrumented_steps == 4
    steps = tree(take())
    instrumented = [step.fields["instrumented"] for step in steps]
    assert instrumented == [True, True, False, False, True, False, False, True, False], instrumented
    assert all(bool(step.inside) == step.fields["instrumented"] for step in steps)


def case_passes_between_have_no_hooks():
    """What is compared with in the report runs as without watching."""
    model = TinyForCausalLM()
    seen = []
    with sonde.watch(model, level="component", every=2):
        layer = model.model.layers[0].mlp
        layer.register_forward_pre_hook(lambda *_: seen.append("forward" in layer.__dict__))
        passes(model, *[(1, 1)] * 4)
    assert seen == [True, False, True, False], seen
    take()


# ---- ends ----


def case_all_hooks_go_at_the_end():
    model = TinyForCausalLM()
    watch = sonde.watch(model, level="stats")
    model(IDS)
    assert hooks_in(model) > 20
    watch.close()
    watch.close()
    assert hooks_in(model) == 0
    model(IDS)
    watch.close()
    take()
    model(IDS)
    assert not take()


def case_all_hooks_go_when_the_block_raises():
    model = TinyForCausalLM()
    try:
        with sonde.watch(model, level="component"):
            model(IDS)
            raise ValueError("the program's")
    except ValueError:
        pass
    assert hooks_in(model) == 0
    take()


def case_a_forward_that_raises():
    """The exception is the model's, all ranges end, and the next pass is as others."""
    model = TinyForCausalLM()
    with sonde.watch(model, level="stats"):
        model.model.layers[1].fails = error = RuntimeError("the model's")
        try:
            model(IDS)
        except RuntimeError as raised:
            assert raised is error
        (step,) = tree(take())
        assert step.names() == ["embed", "layer 0", "layer 1"] and step.inside[2].names()[-1] == "layer 1 self_attn"
        model.model.layers[1].fails = None
        model(IDS)
        assert tree(take())[0].names()[-1] == "head"


def case_an_interrupt_runs_no_hooks():
    """PyTorch calls none for a BaseException: the next pass ends what was left open."""
    model = TinyForCausalLM()
    with sonde.watch(model, level="component"):
        model.model.layers[1].fails = KeyboardInterrupt()
        try:
            model(IDS)
        except KeyboardInterrupt:
            pass
        model.model.layers[1].fails = None
        model(IDS)
    first, second = tree(take())
    assert first.names() == ["embed", "layer 0", "layer 1"] and second.names()[-1] == "head"


def case_an_interrupted_pass_ends_with_the_watch():
    model = TinyForCausalLM()
    with sonde.watch(model):
        model.model.layers[2].fails = KeyboardInterrupt()
        try:
            model(IDS)
        except KeyboardInterrupt:
            pass
    assert tree(take())[0].names() == ["layer 0", "layer 1", "layer 2"]


def case_closed_by_another_thread_in_the_middle():
    model = TinyForCausalLM()
    watch = sonde.watch(model, level="component")

    def close(*_):
        thread = threading.Thread(target=watch.close)
        thread.start()
        thread.join()

    handle = model.model.layers[1].mlp.register_forward_pre_hook(close)
    model(IDS)
    handle.remove()
    assert hooks_in(model) == 0
    with sonde.watch(model):
        model(IDS)
    first, second = tree(take())
    assert first.names() == ["embed", "layer 0", "layer 1"] and second.names() == ["layer 0", "layer 1", "layer 2"]


def case_hooks_removed_by_the_user():
    model = TinyForCausalLM()
    with sonde.watch(model, level="component"):
        model(IDS)
        take()
        model.model.layers[0]._forward_hooks.clear()
        model.model.layers[1]._forward_pre_hooks.clear()
        model.model.norm._forward_hooks.clear()
        model(IDS)
        (step,) = tree(take())
        assert step.names()[0] == "embed" and step.fields["role"] == "step"
        model._forward_hooks.clear()
        model(IDS)
        model(IDS)
    assert len(tree(take())) == 2 and hooks_in(model) == 0


def case_a_forward_of_somebody_else():
    """What was put in the place of a module's forward is called, and is there afterwards, whoever came first."""
    model = TinyForCausalLM()
    plain, calls = model(IDS), []

    def put_around(module, name):
        inner = module.forward

        def forward(*args, **kwargs):
            calls.append(name)
            return inner(*args, **kwargs)

        module.forward = forward
        return forward

    before = put_around(model.model.layers[0].mlp, "before")
    with sonde.watch(model, level="component"):
        assert torch.equal(plain, model(IDS))
        twin = copy.deepcopy(model)
        meanwhile = put_around(model.model.layers[1].mlp, "meanwhile")
        assert torch.equal(plain, model(IDS)) and calls == ["before", "before", "meanwhile"]
        first, second = tree(take())
        assert first.names() == second.names() and len(second.inside[2].inside) == 4
    assert model.model.layers[0].mlp.forward is before and model.model.layers[1].mlp.forward is meanwhile
    assert torch.equal(plain, model(IDS)) and not take()
    with torch.no_grad():
        twin.lm_head.weight.zero_()
        assert torch.equal(twin(IDS), twin.lm_head.bias.expand(2, 6, 50)), "the copy computes with its own"
    assert hooks_in(model) == 2  # the other's two


def case_replicas_compute_by_themselves():
    """DataParallel copies what a module has of its own: a replica's forward is its own all the same."""
    model = TinyForCausalLM()
    with sonde.watch(model, level="component"):
        model(IDS)
        head = model.lm_head
        replica = head._replicate_for_data_parallel()
        assert "forward" in head.__dict__ and "forward" not in replica.__dict__
        replica.weight, replica.bias = torch.zeros(50, 16), torch.ones(50)
        assert torch.equal(replica(torch.ones(1, 16)), torch.ones(1, 50))
        take()
    assert "_replicate_for_data_parallel" not in model.lm_head.__dict__


def case_a_failure_of_ours_is_not_the_models():
    model = TinyForCausalLM()
    core = sys.modules["sonde._core"]
    good = core.window
    watch = sonde.watch(model, level="component")
    try:
        core.window = lambda: 1 / 0
        model(IDS)
    finally:
        core.window = good
    model(IDS)
    watch.close()
    assert watch.error and "ZeroDivisionError" in watch.error and hooks_in(model) == 0
    assert not tree(take()) and "ZeroDivisionError" in str(watch)


def case_the_model_is_not_kept_alive():
    model = TinyForCausalLM()
    gone = weakref.ref(model)
    watch = sonde.watch(model, level="stats")
    model(IDS)
    del model
    gc.collect()
    assert gone() is None
    watch.close()
    take()


def case_the_result_need_not_be_kept():
    model = TinyForCausalLM()
    sonde.watch(model)
    gc.collect()
    model(IDS)
    assert len(tree(take())) == 1


def case_copies_of_the_model_say_nothing():
    model = TinyForCausalLM()
    with sonde.watch(model, level="component"):
        model(IDS)
        twin = copy.deepcopy(model)
        thawed = pickle.loads(pickle.dumps(model))
        take()
        assert torch.equal(twin(IDS), model(IDS)) and torch.equal(thawed(IDS), model(IDS))
        assert len(tree(take())) == 2
    assert torch.equal(twin(IDS), model(IDS)) and not take()


# ---- where it runs ----


def case_a_closed_gate_records_nothing():
    model = TinyForCausalLM()
    with sonde.watch(model, level="component") as watch:
        state["open"] = False
        model(IDS)
        assert hooks_in(model) == 2  # those of the model itself
        state["open"] = True
        assert not take()
        model(IDS)
        assert watch.steps == 2 and tree(take())[0].fields["step"] == 1


def case_a_gate_that_closes_in_the_middle():
    model = TinyForCausalLM()
    with sonde.watch(model, level="component"):
        handle = model.model.layers[1].register_forward_pre_hook(lambda *_: state.update(open=False))
        model(IDS)
        handle.remove()
        state["open"] = True
        take()
        model(IDS)
        assert tree(take())[0].names()[-1] == "head"


def case_the_structure_is_told_in_each_window():
    model = TinyForCausalLM()
    with sonde.watch(model, level="component"):
        model(IDS)
        model(IDS)
        state["window"] = 2
        model(IDS)
        state["window"] = 1
    marks = [fields for kind, name, fields, domain in take() if kind == "mark" and name == "structure"]
    assert len(marks) == 2 and len(marks[0]) <= 16
    assert marks[0]["layers"] == 3 and marks[0]["family"] == "llama" and marks[0]["stack"] == "model.layers"


def case_a_model_that_calls_itself():
    model = TinyForCausalLM()
    with sonde.watch(model):
        model(IDS, again=True)
    (step,) = tree(take())
    assert step.names() == ["layer 0", "layer 1", "layer 2"] * 2


def case_layers_that_are_shared():
    """A layer that stands in the list twice is one module: its ranges are those of the first."""
    model = TinyForCausalLM(16, 1)
    model.model.layers.append(model.model.layers[0])
    with sonde.watch(model, level="component"):
        model(IDS)
    assert tree(take())[0].names() == ["embed", "layer 0", "layer 0", "final_norm", "head"]


def case_several_threads():
    """Each thread's ranges nest by themselves, with one pass in two and all at once."""
    model = TinyForCausalLM()
    mine, failures = threading.local(), []
    core = sys.modules["sonde._core"]
    by_thread = {}
    all_run = threading.Barrier(4)  # a thread that has ended lends its number to the next one
    real = core.range_push, core.range_pop

    def push(name, domain=None, fields=None):
        by_thread.setdefault(threading.get_ident(), []).append(("push", name, dict(fields or {}), domain))

    def pop(domain=None):
        by_thread.setdefault(threading.get_ident(), []).append(("pop", None, {}, domain))

    def work():
        try:
            all_run.wait(60)
            for _ in range(30):
                passes(model, (1, 1))
            mine.done = True
        except BaseException as error:
            failures.append(error)

    core.range_push, core.range_pop = push, pop
    sys.setswitchinterval(1e-5)
    try:
        with sonde.watch(model, level="component", every=2) as watch:
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        core.range_push, core.range_pop = real
        sys.setswitchinterval(0.005)
    assert not failures, failures
    assert watch.steps == 120 and len(by_thread) == 4 and hooks_in(model) == 0
    for events in by_thread.values():
        steps = tree(events)
        assert len(steps) == 30
        for step in steps:
            if step.fields["instrumented"]:
                assert step.names() == ["embed", "layer 0", "layer 1", "layer 2", "final_norm", "head"], step.names()
            else:
                assert not step.inside
    take()


def case_the_meta_device():
    model = TinyForCausalLM().to("meta")
    with sonde.watch(model, level="stats"):
        model(IDS.to("meta"))
    taken = take()
    assert tree(taken)[0].names()[-1] == "head" and not [one for one in taken if one[1] == "activation"]


def case_a_quantised_model():
    import warnings

    warnings.simplefilter("ignore")
    model = torch.ao.quantization.quantize_dynamic(TinyForCausalLM(), {nn.Linear}, dtype=torch.qint8)
    plain = model(IDS)
    with sonde.watch(model, level="stats") as watch:
        assert torch.equal(plain, model(IDS))
        model(IDS)
    steps = tree(take())
    assert steps[0].inside[1].inside[1].names() == ["layer 0 q", "layer 0 k", "layer 0 v", "layer 0 o"]
    assert "not found" not in str(watch)


def case_a_model_in_ddp():
    import torch.distributed as distributed

    distributed.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=0, world_size=1)
    try:
        model = nn.parallel.DistributedDataParallel(TinyForCausalLM())
        with sonde.watch(model, level="component") as watch:
            model(IDS).sum().backward()
    finally:
        distributed.destroy_process_group()
    (step,) = tree(take())
    assert step.names() == ["embed", "layer 0", "layer 1", "layer 2", "final_norm", "head"]
    assert "in DistributedDataParallel" in str(watch) and hooks_in(model) == 0


def case_a_model_in_fsdp():
    """Sharded over one rank, layer by layer, in the way of FSDP2."""
    import torch.distributed as distributed
    from torch.distributed.fsdp import fully_shard

    distributed.init_process_group("gloo", init_method="file://" + os.path.abspath("store2"), rank=0, world_size=1)
    try:
        mesh = distributed.device_mesh.init_device_mesh("cpu", (1,))
        model = TinyForCausalLM()
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        plain = model(IDS)
        with sonde.watch(model, level="stats") as watch:
            assert torch.equal(plain, model(IDS))
    finally:
        distributed.destroy_process_group()
    (step,) = tree(take())
    assert step.names() == ["embed", "layer 0", "layer 1", "layer 2", "final_norm", "head"]
    assert "3 layers, Layer at" in str(watch) and "TinyForCausalLM" in str(watch), str(watch)


def case_a_model_in_the_first_fsdp():
    import torch.distributed as distributed
    from torch.distributed.fsdp import FullyShardedDataParallel

    distributed.init_process_group("gloo", init_method="file://" + os.path.abspath("store3"), rank=0, world_size=1)
    try:
        model = TinyForCausalLM()
        for number, layer in enumerate(model.model.layers):
            model.model.layers[number] = FullyShardedDataParallel(layer, device_id=torch.device("cpu"))
        model = FullyShardedDataParallel(model, device_id=torch.device("cpu"))
        plain = model(IDS)
        with sonde.watch(model, level="component") as watch:
            assert torch.equal(plain, model(IDS))
    finally:
        distributed.destroy_process_group()
    (step,) = tree(take())
    assert step.names() == ["embed", "layer 0", "layer 1", "layer 2", "final_norm", "head"]
    assert step.inside[1].inside[0].fields["role"] == "norm1"
    assert "3 layers, Layer at model.layers" in str(watch), str(watch)


def case_a_model_that_runs_compiled_code_alone():
    """Where nothing was seen that is said."""
    import logging

    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("sonde").addHandler(handler)
    model = TinyForCausalLM()
    model.compile(backend="eager")
    with sonde.watch(model) as watch:
        model(IDS)
    logging.getLogger("sonde").removeHandler(handler)
    assert watch.steps == 0 and any("no forward pass of TinyForCausalLM was seen" in line for line in said), said
    assert "hooks do not run: the model" in str(watch), str(watch)


def case_compiled_models_are_said_to_be():
    """The hooks are no part of the graph and break none; the pass itself is seen, its layers are not."""
    model = TinyForCausalLM()
    plain = model(IDS)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with sonde.watch(compiled, level="component") as watch:
        for _ in range(3):
            assert torch.allclose(plain, compiled(IDS))
        assert "hooks do not run: the model" in str(watch) and "in OptimizedModule" in str(watch), str(watch)
    steps = tree(take())
    assert len(steps) == 3 and not any(step.inside or step.fields["instrumented"] for step in steps)


def case_compiling_with_hooks_in_breaks_no_graph():
    model = TinyForCausalLM()
    with sonde.watch(model, level="component"):
        model(IDS)
        take()
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        compiled(IDS)
        compiled(IDS)
        assert not tree(take())
        model(IDS)
        assert tree(take())[0].names()[-1] == "head"


def case_layers_that_are_compiled():
    model = TinyForCausalLM()
    plain = model(IDS)
    model.model.layers[0] = torch.compile(model.model.layers[0], backend="eager")
    model.model.layers[1].compile(backend="eager")
    with sonde.watch(model, level="component") as watch:
        assert torch.allclose(plain, model(IDS))
    (step,) = tree(take())
    assert step.names() == ["embed", "layer 0", "layer 2", "final_norm", "head"], step.names()
    assert not step.inside[1].inside and step.inside[2].inside
    assert "hooks do not run: model.layers.0, model.layers.1" in str(watch), str(watch)


# ---- statistics ----


def statistics_of(taken, mark="activation"):
    return {(fields.get("layer"), fields["role"], fields["step"]): fields
            for kind, name, fields, _ in taken if kind == "mark" and name == mark}


def case_statistics_are_those_of_the_outputs():
    model = TinyForCausalLM()
    kept = {}
    model.model.layers[1].mlp.up_proj.register_forward_hook(lambda _m, _a, out: kept.update(up=out.detach().clone()))
    with sonde.watch(model, statistics=True, level="component"):
        model(IDS)
        early = statistics_of(take())
        model(IDS)
    found = statistics_of(core_double.events)
    assert not early and (1, "up", 0) in found and (1, "up", 1) in found, "they are read one pass later"
    take()
    values, fields = kept["up"][:, -1].reshape(-1).double(), found[1, "up", 0]
    assert fields["values"] == values.numel() == 64 and fields["epsilon"] == 1e-4
    assert abs(fields["mean"] - values.mean()) < 1e-6 and abs(fields["std"] - values.std(correction=0)) < 1e-6
    assert abs(fields["max_abs"] - values.abs().max()) < 1e-6
    assert fields["sparsity"] == float((values.abs() <= 1e-4).double().mean()) and fields["nan"] == 0
    assert (None, "head", 0) in found and (2, "layer", 0) in found and len(fields) <= 16


def case_statistics_count_zeros_nan_and_infinities():
    class Odd(nn.Module):
        def forward(self, x):
            out = torch.tensor([0.0, 1e-5, -2.0, 4.0]).repeat(1, 3, 1)
            out[:, 0] = 7  # not the last position
            if x.sum() > 0:
                out[0, -1, 3] = float("nan")
                out[0, -1, 2] = float("inf")
            return out

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.odd = Odd()
            self.odd.weight = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return self.odd(x)

    model = Net()
    with sonde.watch(model, level="stats", epsilon=0.001):
        model(torch.zeros(1))
        model(torch.ones(1))
    found = statistics_of(take())
    assert found[None, "odd", 0]["zeros"] == 1 and found[None, "odd", 0]["sparsity"] == 0.5
    assert found[None, "odd", 0]["max_abs"] == 4 and found[None, "odd", 0]["epsilon"] == 0.001
    bad = found[None, "odd", 1]
    assert bad["nan"] == 1 and bad["inf"] == 1 and not {"mean", "std", "max_abs"} & set(bad)


def case_statistics_of_inference_mode_and_half_precision():
    model = TinyForCausalLM().to(torch.bfloat16)
    with sonde.watch(model, level="stats") as watch:
        with torch.inference_mode():
            model(IDS)
        model(IDS).sum().backward()
        model(IDS)
    assert watch.error is None and len(statistics_of(take())) == 3 * (3 + 3 * 11 + 3)


def case_statistics_of_inputs():
    """What the gate of the MLP leaves is what its last matrix is given; of a norm, both sides are known."""
    model = TinyForCausalLM()
    kept = {}
    layer = model.model.layers[2]
    layer.mlp.down_proj.register_forward_pre_hook(lambda _m, args: kept.update(down=args[0].detach().clone()))
    layer.input_layernorm.register_forward_pre_hook(lambda _m, args: kept.update(norm1=args[0].detach().clone()))
    with sonde.watch(model, level="stats", epsilon=0.05):
        model(IDS)
    taken = take()
    found = statistics_of(taken, "activation.input")
    assert {role for _, role, _ in found} == {"norm1", "norm2", "down"}, found
    killed, fields = kept["down"][:, -1], found[2, "down", 0]
    assert 0 < fields["sparsity"] < 1 and fields["sparsity"] == float((killed.abs() <= 0.05).double().mean())
    before = kept["norm1"][:, -1].double().std(correction=0)
    assert abs(found[2, "norm1", 0]["std"] - before) < 1e-6
    assert (2, "norm1", 0) in statistics_of(taken), "and of its output"


def case_parameters_are_counted_a_layer_at_a_time():
    model = TinyForCausalLM()
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[:4] = 0
        model.model.layers[1].mlp.up_proj.weight[4:8] = 1e-5
    before = [one.detach().clone() for one in model.parameters()]
    with sonde.watch(model, level="stats"):
        model(IDS)
        model(IDS)
    found = [fields for kind, name, fields, _ in take() if kind == "mark" and name == "parameters"]
    assert [fields["layer"] for fields in found] == [0, 1], "one after each pass"
    assert all(torch.equal(one, two) for one, two in zip(before, model.parameters()))
    layer, one = model.model.layers[1], found[1]
    values = torch.cat([parameter.detach().reshape(-1) for parameter in layer.parameters()])
    assert one["values"] == values.numel() and one["zeros"] == int((values == 0).sum()) >= 64
    assert one["sparsity"] == float((values.abs() <= 1e-4).double().mean()) and one["epsilon"] == 1e-4
    assert one["sparsity"] * one["values"] >= one["zeros"] + 64
    with sonde.watch(model, level="component"):
        model(IDS)
    assert not [name for kind, name, *_ in take() if kind == "mark" and name in ("parameters", "activation.input")]


class EagerAttention(Attention):
    """Returns its weights, too: those of the second sequence all on one key."""

    def forward(self, x):
        weights = torch.softmax(self.q_proj(x) @ self.k_proj(x).mT, -1)
        weights = torch.stack([weights[0], torch.eye(x.shape[1])])
        return self.o_proj(weights @ self.v_proj(x)), self.changed(weights.unsqueeze(1))

    @staticmethod
    def changed(weights):
        return weights


def case_weights_of_attention():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Module()])
            self.layers[0].self_attn = EagerAttention(16)
            self.embed_tokens = nn.Embedding(50, 16)

        def forward(self, ids):
            return self.layers[0].self_attn(self.embed_tokens(ids))[0]

    model = Net()
    attention = model.layers[0].self_attn
    kept = {}
    handle = attention.register_forward_hook(lambda _m, _a, out: kept.update(weights=out[1][:, 0, -1].detach()))
    with sonde.watch(model, level="stats"):
        plain = model(IDS)
    handle.remove()
    (fields,) = statistics_of(take(), "attention").values()
    entropy = -(kept["weights"][0] * kept["weights"][0].log2()).sum()
    assert abs(fields["entropy_bits"] - float(entropy) / 2) < 1e-6, "the mean of it and of 0"
    assert fields["largest"] == 1 and abs(fields["mean_largest"] - (1 + float(kept["weights"][0].max())) / 2) < 1e-6
    assert (fields["heads"], fields["keys"]) == (2, 6) and 0 < fields["below_1_percent"] < 1
    assert torch.equal(plain, model(IDS))
    attention.changed = lambda weights: weights * 2  # as dropout does: no weights of a sum of 1
    with sonde.watch(model, level="stats") as watch:
        model(IDS)
    assert watch.error is None and not statistics_of(take(), "attention")


# ---- arguments ----


def case_arguments_that_cannot_be():
    model = TinyForCausalLM()
    for arguments, error in (
        (("model",), TypeError),
        ((model, "deep"), ValueError),
        ((model, "layer", 0), ValueError),
        ((model, "layer", True), ValueError),
        ((model, "layer", 2.0), ValueError),
    ):
        try:
            sonde.watch(*arguments)
        except error as raised:
            assert str(raised)
        else:
            raise AssertionError(arguments)
    with sonde.watch(model):
        try:
            sonde.watch(model)
        except ValueError as raised:
            assert "watched already" in str(raised)
        else:
            raise AssertionError("watched twice")
    sonde.watch(model).close()


def run(names):
    results = {}
    for name, case in list(globals().items()):
        if not name.startswith("case_") or (names and name not in names):
            continue
        state.update(open=True, window=1)
        core_double.events.clear()
        try:
            case()
            results[name] = ""
        except BaseException:
            results[name] = traceback.format_exc()
    return results


if __name__ == "__main__":
    print("\n" + json.dumps(run(sys.argv[1:])))
