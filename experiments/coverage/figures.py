"""The pictures of the study: coverage by size and level, what selection does to it, and how wide intervals are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.coverage.measure import CONFIDENCE, Study, invented, lost
from experiments.kit.figures import BLACK, BLUE, ORANGE, RED, SKY, label_left, legend, panels, save_all
from treetop.advice.coverage import Coverage, LevelCoverage
from treetop.release.errors import SIZES, size_label

FIGURES = {
    "coverage_sizes.png": "All public nodes at ε = {epsilon:g}, by true count: one line a level, from the first (dark) "
    "to the leaves (light). The dashed line is what was promised of measured ones.",
    "coverage_selection.png": "The leaves over epsilon: all that were measured, and what selection makes of them.",
    "coverage_widths.png": "Mean width of intervals by level: of released counts (solid) and of zeros (dashed).",
}
"""The pictures, with their captions."""
FEWEST = 200
"""Fewer nodes than so many are not drawn: their share is mostly chance."""

LINES: tuple[tuple[str, str, str, str, Callable[[LevelCoverage], Coverage]], ...] = (
    ("measured", BLACK, "-", "o", lambda row: row.all_sizes.measured),
    ("released above zero", BLUE, "-", "s", lambda row: row.all_sizes.positives),
    ("… and truly zero (invented)", SKY, "--", "v", invented),
    ("released zero", RED, "-", "D", lambda row: row.all_sizes.zeros),
    ("… and truly above zero (lost)", ORANGE, "--", "^", lost),
)


def draw(studies: Sequence[Study], folder: Path, epsilon: float = 1.0) -> list[Path]:
    """Draw the pictures into a folder and return their files."""
    drawn = (_sizes(studies, epsilon), _selection(studies), _widths(studies))
    return save_all(dict(zip(FIGURES, drawn, strict=True)), folder)


def _sizes(studies: Sequence[Study], epsilon: float) -> Figure:
    figure, row = panels(studies, 2.7)
    labels = [size_label(low, high) for low, high in SIZES]
    lowest = 1.0
    for axes, study in zip(row, studies, strict=True):
        levels = study.found[epsilon][1:]
        for level, colour in zip(levels, _colours(len(levels)), strict=True):
            shares = [size.every.share if size.every.nodes >= FEWEST else None for size in level.sizes]
            known = [(at, share) for at, share in enumerate(shares) if share is not None]
            lowest = min([lowest, *(share for _, share in known)])
            axes.plot(*zip(*known, strict=True), color=colour, marker="o", markersize=3, linewidth=1.2)
        axes.set_xticks(range(len(labels)), labels, fontsize="small")
    _frame(row, f"holds the truth, ε = {epsilon:g}", "true count", lowest)
    return figure


def _selection(studies: Sequence[Study]) -> Figure:
    figure, row = panels(studies, 2.7)
    lowest = 1.0
    for axes, study in zip(row, studies, strict=True):
        for label, colour, line, marker, group in LINES:
            shown = {epsilon: group(rows[-1]) for epsilon, rows in study.found.items()}
            known = {epsilon: one.share for epsilon, one in shown.items() if one.share and one.nodes >= FEWEST}
            lowest = min([lowest, *known.values()])
            style = {"color": colour, "linestyle": line, "marker": marker, "label": label}
            axes.plot(list(known), list(known.values()), markersize=4, **style)  # type: ignore[arg-type]
        axes.set_xscale("log")
        axes.set_xticks(list(study.found), [f"{epsilon:g}" for epsilon in study.found])
        axes.minorticks_off()
    _frame(row, "holds the truth, leaves", "epsilon", lowest)
    legend(figure, row[0], 3, fontsize="small")
    return figure


def _widths(studies: Sequence[Study]) -> Figure:
    figure, row = panels(studies, 2.5)
    for axes, study in zip(row, studies, strict=True):
        for (epsilon, rows), colour in zip(study.found.items(), _colours(len(study.found)), strict=True):
            levels = [level.level for level in rows[1:]]
            for line, group in (("-", "positives"), ("--", "zeros")):
                widths = [getattr(level.all_sizes, group).width or float("nan") for level in rows[1:]]
                axes.plot(levels, widths, line, color=colour, label=f"ε = {epsilon:g}")
        axes.set_yscale("log")
        axes.set_xlabel("level")
    label_left(row, "mean width")
    legend(figure, row[0], fontsize="small")
    return figure


def _frame(row: Sequence[Axes], what: str, below: str, lowest: float) -> None:
    for axes in row:
        axes.axhline(CONFIDENCE, color="grey", linestyle="--", linewidth=0.8)
        axes.set_ylim(max(lowest - 0.02, 0), 1.01)
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        axes.set_xlabel(below, fontsize="small")
    label_left(row, what)


def _colours(number: int) -> list[tuple[float, ...]]:
    """Return evenly spaced places in a range of colours, whose last ones are too light for paper."""
    return [mpl.colormaps["viridis"](0.9 * at / max(number - 1, 1)) for at in range(number)]
