# SPDX-License-Identifier: Apache-2.0
"""The page's live view after 30 minutes of a recording: frames, the main thread, memory. page_live_load.py makes the load."""

import json

from workbench import ROOT


def measure(bench):
    built = bench.build / "src" / "page" / "page_assets.c.p"
    python = bench.run(ROOT / "tools" / "venv", "tests").output.splitlines()[-1]
    load = ROOT / "bench" / "page_live_load.py"
    return json.loads(bench.run(python, load, built, bench.pick(30, 2), bench.pick(120, 10)).output.splitlines()[-1])
