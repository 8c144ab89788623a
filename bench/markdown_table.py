# SPDX-License-Identifier: Apache-2.0
"""Figures as text, and rows of them as Markdown tables."""

NONE = "–"


def number(value, unit="", digits=1):
    if value is None:
        return NONE
    return f"{value:,.{digits}f}{unit and ' ' + unit}"


def percent(share, digits=1):
    """Rounded down, so that 100 % is said only of all."""
    if share is None:
        return NONE
    scale = 10**digits
    return f"{int(share * 100 * scale + 1e-6) / scale:.{digits}f} %"


def megabytes(count):
    return number(count / 1e6, "MB", 0)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def verdict(holds):
    return "not measured" if holds is None else "yes" if holds else "**no**"
