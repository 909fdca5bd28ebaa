"""The pictures of the study: what each setting invents against what it resolves, and what is resolved by level."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.kit.figures import BLACK, BLUE, GREEN, ORANGE, PINK, RED, grid, legend, new_figure, percent, save_all
from experiments.resolution.measure import SETTINGS, Setting, Study
from experiments.resolution.page import PICTURES

TABLE_COLOURS = (ORANGE, PINK, GREEN, BLUE, RED)
SETTING_COLOURS = (BLACK, ORANGE, RED, GREEN, PINK, BLUE, BLACK, RED)
MARKERS = ("X", "^", "o", "s", "v", "D", "P", "*")
LINES = ("-", "--", "-", ":", "--", ":", "-.", "-.")
RATES = (0.01, 0.05, 0.1)


def draw(studies: Sequence[Study], folder: Path) -> list[Path]:
    """Draw both pictures into a folder and return their files."""
    return save_all(dict(zip(PICTURES, (_choice(studies), _levels(studies)), strict=True)), folder)


def _choice(studies: Sequence[Study]) -> Figure:
    """Invented leaves against what is resolved to the leaves: left is fewer invented, up is more resolved."""
    figure = new_figure(9.5, 5.6)
    row = figure.subplots(1, len(studies[0].epsilons), squeeze=False, sharex=True, sharey=True)[0]
    for axes, epsilon in zip(row, studies[0].epsilons, strict=True):
        for study, colour in zip(studies, TABLE_COLOURS, strict=False):
            _path(axes, study, epsilon, colour)
        for rate in RATES:
            axes.axvline(rate, color="grey", linewidth=0.8, linestyle=":")
        axes.set_xscale("symlog", linthresh=0.001, linscale=0.5)
        axes.set_xticks([0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1])
        axes.set_xlim(-0.0004, 1.3)
        axes.set_ylim(0, 1.04)
        axes.xaxis.set_major_formatter(percent)
        axes.yaxis.set_major_formatter(percent)
        axes.tick_params(axis="x", labelsize=8, rotation=45)
        axes.grid(axis="y", alpha=0.3)
        axes.set_title(f"epsilon {epsilon:g}", fontsize=10)
        axes.set_xlabel("invented, of the named leaves")
    row[0].set_ylabel("resolved to the leaves, of the total")
    marks = [_mark(setting, "grey") for setting in SETTINGS]
    lines = [
        Line2D([], [], color=colour, linewidth=2, label=study.title)
        for study, colour in zip(studies, TABLE_COLOURS, strict=False)
    ]
    figure.legend(handles=[*marks, *lines], loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _path(axes: Axes, study: Study, epsilon: float, colour: str) -> None:
    """Plot the settings of a table, from the full release to the strictest."""
    points = []
    for setting in SETTINGS:
        outcome = study.outcome(epsilon, setting)
        points.append((outcome.spread(-1, "false_discoveries").mean, outcome.spread(-1, "resolved").mean))
        mark = _mark(setting, colour)
        axes.plot(*points[-1], color=colour, marker=mark.get_marker(), markersize=7, markeredgecolor="white")
    points = sorted(points[:-2])  # without margins; with them a table has points of their own
    axes.plot([x for x, _ in points], [y for _, y in points], color=colour, linewidth=0.9, zorder=1)


def _mark(setting: Setting, colour: str) -> Line2D:
    marker = MARKERS[SETTINGS.index(setting)]
    return Line2D([], [], color=colour, marker=marker, linestyle="", markersize=7, label=setting.label)


def _levels(studies: Sequence[Study]) -> Figure:
    """The share that is resolved at every level, a column a table and a row a loss."""
    epsilons = studies[0].epsilons
    size = max(2.2 * len(studies), 5), 2.7 * len(epsilons) + 0.9
    figure, panels = grid(len(epsilons), len(studies), size, sharey=True, sharex="col")
    for row, epsilon in zip(panels, epsilons, strict=True):
        for axes, study in zip(row, studies, strict=True):
            for setting, colour, marker, line in zip(SETTINGS, SETTING_COLOURS, MARKERS, LINES, strict=True):
                outcome = study.outcome(epsilon, setting)
                shares = [outcome.spread(level.level, "resolved").mean for level in study.levels]
                axes.plot(
                    range(len(shares)), shares, color=colour, marker=marker, linestyle=line, markersize=3.5,
                    linewidth=1, label=setting.label,
                )  # fmt: skip
            axes.set_ylim(0, 1.04)
            axes.yaxis.set_major_formatter(percent)
            axes.set_xticks(range(0, len(study.levels), 1 if len(study.levels) < 9 else 4))
        row[0].set_ylabel(f"resolved, epsilon {epsilon:g}")
    for axes, study in zip(panels[0], studies, strict=True):
        axes.set_title(study.title.replace(": ", ":\n").replace(", ", ",\n").replace("commuters ", "commuters\n"))
        axes.title.set_fontsize(9)
    for axes in panels[-1]:
        axes.set_xlabel("level", fontsize=9)
    legend(figure, panels[0][0], 6 if len(studies) > 3 else 3, fontsize=9)
    return figure
