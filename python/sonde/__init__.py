# SPDX-License-Identifier: Apache-2.0
"""What a program says to sonde: ranges, marks, counters, tokens and steps. Without a recording nothing is done."""

from sonde._core import counter, is_open, mark, range, step, token, window

__all__ = ["counter", "is_open", "mark", "range", "step", "token", "window"]
