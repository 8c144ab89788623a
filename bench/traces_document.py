# SPDX-License-Identifier: Apache-2.0
"""The figures of traces as tables."""

from markdown_table import NONE, megabytes, number, table, verdict

# Of the same pair on another machine of two CPUs, where the Python tools are not at hand.
STATED_PAIR = {"wall_s": 3.1, "peak_bytes": 163e6}
STATED_ANALYSES = {
    "HTA": {"wall_s": 4.5, "peak_bytes": 639e6},
    "trace_processor, load only": {"wall_s": 0.59, "peak_bytes": 197e6},
}
STATED = " (stated elsewhere)"


def ms(seconds):
    return number(seconds * 1000, "ms", 1) if seconds < 1 else number(seconds, "s", 2)


def cost(run):
    user = f" ({ms(run['user_s'])})" if "user_s" in run else ""
    return f"{ms(run['wall_s'])}{user}, {megabytes(run['peak_bytes'])}"


def both(runs):
    """Two commands as one."""
    return {
        "wall_s": runs["link"]["wall_s"] + runs["convert"]["wall_s"],
        "user_s": runs["link"]["user_s"] + runs["convert"]["user_s"],
        "peak_bytes": max(runs["link"]["peak_bytes"], runs["convert"]["peak_bytes"]),
    }


def pair_rows(found):
    run = found["pairs"]["1"]
    missing = "missing" in run["peers"]
    peers, note = (STATED_PAIR, STATED) if missing else (both(run["peers"]), "")
    two, one = both(run["sonde"]), run["sonde"]["one step"]
    for what, ours, bar in (("two commands", two, 50), ("one step", one, 100)):
        ratio = peers["wall_s"] / ours["wall_s"]
        measured = f"{ratio:.0f} ×: {cost(ours)} against {cost(peers)}{note}"
        yield f"link and convert the Megatron pair, {what}", f"≥ {bar} ×", measured, verdict(ratio >= bar)
    share = max(two["peak_bytes"], one["peak_bytes"]) / peers["peak_bytes"]
    yield "the same, peak memory", "≤ 1/4 of theirs", f"1/{1 / share:.1f}", verdict(share <= 0.25)


def scaling_row(found):
    """Against a straight line through the ends: a start that costs something is no lack of linearity."""
    runs = {int(count): run["sonde"]["one step"]["wall_s"] for count, run in found["pairs"].items()}
    first, last = min(runs), max(runs)
    slope = (runs[last] - runs[first]) / (last - first)
    worst = max(abs(wall / (runs[first] + slope * (count - first)) - 1) for count, wall in runs.items())
    per = (runs[last] / last) / (runs[first] / first)
    measured = f"{100 * worst:.0f} % off a line; per copy × {per:.2f} from ×{first} to ×{last}"
    return f"one step, ×{first} to ×{last}", "linear within 10 %", measured, verdict(per <= 1.1)


def reading_rows(found):
    run = found["reading"]
    rate = run["bytes"] / 1e6 / run["seconds"][len(run["seconds"]) // 2]
    size = megabytes(run["bytes"])
    yield f"parse and model, one core, {size} of Kineto JSON", "≥ 400 MB/s", number(rate, "MB/s", 0), verdict(
        rate >= 400
    )
    report = run["report"]
    holds = report["wall_s"] <= 4 and report["peak_bytes"] <= 1.5 * run["bytes"]
    yield f"{size} to the report", "≤ 4 s, ≤ 1.5 × the file", cost(report), verdict(holds)


def analyses_rows(found):
    runs = found["analyses"]["runs"]
    ours = runs["sonde"]
    for name, stated in STATED_ANALYSES.items():
        peer, note = (runs[name], "") if name in runs else (stated, STATED)
        ratio, share = peer["wall_s"] / ours["wall_s"], ours["peak_bytes"] / peer["peak_bytes"]
        measured = f"{ratio:.1f} ×, memory × {share:.2f}: {cost(ours)} against {cost(peer)}{note}"
        holds = ratio >= 12 and share <= 0.25 if name == "HTA" else ratio > 1
        bar = "≥ 12 ×, ≤ 1/4 of its memory" if name == "HTA" else "faster"
        yield f"87 MB .gz to the report, against {name}", bar, measured, verdict(holds)


def placed_row(found):
    works, _, right = found["placed"]["sonde"]
    measured = f"{right} of {works}"
    if "peers" in found["placed"]:
        _, there, theirs = found["placed"]["peers"]
        measured += f" (chakra_trace_link: {theirs}, {there - theirs} elsewhere, {works - there} left out)"
    return "device work on the operator that encloses its launch", "all", measured, verdict(right == works)


def import_row(found):
    runs = found["import"]
    slices = sum(run["slices"] for run in runs.values())
    plain, written = (sum(run[key] for run in runs.values()) / slices for key in ("bytes", "written_bytes"))
    each = {name: run["bytes"] / run["slices"] for name, run in runs.items()}
    most = max(each, key=each.get)
    below = sum(size <= 45 for size in each.values())
    measured = (
        f"{written:.1f}; with `--uncompressed` {plain:.1f}, at most 45 in {below} of them (most {each[most]:.0f}, {most})"
    )
    return f"bytes of a capture per slice, {len(runs)} imported traces", "≤ 45", measured, verdict(written <= 45)


def scaling_table(found):
    rows = []
    for count, run in found["pairs"].items():
        own, peers = run["sonde"], run["peers"]
        theirs = [NONE, NONE] if "missing" in peers else [cost(peers["link"]), cost(peers["convert"])]
        rows.append(
            (
                f"×{count}",
                megabytes(run["bytes"]),
                cost(own["link"]),
                cost(own["convert"]),
                cost(own["one step"]),
                *theirs,
            )
        )
    return table(("pair", "input", "link", "convert", "one step", "chakra_trace_link", "chakra_converter"), rows)


def traces(results):
    found = results["traces"]
    found = {**found, "pairs": {str(count): each for count, each in found["pairs"].items()}}
    rows = [
        *pair_rows(found),
        scaling_row(found),
        *reading_rows(found),
        *analyses_rows(found),
        placed_row(found),
        import_row(found),
    ]
    parts = [
        table(("what", "bar", "measured", "holds"), rows),
        "Time by the clock, in brackets that of the CPU in user space, and peak memory:",
        scaling_table(found),
    ]
    return "\n\n".join(parts)
