"""One picture: by table and loss, how many times smaller errors are with facts, level by level."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.facts.measure import Study
from experiments.kit.figures import BLACK, BLUE, GREEN, ORANGE, grid, save_all

FIGURES = {
    "facts_gain.png": "How many times smaller the mean error of a level is with facts than without. A level without "
    "points is exact with facts. Right of the line is better. Bars are 95 % intervals of the ratio, from the runs."
}
"""The picture, with its caption."""
LOOKS = ((BLUE, "o", 0.2), (ORANGE, "s", 0.0), (GREEN, "D", -0.2))


def draw(studies: Sequence[Study], folder: Path) -> list[Path]:
    """Draw it, and return its file."""
    rows = sum(len(study.levels) for study in studies)
    size = (8.0, 0.34 * rows + 1.2 * len(studies))
    heights = [len(study.levels) for study in studies]
    figure, panels = grid(len(studies), 1, size, sharex=True, height_ratios=heights)
    for study, axes in zip(studies, panels[:, 0], strict=True):
        names = study.levels
        for epsilon, (colour, marker, shift) in zip(study.epsilons, LOOKS, strict=False):
            shown = [at for at in range(len(names)) if study.better(epsilon, at) is not None]
            gains = [study.gain(epsilon, at) for at in shown]
            place = [len(names) - 1 - at + shift for at in shown]
            value = [gain.value for gain in gains]
            reach = [min(gain.reach, 0.9 * gain.value) for gain in gains]
            look = {"fmt": marker, "color": colour, "markersize": 5, "elinewidth": 1, "alpha": 0.9}
            axes.errorbar(value, place, xerr=reach, label=f"ε = {epsilon:g}", **look)
        axes.axvline(1, color=BLACK, linewidth=1)
        axes.set_xscale("log")
        axes.set_xticks((0.5, 0.8, 1, 1.5, 2, 3, 5), ["0.5", "0.8", "1", "1.5", "2", "3", "5"])
        axes.minorticks_off()
        axes.set_xlim(0.5, 5)
        axes.set_ylim(-0.5, len(names) - 0.5)
        axes.set_yticks(range(len(names)), names[::-1])
        axes.set_title(study.title, fontsize="medium", loc="left")
    panels[0, 0].legend(fontsize="small", loc="upper right")
    panels[-1, 0].set_xlabel("times smaller than without facts")
    return save_all(dict.fromkeys(FIGURES, figure), folder)
