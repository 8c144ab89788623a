# SPDX-License-Identifier: Apache-2.0
"""Results as Markdown tables, put between the markers of docs/benchmarks.md; the text around them is hand-written."""

import re

from api_document import api
from device_document import device
from energy_document import energy, token_times
from markdown_table import NONE, megabytes, number, percent, table, verdict
from models_document import models
from package_document import package
from store_document import store
from traces_document import traces
from workbench import ROOT

DOCUMENT = ROOT / "docs" / "benchmarks.md"


# The bars of the project, each: what, the bar, what was measured, whether it holds (None: not measured).


def stacks_bar(results, name):
    run = results["stacks"][name]
    release = f"PyTorch {run.get('torch', 'of ' + name)}"
    what = f"user stacks of the example that reach the thread's entry, {release}"
    if "missing" in run:
        return what, "≥ 99.5 %", run["missing"], None
    profilers = run["profilers"]
    shares = {key: profilers[key]["whole_share"] for key in ("sonde", "perf -g", "perf dwarf")}
    peers = f"perf -g {percent(shares['perf -g'])}, dwarf {percent(shares['perf dwarf'])}"
    measured = f"{percent(shares['sonde'], 2)} ({peers})"
    return what, "≥ 99.5 %", measured, shares["sonde"] >= 0.995


def frames_bar(results):
    done = {name: run for name, run in results["unwinding"]["processes"].items() if "missing" not in run}
    worst = min(done, key=lambda name: done[name]["same_share"], default=None)
    what = "frames identical with libdwfl on stopped processes, the worst program"
    if worst is None:
        return what, "≥ 99.9 %", "no program could be compared", None
    share = done[worst]["same_share"]
    count = sum(run["same_share"] >= 0.999 for run in done.values())
    measured = f"{percent(share, 2)} ({worst}); {count} of {len(done)} programs reach the bar"
    return what, "≥ 99.9 %", measured, share >= 0.999


def bpf_bar(results):
    what, bar, run = "BPF time per sample, mean, PyTorch example", "≤ 8 µs", results["cost"]["bpf"]["99 Hz"]
    if "missing" in run:
        return what, bar, run["missing"], None
    return what, bar, number(run["bpf_us_per_sample"], "µs"), run["bpf_us_per_sample"] <= 8


def collector_bar(results):
    run = results["cost"]["collectors"]["profilers"]["sonde"]
    return (
        "collector CPU at 99 Hz on two busy CPUs, after start-up",
        "≤ 1 % of one core",
        percent(run["cpu_share"], 2),
        run["cpu_share"] <= 0.01,
    )


def peak_rss(results):
    runs = [run for run in results["cost"]["bpf"].values() if "missing" not in run]
    peaks = [run["peak_rss_bytes"] for run in runs]
    return max([*peaks, results["cost"]["collectors"]["profilers"]["sonde"]["peak_rss_bytes"]])


def memory_bar(results):
    peak = peak_rss(results)
    return "the same, peak memory, a first run with empty cache included", "≤ 150 MB", megabytes(peak), peak <= 150e6


def losses_bar(results):
    run = results["cost"]["losses"]
    what = f"lost samples at {run['frequency']} Hz on two busy CPUs for {run['seconds']} s"
    return what, "0", f"{run['samples_lost']:,} of {run['samples']:,}", run["samples_lost"] == 0


def bytes_bar(results):
    profilers = results["cost"]["collectors"]["profilers"]
    ours, dwarf = (profilers[name]["bytes_per_sample"] for name in ("sonde", "perf dwarf"))
    measured = f"{ours:.0f}; perf dwarf {dwarf:,.0f}, 1/{dwarf / ours:.0f}"
    return "capture bytes per sample", "≤ 120, ≤ 1/60 of perf dwarf's", measured, ours <= 120 and ours * 60 <= dwarf


