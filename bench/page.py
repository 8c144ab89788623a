# SPDX-License-Identifier: Apache-2.0
"""The page: its size, and how soon headless Chromium paints that of a recording of 60,000 samples."""

import gzip
import json
import statistics
from pathlib import Path

from needs import CHROMIUM, PAGE, PLAYWRIGHT, page_folder
from workbench import ROOT

NEEDS = (PAGE, CHROMIUM, PLAYWRIGHT)

ASSETS = ("index.html", "assets/page.js", "assets/page.css")


def measure(bench):
    capture, page = bench.path("large.pftrace"), bench.path("large.html")
    bench.run(bench.build / "tests" / "unit" / "make-model-capture", "large-energy", capture)
    written = [bench.run(bench.sonde, "report", "--html", page, capture).seconds for _ in range(bench.pick(5, 2, 1))]
    python = bench.page_python()
    painted = json.loads(bench.run(python, ROOT / "bench" / "page_paint.py", f"file://{page}", bench.pick(9, 3, 1)).output.splitlines()[-1])
    built = page_folder(bench)
    sizes = {name: len(gzip.compress((built / name).read_bytes(), 9)) for name in ASSETS}
    return {
        "compressed_bytes": sum(sizes.values()),
        "file_bytes": Path(page).stat().st_size,
        "write_s": statistics.median(written),
        "first_paint_ms": statistics.median(painted["first_paint_ms"]),
        "flame_frame_ms": statistics.median(painted["flame_frame_ms"]),
        "longest_task_ms": painted["longest_task_ms"][-1],
    }
