# SPDX-License-Identifier: Apache-2.0
"""The table: a measure, what was measured, what it is compared with, their ratio, and the goal."""

from dataclasses import dataclass
from statistics import median


@dataclass
class Goal:
    """The `least` or `most` that meets the goal. With neither, there is no goal."""

    least: float | None = None
    most: float | None = None
    text: str = ""

    def verdict(self, value: float) -> str:
        if self.least is None and self.most is None:
            return ""
        met = (self.least is None or value >= self.least) and (self.most is None or value <= self.most)
        return "ok" if met else "**MISSED**"


@dataclass
class Row:
    measure: str
    ours: str
    other: str = ""
    ratio: str = ""
    goal: str = ""
    verdict: str = ""


HEAD = Row("", "ubiquitous-stored", "compared with", "ratio (rounds)", "goal", "")


def markdown(rows: list[Row]) -> str:
    cells = [[row.measure, row.ours, row.other, row.ratio, row.goal, row.verdict] for row in [HEAD, *rows]]
    widths = [max(3, *(len(line[column]) for line in cells)) for column in range(len(cells[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in cells]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(lines)


def compare(
    measure: str, ours: list[float] | None, other: list[float] | None, unit, other_name: str, goal: Goal
) -> Row:
    """Compares two lists with a value for each round: by the ratio of their medians, and its range over the rounds.

    If a list is missing (`None`), the row says so.
    """
    row = Row(
        measure,
        unit(median(ours)) if ours else "not measured",
        f"{other_name}: {unit(median(other)) if other else 'not installed'}",
        goal=goal.text,
    )
    if ours and other:
        ratio = median(ours) / median(other)
        rounds = sorted(a / b for a, b in zip(ours, other))
        row.ratio = f"{ratio:.2f} ({rounds[0]:.2f}–{rounds[-1]:.2f})"
        row.verdict = goal.verdict(ratio)
    return row


def single(measure: str, value: float, unit, goal: Goal = Goal(), note: str = "") -> Row:
    return Row(measure, unit(value), note, "", goal.text, goal.verdict(value))


def rate(value: float) -> str:
    return f"{value:,.0f}/s"


def msec(value: float) -> str:
    return f"{value:.2f} ms" if value < 10 else f"{value:.1f} ms"


def usec(value: float) -> str:
    return f"{value:,.0f} µs"


def nsec(value: float) -> str:
    return f"{value:,.0f} ns"


def kib(value: float) -> str:
    return f"{value:,.0f} KiB"


def count(value: float) -> str:
    return f"{value:,.0f}"
