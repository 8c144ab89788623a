# SPDX-License-Identifier: Apache-2.0
"""Time by module of the model, and by kinds of operators: of traces made by hand, and of PyTorch's own."""

import subprocess

import pytest
from test_trace_stacks import launch, slice_of
from trace_files import write_kineto

TRAINING = """
import sys
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(32), nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x):
        return x + self.mlp(self.norm(x))

torch.set_num_threads(1)
model = nn.Sequential(Block(), Block(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=3), with_stack=True,
             experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
             on_trace_ready=lambda made: made.export_chrome_trace(sys.argv[1])) as made:
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(16, 32)).square().mean().backward()
        optimizer.step()
        made.step()
"""


def python(name, start_us, duration_us):
    return slice_of("python_function", name, start_us, duration_us)


@pytest.fixture
def trace(tmp_path):
    """A module in a module, the gradient on a thread of its own, and the optimizer."""
    numbered = {"Sequence number": 5, "Fwd thread id": 0}
    events = [
        slice_of("user_annotation", "ProfilerStep#1", 0, 1000),
        python("nn.Module: Net_0", 10, 200),
        python("nn.Module: Linear_0", 20, 100),
        slice_of("cpu_op", "aten::addmm", 30, 40, **numbered),
        *launch(1, 35, "ampere_sgemm_128x64_tn", duration_us=60),
        slice_of("cpu_op", "AddmmBackward0", 300, 80, tid=2, **{**numbered, "Fwd thread id": 1}),
        {**slice_of("cuda_runtime", "cudaLaunchKernel", 310, 2, tid=2, correlation=2)},
        launch(2, 310, "ampere_sgemm_64x32_nn", duration_us=30)[1],
        slice_of("user_annotation", "Optimizer.step#SGD.step", 500, 50),
        *launch(3, 510, "void multi_tensor_apply_kernel<Sgd>(int)", duration_us=10),
    ]
    return write_kineto(tmp_path / "trace.json", events)


def test_work_of_both_passes_is_its_modules(sonde, trace):
    found = sonde("report", "--json", "--by", "nn-module", trace, check=0).json()["modules"]
    rows = {row["path"]: row for row in found["rows"]}
    assert list(rows) == ["Net", "Net / Linear", "Optimizer.step#SGD.step"]
    linear = rows["Net / Linear"]
    assert (linear["gpu_forward_ns"], linear["gpu_backward_ns"], linear["gpu_self_ns"]) == (60_000, 30_000, 90_000)
    assert rows["Net"]["gpu_ns"] == 90_000 and rows["Net"]["gpu_self_ns"] == 0
    assert linear["by_category_ns"] == {"GEMM": 90_000} and linear["instances"] == 1
    assert not rows["Optimizer.step#SGD.step"]["is_module"]
    assert [(op["operator"], op["pass"]) for op in found["operators"]] == [
        ("aten::addmm", "forward"), ("AddmmBackward0", "backward"), (None, "forward")]
    text = sonde("report", "--by", "nn-module", trace, check=0).stdout
    assert "Modules of the model" in text and "  Linear" in text
    assert "Modules of the model" in sonde("report", "--by", "module", "--weight", "gpu", trace, check=0).stdout
    assert "Modules of the model" in sonde("report", trace, check=0).stdout


def test_a_flame_graph_of_modules(sonde, trace):
    text = sonde("export", "-f", "folded", "--weight", "gpu", "--stacks", "modules", "--roots", "none", "-o", "-", trace,
                 check=0).stdout
    assert dict(line.rsplit(" ", 1) for line in text.splitlines()) == {
        "nn.Module: Net_0;nn.Module: Linear_0;aten::addmm;[gpu] ampere_sgemm_128x64_tn": "60000",
        "nn.Module: Net_0;nn.Module: Linear_0;[backward];AddmmBackward0;[gpu] ampere_sgemm_64x32_nn": "30000",
        "Optimizer.step#SGD.step;[gpu] void multi_tensor_apply_kernel<Sgd>(int)": "10000",
    }


def test_kinds_of_operators_add_up_to_all_work(sonde, trace):
    document = sonde("report", "--json", trace, check=0).json()
    shares = {row["category"]: row["share"] for row in document["categories"]}
    assert shares == {"GEMM": 0.9, "elementwise": 0.1}
    assert sum(row["sum_ns"] for row in document["categories"]) == sum(
        row["sum_ns"] for row in document["kernel"]["kernels"])
    assert document["categories"][0]["largest"] == "ampere_sgemm_128x64_tn"


def test_a_trace_without_modules_says_how_to_get_them(sonde, tmp_path):
    path = write_kineto(tmp_path / "trace.json", launch(1, 0, "gemm"))
    assert "with_stack=True" in sonde("report", "--by", "nn-module", path, check=0).stdout
    assert "Modules" not in sonde("report", path, check=0).stdout


@pytest.mark.slow
def test_modules_of_a_real_training(sonde, torch2, tmp_path):
    path = tmp_path / "real.json"
    subprocess.run([torch2, "-c", TRAINING, path], check=True, capture_output=True, timeout=300)
    found = sonde("report", "--json", "--by", "nn-module", path, check=0).json()["modules"]
    rows = {row["path"]: row for row in found["rows"]}
    assert rows["Sequential / Block"]["instances"] == 2
    assert rows["Sequential / Block / Sequential / Linear"]["instances"] == 4
    for path in ["Sequential", "Sequential / Block", "Sequential / Block / LayerNorm", "Sequential / Linear"]:
        assert rows[path]["host_forward_ns"] > 0 and rows[path]["host_backward_ns"] > 0, path
    inner = [row for path, row in rows.items() if path.count(" / ") == 1]
    assert sum(row["host_ns"] for row in inner) <= rows["Sequential"]["host_ns"]
