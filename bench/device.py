# SPDX-License-Identifier: Apache-2.0
"""Device work: launches and their stacks, what a launch costs more, and how many records a recording takes in."""

import device_launches
import device_rings
from needs import OPENCL, PRIVILEGES, PYOPENCL, VALGRIND
from workbench import report_progress

NEEDS = (PRIVILEGES, OPENCL, PYOPENCL)
NEEDS_OF_PARTS = (VALGRIND,)


def measure(bench):
    results = {}
    for name, part in (
        ("joined", device_launches.measure_joined),
        ("added", device_launches.measure_added),
        ("double", device_launches.measure_double),
        ("closed", device_launches.measure_closed),
        ("ranges", device_launches.measure_ranges),
        ("slowdown", device_launches.measure_slowdown),
        ("rings", device_rings.measure_rings),
        ("collector", device_rings.measure_collector),
    ):
        report_progress(f"device work: {name}")
        results[name] = part(bench)
    return results
