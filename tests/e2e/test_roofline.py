# SPDX-License-Identifier: Apache-2.0
"""What operators cost and how near they come to the device's roof: of small traces, of real models against PyTorch's own
counter, and against TraceLens' published figures."""

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from trace_files import write_kineto

MODELS = Path(__file__).parent / "flop_models.py"
HALF = "c10::BFloat16"
A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB"}


def operator(number, name, dims, types, duration_us, values=(), kernel="kernel"):
    """An operator of 5 us every 1,000, which launches one kernel."""
    at = number * 1000
    inputs = {"Input Dims": dims, "Input type": types, "Concrete Inputs": [*values]}
    return [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 5, "args": inputs},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 1, "dur": 2,
         "args": {"correlation": number + 1}},
        {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": at + 10, "dur": duration_us,
         "args": {"device": 0, "stream": 7, "correlation": number + 1}},
    ]


def trace_of(path, operators, device=A100, more=()):
    events = [event for number, each in enumerate(operators) for event in operator(number, *each)]
    document = {"schemaVersion": 1, "deviceProperties": [device] if device else [], "traceEvents": [*events, *more]}
    path.write_text(json.dumps(document))
    return path


def roofline(sonde, *arguments):
    return sonde("report", "--json", "--by", "roofline", *arguments, check=0).json()["roofline"]


# 2 * 4096^3 = 137.4 GFLOP: 441 us at 312 TFLOP/s; 3 * 16 Mi elements of 2 bytes: 49 us at 2.039 TB/s.
MM = ("aten::mm", [[4096, 4096], [4096, 4096]], [HALF, HALF], 600)
ADD = ("aten::add", [[4096, 4096], [4096, 4096], []], [HALF, HALF, "Scalar"], 100)


@pytest.fixture
def trace(tmp_path):
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#5", "pid": 1, "tid": 1, "ts": 0, "dur": 3000}
    unknown = ("aten::unheard_of", [[8]], ["float"], 10)
    return trace_of(tmp_path / "trace.json", [MM, ADD, unknown], more=[step])


def test_rows_have_costs_rates_and_the_roof(sonde, trace):
    found = roofline(sonde, trace)
    assert found["device"] == "NVIDIA A100-SXM4-80GB" and "A100 data sheet" in found["peak_source"]
    assert found["peak_flop_per_s"]["bf16"] == 312e12 and found["peak_bytes_per_s"] == 2.039e12
    assert (found["work_ns"], found["in_operators_ns"], found["known_ns"]) == (710_000, 710_000, 700_000)
    mm, add, unknown = found["shapes"]
    assert (mm["name"], mm["flop"], mm["bytes"]) == ("aten::mm", 2 * 4096**3, 3 * 4096**2 * 2)
    assert mm["dims"] == "[[4096, 4096], [4096, 4096]]" and mm["dtype"] == "bf16"
    assert mm["flop_per_s"] == pytest.approx(2 * 4096**3 / 600e-6) and mm["bound"] == "compute"
    assert mm["roof_share"] == pytest.approx(2 * 4096**3 / 312e12 / 600e-6)
    assert add["bound"] == "memory" and add["intensity"] == pytest.approx(1 / 6)
    assert (unknown["flop"], unknown["bytes"], unknown["bound"], unknown["saves_ns"]) == (None,) * 4
    (step,) = found["steps"]
    assert step["number"] == 5 and step["mfu"] == pytest.approx(2 * 4096**3 / 312e12 / 3e-3)
    assert found["saves_ns"] == sum(row["saves_ns"] for row in (mm, add))


def test_advice_names_what_to_change_first(sonde, trace):
    advice = {each["id"]: each for each in sonde("report", "--json", trace, check=0).json()["advice"]}
    assert "Change aten::mm first" in advice["below_roof"]["sentence"]
    assert advice["below_roof"]["saves_ns"] == roofline(sonde, trace)["saves_ns"]
    text = sonde("report", trace, check=0).stdout
    assert "What to change first" in text and "Peaks: NVIDIA A100 SXM 80 GB" in text