def reading_bar(results):
    ours, perf = results["reading"]["sonde"], results["reading"]["perf"]
    ratio = (perf["script_s"] / perf["samples"]) / (ours["seconds"] / ours["samples"])
    scaled = ours["seconds"] * 60_000 / max(ours["samples"], 1)
    measured = f"{scaled:.2f} s (of {ours['samples']:,}: {ours['seconds']:.2f} s); {ratio:.0f} × per sample"
    holds = scaled <= 0.5 and ratio >= 50
    return "`report` on 60,000 samples, and against `perf script`", "≤ 0.5 s, ≥ 50 ×", measured, holds


def build_bar(results):
    """The bar is for the distribution's library of 120 MB; PyPI's of 434 MB is named beside it."""
    runs = results["unwinding"]["tables"]
    what, bar = "unwind table of libtorch_cpu.so, built and stored / from the cache", "≤ 1.5 s / ≤ 20 ms"
    if not runs:
        return what, bar, "there is no PyTorch here", None
    costs = [(run["build_and_store_ms"], run["cached_ms"][1], run["file_bytes"] / 1e6) for run in runs.values()]
    measured = "; ".join(f"{cold / 1e3:.2f} s / {cached:.1f} ms ({size:.0f} MB)" for cold, cached, size in costs)
    return what, bar, measured, costs[0][0] <= 1500 and costs[0][1] <= 20


def bars(results):
    yield stacks_bar(results, "debian")
    yield stacks_bar(results, "pypi")
    for bar in (frames_bar, bpf_bar, collector_bar, memory_bar, losses_bar, bytes_bar, reading_bar, build_bar):
        yield bar(results)


def summary(results):
    rows = [(what, bar, measured, verdict(holds)) for what, bar, measured, holds in bars(results)]
    return table(("what", "bar", "measured", "holds"), rows)


# One table for each measurement.


BUSY = 0.5


def warnings(found):
    if found["quick"]:
        yield "**A quick run: too short to quote.**"
    if found["load_before"] > BUSY:
        yield "**Other work ran on the machine at the same time: times are too long, and spread.**"


def about(results):
    found = results["machine"]
    lines = [
        f"{found['date']}, {found['cpus']} CPUs, {found['processor']}; {found['sonde']}, commit {found['commit']}; "
        f"load average at the start {found['load_before']:.1f}."
    ]
    return "\n".join([*lines, *warnings(found)])


def machine(results):
    found = results["machine"]
    kind = "virtual machine" if found["virtual"] else "machine"
    lines = [
        f"{found['cpus']} CPUs of a {kind}, {found['processor']}, {found['memory_bytes'] / 2**30:.0f} GiB,",
        f"Linux {found['kernel']}, {found['distribution']}; {found['sonde']}, commit {found['commit']};",
        f"{found['perf'] or 'no perf'}; {found['date']}.",
        f"Load average at the start {found['load_before']:.1f}, the run took {found['seconds'] / 60:.0f} minutes.",
    ]
    return "\n".join([*lines, *warnings(found)])


def stacks(results):
    rows = []
    for run in results["stacks"].values():
        for name, profiler in run.get("profilers", {}).items():
            rows.append(
                (
                    f"PyTorch {run['torch']}",
                    name,
                    f"{profiler['user_stacks']:,}",
                    percent(profiler["whole_share"], 2),
                    number(profiler["mean_depth"]),
                )
            )
        if "missing" in run:
            rows.append((run["missing"], NONE, NONE, NONE, NONE))
    return table(("target", "profiler", "user stacks", "reach the entry", "frames, mean"), rows)


def frames(results):
    rows = []
    for name, run in results["unwinding"]["processes"].items():
        if "missing" in run:
            rows.append((name, run["missing"], NONE, NONE, NONE))
            continue
        counts = [f"{run[key]:,}" for key in ("stacks", "frames", "longer_stacks")]
        rows.append((name, *counts[:2], percent(run["same_share"], 3), counts[2]))
    return table(("program", "stacks", "frames", "identical", "stacks where only libdwfl gave up"), rows)


