"""Two pictures: what the default gains and costs beside 0.2.0, and what every variant does to the leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from experiments.kit.figures import BLACK, BLUE, GREEN, ORANGE, PINK, RED, SKY, grid, legend, save_all
from experiments.margins.measure import ADVISED, BEFORE, EACH, LOWER, NONE, PAPER, Depths, Study, Variant
from experiments.margins.targets import EPSILON

FIGURES = {
    "margins_gain.png": "How many times smaller the mean error is with the default than with 0.2.0, at epsilon 1. "
    "Right of 1 is better. The dashed lines are the targets of the second end's totals: 4, and 10 on New York tracts.",
    "margins_leaves.png": "How many times smaller the mean error of leaf pairs is than with 0.2.0, at epsilon 1, by "
    "variant. The dashed line is the target of the advised plan on dense tables, which stand on top.",
}
"""The pictures, with their captions."""

Point = tuple[str, str, str, Callable[[Study], tuple[Depths, Variant]]]
GAINS: tuple[Point, ...] = (
    ("totals of the second end", BLUE, "o", lambda study: (study.margins(study.second)[-1], EACH)),
    ("totals of the first end", GREEN, "s", lambda study: (study.margins(study.first)[-1], EACH)),
    ("pairs, half way down", ORANGE, "^", lambda study: (study.middle, EACH)),
    ("leaf pairs", BLACK, "D", lambda study: (study.leaves, EACH)),
)
COLOURS: Mapping[Variant, tuple[str, str]] = {
    PAPER: (PINK, "v"), NONE: (SKY, "o"), EACH: (BLACK, "D"), LOWER: (ORANGE, "^"), ADVISED: (RED, "s"),
}  # fmt: skip
LEAVES: tuple[Point, ...] = tuple(
    (variant.label, *look, lambda study, variant=variant: (study.leaves, variant))  # type: ignore[misc]
    for variant, look in COLOURS.items()
)


def draw(studies: Sequence[Study], folder: Path) -> list[Path]:
    """Draw both, and return their files."""
    dense = sorted(studies, key=lambda study: study.density)
    figures = (
        _dots(studies[::-1], GAINS, (4, 10), (0.7, 1, 1.4, 2, 3, 4, 6, 10, 20, 30)),
        _dots(dense, LEAVES, (1.4,), (0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6, 1.8, 2)),
    )
    return save_all(dict(zip(FIGURES, figures, strict=True)), folder)


def _dots(studies: Sequence[Study], points: Sequence[Point], goals: Sequence[float], marks: Sequence[float]) -> Figure:
    """Draw a row a table, and in it how many times better than 0.2.0 each point is."""
    figure, ((axes,),) = grid(1, 1, (8.0, 0.34 * len(studies) + 1.6))
    for label, colour, marker, which in points:
        gains = []
        for study in studies:
            depths, variant = which(study)
            gains.append(study.mean(EPSILON, BEFORE, depths) / study.mean(EPSILON, variant, depths))
        axes.plot(gains, range(len(studies)), marker, color=colour, label=label, alpha=0.9)
    axes.axvline(1, color=BLACK, linewidth=1)
    for goal in goals:
        axes.axvline(goal, color=BLACK, linewidth=1, linestyle="--")
    axes.set_xscale("log")
    axes.set_xticks(marks, [f"{one:g}" for one in marks])
    axes.minorticks_off()
    axes.set_yticks(range(len(studies)), [study.title for study in studies])
    axes.set_xlabel("times smaller than with 0.2.0")
    legend(figure, axes, fontsize="small")
    return figure
