# SPDX-License-Identifier: Apache-2.0
"""The figures of sonde's API as Markdown: what is to hold, then what each call costs."""

from markdown_table import number, table, verdict

BARS = (
    ("c", "closed", "push and pop", "C, closed: a push and a pop", 2),
    ("c", "closed", "step", "C, closed: a step", 2),
    ("c", "recorded", "push and pop", "C, recorded: a push and a pop", 40),
    ("with_python", "closed", "step", "Python, closed: a step", 60),
    ("with_python", "closed", "push and pop", "Python, closed: a push and a pop", 60),
    ("with_python", "recorded", "push and pop", "Python, recorded: a push and a pop", 200),
)


def bar_rows(found):
    for language, way, name, what, bar in BARS:
        one = found[language][way][name]
        measured = f"{one['median']:.1f} ns ({one['lowest']:.1f} to {one['highest']:.1f})"
        yield what, f"≤ {bar} ns", measured, verdict(one["median"] <= bar)


def manager_row(found):
    """What a `with` takes by itself, with any object that does nothing, is none of ours: the closed one is that."""
    closed, recorded = (found["with_python"][way]["with, one range object"]["median"] for way in ("closed", "recorded"))
    added = recorded - closed
    return "Python, recorded: `with` a range, beyond the same closed", "≤ 100 ns", number(added, "ns"), verdict(added <= 100)


def cost_rows(found):
    for language, title in (("c", "C"), ("with_python", f"Python {found['python']}")):
        for name in found[language]["alone"]:
            yield title, name, *(number(found[language][way][name]["median"], "ns") for way in found[language])


def clock_line(found):
    clock = found["clock"]
    return (
        f"The clock of ranges against CLOCK_MONOTONIC, {clock['looks']:,} looks: apart by {clock['error_p50_ns']} ns (p50), "
        f"{clock['error_p99_ns']} ns (p99), {clock['error_max_ns']} ns (maximum); went back {clock['went_back']} times. "
        f"A look takes {clock['clock_ns']:.1f} ns, one at the real clock {clock['real_ns']:.1f} ns."
    )


def api(results):
    found = results["api"]
    lines = [f"Medians of {found['rounds']} rounds.", "", table(("what", "bar", "measured", "holds"), [*bar_rows(found), manager_row(found)]), ""]
    lines += [table(("language", "call", "without a recording", "closed", "recorded"), cost_rows(found)), "", clock_line(found)]
    return "\n".join(lines)
