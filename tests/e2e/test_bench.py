# SPDX-License-Identifier: Apache-2.0
"""Every program of bench/ runs for about a second and prints its figures, and a run of the measurements keeps what it made.

No figure is judged: others use the machine, too.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trace_files import kineto_of_rank

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH))

import document  # noqa: E402
import needs  # noqa: E402
import run as bench_run  # noqa: E402
from workbench import Failed, Workbench  # noqa: E402

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


def stolen_time(build, tmp_path):
    found = figures(run(build / "bench/stolen-time", -1, 0, 0.2))
    has_numbers(found, "seconds", "stolen_s", "short_gaps_s", "gaps", "short_gaps", "longest_gap_us", "read_ns")
    assert found["short_gaps"] <= found["gaps"] and 0 <= found["short_gaps_s"] <= found["stolen_s"] <= found["seconds"]


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
    "stolen-time.c": stolen_time, "store-rows.c": store_rows, "timeline-tiles.c": timeline_tiles,
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


# ---- measurements ----

# In their shortest form they take a second or a few; the others are slow tests, or take minutes even then.
SHORT = ("timeline", "token_times", "store", "api", "energy", "binary_frames", "slowdown")
SLOW = ("page", "page_live", "live_recording", "windows", "package")
LONG = {
    "stacks": "a training loop under each profiler",
    "unwinding": "six programs, each stopped many times",
    "cost": "a training loop for each figure",
    "reading": "a training loop under two profilers",
    "python_stacks": "every CPython twice",
    "waiting": "a thousand threads for each figure",
    "device": "launches by the ten thousand",
    "cuda_rates": "kernels by the million",
    "models": "a model with PyTorch 2",
    "traces": "traces of a gigabyte",
    "serving": "a trace of a gigabyte",
    "peers": "a training loop under each of twelve profilers",
}
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


def measure(build, name):
    """Its result, as it comes from a file."""
    bench, module = Workbench(build, shortest=True), bench_run.MEASUREMENTS[name]
    try:
        for need in module.NEEDS:
            if not bench.has(need):
                assert not need.packages, f"no {need.name}: tools/deps test installs {need.packages}"
                pytest.skip(f"{need.name}: {need.get}")
        bench.declared = bench_run.needs_of(module)
        return json.loads(json.dumps(module.measure(bench))), bench_run.describe(bench, 0, 0)
    finally:
        bench.close()


@needs_root
@pytest.mark.parametrize("name", [*SHORT, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_a_measurement_has_its_figures(build, name):
    result, about = measure(build, name)
    assert result
    for part in document.parts_of(name):
        lines = document.content_of(part, {"machine": about, name: result}).splitlines()
        assert sum(line.startswith("|---") for line in lines) >= 1
        assert sum(line.startswith("| ") for line in lines) >= 2, "a heading and a row"


def test_no_program_of_bench_is_forgotten():
    """A new one stands in one of the lists above, or is a part of run.py."""
    files = {path.name for path in BENCH.iterdir() if path.suffix in (".c", ".py", ".mjs")}
    parts = {Path(module.__file__).name for module in list(sys.modules.values())
             if getattr(module, "__file__", None) and Path(module.__file__).parent == BENCH}
    known = {*PROGRAMS, *SCRIPTS, *RUN_BY, *NOT_RUN, *parts}
    assert files - known == set(), "programs without a test"
    assert known - files == set(), "tests of programs that are gone"
    assert {*SHORT, *SLOW, *LONG} == set(bench_run.MEASUREMENTS)
    assert set(RUN_BY.values()) <= set(bench_run.MEASUREMENTS)


def test_scripts_that_the_guide_calls_can_be_called():
    """Those that stand in it with arguments."""
    called = set(re.findall(r"`(?:sudo )?(bench/\w+\.py) [^`]+`", document.DOCUMENT.read_text()))
    assert {"bench/run.py", "bench/ranks.py", "bench/regress.py"} <= called
    for script in called:
        assert os.access(ROOT / script, os.X_OK), script
        assert (ROOT / script).read_text().startswith("#!/usr/bin/env python3\n"), script


def test_every_c_program_of_bench_is_built(build):
    for name in PROGRAMS:
        assert os.access(build / "bench" / name.removesuffix(".c"), os.X_OK), name


# ---- what measurements need ----


def all_needs():
    return {need for module in bench_run.MEASUREMENTS.values() for need in bench_run.needs_of(module)}


def test_every_measurement_declares_what_it_needs():
    for name, module in bench_run.MEASUREMENTS.items():
        assert isinstance(module.NEEDS, tuple), name
        assert not set(module.NEEDS) & set(getattr(module, "NEEDS_OF_PARTS", ())), name


def test_tools_deps_installs_what_needs_name(tmp_path):
    """On a machine that has no packages at all, and no apt to install them."""
    for name in ("bash", "sort", "dirname"):
        (tmp_path / name).symlink_to(shutil.which(name))
    for name in ("dpkg-query", "apt-cache"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(["bash", ROOT / "tools" / "deps", "bench"], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    missing = re.search(r"missing for bench, \d+ packages: (.*)", done.stderr)
    assert missing, done.stderr
    for need in all_needs():
        there = [name in missing[1].split() for name in need.packages]
        assert any(there) if need is needs.PERF else all(there), f"{need.name}: {need.packages}"


def test_make_bench_installs_first_and_then_measures():
    # Without what a make around the tests hands down.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "BUILD"))}
    command = ["make", "-n", "bench", "BENCH=--quick"]
    lines = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "tools/deps bench" in lines
    assert lines[-1] == "bench/run.py --install --build build --quick"


def test_tools_venv_makes_what_needs_name():
    venv = (ROOT / "tools" / "venv").read_text()
    for need in all_needs():
        if need.environment:
            assert f"\n{need.environment}) " in venv, need.name


# ---- a run ----


def a_need(is_there, **more):
    return needs.Need(more.pop("name", "a thing"), lambda bench: is_there, "buy one", **more)


GIVEN = {"is_given": needs.always}


class Toy:
    """A measurement that notes when it runs."""

    def __init__(self, log, name, measure=lambda bench: {"figure": 1}, NEEDS=(), NEEDS_OF_PARTS=()):
        self.log, self.name, self.work = log, name, measure
        self.NEEDS, self.NEEDS_OF_PARTS = NEEDS, NEEDS_OF_PARTS

    def measure(self, bench):
        print(f"measuring {self.name}")
        self.log.append(self.name)
        return self.work(bench)


@pytest.fixture
def bench(build):
    bench = Workbench(build, shortest=True)
    yield bench
    bench.close()


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def run_toys(bench, results):
    """run_toys(name=options of Toy, …) returns the exit status, the names of what was measured, and those of what was kept."""

    def run_all(by_name=False, **toys):
        log = []
        measurements = {name: Toy(log, name, **options) for name, options in toys.items()}
        keeper = bench_run.Keeper(results, updates_document=False)
        status, _, _ = bench_run.run(bench, measurements, keeper, by_name)
        return status, log, sorted(path.stem for path in results.glob("*.json"))

    return run_all


def fail(error):
    def measure(bench):
        raise error

    return measure


def test_what_is_missing_is_listed_before_the_first_measurement(run_toys, capsys):
    status, measured, kept = run_toys(
        one={},
        two={"NEEDS": (a_need(False, name="a scale"),)},
        three={"NEEDS": (a_need(True, name="a ruler"),), "NEEDS_OF_PARTS": (a_need(False, name="a clock"),)},
    )
    printed = capsys.readouterr().out
    before = printed[: printed.index("measuring one")]
    assert "a scale: buy one\n      without it not measured: two\n" in before
    assert "a clock: buy one\n      without it not measured: three (in part)\n" in before
    assert "a ruler" not in printed
    assert (status, measured, kept) == (1, ["one", "three"], ["one", "three"])
    assert "not measured, at least in part: two, three" in printed.splitlines()[-1]


def test_what_cannot_be_had_is_no_failure(run_toys, capsys):
    given = {"NEEDS": (a_need(False, **GIVEN),)}
    in_part = {"NEEDS_OF_PARTS": (a_need(False, **GIVEN),)}
    assert run_toys(one={}, two=given, three=in_part) == (0, ["one", "three"], ["one", "three"])
    assert "left out, as said at the beginning: two" in capsys.readouterr().out


def test_what_was_named_and_cannot_be_had_is_a_failure(run_toys):
    assert run_toys(True, two={"NEEDS": (a_need(False, **GIVEN),)})[0] == 1
    assert run_toys(True, three={"NEEDS_OF_PARTS": (a_need(False, **GIVEN),)})[0] == 0


@pytest.mark.parametrize("error", [Failed("it broke"), ValueError("no number"), AssertionError()], ids=lambda error: type(error).__name__)
def test_a_fault_loses_only_its_own_measurement(run_toys, capsys, error):
    assert run_toys(one={}, two={"measure": fail(error)}, three={}) == (1, ["one", "two", "three"], ["one", "three"])
    assert "not measured, at least in part: two" in capsys.readouterr().out.splitlines()[-1]


def leave_out(*arguments, **more):
    return {"measure": lambda bench: bench.leave_out(*arguments, **more) or {"figure": 1}}


def test_a_part_that_failed_is_a_failure_and_the_rest_is_kept(run_toys, capsys):
    assert run_toys(one=leave_out("a part", Failed("it broke")), two={}) == (1, ["one", "two"], ["one", "two"])
    assert "one: failed in part: a part" in capsys.readouterr().out


def test_the_failure_of_another_program_is_none_of_ours(run_toys, capsys):
    assert run_toys(one=leave_out("austin", Failed("it broke"), is_ours=False))[0] == 0
    assert "one: without austin, which failed by itself" in capsys.readouterr().out


def test_what_was_measured_before_an_interrupt_is_kept(run_toys, results):
    with pytest.raises(KeyboardInterrupt):
        run_toys(one={}, two={"measure": fail(KeyboardInterrupt())}, three={})
    assert json.loads((results / "one.json").read_text())["one"] == {"figure": 1}
    assert not (results / "three.json").exists()


def test_what_a_measurement_started_does_not_outlive_it(run_toys):
    """What was there before does."""
    started = []

    def measure(bench):
        started.append(subprocess.Popen(["sleep", "600"]))
        raise Failed("it broke")

    before = subprocess.Popen(["sleep", "600"])
    assert run_toys(one={"measure": measure})[0] == 1
    assert not Path(f"/proc/{started[0].pid}").exists()
    assert before.poll() is None
    before.kill()
    before.wait()


def test_what_is_not_declared_is_not_given_out(run_toys, capsys):
    thing = a_need(True)
    take = {"measure": lambda bench: bench.take(thing) or {"figure": 1}}
    assert run_toys(one=take)[0] == 1
    assert "'a thing' is not among what the measurement declares" in capsys.readouterr().out
    assert run_toys(one={**take, "NEEDS": (thing,)})[0] == 0


def test_environments_are_made_once_and_only_those_that_are_missing(bench, tmp_path, monkeypatch):
    log, there = tmp_path / "log", tmp_path / "one"
    venv = tmp_path / "tools" / "venv"
    venv.parent.mkdir()
    venv.write_text(f'#!/bin/sh\necho "$1" >> {log}\ntouch {tmp_path}/$1\n')
    venv.chmod(0o755)
    monkeypatch.setattr(bench_run, "ROOT", tmp_path)
    one = needs.Need("one", lambda bench: there.exists(), "", environment="one")
    another = needs.Need("another", lambda bench: there.exists(), "", environment="one")
    two = a_need(True, environment="two")
    toys = {"a": Toy([], "a", NEEDS=(one, two)), "b": Toy([], "b", NEEDS_OF_PARTS=(another,))}
    bench_run.install(bench, toys)
    assert log.read_text() == "one\n"
    assert bench.has(one) and bench.has(another)


def test_tables_of_what_was_measured_are_renewed(bench, results, tmp_path, monkeypatch):
    """Those of others stay."""
    copy = tmp_path / "benchmarks.md"
    shutil.copyfile(document.DOCUMENT, copy)
    monkeypatch.setattr(document, "DOCUMENT", copy)
    before = copy.read_text()
    stored = json.loads((BENCH / "results" / "reading.json").read_text())
    stored["reading"]["sonde"]["samples"] = 123_456
    toys = {"reading": Toy([], "reading", lambda bench: stored["reading"]), "cost": Toy([], "cost", fail(Failed("it broke")))}
    status, _, _ = bench_run.run(bench, toys, bench_run.Keeper(results, updates_document=True), False)
    assert status == 1

    def without_reading(text):
        return re.sub(r"<!-- reading -->.*?<!-- end reading -->", "", text, flags=re.S)

    after = copy.read_text()
    assert "| sonde report | 123,456 |" in after
    assert without_reading(after) == without_reading(before)


# Their text was written by hand, of several runs.
BY_HAND = {"models"}


@pytest.mark.parametrize("name", sorted(set(document.PARTS) - BY_HAND))
def test_tables_are_those_of_the_raw_figures(name):
    results = json.loads((BENCH / "results" / f"{name}.json").read_text())
    text = document.DOCUMENT.read_text()
    for part in document.parts_of(name):
        found = re.search(rf"<!-- {part.__name__} -->\n(.*?)\n<!-- end {part.__name__} -->", text, re.S)
        assert found[1] == document.content_of(part, results)


# ---- the command ----


def bench_command(build, *arguments, path=None, **options):
    environment = {**os.environ, **({"PATH": path} if path else {})}
    return subprocess.Popen([sys.executable, BENCH / "run.py", "--build", build, *arguments], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **options)


@pytest.fixture
def other_build(build, tmp_path):
    """The build, with a folder of its own for results."""
    folder = tmp_path / "build"
    folder.mkdir()
    for path in build.iterdir():
        if path.name != "bench-results":
            (folder / path.name).symlink_to(path)
    return folder


def test_the_command_keeps_and_prints(other_build):
    process = bench_command(other_build, "--quick", "--only", "timeline")
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    kept = json.loads((other_build / "bench-results" / "timeline.json").read_text())
    assert kept["timeline"]["tiles"] and kept["machine"]["quick"]
    assert json.loads(printed[printed.index("\n{\n") :])["timeline"] == kept["timeline"]


@needs_root
def test_the_command_says_what_is_missing(other_build, tmp_path):
    """Without perf, and with all else that is to be found along the same path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "git"):
        (folder / name).symlink_to(shutil.which(name))
    process = bench_command(other_build, "--only", "slowdown", "--only", "timeline", "--quick", path=str(folder))
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert printed.index("perf: tools/deps bench (installs linux-perf") < printed.index("== timeline")
    assert "without it not measured: slowdown\n" in printed
    assert (other_build / "bench-results" / "timeline.json").exists()


@needs_root
def test_an_interrupted_command_keeps_what_it_has(other_build):
    process = bench_command(other_build, "--quick", "--only", "timeline", "--only", "slowdown")
    printed = ""
    while "round 1 of" not in printed:
        line = process.stdout.readline()
        assert line, printed
        printed += line
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 130, printed + rest
    assert "interrupted" in rest
    assert sorted(path.name for path in (other_build / "bench-results").iterdir()) == ["timeline.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives up its privileges")
def test_without_root_it_is_said_at_once(unprivileged, build, tmp_path):
    done = subprocess.run([*unprivileged, sys.executable, BENCH / "run.py", "--build", build], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "need privileges of root" in done.stderr and "sudo make bench" in done.stderr
