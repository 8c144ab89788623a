# SPDX-License-Identifier: Apache-2.0
"""The page's live view after 30 minutes of a recording: frames, the main thread, memory. page_live_load.py makes the load."""

import json

from needs import CHROMIUM, PAGE, PLAYWRIGHT, page_folder
from workbench import ROOT

NEEDS = (PAGE, CHROMIUM, PLAYWRIGHT)


def measure(bench):
    built = page_folder(bench)
    python = bench.page_python()
    load = ROOT / "bench" / "page_live_load.py"
    return json.loads(bench.run(python, load, built, bench.pick(30, 2, 1), bench.pick(120, 10, 1)).output.splitlines()[-1])
