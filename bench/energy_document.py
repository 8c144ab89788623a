# SPDX-License-Identifier: Apache-2.0
"""The figures of energy and of tokens' times as tables."""

from markdown_table import NONE, number, percent, table, verdict

TITLES = ("what", "bar", "measured", "holds")


def shares(found):
    values = found["cpu_shares"]
    return f"{percent(values[len(values) // 2], 2)} ({percent(values[0], 2)} to {percent(values[-1], 2)})"


def sampler_rows(found):
    rails = len(found["own"]["last"]["domains"])
    what = f"reading power, {rails} rails of all five sources over made-up files, threads and drain together"
    for name, of in (("own", "at the schedule that sonde chooses"), ("100 Hz", "each source 100 times a second")):
        share = found[name]["cpu_shares"][len(found[name]["cpu_shares"]) // 2]
        yield f"{what}, {of}", "≤ 0.5 % of one core", shares(found[name]), verdict(share <= 0.005)
    yield "a thread that wakes up 100 times a second and does nothing", NONE, shares(found["wake"]), NONE
    allocations = sum(found[name]["last"]["allocations"] for name in ("own", "100 Hz"))
    yield "allocations while power is read", "0", f"{allocations}", verdict(allocations == 0)


def class_rows(found):
    what = "simulated decoding, varied requests, 120 s, a counter every 100 ms with 1 % of noise: "
    for one in found["classes"]:
        measured = f"{100 * one['error']:+.2f} % (standard error {percent(one['standard_error'], 2)})"
        holds = one["method"] == "regression" and abs(one["error"]) <= 0.02 and one["standard_error"] < 0.15
        yield what + " with ".join(one["names"]), "≤ 2 % where the standard error is under 15 %", measured, verdict(holds)
    refused = found["refused"]
    yield ("the same mix all the time, and means over a second", "refused", ", ".join(f"`{one}`" for one in refused),
           verdict(all(one == "time_share" for one in refused)))
    by_time = ", ".join(f"{name} {100 * error:+.0f} %" for name, error in found["by_time"].items())
    yield "the same classes by time alone", NONE, by_time, NONE


def energy(results):
    found = results["energy"]
    rows = [*sampler_rows(found["sampler"])]
    seconds = found["flame_graph_s"]
    measured = f"{number(seconds['energy'], 's', 2)}, with `--weight cpu` {number(seconds['cpu'], 's', 2)}"
    rows.append(("energy flame graph of 60,000 samples", "≤ 0.5 s", measured, verdict(seconds["energy"] <= 0.5)))
    worst = found["simulated"]["conservation"]
    rows.append(("conservation, the worst interval of 300 random schedules", "≤ 1e-9", f"{worst:.1e}",
                 verdict(worst <= 1e-9)))
    return table(TITLES, [*rows, *class_rows(found["simulated"])])


def token_times(results):
    found, rows = results["token_times"], []
    for name, what in (("first", "time to first token, error"), ("between", "between tokens, error")):
        p50, p99, largest = (number(found[name][key] / 1000, "µs") for key in ("p50_ns", "p99_ns", "largest_ns"))
        measured = f"p50 {p50}, p99 {p99}, largest {largest}, of {found[name]['count']:,}"
        rows.append((what, "≤ 50 µs", measured, verdict(found[name]["largest_ns"] <= 50_000)))
    rows.append(("times left out, as the engine lost the processor in the call", NONE, f"{found['left_out']}", NONE))
    return table(TITLES, rows)
