"""The pictures of the study: ratios by level, what is invented against the error, and the bias of what was retained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.estimates.measure import BASELINE, CLOSEST, DEFAULT, EXACT, LOWER, SETTINGS, Setting, Study
from experiments.estimates.targets import ratio
from experiments.kit.figures import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    RED,
    SKY,
    YELLOW,
    label_left,
    legend,
    new_figure,
    panels,
    save_all,
)
from treetop.release.errors import SIZES, size_label

FIGURES = {
    "estimates_levels.png": "Mean absolute error of all public nodes over that of InfTDA as published, by level; bars "
    "are 95 % intervals. What is above the frame is written there.",
    "estimates_choice.png": "The leaves: of the released ones, how many are invented, against the mean error over that "
    "of InfTDA as published. One mark a table.",
    "estimates_bias.png": "Retained nodes of the level above the leaves, by true count: how far they are off on "
    "average, in standard deviations of the noise. Sums over hundreds of children vary much.",
}
"""The pictures, with their captions."""
FEWEST = 1000
"""Of fewer nodes than so many no bias is told: their mean is mostly chance."""
MOST_PANELS = 6
HIGHEST = 1.3
"""Ratios above this are written and not drawn."""

COLOURS = {
    BASELINE: BLACK,
    DEFAULT: SKY,
    EXACT: BLUE,
    SETTINGS[3]: ORANGE,
    SETTINGS[4]: GREEN,
    SETTINGS[5]: PINK,
    LOWER: RED,
    CLOSEST: YELLOW,
}
BY_LEVEL = (DEFAULT, EXACT, SETTINGS[3], LOWER)
MARKERS = ("o", "s", "^", "v", "D", "P", "X", "h", "<")
PARTS = (
    ("its own measurement", "own_off", BLUE, "o"),
    ("sum of its children's measurements", "children_off", GREEN, "s"),
    ("both combined (its subtree)", "subtree_off", ORANGE, "^"),
    ("least squares from all", "estimate_off", RED, "D"),
)


def draw(studies: Sequence[Study], folder: Path) -> list[Path]:
    """Draw the pictures into a folder and return their files."""
    drawn = (_levels(chosen(studies)), _choice(studies), _bias(chosen(studies)))
    return save_all(dict(zip(FIGURES, drawn, strict=True)), folder)


def chosen(studies: Sequence[Study]) -> list[Study]:
    """Return few tables: the real ones, and of those made up the sparse ones first."""
    real = [one for one in studies if not one.title.startswith("made up")]
    made_up = [one for one in studies if one not in real]
    first = sorted(made_up, key=lambda one: ("sparse", "dense", "complete").index(one.name.split("-")[1]))
    return [*real, *first][:MOST_PANELS]


def _levels(studies: Sequence[Study]) -> Figure:
    figure, row = panels(studies, 2.6, 0.6, sharey=True)
    for axes, study in zip(row, studies, strict=True):
        levels = np.arange(1, len(study.levels))
        for place, setting in enumerate(BY_LEVEL):
            found = [ratio(study, setting, int(level), "mean_of_all") for level in levels]
            reach = [min(one.reach, 9.0) for one in found]
            axes.errorbar(
                levels + 0.08 * (place - 1.5), [one.value for one in found], reach, color=COLOURS[setting],
                marker="o", markersize=3.5, linewidth=1.2, elinewidth=0.7, label=setting.label,
            )  # fmt: skip
            for level, one in zip(levels, found, strict=True):
                if one.value > HIGHEST:
                    axes.annotate(
                        f"{one.value:.1f} ↑", (level, HIGHEST - 0.08), fontsize="small", color=COLOURS[setting]
                    )
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.set_ylim(0.3, HIGHEST)
        axes.set_xticks(levels[:: 1 if len(levels) < 9 else 3])
        axes.set_xlabel("level", fontsize="small")
    label_left(row, "mean error, ratio")
    legend(figure, row[0], 4, fontsize="small")
    return figure


def _choice(studies: Sequence[Study]) -> Figure:
    figure = new_figure(9, 5.6)
    axes = figure.subplots()
    for study, marker in zip(studies, MARKERS, strict=False):
        for setting, colour in COLOURS.items():
            invented = study.values(setting, -1, "false_discoveries").mean()
            axes.plot(
                ratio(study, setting, -1, "mean_of_all").value, invented, marker, color=colour,
                markersize=4 if setting == CLOSEST else 8, markeredgecolor="white", markeredgewidth=0.6,
            )  # fmt: skip
    axes.set_xlabel("mean absolute error of all public leaves, over that of InfTDA as published")
    axes.set_ylabel("invented, of the released leaves")
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    axes.grid(alpha=0.25, linewidth=0.5)
    marks = [
        Line2D([], [], color="grey", marker=marker, linestyle="", markersize=7, label=study.title)
        for study, marker in zip(studies, MARKERS, strict=False)
    ]
    settings = [_dot(setting) for setting in COLOURS]
    figure.legend(handles=[*settings, *marks], loc="outside right upper", frameon=False, fontsize="small")
    return figure


def _dot(setting: Setting) -> Line2D:
    return Line2D([], [], color=COLOURS[setting], marker="o", linestyle="", markersize=7, label=setting.label)


def _bias(studies: Sequence[Study]) -> Figure:
    figure, row = panels(studies, 2.5, 0.6, sharey=True)
    labels = [size_label(low, high) for low, high in SIZES]
    for axes, study in zip(row, studies, strict=True):
        level = study.selection[-2]
        shown = np.flatnonzero(level.retained >= FEWEST)
        for label, name, colour, marker in PARTS:
            off = getattr(level, name)[shown] / level.retained[shown] / study.noise["exact"]
            axes.plot(shown, off, color=colour, marker=marker, markersize=4, linewidth=1.2, label=label)
        axes.axhline(0.0, color="black", linewidth=0.8)
        axes.set_xticks(range(len(labels)), labels, fontsize="small")
        axes.set_xlabel("true count", fontsize="small")
    label_left(row, "bias, in σ")
    legend(figure, row[0], 2, fontsize="small")
    return figure
