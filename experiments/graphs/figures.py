"""The plots of the study. They show the truth, so those of a private network would be for its steward only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.graphs.measure import DELTA, METHODS, QUESTIONS, Study
from experiments.graphs.page import short
from experiments.kit.figures import BLUE, GREEN, RED, grid, new_figure, save_all

COLOURS = (BLUE, RED, GREEN)
MARKERS = ("o", "s", "^")


def draw(study: Study, images: Path) -> list[Path]:
    """Draw all plots, and return the files."""
    plots = (errors, degrees, questions, rebalancing)
    return save_all({f"graphs_{plot.__name__}.png": plot(study) for plot in plots}, images)


def errors(study: Study) -> Figure:
    """Errors against epsilon, with the band that holds 95% of the runs, a line for each relation."""
    found, epsilons = study.errors, study.epsilons
    figure, (panels,) = grid(1, len(found), (4 * len(found), 4.2))
    for axes, (network, rows) in zip(panels, found.items(), strict=True):
        for row, colour, marker in zip(rows, COLOURS, MARKERS, strict=True):
            label = {"edge": "edge", "user-out": f"user-out, {network.most} edges", "node": f"node, {network.bound:,}"}
            _band(axes, epsilons, row.misplaced, colour, marker, label[row.relation])
            if row.truncated:
                axes.axhline(row.truncated / 2, color=colour, linestyle=":", linewidth=1, label="its truncation alone")
        axes.set(yscale="log", title=network.title)
        axes.title.set_fontsize(9)
        _losses(axes, epsilons)
        axes.legend(fontsize=8)
    figure.axes[0].set_ylabel("sum of errors / twice the edges")
    return figure


def degrees(study: Study) -> Figure:
    """True and released cumulative degree distributions, log-log, with theta and truncation apart from noise."""
    found = study.degrees
    figure, (panels,) = grid(1, len(found), (4 * len(found), 4.2))
    for axes, (network, row) in zip(panels, found.items(), strict=True):
        _steps(axes, row.truth, f"true {row.what}", color="black", linewidth=2.5, alpha=0.35)
        _steps(axes, row.edge, 'released under "edge"', color=COLOURS[0], linewidth=1)
        if network.directed:
            _steps(axes, row.whole, "true edges of a person", color="grey", linewidth=2.5, alpha=0.35)
        _steps(axes, row.projected, f"after projection to {row.theta}, no noise", color=COLOURS[1], linestyle="--")
        _steps(axes, row.node, 'released under "node"', color=COLOURS[1], linewidth=1)
        axes.axvline(row.theta, color="grey", linestyle=":", linewidth=1)
        axes.text(row.theta, 0.5, " theta", transform=axes.get_xaxis_transform(), fontsize=8)
        axes.set(xscale="log", yscale="log", xlabel="edges, at most", title=network.title)
        axes.title.set_fontsize(9)
        axes.legend(fontsize=7, loc="lower right")
    figure.axes[0].set_ylabel("people")
    return figure


def questions(study: Study) -> Figure:
    """The noise of one answer among k, by epsilon, under the two ways to share a loss."""
    found, epsilons = study.noise, study.epsilons
    figure = new_figure(10, 4.4)
    panels = list(figure.subplots(1, len(found), squeeze=False)[0])
    norm = LogNorm(min(table.min() for table in found.values()), max(table.max() for table in found.values()))
    for axes, (title, table) in zip(panels, found.items(), strict=True):
        image = axes.imshow(table, norm=norm, cmap="viridis", aspect="auto", origin="lower")
        for (row, column), value in np.ndenumerate(table):
            colour = "white" if norm(value) < 0.6 else "black"
            axes.text(column, row, short(value), ha="center", va="center", fontsize=7, color=colour)
        axes.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
        axes.set_yticks(range(len(QUESTIONS)), [str(k) for k in QUESTIONS])
        delta = "" if title.startswith("pure") else f" (delta {DELTA:g})"
        axes.set(title=title, xlabel=f"epsilon of all together{delta}", ylabel="questions that overlap")
    figure.colorbar(image, ax=panels, label="standard deviation of an answer")
    return figure


def rebalancing(study: Study) -> Figure:
    """Errors with and without rebalancing, and where the bias goes."""
    found, epsilons = study.balanced, study.epsilons
    figure, panels = grid(len(found), 2, (10, 3.8 * len(found)))
    for (left, right), (network, row) in zip(panels, found.items(), strict=True):
        for method, colour, marker in zip(METHODS, COLOURS, MARKERS, strict=True):
            _band(left, epsilons, row.errors[method], colour, marker, method)
        left.set(yscale="log", ylabel="mean error of a group, people")
        _losses(left, epsilons)
        left.set_title(network.title, fontsize=9)
        for i, method in enumerate(METHODS):
            right.bar(np.arange(4) + 0.27 * (i - 1), row.bias[method], 0.25, color=COLOURS[i], label=method)
        right.axhline(0, color="grey", linewidth=0.8)
        right.set_xticks(range(4), ["smallest", "", "", "largest"])
        right.set(xlabel="groups, by quarters of size", ylabel=f"mean signed error at epsilon {epsilons[0]:g}")
        for axes in (left, right):
            axes.legend(fontsize=8)
    return figure


def _losses(axes: Axes, epsilons: Sequence[float]) -> None:
    axes.set(xscale="log", xlabel=f"epsilon (delta {DELTA:g})")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()


def _band(axes: Axes, xs: Sequence[float], runs: NDArray[np.float64], colour: str, marker: str, label: str) -> None:
    low, high = np.quantile(runs, [0.025, 0.975], axis=1)
    axes.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(xs, runs.mean(axis=1), color=colour, marker=marker, markersize=4, linewidth=1, label=label)


def _steps(axes: Axes, cumulative: NDArray[np.int64], label: str, **style: object) -> None:
    axes.plot(np.arange(len(cumulative))[1:], np.maximum(cumulative[1:], 0.5), label=label, **style)  # type: ignore[arg-type]
