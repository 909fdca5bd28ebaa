"""One picture: by table and loss, how many times smaller errors are with facts, level by level."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.facts.measure import Study
from experiments.kit.figures import BLACK, BLUE, GREEN, ORANGE, grid, save_all

FIGURES = {
    "facts_gain.png": "How many times smaller the mean error of a level is with facts than without. A level without "
    "points is exact with facts. Right of the line is better.",
}
"""The picture, with its caption."""
LOOKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "D"))


def draw(studies: Sequence[Study], folder: Path) -> list[Path]:
    """Draw it, and return its file."""
    rows = sum(len(study.levels) for study in studies)
    size = (8.0, 0.34 * rows + 1.2 * len(studies))
    heights = [len(study.levels) for study in studies]
    figure, panels = grid(len(studies), 1, size, sharex=True, height_ratios=heights)
    for study, axes in zip(studies, panels[:, 0], strict=True):
        names = study.levels
        for epsilon, (colour, marker) in zip(study.epsilons, LOOKS, strict=False):
            found = [(study.better(epsilon, at), len(names) - 1 - at) for at in range(len(names))]
            shown = [(better, place) for better, place in found if better is not None]
            axes.plot(*zip(*shown, strict=True), marker, color=colour, label=f"ε = {epsilon:g}", alpha=0.9)
        axes.axvline(1, color=BLACK, linewidth=1)
        axes.set_xscale("log")
        axes.set_xticks((0.8, 1, 1.5, 2, 3, 5, 10), ["0.8", "1", "1.5", "2", "3", "5", "10"])
        axes.minorticks_off()
        axes.set_ylim(-0.5, len(names) - 0.5)
        axes.set_yticks(range(len(names)), names[::-1])
        axes.set_title(study.title, fontsize="medium", loc="left")
    panels[0, 0].legend(fontsize="small", loc="upper right")
    panels[-1, 0].set_xlabel("times smaller than without facts")
    return save_all(dict.fromkeys(FIGURES, figure), folder)