def tables(results):
    rows = []
    for run in results["unwinding"]["tables"].values():
        best, worst = run["build_ms"]
        cached = run["cached_ms"]
        rows.append(
            (
                megabytes(run["file_bytes"]),
                f"{run['fdes']:,}",
                f"{run['rows']:,}",
                megabytes(run["table_bytes"]),
                f"{best:,.0f} to {worst:,.0f} ms",
                f"{run['build_and_store_ms']:,.0f} ms",
                f"{cached[0]:.1f} to {cached[1]:.1f} ms",
            )
        )
    return table(("file", "functions", "rows", "table", "built", "built and stored", "from the cache"), rows)


def bpf(results):
    rows = []
    for name, run in results["cost"]["bpf"].items():
        if "missing" in run:
            rows.append((name, run["missing"], NONE, NONE, NONE))
            continue
        per_sample, per_run = number(run["bpf_us_per_sample"], "µs"), number(run["bpf_us_per_run"], "µs")
        copies = f"{run['stacks_unwound_in_user_space']:,}"
        rows.append((name, f"{run['samples']:,}", per_sample, per_run, copies))
    return table(("run", "samples", "per sample", "per run of the program", "stacks copied"), rows)


def collectors(results):
    rows = [
        (
            name,
            f"{run['samples']:,}",
            percent(run["cpu_share"], 2),
            number(run["cpu_s"], "s", 2),
            megabytes(run["peak_rss_bytes"]),
            f"{run['bytes_per_sample']:,.0f}",
        )
        for name, run in results["cost"]["collectors"]["profilers"].items()
    ]
    costs = ("CPU after start-up", "CPU, whole run", "peak memory", "bytes per sample")
    return table(("profiler, 99 Hz", "samples", *costs), rows)


def losses(results):
    run = results["cost"]["losses"]
    row = (
        f"{run['frequency']} Hz, {run['seconds']} s",
        f"{run['samples']:,}",
        f"{run['samples_lost']:,}",
        percent(run["covered_share"]),
        percent(run["cpu_share"], 2),
        megabytes(run["peak_rss_bytes"]),
        f"{run['bytes_per_sample']:,.0f}",
    )
    costs = ("collector CPU", "peak memory", "bytes per sample")
    return table(("run", "samples", "lost", "of the targets' CPU time", *costs), [row])


def reading(results):
    ours, perf = results["reading"]["sonde"], results["reading"]["perf"]
    rows = [
        ("sonde report", ours, ours["seconds"]),
        ("perf script", perf, perf["script_s"]),
        ("perf report", perf, perf["report_s"]),
    ]
    return table(
        ("reader", "samples", "file", "time", "per 60,000 samples"),
        [
            (
                name,
                f"{run['samples']:,}",
                number(run["bytes"] / 1e6, "MB"),
                number(seconds, "s", 2),
                number(seconds * 60_000 / max(run["samples"], 1), "s", 2),
            )
            for name, run, seconds in rows
        ],
    )


def points(found):
    """A difference of shares, in points of percent, and its spread over the rounds."""
    median, lowest, highest = (100 * found[key] for key in ("median", "lowest", "highest"))
    return f"{median:+.2f} %", f"{lowest:+.2f} to {highest:+.2f} %"


def slowdown(results):
    run = results["slowdown"]
    rows = [(name, *points(one["stolen"]), *points(one["interrupted"])) for name, one in run["profilers"].items()]
    before = [points(run["alone"][kind]) for kind in ("stolen", "interrupted")]
    rows.append(("alone, of the time", *(cell.replace("+", "") for cell in (*before[0], *before[1]))))
    columns = ("time stolen, less alone", "lowest to highest", "interrupted, less alone", "lowest to highest")
    return table(("profiler", *columns), rows)


def peers_row(name, run, *shares):
    if "missing" in run:
        return (name, *([NONE] * (5 + len(shares))))
    more = [f"{100 * (run[key] - 1):+.1f} %" for key in ("ratio", "ratio_lowest", "ratio_highest", "cpu_ratio")]
    taken = f"{run['taken']:,} of {run['asked']:,}" if "taken" in run else NONE
    shares = [percent(run.get(share)) for share in shares]
    return (name, more[0], f"{more[1]} to {more[2]}", more[3], number(run["outside_cpu_s"], "s", 2), taken, *shares)