def test_peaks_are_given_where_the_device_is_unknown(sonde, tmp_path):
    path = trace_of(tmp_path / "trace.json", [MM, ADD], {"id": 0, "name": "Unheard 9000"})
    found = roofline(sonde, path)
    assert found["peak_source"] is None and found["saves_ns"] is None and found["steps"][0]["mfu"] is None
    assert found["shapes"][0]["flop_per_s"] > 0
    text = sonde("report", "--by", "roofline", path, check=0).stdout
    assert "The peaks of 'Unheard 9000' are not in the table: --peak tflops=" in " ".join(text.split())
    found = roofline(sonde, path, "--peak", "tflops=400,tbps=2")
    assert found["peak_source"] == "--peak"
    assert found["shapes"][0]["roof_share"] == pytest.approx(2 * 4096**3 / 400e12 / 600e-6)
    wrong = sonde("report", path, "--peak", "tflop=400", check=2).stderr
    assert "names no figure" in wrong and "tflops=312,tbps=2.0" in wrong


def test_an_operator_above_the_roof_is_marked(sonde, tmp_path):
    path = trace_of(tmp_path / "trace.json", [(*MM[:3], 200)])
    (row,) = roofline(sonde, path)["shapes"]
    assert row["is_above_roof"] and row["saves_ns"] == 0 and row["roof_share"] > 2
    assert "faster than the roof (marked above)" in " ".join(sonde("report", "--by", "roofline", path, check=0).stdout.split())


def test_a_trace_without_sizes_says_how_to_get_them(sonde, tmp_path):
    path = write_kineto(tmp_path / "trace.json", [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1,
                                                   "ts": 0, "dur": 5}])
    assert "record_shapes=True" in sonde("report", "--by", "roofline", path, check=0).stdout
    assert "roof" not in sonde("report", path, check=0).stdout
    assert "record_shapes=True" in sonde("export", "-f", "roofline", "-o", "-", path, check=1).stderr


def test_tables_as_csv_and_after_import(sonde, trace, tmp_path):
    capture = tmp_path / "capture.pftrace"
    sonde("import", "-o", capture, trace, check=0)
    assert roofline(sonde, capture) == roofline(sonde, trace)
    assert "aten::mm" in sonde("report", "--csv", "--by", "roofline", trace, check=0).stdout


def test_the_roof_as_a_picture(sonde, trace, tmp_path):
    picture = tmp_path / "trace.roofline.svg"
    sonde("export", "-f", "roofline", "-o", picture, trace, check=0)
    root = ElementTree.parse(picture).getroot()
    points = [each for each in root.iter("{http://www.w3.org/2000/svg}circle") if len(each)]
    titles = [each[0].text for each in points]
    assert len(titles) == 2 and titles[0].startswith("aten::mm\n[[4096, 4096], [4096, 4096]]") and "bound by compute" in titles[0]
    # More operations a byte lie farther right, more a second higher.
    (mm_x, mm_y), (add_x, add_y) = [(float(each.get("cx")), float(each.get("cy"))) for each in points]
    assert mm_x > add_x and mm_y < add_y
    assert any("bf16: 312 TFLOP/s" in (each.text or "") for each in root.iter("{http://www.w3.org/2000/svg}text"))
    given = sonde("export", "-f", "roofline", "--peak", "bf16=400,tbps=3", "-o", "-", trace, check=0).stdout
    assert "bf16: 400 TFLOP/s" in given
    wrong = sonde("export", "-f", "chrome", "--peak", "bf16=400", "-o", "-", trace, check=2).stderr
    assert "--peak is for the format roofline" in wrong


# TraceLens' report of Qwen1.5-0.5B on an H100 (tests/traces/compare_test_e2e/reference/h100_perf_report_csvs of commit
# 171dd74): name, sizes, values, mean time in us, and its GFLOPS, data moved in MiB, TB/s and TFLOPS/s. Its addmm adds the
# bias, M * N operations, which are subtracted here.
H = [HALF] * 3
TRACELENS = [
    ("aten::mm", [[8944, 1024], [1024, 2816]], H[:2], [], 84.4844258626302, 51.581550592, 71.0078125, 0.8814855, 610.6657),
    ("aten::addmm", [[1024], [8944, 1024], [1024, 1024], [], []], [*H, "Scalar", "Scalar"], ["", "", "", "1", "1"],
     32.34827677408854, 18.766086144 - 0.009158656, 36.939453125, 1.19752, 580.1844 - 0.28313),
    ("aten::_scaled_dot_product_flash_attention", [[16, 16, 559, 64]] * 3 + [[]] * 4, [*H, *["Scalar"] * 4],
     ["", "", "", "0.", "True", "False", "0.125"], 113.44601440429688, 10.239377408, 69.875, 0.6460767, 90.28922),
    ("aten::pow", [[16, 559, 1024], []], ["float", "Scalar"], ["", "2"], 26.5, 0.009158656, 69.875, None, None),
]


