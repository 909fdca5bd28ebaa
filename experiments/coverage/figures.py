"""The pictures of the study: coverage by size and level, what selection does to it, and how wide intervals are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.coverage.measure import CONFIDENCE, Study, invented, lost
from experiments.graphs.figures import save
from treetop.evaluate.coverage import Coverage, LevelCoverage
from treetop.evaluate.errors import SIZES, size_label

FIGURES = {
    "coverage_sizes.png": "All public nodes at ε = {epsilon:g}, by true count: one line a level, from the first (dark) "
    "to the leaves (light). The dashed line is what was promised of measured ones.",
    "coverage_selection.png": "The leaves over epsilon: all that were measured, and what selection makes of them.",
    "coverage_widths.png": "Mean width of intervals by level: of released counts (solid) and of zeros (dashed).",
}
"""The pictures, with their captions."""
FEWEST = 200
"""Fewer nodes than so many are not drawn: their share is mostly chance."""

# Okabe and Ito (2008): colours that the colour-blind tell apart.
LINES: tuple[tuple[str, str, str, str, Callable[[LevelCoverage], Coverage]], ...] = (
    ("measured", "#000000", "-", "o", lambda row: row.all_sizes.measured),
    ("released above zero", "#0072B2", "-", "s", lambda row: row.all_sizes.positives),
    ("… and truly zero (invented)", "#56B4E9", "--", "v", invented),
    ("released zero", "#D55E00", "-", "D", lambda row: row.all_sizes.zeros),
    ("… and truly above zero (lost)", "#E69F00", "--", "^", lost),
)


def draw(studies: Sequence[Study], folder: Path, epsilon: float = 1.0) -> list[Path]:
    """Draw the pictures into a folder and return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = (_sizes(studies, epsilon), _selection(studies), _widths(studies))
    return [save(figure, folder / name) for name, figure in zip(FIGURES, drawn, strict=True)]


def _sizes(studies: Sequence[Study], epsilon: float) -> Figure:
    figure, panels = _panels(studies, 2.7)
    labels = [size_label(low, high) for low, high in SIZES]
    lowest = 1.0
    for axes, study in zip(panels, studies, strict=True):
        rows = study.found[epsilon][1:]
        for row, colour in zip(rows, mpl.colormaps["viridis"]([*_steps(len(rows))]), strict=True):
            shares = [size.every.share if size.every.nodes >= FEWEST else None for size in row.sizes]
            known = [(at, share) for at, share in enumerate(shares) if share is not None]
            lowest = min([lowest, *(share for _, share in known)])
            axes.plot(*zip(*known, strict=True), color=colour, marker="o", markersize=3, linewidth=1.2)
        axes.set_xticks(range(len(labels)), labels, fontsize="small")
    _frame(figure, panels, f"holds the truth, ε = {epsilon:g}", "true count", lowest)
    return figure


def _selection(studies: Sequence[Study]) -> Figure:
    figure, panels = _panels(studies, 2.7)
    lowest = 1.0
    for axes, study in zip(panels, studies, strict=True):
        for label, colour, line, marker, group in LINES:
            shown = {epsilon: group(rows[-1]) for epsilon, rows in study.found.items()}
            known = {epsilon: one.share for epsilon, one in shown.items() if one.share and one.nodes >= FEWEST}
            lowest = min([lowest, *known.values()])
            axes.plot(
                list(known),
                list(known.values()),
                color=colour,
                linestyle=line,
                marker=marker,
                markersize=4,
                label=label,
            )
        axes.set_xscale("log")
        axes.set_xticks(list(study.found), [f"{epsilon:g}" for epsilon in study.found])
        axes.minorticks_off()
    _frame(figure, panels, "holds the truth, leaves", "epsilon", lowest)
    figure.legend(
        handles=list(panels[0].get_lines())[: len(LINES)],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize="small",
    )
    return figure


def _widths(studies: Sequence[Study]) -> Figure:
    figure, panels = _panels(studies, 2.5)
    for axes, study in zip(panels, studies, strict=True):
        colours = mpl.colormaps["viridis"]([*_steps(len(study.found))])
        for (epsilon, rows), colour in zip(study.found.items(), colours, strict=True):
            levels = [row.level for row in rows[1:]]
            for line, group in (("-", "positives"), ("--", "zeros")):
                widths = [getattr(row.all_sizes, group).width for row in rows[1:]]
                axes.plot(
                    levels, [w if w else float("nan") for w in widths], line, color=colour, label=f"ε = {epsilon:g}"
                )
        axes.set_yscale("log")
        axes.set_xlabel("level")
        axes.grid(alpha=0.25, linewidth=0.5)
    _outer_labels(panels, "mean width")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(
        handles[::2], names[::2], loc="outside lower center", ncols=len(names), frameon=False, fontsize="small"
    )
    return figure


def _panels(studies: Sequence[Study], height: float) -> tuple[Figure, list[Axes]]:
    columns = min(3, len(studies))
    rows = ceil(len(studies) / columns)
    figure = Figure(figsize=(3.2 * columns, height * rows + 0.5), layout="constrained")
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in grid[len(studies) :]:
        axes.set_visible(False)
    for axes, study in zip(grid, studies, strict=False):
        axes.set_title(study.title, fontsize="medium")
    return figure, grid[: len(studies)]


def _frame(figure: Figure, panels: Sequence[Axes], what: str, below: str, lowest: float) -> None:
    for axes in panels:
        axes.axhline(CONFIDENCE, color="grey", linestyle="--", linewidth=0.8)
        axes.set_ylim(max(lowest - 0.02, 0), 1.01)
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        axes.grid(alpha=0.25, linewidth=0.5)
        axes.set_xlabel(below, fontsize="small")
    _outer_labels(panels, what)


def _outer_labels(panels: Sequence[Axes], what: str) -> None:
    for axes in panels[::3]:
        axes.set_ylabel(what, fontsize="small")


def _steps(number: int) -> list[float]:
    """Return evenly spaced places in a range of colours, whose last ones are too light for paper."""
    return [0.9 * at / max(number - 1, 1) for at in range(number)]
