"""The figures: errors by level and epsilon, and time against the largest size."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.group_sizes.measure import CLASSES, EPSILONS, WAYS, Run
from experiments.group_sizes.solver import FORMS, Solved
from experiments.kit.figures import grid, legend, save_all

COLOURS = dict(zip(WAYS, ("#d08c3f", "#a3161f", "#6f8fb5", "#2f6b4f", "#7b3f9d", "#111111"), strict=True))
MARKS = dict(zip(WAYS, "soD^v*", strict=True))


def draw(runs: Sequence[Run], times: Sequence[Run], solved: Sequence[Solved], images: Path) -> list[Path]:
    """Draw what was measured, and return the files."""
    figures = {
        "errors": errors(runs) if runs else None,
        "time": seconds(times, solved) if times else None,
        "runtimes": runtimes(runs) if runs else None,
        "totals": runtimes(runs, "error", "L1 error, all levels") if runs else None,
        "classes": classes(runs) if runs else None,
    }
    drawn = {f"group_sizes_{name}.png": figure for name, figure in figures.items() if figure is not None}
    return save_all(drawn, images, dpi=105)


def errors(runs: Sequence[Run]) -> Figure:
    """A panel a table and level: the mean error at each epsilon, bars from the least to the largest run."""
    tables = list(dict.fromkeys(run.table for run in runs))
    figure, panels = grid(len(tables), 3, (8.4, 2.3 * len(tables) + 0.5))
    for row, table in enumerate(tables):
        for level in range(3):
            panel = panels[row][level]
            for at, name in enumerate(WAYS):
                found = [[run for run in runs if (run.table, run.mechanism, run.epsilon) == (table, name, epsilon)]
                         for epsilon in EPSILONS]  # fmt: skip
                if not all(found):
                    continue
                values = [[getattr(run, f"level_{level + 1}") for run in some] for some in found]
                mean = np.array([np.mean(some) for some in values])
                reach = np.array([[m - min(some), max(some) - m] for m, some in zip(mean, values, strict=True)]).T
                x = np.arange(len(EPSILONS)) + 0.12 * (at - 2.5)
                panel.errorbar(
                    x, mean, reach, fmt=MARKS[name], color=COLOURS[name], label=label(name), markersize=5, capsize=2
                )
            panel.set_yscale("log")
            panel.set_xticks(range(len(EPSILONS)), [f"{epsilon:g}" for epsilon in EPSILONS])
            panel.set_title(f"{table}, level {level + 1}", fontsize=8)
            panel.tick_params(which="both", labelsize=6)
        panels[row][0].set_ylabel("L1 error", fontsize=8)
    for panel in panels[-1]:
        panel.set_xlabel("epsilon", fontsize=8)
    legend(figure, panels.flat, 4, frameon=True, fontsize=8)
    return figure


def seconds(times: Sequence[Run], solved: Sequence[Solved]) -> Figure:
    """Processor time against the largest size, of releases and of a solver: the paper's figure 8."""
    figure, ((panel,),) = grid(1, 1, (5.2, 3.4))
    for name in WAYS:
        sizes = sorted({run.largest for run in times if run.mechanism == name})
        mean = [
            np.mean([run.seconds for run in times if (run.mechanism, run.largest) == (name, size)]) for size in sizes
        ]
        panel.plot(sizes, mean, marker=MARKS[name], color=COLOURS[name], label=label(name), markersize=5)
    for name, mark in zip(FORMS, "XP", strict=True):
        sizes = sorted({one.largest for one in solved if one.mechanism == name and one.solved})
        took = [np.mean([one.seconds for one in solved if (one.mechanism, one.largest) == (name, size)])
                for size in sizes]  # fmt: skip
        panel.plot(sizes, took, f"{mark}--", color="#999999", label=f"{label(name)}, solver alone", markersize=5)
    panel.set_yscale("log")
    panel.tick_params(which="both", labelsize=8)
    panel.set_xlabel("largest size N")
    panel.set_ylabel("processor seconds")
    legend(figure, panel, 3, frameon=True, fontsize=8)
    return figure


def classes(runs: Sequence[Run]) -> Figure:
    """A panel a table: which part of the error lies on which sizes, at ε = 1."""
    tables = list(dict.fromkeys(run.table for run in runs))
    figure, panels = _rows_of_three(len(tables), 2.4)
    shades = ("#08306b", "#2171b5", "#6baed6", "#c6dbef", "#eeeeee")
    for panel, name in zip(panels, tables, strict=True):
        ways = [way for way in WAYS if any((run.table, run.mechanism, run.epsilon) == (name, way, 1.0) for run in runs)]
        found = [[run.classes for run in runs if (run.table, run.mechanism, run.epsilon) == (name, way, 1.0)]
                 for way in ways]  # fmt: skip
        shares = np.array([np.mean(some, axis=0) / np.sum(np.mean(some, axis=0)) for some in found])
        left = np.zeros(len(ways))
        for at, (word, shade) in enumerate(zip(CLASSES, shades, strict=True)):
            own = shares[:, at]
            panel.barh(range(len(ways)), own, left=left, color=shade, edgecolor="#666666", linewidth=0.4, label=word)
            left += own
        panel.set_yticks(range(len(ways)), [label(way) for way in ways])
        panel.invert_yaxis()
        panel.set_title(name, fontsize=8)
        panel.set_xlim(0, 1)
        panel.set_xlabel("part of the error", fontsize=8)
        panel.tick_params(which="both", labelsize=7)
        panel.grid(visible=False)
    legend(figure, panels, len(CLASSES), frameon=True, fontsize=8, title="sizes", title_fontsize=8)
    return figure


def runtimes(runs: Sequence[Run], what: str = "seconds", words: str = "processor seconds") -> Figure:
    """A panel a table: time, or error, of every mechanism at each epsilon: the paper's figures 9 and 10."""
    tables = list(dict.fromkeys(run.table for run in runs))
    figure, panels = _rows_of_three(len(tables), 2.4)
    for panel, name in zip(panels, tables, strict=True):
        for at, way in enumerate(WAYS):
            found = [[run for run in runs if (run.table, run.mechanism, run.epsilon) == (name, way, epsilon)]
                     for epsilon in EPSILONS]  # fmt: skip
            if all(found):
                values = [np.mean([getattr(run, what) for run in some]) for some in found]
                x = np.arange(len(EPSILONS)) + 0.12 * (at - 2.5)
                panel.plot(x, values, MARKS[way], color=COLOURS[way], label=label(way), markersize=5)
        panel.set_yscale("log")
        panel.set_xticks(range(len(EPSILONS)), [f"{epsilon:g}" for epsilon in EPSILONS])
        panel.set_title(name, fontsize=8)
        panel.set_xlabel("epsilon", fontsize=8)
        panel.tick_params(which="both", labelsize=6)
    for panel in panels[::3]:
        panel.set_ylabel(words, fontsize=8)
    legend(figure, panels, len(WAYS), frameon=True, fontsize=7)
    return figure


def _rows_of_three(number: int, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with so many panels, three in a row."""
    columns = min(3, number)
    rows = ceil(number / columns)
    figure, every = grid(rows, columns, (3.1 * columns + 0.4, height * rows + 0.6))
    for panel in every.flat[number:]:
        panel.set_visible(False)
    return figure, list(every.flat[:number])


def label(name: str) -> str:
    """Write a mechanism's name as mathematics."""
    name, comma, known = name.partition(",")
    letter, _, above = name.removeprefix("M_").partition("^")
    return f"$M_{{{letter}}}^{{{above}}}${comma}{known}"