def test_figures_are_those_of_tracelens(sonde, tmp_path):
    path = trace_of(tmp_path / "trace.json", [(name, dims, types, time_us, values)
                                              for name, dims, types, values, time_us, *_ in TRACELENS],
                    {"id": 0, "name": "NVIDIA H100 80GB HBM3"})
    rows = {row["name"]: row for row in roofline(sonde, path)["shapes"]}
    for name, _dims, _types, _values, _time, gflop, mib, tbps, tflops in TRACELENS:
        row = rows[name]
        assert row["flop"] / 1e9 == pytest.approx(gflop, rel=1e-9), name
        assert row["bytes"] / 2**20 == pytest.approx(mib, rel=1e-9), name
        if tbps:
            assert row["bytes_per_s"] / 1e12 == pytest.approx(tbps, rel=1e-3), name
            assert row["flop_per_s"] / 1e12 == pytest.approx(tflops, rel=1e-3), name


# Of traces that TraceLens publishes (tests/traces/inference of commit 171dd74: SGLang's prefill of Qwen3-8B, vLLM's of
# gpt-oss-20b, both on ROCm): an operator, and the FLOP and bytes that its formulas (PerfModel/extensions) give for it. It
# leaves out positions and slots, and rows of cosines and sines, which are added here.
T = 15360
PREFILL = "execute_15360_context_15(sq15360sk15360sqsq15728640sqsk15728640)_generation_0(sq0sk0sqsq0sqsk0)"
MIXED = "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)"
SERVING = [
    ("aiter::gemm_a16w16", [[T, 4096], [24576, 4096], [], [], [], [], []], [HALF, HALF, "", "Scalar", "", "", ""],
     ["", "", "", "15", "", "", ""], PREFILL, 2 * T * 4096 * 24576, (T * 4096 + 4096 * 24576 + T * 24576) * 2),
    ("sgl_kernel::rotary_embedding", [[T], [T, 4096], [T, 1024], [], [41216, 128], []],
     ["long int", HALF, HALF, "Scalar", HALF, "Scalar"], ["", "", "", "128", "", "True"], PREFILL,
     3 * T * 40 * 128, 2 * T * 40 * 128 * 2 + T * (8 + 128 * 2)),
    ("sglang::store_cache", [[T, 1024], [T, 1024], [835874, 1024], [835874, 1024], [T], [], []],
     [*[HALF] * 4, "long int", "Scalar", "Scalar"], ["", "", "", "", "", "2048", "0"], PREFILL, 0, 4 * T * 1024 * 2 + T * 8),
    ("aiter::mha_batch_prefill", [[T, 32, 128], [835874, 8, 128], [835874, 8, 128], [16], [16], [15616], *[[]] * 24],
     [*[HALF] * 3, *["int"] * 3, *["Scalar"] * 12, *[""] * 12],
     [*[""] * 6, "1024", "1024", "0.", "0.0883", "0.", "False", "True", "-1", "-1", "0", "False", "False", *[""] * 12], PREFILL,
     32 * 256 * (2 * 15728640 - 15728640), T * (32 + 8) * 256 * 2),
    ("vllm::unified_attention_with_output", [[8192, 64, 64], [8192, 8, 64], [8192, 8, 64], [8192, 64, 64], [], [], []],
     [*[HALF] * 4, "", "", ""], [""] * 7, MIXED, 64 * 128 * (2 * 7671310 - 7475785 + 2 * 34489),
     8192 * 64 * 128 * 2 + (8430 + 34489) * 8 * 128 * 2),
]
WRITE = ("_C_cache_ops::reshape_and_cache_flash", [[8192, 8, 64], [8192, 8, 64], [224304, 32, 8, 64], [224304, 32, 8, 64],
                                                   [8192], [], [], []],
         [*[HALF] * 4, "long int", "", "float", "float"], 10)


