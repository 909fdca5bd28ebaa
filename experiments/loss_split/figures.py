"""The paper's figures 2 to 7 from what was measured, a row or a panel for each population."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.kit.figures import BLUE, GREEN, ORANGE, PINK, RED, grid, save_all
from experiments.loss_split.claims import SPREADS
from experiments.loss_split.measure import LAW, WEIGHTINGS, Outcome
from experiments.loss_split.shares import skewed_bias
from experiments.loss_split.study import EPSILONS, TAUS, WAYS, WEIGHTS, Study
from experiments.loss_split.trees import LEVELS
from treetop.advice._error_laws import Allocation

COLOURS = (BLUE, ORANGE, GREEN, RED, PINK)
STYLE = {"uniform": (COLOURS[3], "s"), "optimal": (COLOURS[0], "o")}
HOLLOW = (
    "Hollow points at the lower edge: no squared bias is left once what chance explains is taken out, and a "
    "logarithmic axis has no place for zero."
)

CAPTIONS = {
    "loss_split_least_loss.png": "Figure 2: the least epsilon for a total error, and its division (program 7)",
    "loss_split_errors.png": "Figure 3: squared bias and variance, without and with top-down consistency. " + HOLLOW,
    "loss_split_allocation.png": "Figure 4: how program 6 divides an epsilon",
    "loss_split_weights.png": "Figure 5: errors and division as the blocks weigh more, at epsilon 2",
    "loss_split_shares.png": "Figure 6: shares dealt out in one tract, squared percent of the sum. " + HOLLOW,
    "loss_split_skewness.png": "Figure 7: the bias of a hundred people spread over two and three regions",
}
"""The figures, with their captions."""


def draw(studies: Sequence[Study], images: Path) -> list[Path]:
    """Draw all figures, and return the files."""
    figures = (figure(studies) for figure in (figure_2, figure_3, figure_4, figure_5, figure_6, figure_7))
    return save_all(dict(zip(CAPTIONS, figures, strict=True)), images, dpi=95)


def figure_2(studies: Sequence[Study]) -> Figure:
    """The epsilon of each level, stacked, by the total error."""
    return _stacked(studies, "τ", {f"{tau:,.0f}": lambda study, tau=tau: study.least[tau] for tau in TAUS})  # type: ignore[misc]


def figure_3(studies: Sequence[Study]) -> Figure:
    """Bias and variance by epsilon, uniform and optimal, separate and consistent."""
    figure, panels = _panels(2, len(studies), sharex=True)
    for column, study in zip(panels.T, studies, strict=True):
        for way in WAYS:
            for kind, line in (("separate", "-"), ("consistent", "--")):
                errors = [getattr(study.outcomes[epsilon, way], kind) for epsilon in EPSILONS]
                style = dict(zip(("color", "marker"), STYLE[way], strict=True), ms=4, label=f"{way}, {kind}")
                for axes, what in zip(column, ("bias", "variance"), strict=True):
                    _line(axes, [sum(getattr(error, what)) for error in errors], line, style)
    _by_epsilon(studies, panels)
    panels[0][0].legend(fontsize="small")
    return figure


def figure_4(studies: Sequence[Study]) -> Figure:
    """The epsilon of each level, stacked, by the whole epsilon."""
    best = {f"{one:g}": lambda study, one=one: study.outcomes[one, "optimal"] for one in EPSILONS}
    return _stacked(studies, "epsilon in all", best)


def figure_5(studies: Sequence[Study]) -> Figure:
    """Errors and division by the weight of the blocks."""
    figure, panels = _panels(2, len(studies), sharex=True, sharey="row")
    for column, study in enumerate(studies):
        errors = [study.weighted_formulas[weight] for weight in WEIGHTS]
        top, below = panels[0][column], panels[1][column]
        top.plot(WEIGHTS, [error.total for error in errors], color="black", marker="o", ms=3, label="total")
        for level, name in enumerate(LEVELS):
            top.plot(
                WEIGHTS, [error.mse[level] for error in errors], color=COLOURS[level], marker="o", ms=3, label=name
            )
            budgets = [study.weighted[weight].budgets[level] for weight in WEIGHTS]
            below.plot(WEIGHTS, budgets, color=COLOURS[level], marker="o", ms=3, label=name)
        for axes in (top, below):
            axes.axvline(1 / 3, color="#999999", linewidth=0.8)
        top.set_yscale("log")
        top.set_title(study.title)
        below.set_xlabel("weight of the blocks")
    panels[0][0].set_ylabel("mean squared error")
    panels[1][0].set_ylabel("epsilon")
    panels[0][0].legend(fontsize="small")
    return figure


def figure_6(studies: Sequence[Study]) -> Figure:
    """Bias and variance of shares in the first tract, by weighting and split."""
    figure, panels = _panels(2, len(studies), sharex=True)
    lines = dict(zip(WAYS, (":", "-"), strict=True))
    for column, study in zip(panels.T, studies, strict=True):
        for colour, weighting in zip(COLOURS, WEIGHTINGS, strict=False):
            for way, line in lines.items():
                shared = [study.outcomes[epsilon, way].shares[study.tracts[0], weighting] for epsilon in EPSILONS]
                style = {"color": colour, "marker": "o", "ms": 3, "label": f"{weighting}, {way}"}
                for axes, what in zip(column, ("bias", "variance"), strict=True):
                    _line(axes, [getattr(one, what) for one in shared], line, style)
    _by_epsilon(studies, panels)
    panels[0][0].legend(fontsize="x-small")
    return figure


def figure_7(_: Sequence[Study]) -> Figure:
    """The bias by epsilon for spreads that are more and more uneven."""
    figure, panels = _panels(1, len(SPREADS), sharey=True)
    epsilons = np.geomspace(0.005, 0.3, 40)
    for axes, (regions, spreads) in zip(panels[0], SPREADS.items(), strict=True):
        for colour, spread in zip(COLOURS, spreads, strict=False):
            biases = [skewed_bias(LAW, epsilon, spread).bias for epsilon in epsilons]
            axes.plot(epsilons, biases, color=colour, label=" + ".join(map(str, spread)))
        axes.set(title=f"{regions} regions", xlabel="epsilon", xscale="log", yscale="log")
        axes.legend(fontsize="small")
    panels[0][0].set_ylabel("bias")
    return figure


def _by_epsilon(studies: Sequence[Study], panels: Any) -> None:
    """Name rows (squared bias above, variance below), columns and axes."""
    for row, what in zip(panels, ("squared bias", "variance"), strict=True):
        row[0].set_ylabel(what)
        for axes in row:
            axes.set_yscale("log")
            _show_zeros(axes)
    for (top, below), study in zip(panels.T, studies, strict=True):
        top.set_title(study.title)
        below.set_xlabel("epsilon")


def _line(axes: Any, values: Sequence[float], line: str, style: Mapping[str, Any]) -> None:
    """Draw values by epsilon; zeros, for which a logarithmic axis has no place, are left to `_show_zeros`."""
    (drawn,) = axes.plot(EPSILONS, [value if value > 0 else np.nan for value in values], line, **style)
    zeros = [epsilon for epsilon, value in zip(EPSILONS, values, strict=True) if value <= 0]
    drawn.set_gid(",".join(map(str, zeros)))


def _show_zeros(axes: Any) -> None:
    """Put a hollow point at the lower edge for every zero."""
    edge, top = axes.get_ylim()
    for drawn in list(axes.get_lines()):
        zeros = [float(at) for at in (drawn.get_gid() or "").split(",") if at]
        look = {"marker": drawn.get_marker(), "color": drawn.get_color(), "ms": drawn.get_markersize() + 2}
        if zeros:
            axes.plot(zeros, [edge] * len(zeros), ls="none", mfc="none", clip_on=False, **look)
    axes.set_ylim(edge, top)


def _panels(rows: int, columns: int, **shared: Any) -> tuple[Figure, Any]:
    return grid(rows, columns, (1 + 3.1 * columns, 0.5 + 2.7 * rows), **shared)


def _stacked(
    studies: Sequence[Study], below: str, divided: Mapping[str, Callable[[Study], Allocation | Outcome]]
) -> Figure:
    """Draw bars of the epsilons of all levels: one for each division, by name."""
    figure, panels = _panels(1, len(studies), sharey=True)
    for axes, study in zip(panels[0], studies, strict=True):
        bottom = np.zeros(len(divided))
        for level, name in enumerate(LEVELS):
            heights = np.array([division(study).budgets[level] for division in divided.values()])
            axes.bar(list(divided), heights, bottom=bottom, color=COLOURS[level], label=name)
            bottom += heights
        axes.legend(fontsize="small")
        axes.set(title=study.title, xlabel=below)
    panels[0][0].set_ylabel("epsilon")
    return figure
