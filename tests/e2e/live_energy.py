# SPDX-License-Identifier: Apache-2.0
"""A recording of energy to replay, with rails of a processor, its memory and a GPU whose power changes."""

import json
import math

DOMAINS = [
    {"name": "package-0", "part": "cpu", "parent": None, "quality": "counter", "period_ms": 10, "idle_w": 20.0},
    {"name": "dram-0", "part": "dram", "parent": None, "quality": "counter", "period_ms": 10},
    {"name": "gpu0", "part": "gpu", "parent": None, "quality": "integrated", "period_ms": 100},
]


def write_replay(path, seconds=120):
    """Readings every 20 ms, of the GPU every 100 ms. Returns the path."""
    energy_j = {domain["name"]: 1000.0 for domain in DOMAINS}
    lines = [{"sonde_energy": 1, "domains": DOMAINS}]
    for t_ms in range(0, seconds * 1000, 20):
        power_w = {"package-0": 45 + 20 * math.sin(t_ms / 900), "dram-0": 6 + 2 * math.sin(t_ms / 500),
                   "gpu0": 180 + (100 if t_ms // 1500 % 2 else 0)}
        for name in energy_j:
            energy_j[name] += power_w[name] * 0.02
            if name != "gpu0" or t_ms % 100 == 0:
                lines.append({"t_ms": t_ms, "domain": name, "energy_j": round(energy_j[name], 4)})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
