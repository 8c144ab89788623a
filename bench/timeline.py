# SPDX-License-Identifier: Apache-2.0
"""How soon a tile of a timeline of ten million slices is there, and what its index takes."""

import json

NEEDS = ()

SLICES_AND_TILES = ((10_000_000, 3000), (1_000_000, 500), (100_000, 100))


def measure(bench):
    words = bench.pick(*SLICES_AND_TILES)
    return json.loads(bench.run(bench.build / "bench/timeline-tiles", *words).output)
