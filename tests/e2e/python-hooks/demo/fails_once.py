# SPDX-License-Identifier: Apache-2.0
"""Its first import fails."""

import builtins

if not hasattr(builtins, "demo_tried"):
    builtins.demo_tried = True
    raise ImportError("not yet")


def function():
    return "imported"
