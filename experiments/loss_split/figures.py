"""The paper's figures 2 to 7 from what was measured, a row or a panel for each population."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from experiments.loss_split.measure import LAW, WEIGHTINGS
from experiments.loss_split.share_claims import SPREADS
from experiments.loss_split.shares import skewed_bias
from experiments.loss_split.study import EPSILONS, TAUS, WAYS, WEIGHTS, Study
from experiments.loss_split.trees import LEVELS

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7")
"""By Okabe and Ito, which people with any common colour blindness tell apart."""
STYLE = {"uniform": (COLOURS[3], "s"), "optimal": (COLOURS[0], "o")}


def draw(studies: Sequence[Study], images: Path) -> dict[Path, str]:
    """Draw all figures, and return the files with their captions."""
    images.mkdir(parents=True, exist_ok=True)
    figures = {
        "least_loss": (
            figure_2(studies),
            "Figure 2: the least epsilon for a total error, and its division (program 7)",
        ),
        "errors": (figure_3(studies), "Figure 3: squared bias and variance, without and with top-down consistency"),
        "allocation": (figure_4(studies), "Figure 4: how program 6 divides an epsilon"),
        "weights": (figure_5(studies), "Figure 5: errors and division as the blocks weigh more, at epsilon 2"),
        "shares": (figure_6(studies), "Figure 6: shares dealt out in one tract, squared percent of the sum"),
        "skewness": (figure_7(), "Figure 7: the bias of a hundred people spread over two and three regions"),
    }
    files = {}
    for name, (figure, caption) in figures.items():
        file = images / f"loss_split_{name}.png"
        _save(figure, file)
        files[file] = caption
    return files


def figure_2(studies: Sequence[Study]) -> Figure:
    """The epsilon of each level, stacked, by the total error."""
    figure, grid = _panels(1, len(studies), sharey=True)
    for axes, study in zip(grid[0], studies, strict=True):
        budgets = [study.least[tau].budgets for tau in TAUS]
        _stack(axes, [f"{tau:,.0f}" for tau in TAUS], budgets)
        axes.set(title=study.tree.title, xlabel="τ")
    grid[0][0].set_ylabel("epsilon")
    return figure


def figure_3(studies: Sequence[Study]) -> Figure:
    """Bias and variance by epsilon, uniform and optimal, separate and consistent."""
    figure, grid = _panels(2, len(studies), sharex=True)
    for column, study in enumerate(studies):
        for way in WAYS:
            colour, marker = STYLE[way]
            for kind, line in (("separate", "-"), ("consistent", "--")):
                errors = [getattr(study.outcomes[epsilon, way], kind) for epsilon in EPSILONS]
                for row, what in enumerate(("bias", "variance")):
                    values = [sum(getattr(error, what)) for error in errors]
                    label = f"{way}, {kind}"
                    grid[row][column].plot(EPSILONS, values, line, color=colour, marker=marker, ms=4, label=label)
        grid[0][column].set_title(study.tree.title)
        grid[1][column].set_xlabel("epsilon")
    _name_rows(grid)
    grid[0][0].legend(fontsize="small")
    return figure


def figure_4(studies: Sequence[Study]) -> Figure:
    """The epsilon of each level, stacked, by the whole epsilon."""
    figure, grid = _panels(1, len(studies), sharey=True)
    for axes, study in zip(grid[0], studies, strict=True):
        budgets = [study.outcomes[epsilon, "optimal"].budgets for epsilon in EPSILONS]
        _stack(axes, [f"{epsilon:g}" for epsilon in EPSILONS], budgets)
        axes.set(title=study.tree.title, xlabel="epsilon in all")
    grid[0][0].set_ylabel("epsilon")
    return figure


def figure_5(studies: Sequence[Study]) -> Figure:
    """Errors and division by the weight of the blocks."""
    figure, grid = _panels(2, len(studies), sharex=True, sharey="row")
    for column, study in enumerate(studies):
        errors = [study.weighted_formulas[weight] for weight in WEIGHTS]
        top, below = grid[0][column], grid[1][column]
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
        top.set_title(study.tree.title)
        below.set_xlabel("weight of the blocks")
    grid[0][0].set_ylabel("mean squared error")
    grid[1][0].set_ylabel("epsilon")
    grid[0][0].legend(fontsize="small")
    return figure


def figure_6(studies: Sequence[Study]) -> Figure:
    """Bias and variance of shares in the first tract, by weighting and split."""
    figure, grid = _panels(2, len(studies), sharex=True)
    for column, study in enumerate(studies):
        tract = study.tracts[0]
        for colour, weighting in zip(COLOURS, WEIGHTINGS, strict=False):
            for way, line in (("uniform", ":"), ("optimal", "-")):
                shared = [study.outcomes[epsilon, way].shares[tract, weighting] for epsilon in EPSILONS]  # type: ignore[index]
                for row, what in enumerate(("bias", "variance")):
                    values = [getattr(one, what) for one in shared]
                    label = f"{weighting}, {way}"
                    grid[row][column].plot(EPSILONS, values, line, color=colour, marker="o", ms=3, label=label)
        grid[0][column].set_title(study.tree.title)
        grid[1][column].set_xlabel("epsilon")
    _name_rows(grid)
    grid[0][0].legend(fontsize="x-small")
    return figure


def figure_7() -> Figure:
    """The bias by epsilon for spreads that are more and more uneven."""
    figure, grid = _panels(1, len(SPREADS), sharey=True)
    epsilons = np.geomspace(0.005, 0.3, 40)
    for axes, (regions, spreads) in zip(grid[0], SPREADS.items(), strict=True):
        for colour, spread in zip(COLOURS, spreads, strict=False):
            biases = [skewed_bias(LAW, epsilon, spread).bias for epsilon in epsilons]
            axes.plot(epsilons, biases, color=colour, label=" + ".join(map(str, spread)))
        axes.set(title=f"{regions} regions", xlabel="epsilon", xscale="log", yscale="log")
        axes.legend(fontsize="small")
    grid[0][0].set_ylabel("bias")
    return figure


def _name_rows(grid: Sequence[Sequence[Axes]]) -> None:
    for line, what in zip(grid, ("squared bias", "variance"), strict=True):
        line[0].set_ylabel(what)
        for axes in line:
            axes.set_yscale("log")


def _panels(rows: int, columns: int, **shared: Any) -> tuple[Figure, list[list[Axes]]]:
    figure = Figure(figsize=(1 + 3.1 * columns, 0.5 + 2.7 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **shared)
    for axes in grid.flat:
        axes.grid(alpha=0.25, linewidth=0.5)
    return figure, [list(row) for row in grid]


def _stack(axes: Axes, names: Sequence[str], budgets: Sequence[Sequence[float]]) -> None:
    bottom = np.zeros(len(names))
    for level, name in enumerate(LEVELS):
        heights = np.array([one[level] for one in budgets])
        axes.bar(names, heights, bottom=bottom, color=COLOURS[level], label=name)
        bottom += heights
    axes.legend(fontsize="small")


def _save(figure: Figure, file: Path) -> None:
    """Write a figure with few colours, which is all that it has, in a third of the size."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=95)
    Image.open(drawn).convert("RGB").quantize(48).save(file, optimize=True)
