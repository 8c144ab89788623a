# SPDX-License-Identifier: Apache-2.0
"""Models of Hugging Face transformers that are recorded: layers, components and tokens in the capture.

tests/python/test_watch.py has what happens in the process; here it is seen at the other end.
"""

import contextlib
import json
import sqlite3
import subprocess

import pytest

GENERATE = """
import torch, transformers
torch.set_num_threads(1)
config = transformers.LlamaConfig(vocab_size=99, hidden_size=64, intermediate_size=16384, num_hidden_layers=3,
                                  num_attention_heads=4, num_key_value_heads=2, eos_token_id=None, pad_token_id=0)
model = transformers.LlamaForCausalLM(config).eval()
prompt = torch.ones(2, 5, dtype=torch.long)
model.generate(prompt, attention_mask=prompt, max_new_tokens=9, min_new_tokens=9, do_sample=False)
"""


@pytest.fixture(scope="module")
def transformers(torch2):
    probe = "import importlib.util as u, sys; sys.exit(not u.find_spec('transformers'))"
    if subprocess.run([torch2, "-c", probe]).returncode:
        pytest.skip("there is no transformers for PyTorch 2; 'tools/venv torch2' installs it from PyPI")
    return torch2


# 58 W, read every 2 ms.
REPLAY = "".join(json.dumps(line) + "\n" for line in [
    {"sonde_energy": 1, "domains": [{"name": "package-0", "part": "cpu", "parent": None, "quality": "counter"}]},
    *({"t_ms": t, "domain": "package-0", "energy_j": 58 * t / 1000} for t in range(0, 120_000, 2)),
])


def test_layers_of_a_model_in_a_capture(sonde, report, transformers, tmp_path):
    """The nine passes of a call, one in four of the decoding ones with layers; components lie in their layers."""
    capture, replay = tmp_path / "a.pftrace", tmp_path / "run.jsonl"
    replay.write_text(REPLAY)
    done = sonde("record", "--hooks", "transformers:component:every=4", "--energy", f"replay:{replay}", "-o", capture, "--",
                 transformers, "-W", "ignore", "-c", GENERATE, env={"HF_HUB_OFFLINE": "1"}, check=0, timeout=120)
    assert "LlamaForCausalLM: 3 layers, LlamaDecoderLayer at model.layers; norm1 3/3" in done.stderr, done.stderr
    rows = {row["name"]: row for row in report(capture, "--by", "range")["ranges"]["rows"]
            if row["domain"] == "sonde.model"}
    assert rows["step"]["count"] == 9
    assert {name: rows[name]["count"] for name in ("layer 0", "layer 2", "layer 1 q", "layer 1 down", "head")} == {
        "layer 0": 3, "layer 2": 3, "layer 1 q": 3, "layer 1 down": 3, "head": 3
    }
    layers = sum(rows[f"layer {number}"]["total_ns"] for number in range(3))
    inside = sum(rows[f"layer 1 {role}"]["total_ns"] for role in ("norm1", "self_attn", "norm2", "mlp"))
    assert 0 < inside <= rows["layer 1"]["total_ns"] and layers < rows["step"]["total_ns"]
    (request,) = report(capture, "--by", "token")["inference"]["requests"]
    assert request["tokens"] == 9 and request["between_tokens_ns"]["count"] == 8
    assert request["ttft_ns"] > 0
    data = report(capture)
    assert data["layers"]["steps"] == 3 and data["layers"]["unwatched_steps"] == 6
    own = sum(row["own_ns"] for row in data["layers"]["rows"])
    assert own == pytest.approx(data["layers"]["steps_ns"], rel=0.01)  # with the rests, all of the passes
    assert data["inference"]["joules_per_output_token"] > 0 and data["inference"]["energy"]["reason"] is None
    (run,) = sonde("report", "--by", "run", "--json", capture, check=0).json()["runs"]
    assert run["precision"] == "fp32" and run["parameters"] > 10_000 and run["batch_size"] == 2
    assert run["kv_cache_bytes"] == 2 * 3 * run["context_length"] * 2 * 16 * 4 * 2  # layers, heads, size, bytes, batch
    text = sonde("report", "--by", "layer", capture, check=0).stdout
    assert "with hooks inside and" in text and "Energy" in text and "attn_core" in text
    check_layers_of_the_database(sonde, capture, data, tmp_path / "runs.db")


def check_layers_of_the_database(sonde, capture, data, store):
    """The run has a row for each layer and component, with the report's times and joules, and its rail's readings."""
    sonde("runs", "add", "--store", store, capture, check=0)
    with contextlib.closing(sqlite3.connect(store)) as database:
        rows = database.execute("SELECT layer, role, is_rest, calls, own_ns, energy_j FROM layers").fetchall()
        run = database.execute("SELECT precision, batch_size, output_tokens, kv_cache_bytes FROM runs").fetchone()
        (rail,) = database.execute("SELECT name, measured_j FROM rails").fetchall()
    wanted = {(row["layer"], row["role"], int(row["rest"])): row for row in data["layers"]["rows"]}
    assert {row[:3] for row in rows} == set(wanted)
    for row in rows:
        same = wanted[row[:3]]
        energy = same["energy"] and same["energy"]["full_j"]
        assert row[3:5] == (same["calls"], same["own_ns"])
        assert row[5] == (None if energy is None else pytest.approx(energy))
    assert run[:3] == ("fp32", 2, 18) and run[3] > 0
    assert rail[0] == "package-0" and rail[1] > 0


@pytest.mark.slow  # imports PyTorch once more
def test_without_a_level_forward_passes_alone_are_recorded(sonde, report, transformers, tmp_path):
    capture = tmp_path / "a.pftrace"
    sonde("record", "--hooks", "transformers", "-o", capture, "--", transformers, "-W", "ignore", "-c", GENERATE,
          env={"HF_HUB_OFFLINE": "1"}, check=0, timeout=120)
    names = {row["name"]: row["count"] for row in report(capture, "--by", "range")["ranges"]["rows"]
             if row["domain"] == "sonde.model"}
    assert names == {"step": 9, "structure": 1, "configuration": 1}


@pytest.mark.parametrize("hooks", ["transformers:deep", "transformers:every=0", "torch:layer", "transformers:"])
def test_levels_that_cannot_be(sonde, hooks):
    done = sonde("record", "--hooks", hooks, "--", "true")
    assert done.status == 2 and "--hooks" in done.stderr and len(done.stderr.splitlines()) <= 2
