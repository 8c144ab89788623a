# SPDX-License-Identifier: Apache-2.0
"""The figures of watching a model as a table."""

from markdown_table import NONE, number, percent, table, verdict

BARS = {"step": 0.5, "layer": 2, "component": 5}


def models(results):
    found = results["models"]["cost"]
    sums = results["models"]["sums"]
    about = (
        f"PyTorch {found['torch']}, transformers {found['transformers']}. The test Llama takes "
        f"{found['token_ms']:.1f} ms a token; layer level watches {found['modules']['layer']} modules, component level "
        f"{found['modules']['component']}.\n\n"
    )
    rows = []
    for level, one in found["levels"].items():
        more = [100 * (one[key] - 1) for key in ("ratio", "lowest", "highest")]
        bar = BARS.get(level)
        measured = f"{more[0]:+.2f} % (95 %: {more[1]:+.2f} % to {more[2]:+.2f} %)"
        rows.append((f"level {level}, of the time of a token", f"≤ {bar} %" if bar else NONE, measured,
                     verdict(more[0] <= bar) if bar else NONE))
    holds = abs(sums["ratio"] - 1) <= 0.01
    rows.append(("forward passes as recorded, against a clock around them", "within 1 %",
                 f"{percent(sums['ratio'], 2)} of {number(sums['seconds'], 's', 2)}: layers "
                 f"{number(sums['layers_s'], 's', 2)}, outside of them {number(sums['outside_s'], 's', 2)}",
                 verdict(holds)))
    return about + table(("what", "bar", "measured", "holds"), rows)
