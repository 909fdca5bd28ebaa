"""The plots of the study: the choice between invented and lost, the errors, and every level of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.false_discoveries.measure import METHODS, Method, Study
from experiments.kit.figures import BLUE, RED, grid, legend, percent, save_all
from experiments.kit.outcomes import Spread

COLOURS = {"chebyshev": BLUE, "euclidean": RED}
MARKERS = {"ascending": "o", "descending": "s"}
LINES = {"ascending": "-", "descending": "--"}
RATES = (
    ("false_discoveries", "invented, of nodes"),
    ("false_mass", "invented, of count"),
    ("false_negatives", "lost, of nodes"),
    ("lost_mass", "lost, of count"),
)
ERRORS = (("misplaced", "trips in the wrong pair"), ("largest", "largest error"))


def draw(studies: Sequence[Study], folder: Path) -> list[Path]:
    """Draw all plots into a folder and return their files."""
    figures = {"choice": _choice(studies), "errors": _errors(studies)}
    figures |= {study.table.name: _levels(study) for study in studies}
    return save_all({f"false_discoveries_{name}.png": one for name, one in figures.items()}, folder)


def _choice(studies: Sequence[Study]) -> Figure:
    """Lost against invented at the leaves: down and left is better in both."""
    figure, panels = grid(2, len(studies), (9.5, 6.8))
    kinds = (("pairs", "false_discoveries", "false_negatives"), ("trips", "false_mass", "lost_mass"))
    for row, (what, invented, lost) in zip(panels, kinds, strict=True):
        for axes, study in zip(row, studies, strict=True):
            for method in METHODS:
                _path(axes, study, method, invented, lost)
            axes.set_xlabel(f"invented, of released {what}")
            axes.margins(x=0.25, y=0.15)
            if what == "trips":  # shares from thousandths of a percent to most
                axes.set(xscale="log", yscale="log")
                axes.minorticks_off()
            else:
                right = axes.get_xlim()[1]
                axes.set(xlim=(-right / 6, 1.1 * right), ylim=(-0.05, 1.05))  # room for words
            axes.xaxis.set_major_formatter(percent)
            axes.yaxis.set_major_formatter(percent)
        row[0].set_ylabel(f"lost, of true {what}")
    _titles(figure, panels[0], studies)
    return figure


def _path(axes: Axes, study: Study, method: Method, invented: str, lost: str) -> None:
    """Plot a method from the smallest loss to the largest."""
    outcomes = [study.outcome(epsilon, method) for epsilon in study.epsilons]
    xs = [outcome.spread(-1, invented).mean for outcome in outcomes]
    ys = [outcome.spread(-1, lost).mean for outcome in outcomes]
    axes.plot(xs, ys, **_style(method))
    if method.repair == "chebyshev":  # these stand outside, where there is room for words
        left = method.order == "ascending"
        for epsilon, x, y in zip(study.epsilons, xs, ys, strict=True):
            place, side = ((-6, -3), "right") if left else ((6, -3), "left")
            axes.annotate(f"ε {epsilon:g}", (x, y), place, textcoords="offset points", fontsize=7, ha=side)


def _errors(studies: Sequence[Study]) -> Figure:
    """The errors at the leaves beside those of the default, by loss."""
    figure, panels = grid(2, len(studies), (9.5, 5.6), sharex=True)
    for row, (metric, label) in zip(panels, ERRORS, strict=True):
        for axes, study in zip(row, studies, strict=True):
            usual = [study.outcome(epsilon, METHODS[0]).spread(-1, metric).mean for epsilon in study.epsilons]
            for i, method in enumerate(METHODS):
                spreads = [study.outcome(epsilon, method).spread(-1, metric) for epsilon in study.epsilons]
                shares = [_share(spread, whole) for spread, whole in zip(spreads, usual, strict=True)]
                _bars(axes, shares, method, i)
            axes.axhline(1, color="grey", linewidth=0.8)
            axes.set_xticks(range(len(study.epsilons)), [f"ε {epsilon:g}" for epsilon in study.epsilons])
        row[0].set_ylabel(f"{label}\n(default = 1)")
    _titles(figure, panels[0], studies)
    return figure


def _share(spread: Spread, whole: float) -> Spread:
    whole = whole or 1.0
    return Spread(spread.mean / whole, spread.low / whole, spread.high / whole)


def _levels(study: Study) -> Figure:
    """The four rates of every level, a column for each loss."""
    names = [level.name.replace(".", "\n") for level in study.levels[1:]]
    figure, panels = grid(len(RATES), len(study.epsilons), (9.5, 8.4), sharex=True, sharey="row")
    for row, (metric, label) in zip(panels, RATES, strict=True):
        for axes, epsilon in zip(row, study.epsilons, strict=True):
            for i, method in enumerate(METHODS):
                outcome = study.outcome(epsilon, method)
                _bars(axes, [outcome.spread(level.level, metric) for level in study.levels[1:]], method, i)
            axes.yaxis.set_major_formatter(percent)
            axes.set_xticks(range(len(names)), names, fontsize=8, rotation=90 if len(names) > 4 else 0)
        row[0].set_ylabel(label)
        row[0].set_ylim(bottom=0)  # shared along the row, so only once all of it is drawn
    for axes, epsilon in zip(panels[0], study.epsilons, strict=True):
        axes.set_title(f"epsilon {epsilon:g}", fontsize=10)
    figure.suptitle(study.title)
    legend(figure, panels[0][0])
    return figure


def _bars(axes: Axes, spreads: Sequence[Spread], method: Method, nth: int) -> None:
    """Plot means with bars from least to largest, beside those of the other methods."""
    means = [spread.mean for spread in spreads]
    ends = [[spread.mean - spread.low for spread in spreads], [spread.high - spread.mean for spread in spreads]]
    shift = (nth - (len(METHODS) - 1) / 2) * 0.1
    axes.errorbar([i + shift for i in range(len(means))], means, yerr=ends, elinewidth=1, capsize=2, **_style(method))


def _style(method: Method) -> dict[str, Any]:
    colour = COLOURS[method.repair]
    return {
        "color": colour,
        "marker": MARKERS[method.order],
        "linestyle": LINES[method.order],
        "markerfacecolor": colour if method.order == "ascending" else "white",
        "linewidth": 1,
        "markersize": 5,
        "label": method.label,
    }


def _titles(figure: Figure, row: Sequence[Axes], studies: Sequence[Study]) -> None:
    for axes, study in zip(row, studies, strict=True):
        axes.set_title(study.title, fontsize=10)
    legend(figure, row[0])
