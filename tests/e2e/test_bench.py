# SPDX-License-Identifier: Apache-2.0
"""Every program of bench/ runs for about a second and prints its figures.

No figure is judged: others use the machine, too.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trace_files import kineto_of_rank

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH))

import run as bench_run  # noqa: E402

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="recording with BPF needs root")

# ---- programs ----


@pytest.fixture
def build(sonde_path):
    return sonde_path.parent


def run(*command, env=None, cwd=None):
    done = subprocess.run(
        list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        env={**os.environ, **(env or {})}, cwd=cwd,
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def figures(text):
    """Of the JSON that a program prints last."""
    return json.loads([line for line in text.splitlines() if line.startswith("{")][-1])


def has_numbers(found, *names):
    """All that a program prints, and nothing else."""
    assert set(found) == set(names), found
    assert all(isinstance(value, (int, float)) for value in found.values()), found


def unwind_build(build, tmp_path):
    printed = run(build / "bench/unwind-build", "/usr/bin/python3")
    assert re.search(r": \d+ FDEs, \d+ rows, \d+ rules, \d+ bytes", printed)
    for what in ("build", "build and store", "from the cache"):
        assert re.search(rf"^\s+{what}\s+wall\s+[\d.]+ to\s+[\d.]+ ms, CPU\s+[\d.]+ to\s+[\d.]+ ms", printed, re.M)


def unwind_compare(build, tmp_path):
    with subprocess.Popen([build / "tests/e2e/workloads/spin", "60"], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline().startswith("ready")
        found = figures(run(build / "bench/unwind-compare", "-j", "-n", 5, "-i", 10, child.pid))
        child.kill()
    assert found.pop("stops")
    has_numbers(found, "pid", "stacks", "same_stacks", "frames", "same_frames", "reference_failed", "longer_stacks")


def ring_programs(build, tmp_path):
    lines = run(build / "bench/ring-drain", build / "bench/ring-source", 20000, 1).splitlines()
    has_numbers(json.loads(lines[0]), "written", "lost", "seconds")
    has_numbers(json.loads(lines[1]), "records", "lost", "bytes", "cpu_s", "seconds")


def nvtx_cost(build, tmp_path):
    has_numbers(figures(run(build / "bench/nvtx-cost", "alone", 20)), "ranges", "range_ns")


def cuda_rate(build, tmp_path):
    double = build / "tests/doubles/cupti/libcupti-double-13.so"
    has_numbers(figures(run(build / "bench/cuda-rate", double, 10000, 1)), "kernels", "seconds")


def step_cost(build, tmp_path):
    environment = {"SONDE_SESSION": str(tmp_path), "SONDE_LIBRARY": str(build / "src/inject/libsonde-inject.so")}
    for way in ("alone", "closed"):
        has_numbers(figures(run(build / "bench/step-cost", way, 20, env=environment)), "step_ns", "nothing_ns", "steps")


def clock_cost(build, tmp_path):
    names = ("looks", "went_back", "error_p50_ns", "error_p99_ns", "error_max_ns", "clock_ns", "real_ns")
    has_numbers(figures(run(build / "bench/clock-cost", 0.2)), *names)


def api_cost(build, tmp_path):
    found = figures(run(build / "bench/api-cost", "alone", 5))
    assert found.pop("is_open") is False
    has_numbers(found, "range_ns", "step_ns", "counter_ns")


def layer_double(build, tmp_path):
    environment = {"SONDE_SESSION": str(tmp_path), "OPENCL_LAYERS": str(build / "src/inject/libsonde-inject.so")}
    found = figures(run(build / "bench/layer-double", "closed", 10, env=environment))
    has_numbers(found, "launches", "direct_ns", "layer_ns")


def launch_cost(build, tmp_path):
    has_numbers(figures(run(build / "bench/launch-cost", 3)), "launches", "launch_ns")


def measured(build, tmp_path):
    run(build / "bench/measured", tmp_path / "usage.json", "true")
    has_numbers(json.loads((tmp_path / "usage.json").read_text()), "wall_s", "user_s", "cpu_s", "peak_bytes")


def kineto_read(build, tmp_path):
    lines = run(build / "bench/kineto-read", kineto_of_rank(tmp_path / "trace.json", 0, 1), 2).splitlines()
    assert int(lines[0]) == 15
    assert len(lines) == 3 and all(float(line) > 0 for line in lines[1:])


def energy_sampler(build, tmp_path):
    double = build / "tests/doubles/nvml/libnvidia-ml.so.1"
    found = figures(run(build / "bench/energy-sampler", 1, 0, double))
    assert found.pop("domains")
    has_numbers(found, "seconds", "cpu_share", "intervals", "allocations")
    has_numbers(figures(run(build / "bench/energy-sampler", 1, 100, "wake")), "cpu_share")


def store_rows(build, tmp_path):
    for what in ("runs", "figures"):
        has_numbers(figures(run(build / "bench/store-rows", tmp_path / f"{what}.db", what, 100)), "rows", "seconds")


def timeline_tiles(build, tmp_path):
    found = figures(run(build / "bench/timeline-tiles", 100_000, 100))
    has_numbers(found, "slices", "tiles", "columns", "index_s", "index_bytes", "trace_bytes", "tile_p50_ms", "tile_p99_ms",
                "tile_most_ms", "tile_most_bytes")
    assert found["tile_most_bytes"] > 1000, "tiles have slices"


# By file of bench/.
PROGRAMS = {
    "api-cost.c": api_cost, "clock-cost.c": clock_cost, "cuda-rate.c": cuda_rate, "energy-sampler.c": energy_sampler,
    "kineto-read.c": kineto_read, "launch-cost.c": launch_cost, "layer-double.c": layer_double, "measured.c": measured,
    "nvtx-cost.c": nvtx_cost, "ring-drain.c": ring_programs, "ring-source.c": ring_programs, "step-cost.c": step_cost,
    "store-rows.c": store_rows, "timeline-tiles.c": timeline_tiles,
    "unwind-build.c": unwind_build, "unwind-compare.c": unwind_compare,
}


@pytest.mark.parametrize("program", dict.fromkeys(PROGRAMS.values()), ids=lambda program: program.__name__)
def test_a_program_prints_its_figures(build, tmp_path, program):
    program(build, tmp_path)


def pure_python(build, tmp_path):
    run(sys.executable, BENCH / "pure_python.py", 30, tmp_path / "lines.json")
    assert json.loads((tmp_path / "lines.json").read_text())
    run(sys.executable, BENCH / "pure_python.py", "trace", tmp_path / "stacks.json")
    assert json.loads((tmp_path / "stacks.json").read_text())[0][0][0] == "<module>"


def released(build, tmp_path):
    run(sys.executable, BENCH / "released.py", 0.2)


def timed(build, tmp_path):
    run(sys.executable, BENCH / "timed.py", tmp_path / "usage.json", "true")
    has_numbers(json.loads((tmp_path / "usage.json").read_text()), "wall_s", "cpu_s")


def ranks(build, tmp_path):
    printed = run(sys.executable, BENCH / "ranks.py", build / "sonde", 2, 0.5, "--traces", env={"TMPDIR": str(tmp_path)})
    assert re.search(r"^2 ranks, \d+ MB: [\d.]+ s, [\d.]+ GiB at most, load [\d.]+", printed, re.M)


def trace_scale(build, tmp_path):
    source = kineto_of_rank(tmp_path / "trace.json", 0, 1)
    run(sys.executable, BENCH / "trace_scale.py", "kineto", source, 20_000, tmp_path / "large.json")
    assert len(json.loads((tmp_path / "large.json").read_text())["traceEvents"]) > 30


SCRIPTS = {"pure_python.py": pure_python, "released.py": released, "timed.py": timed, "ranks.py": ranks, "trace_scale.py": trace_scale}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_script_prints_its_figures(build, tmp_path, script):
    script(build, tmp_path)


@needs_root
@pytest.mark.slow
def test_false_alarms_are_counted(build):
    printed = run(sys.executable, BENCH / "regress.py", build / "sonde", 2)
    assert re.search(r"^one against the next: \d of 1 failed$", printed, re.M)


# ---- all of them ----

# Run by a measurement, and by nothing else.
RUN_BY = {
    "api_python.py": "api",
    "binary_frames.mjs": "binary_frames",
    "hta_analyses.py": "traces",
    "model_costs.py": "models",
    "package_costs.py": "package",
    "page_live_load.py": "page_live",
    "page_paint.py": "page",
}
NOT_RUN = {"tracelens.py": "needs a repository that is not here", "regress.py": "test_false_alarms_are_counted"}


def test_no_program_of_bench_is_forgotten():
    """A new one stands in one of the lists above, or is a part of run.py."""
    files = {path.name for path in BENCH.iterdir() if path.suffix in (".c", ".py", ".mjs")}
    parts = {Path(module.__file__).name for module in list(sys.modules.values())
             if getattr(module, "__file__", None) and Path(module.__file__).parent == BENCH}
    known = {*PROGRAMS, *SCRIPTS, *RUN_BY, *NOT_RUN, *parts}
    assert files - known == set(), "programs without a test"
    assert known - files == set(), "tests of programs that are gone"
    assert set(RUN_BY.values()) <= set(bench_run.MEASUREMENTS)


def test_every_c_program_of_bench_is_built(build):
    for name in PROGRAMS:
        assert os.access(build / "bench" / name.removesuffix(".c"), os.X_OK), name
