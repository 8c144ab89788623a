# SPDX-License-Identifier: Apache-2.0
"""sonde beside other profilers of Python: what they cost, and what they say about programs whose truth is known.

Every tool runs the same two programs, in rounds with runs alone between them: bench/pure_python.py, which knows the
time of its lines, and examples/train.py, whose time is spent in PyTorch's native code. One interpreter for all: the
distribution's, which has a PyTorch, in a virtual environment that holds the tools. `perf` with -X perf needs CPython
3.12, which has its own runs alone.
"""

import json
import re
import statistics
from collections import Counter
from pathlib import Path

from peer_output import CAPTURE, INVALID, is_python
from peer_tools import ALONE, ALONE_PERF, FREQUENCY, TOOLS, beside
from needs import DISTRIBUTION_TORCH, PEERS, PERF, PERF_PYTHON, PRIVILEGES
from workbench import FOREVER, TRAIN, Failed, Missing, report_progress

NEEDS = (PRIVILEGES, DISTRIBUTION_TORCH, PEERS)
NEEDS_OF_PARTS = (PERF, PERF_PYTHON)

PURE = Path(__file__).with_name("pure_python.py")
PURE_PARTS = (22_000, 6_000)  # in a full run and a quick one: the same work under all tools
TORCH_STEPS = (130, 50)
WORKED = re.compile(r"worked for ([\d.]+) s, ([\d.]+) s of CPU time; ([\d.]+) s with the start")


# One run.


def run_once(bench, tool, program):
    """What the program says of its work, and the CPU time that was used outside of it, in seconds."""
    if tool.needs and not Path(beside(program, tool.needs)).exists():
        raise Missing("PyPI gives no binary of it for this Python")
    bench.remove(CAPTURE)
    done = bench.run(*tool.command(bench, program))
    worked = WORKED.search(done.output)
    if not worked:
        raise Failed(f"the program did not come to its end: {done.output[-300:].strip()}")
    wall, cpu, process = map(float, worked.groups())
    return {"wall_s": wall, "cpu_s": cpu, "process_cpu_s": process, "other_cpu_s": done.cpu_seconds - cpu}


# What is right.


def own_frames(sample, script):
    """The frames of the program's own file, as (function, line); without the classes that some tools put before."""
    return tuple(
        (frame.function.rpartition(".")[2], frame.line)
        for frame in sample.frames
        if frame.file in (str(script), INVALID)
    )


def samples_of_work(tool, samples, script, functions):
    """Samples with one of the work's functions, whatever else they lack. Those without any are of the interpreter's
    start and end, or lost: they are not among the samples taken. All samples of a tool without Python frames."""
    for sample in samples:
        own = own_frames(sample, script)
        if "functions" not in tool.holds or any(name in functions for name, _ in own):
            yield sample, own


def without_lines(stack):
    return tuple((name, 0) for name, _ in stack)


def has_native_below(sample):
    """Native frames inside of a frame of the program's own file and of the interpreter's loop, where that is shown."""
    frames = sample.frames
    own = [index for index, frame in enumerate(frames) if frame.file == str(TRAIN)]
    loops = [index for index, frame in enumerate(frames) if "_PyEval_" in frame.function]
    return bool(own) and any(not is_python(frame) for frame in frames[max(own + loops) + 1 :])


class Pure:
    """The program in pure Python: every stack, and the share of every line."""

    script = PURE

    def __init__(self, bench):
        self.parts = bench.pick(*PURE_PARTS)
        self.seconds = Counter()  # the truth: CPU seconds by line, of the runs alone
        self.stacks = None

    def program(self, bench, python):
        if self.stacks is None:
            bench.run(python, PURE, "trace", bench.path("stacks.json"))
            stacks = json.loads(Path(bench.path("stacks.json")).read_text())
            self.stacks = {tuple(map(tuple, stack)) for stack in stacks}
            self.functions = {name for stack in self.stacks for name, _ in stack} - {"main", "<module>"}
        return [python, str(PURE), str(self.parts), bench.path("truth.json")]

    def after_alone(self, bench, run):
        lines = {int(line): seconds for line, seconds in json.loads(Path(bench.path("truth.json")).read_text()).items()}
        self.seconds.update(lines)
        self.seconds[0] += run["cpu_s"] - sum(lines.values())  # all other lines

    def judge(self, tool, samples, tally):
        has_lines = "lines" in tool.holds
        stacks = self.stacks if has_lines else {without_lines(stack) for stack in self.stacks}
        for sample, own in samples_of_work(tool, samples, PURE, self.functions):
            tally["taken"] += sample.count
            tally["weight"] += sample.weight
            tally["right"] += sample.weight if own in stacks else 0
            if has_lines and own:
                tally["line", own[-1][1] if own[-1][1] in self.seconds else 0] += sample.weight

    def summarise(self, tool, tally):
        lines = {key[1]: value for key, value in tally.items() if key[0] == "line"}
        total, true_total = sum(lines.values()), sum(self.seconds.values())
        far = [abs(lines.get(line, 0) / total - self.seconds[line] / true_total) for line in self.seconds if total]
        return {
            "right_share": tally["right"] / tally["weight"] if "functions" in tool.holds else None,
            "line_distance": sum(far) / 2 if lines else None,
        }


