# SPDX-License-Identifier: Apache-2.0
"""The operators that took most time in a recording of torch.profiler, as tables of text."""

from typing import Any, Optional


def _device_time(row: Any) -> float:
    """The total time on devices; torch 1.13 says "cuda" for every device."""
    value = getattr(row, "device_time_total", None)
    return float(row.cuda_time_total if value is None else value)


def text(recorded: Optional[Any], rows: int) -> str:
    """The top operators by device time and by CPU time. `recorded` is a torch.autograd.profiler.profile, or None."""
    if recorded is None:
        return "[sonde] no summary: no step was recorded"
    averages = recorded.key_averages()
    by_cpu = averages.table(sort_by="cpu_time_total", row_limit=rows)
    if not any(_device_time(row) > 0 for row in averages):
        by_device = "no device work was recorded"
    else:
        key = "device_time_total" if hasattr(averages[0], "device_time_total") else "cuda_time_total"
        by_device = averages.table(sort_by=key, row_limit=rows)
    return (
        f"[sonde] top {rows} operators by device time\n{by_device}\n"
        f"[sonde] top {rows} operators by CPU time\n{by_cpu}"
    )