def test_serving_costs_what_tracelens_says(sonde, tmp_path):
    around = [{"ph": "X", "cat": "user_annotation", "name": annotation, "pid": 1, "tid": 1, "ts": number * 1000 - 1, "dur": 9}
              for number, (*_, annotation, _flop, _bytes) in enumerate(SERVING)]
    operators = [(name, dims, types, 100, values) for name, dims, types, values, *_ in SERVING]
    path = trace_of(tmp_path / "trace.json", [*operators, WRITE], more=around)
    rows = {row["name"]: row for row in roofline(sonde, path)["shapes"]}
    for name, *_, flop, moved in SERVING:
        assert (rows[name]["flop"], rows[name]["bytes"]) == (flop, moved), name
        # Layers with a sliding window look at less, and which have one is not in vLLM's trace.
        assert rows[name]["flop_is"] == ("at_most" if name.startswith("vllm") else "exact")


def test_bounds_are_marked_and_never_called_savings(sonde, tmp_path):
    """Without an annotation a query looks at itself, at least: nothing may be said to be saved."""
    name, dims, types, values, *_ = SERVING[-1]
    path = trace_of(tmp_path / "trace.json", [(name, dims, types, 1000, values), ADD])
    found = roofline(sonde, path)
    attention, add = found["shapes"]
    assert (attention["flop_is"], attention["bytes_is"], attention["bound"], attention["saves_ns"]) == (
        "at_least", "at_least", None, None)
    assert attention["roof_share"] > 0 and add["flop_is"] == add["bytes_is"] == "exact"
    assert found["saves_ns"] == add["saves_ns"] and found["steps"][0]["has_bounds"]
    text = " ".join(sonde("report", "--by", "roofline", path, check=0).stdout.split())
    assert "at least vllm::unified_attention_with_output" in text and "Of 1 of these the trace does not have" in text


def test_the_kernel_of_a_concatenation_says_how_large_elements_are(sonde, tmp_path):
    unnamed = "at::native::(anonymous namespace)"
    kernel = f"void {unnamed}::CatArrayBatchedCopy<{unnamed}::OpaqueType<2u>, unsigned int, 2, 64, 64>"
    cat = ("aten::cat", [[[4, 8], [2, 8]], []], ["TensorList", "Scalar"], 10, ["", "0"])
    (row,) = roofline(sonde, trace_of(tmp_path / "trace.json", [(*cat, kernel)]))["shapes"]
    assert (row["flop"], row["bytes"]) == (0, 2 * 48 * 2)
    (row,) = roofline(sonde, trace_of(tmp_path / "other.json", [cat]))["shapes"]
    assert row["bytes"] is None


# A causal mask over as many queries as keys halves attention, which FlopCounterMode leaves out.
CAUSAL = {"llama", "qwen2", "qwen3_moe", "gemma", "phi", "gpt_neox"}
# FlopCounterMode has no formula for it: three products for each of the experts' two, forward and backward.
GROUPED = {"qwen3_moe": {"aten::_grouped_mm": 3 * 2 * 2 * (2 * 24 * 2) * 64 * (2 * 48 + 48)}}


def test_flop_are_those_of_pytorch(sonde, torch2, tmp_path):
    """Fourteen models, forward and backward, on the CPU: FLOP by operator, from the trace and by FlopCounterMode."""
    probe = "import importlib.util as u, sys; sys.exit(not u.find_spec('transformers'))"
    if subprocess.run([torch2, "-c", probe]).returncode:
        pytest.skip("there is no transformers for PyTorch 2; 'tools/venv torch2' installs it from PyPI")
    done = subprocess.run([torch2, "-W", "ignore", MODELS, tmp_path], check=True, stdout=subprocess.PIPE, timeout=600,
                          env={"HF_HUB_OFFLINE": "1", "PATH": "/usr/bin:/bin"})
    counted = json.loads(done.stdout)
    assert len(counted) == 14
    for model, expected in counted.items():
        found = roofline(sonde, tmp_path / f"{model}.json")
        assert found["of_threads"] and not found["peak_source"]
        flop = {row["name"]: row["flop"] for row in found["operators"]
                if row["family"] in ("GEMM", "convolution", "attention")}
        halved = {name: count // 2 if model in CAUSAL and "attention" in name else count for name, count in expected.items()}
        assert flop == {**halved, **GROUPED.get(model, {})}, model
