# SPDX-License-Identifier: Apache-2.0
"""How soon a tile of a timeline of ten million slices is there, and what its index takes."""

import json

SLICES, TILES = 10_000_000, 3000
QUICK_SLICES, QUICK_TILES = 1_000_000, 500


def measure(bench):
    words = (QUICK_SLICES, QUICK_TILES) if bench.quick else (SLICES, TILES)
    return json.loads(bench.run(bench.build / "bench/timeline-tiles", *words).output)