def peers_table(title, runs, columns):
    """`columns`: the key in the results by heading."""
    costs = ("work takes longer by", "lowest to highest", "its CPU time", "CPU outside the work", "samples, of asked")
    rows = [peers_row(name, run, *columns.values()) for name, run in runs.items() if not name.startswith("alone")]
    notes = [f"\nLeft out: {name}: {run['missing']}." for name, run in runs.items() if "missing" in run]
    return "\n".join([table((title, *costs, *columns), rows), *notes])


def peers(results):
    found, run = results["peers"], results["machine"]
    releases = ", ".join(f"{name} {release}" for name, release in found["versions"].items())
    pure = {"right stacks": "right_share", "lines' shares off by": "line_distance"}
    lines = [
        f"{found['rounds']} rounds, {found['frequency']} Hz; {run['perf'] or 'no perf'}, {releases}.\n",
        peers_table("pure Python", found["programs"]["pure"], pure) + "\n",
        peers_table("PyTorch example", found["programs"]["torch"], {"Python and native in one": "mixed_share"}),
    ]
    return "\n".join(lines)


def windows(results):
    run = results["windows"]
    step, fast, slow = run["step"], run["flag"]["999"], run["flag"]["99"]
    outside = run["steps"]["outside"] + fast["outside"] + slow["outside"]
    more = step["step_ns"] - step["nothing_ns"]
    count = run["steps"]["events"] + fast["samples"] + slow["samples"]
    rows = [
        ("`sonde_step()` with a closed gate, in a loop of 1 µs bodies, beyond a function that does nothing", "≤ 2 ns",
         f"{more:.1f} ns ({step['step_ns']:.1f} less {step['nothing_ns']:.1f})", verdict(more <= 2)),
        ("flag made → window open", NONE,
         f"median {fast['opened_ms']:.2f} ms, at most {fast['opened_most_ms']:.2f} ms of {fast['windows']}", NONE),
        ("flag made → first sample in the window, 999 Hz", "≤ 5 ms",
         f"median {fast['first_sample_ms']:.2f} ms, at most {fast['first_sample_most_ms']:.2f} ms",
         verdict(fast["first_sample_ms"] <= 5)),
        ("the same, 99 Hz, whose period is 10.1 ms", NONE,
         f"median {slow['first_sample_ms']:.2f} ms, at most {slow['first_sample_most_ms']:.2f} ms", NONE),
        ("events outside of windows in the captures", "0",
         f"{outside} of {count:,} in {run['steps']['windows'] + fast['windows'] + slow['windows']:,} windows",
         verdict(outside == 0)),
    ]
    return table(("what", "bar", "measured", "holds"), rows)


SUMMARY = (machine, summary)
# By measurement, the tables of which figures it has. The others print theirs.
PARTS = {
    "stacks": (stacks,),
    "unwinding": (frames, tables),
    "cost": (bpf, collectors, losses),
    "reading": (reading,),
    "slowdown": (slowdown,),
    "windows": (windows,),
    "device": (device,),
    "api": (api,),
    "package": (package,),
    "models": (models,),
    "energy": (energy,),
    "token_times": (token_times,),
    "traces": (traces,),
    "store": (store,),
    "peers": (peers,),
}


def parts_of(name):
    return PARTS.get(name, ())


def has_summary(results):
    """Are all figures of the summary there?"""
    return all(name in results for name in ("stacks", "unwinding", "cost", "reading"))


def content_of(part, results):
    """A table with a line on when and on what it was measured; the summary stands below that of the machine."""
    return part(results) if part in SUMMARY else f"{about(results)}\n\n{part(results)}"


def update(results, parts):
    """Puts tables between their markers; the document must have them all."""
    text = DOCUMENT.read_text()
    for part in parts:
        name = part.__name__
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.S)
        content = content_of(part, results)
        text, count = pattern.subn(lambda match: match[1] + content + "\n" + match[2], text)
        if count != 1:
            raise ValueError(f"{DOCUMENT.name} has the markers of '{name}' {count} times, not once")
    DOCUMENT.write_text(text)