class Torch:
    """The PyTorch example: Python and native frames in one stack."""

    script = TRAIN

    def __init__(self, bench):
        self.steps = bench.pick(*TORCH_STEPS)

    def program(self, bench, python):
        return bench.train(python, FOREVER, threads=1, steps=self.steps)

    def after_alone(self, bench, run):
        pass

    def judge(self, tool, samples, tally):
        for sample, _ in samples_of_work(tool, samples, TRAIN, {"train"}):
            tally["taken"] += sample.count
            tally["weight"] += sample.weight
            tally["mixed"] += sample.weight if has_native_below(sample) else 0

    def summarise(self, tool, tally):
        both = "lines" in tool.holds and "native" in tool.holds
        return {"mixed_share": tally["mixed"] / tally["weight"] if both else None}


# All runs.


def seconds_sampled(tool, run, base):
    """The work's; the whole process's where no Python frame tells one from the other. After the program has printed
    its times the interpreter ends: how long that takes is known from the run alone."""
    if "functions" in tool.holds:
        return run[f"{tool.clock}_s"]
    return run["process_cpu_s"] + base["cpu_s"] + base["other_cpu_s"] - base["process_cpu_s"]


class Runs:
    """All runs of one program. A run alone is never further away than the run before the last: what changes slowly
    on the machine cancels out in the ratios."""

    def __init__(self, bench, kind, subject, python):
        self.bench, self.subject, self.python = bench, subject, python
        self.names = [name for name, tool in TOOLS.items() if kind in tool.programs]
        self.runs, self.tallies, self.missing = {name: [] for name in self.names}, {}, {}
        self.alone = {}  # by baseline: the last such run, and how many tools it was used for

    def run(self, name, base=None):
        tool = TOOLS[name]
        run = run_once(self.bench, tool, list(map(str, self.subject.program(self.bench, self.python))))
        report_progress(f"{self.subject.script.name} under {name}: {run}")
        if name == ALONE:
            self.subject.after_alone(self.bench, run)
        if tool.read:
            tally = self.tallies.setdefault(name, Counter())
            tally["asked"] += FREQUENCY * seconds_sampled(tool, run, base)
            self.subject.judge(tool, tool.read(self.bench), tally)
        return run

    def baseline(self, name):
        run, uses = self.alone.get(name, (None, 2))
        if uses >= 2:
            run, uses = self.run(name), 0
        self.alone[name] = (run, uses + 1)
        return run

    def pair(self, name):
        """Adds one run of a tool and the run alone that it is compared with."""
        try:
            base = self.baseline(TOOLS[name].baseline)
            self.runs[name].append((base if name in (ALONE, ALONE_PERF) else self.run(name, base), base))
        except (Missing, Failed, OSError, ValueError, KeyError) as error:
            self.missing[name] = str(error)
            self.bench.leave_out(name, error, is_ours=name == "sonde")

    def round(self, number):
        """Another tool is the first in each round."""
        first = 4 * number % len(self.names)
        for name in self.names[first:] + self.names[:first]:
            if name not in self.missing:
                self.pair(name)
        self.alone.clear()

    def summaries(self):
        for name in self.names:
            if name in self.missing:
                yield name, {"missing": self.missing[name]}
            else:
                yield name, self.summary(name)

    def summary(self, name):
        """Ratios to the run alone beside it."""
        pairs, tally = self.runs[name], self.tallies.get(name)
        ratios = [run["wall_s"] / base["wall_s"] for run, base in pairs]
        result = {
            "wall_s": statistics.median(run["wall_s"] for run, _ in pairs),
            "ratio": statistics.median(ratios),
            "ratio_lowest": min(ratios),
            "ratio_highest": max(ratios),
            "cpu_ratio": statistics.median(run["cpu_s"] / base["cpu_s"] for run, base in pairs),
            "outside_cpu_s": statistics.median(run["other_cpu_s"] - base["other_cpu_s"] for run, base in pairs),
        }
        if tally and tally["weight"]:
            result |= {"taken": tally["taken"], "asked": round(tally["asked"])}
            result |= self.subject.summarise(TOOLS[name], tally)
        return result


def versions(bench, python):
    """The releases of the tools, by package."""
    code = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    found = json.loads(bench.run(python, "-c", code).output)
    names = ("py-spy", "austin-dist", "pyinstrument", "scalene", "memray")
    return {name: found[name] for name in names if name in found}


def measure(bench):
    python, rounds = bench.peers_python(), bench.pick(3, 1)
    results = {"rounds": rounds, "frequency": FREQUENCY, "versions": versions(bench, python), "programs": {}}
    for kind, subject in (("pure", Pure(bench)), ("torch", Torch(bench))):
        runs = Runs(bench, kind, subject, python)
        for number in range(rounds):
            report_progress(f"{subject.script.name} under every tool, round {number + 1} of {rounds}")
            runs.round(number)
        results["programs"][kind] = dict(runs.summaries())
    return results
