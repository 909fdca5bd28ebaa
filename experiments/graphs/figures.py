"""The plots of the study. They show the truth, so those of a private network would be for its steward only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.graphs.claims import BEST
from experiments.graphs.measure import AS_PUBLISHED, DELTA, PURE, QUESTIONS, SHARED, Study
from experiments.graphs.page import short
from experiments.graphs.rebalanced import BESIDE, METHODS
from experiments.graphs.tradeoff import PAPER_DELTA, RANGES
from experiments.kit.figures import BLACK, BLUE, GREEN, ORANGE, PINK, RED, grid, legend, new_figure, save_all

COLOURS = (BLUE, RED, GREEN)
MARKERS = ("o", "s", "^")
LINES = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (RED, "D"), (PINK, "v"))
"""By epsilon, where there are several."""
WAYS = dict(zip(METHODS, (BLACK, ORANGE, RED, PINK, BLUE, GREEN), strict=True))
"""The ways of rebalancing."""


def draw(study: Study, images: Path) -> list[Path]:
    """Draw all plots, and return the files."""
    plots = (errors, theta, degrees, tradeoff, questions, rebalancing)
    return save_all({f"graphs_{plot.__name__}.png": plot(study) for plot in plots}, images)


def errors(study: Study) -> Figure:
    """Errors against epsilon, with the band that holds 95% of the runs, a line for each relation."""
    found, epsilons = study.errors, study.epsilons
    figure, (panels,) = grid(1, len(found), (4 * len(found), 4.2))
    for axes, (network, rows) in zip(panels, found.items(), strict=True):
        axes.axhline(0.5, color=BLACK, linestyle="--", linewidth=1, label="an empty table")
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


def theta(study: Study) -> Figure:
    """The distance to the truth against theta, a line for each epsilon, and what was chosen privately."""
    found = study.sweeps
    figure, (panels,) = grid(1, len(found), (4.2 * len(found), 4.6), sharey=True)
    for axes, (network, row) in zip(panels, found.items(), strict=True):
        axes.plot(row.thetas, np.maximum(row.cut, 1e-3), color=BLACK, linestyle="--", linewidth=1.2, label="no noise")
        for at, (epsilon, (colour, marker)) in enumerate(zip(row.epsilons, LINES, strict=False)):
            means = row.fixed[at].mean(axis=1)
            axes.plot(
                row.thetas, means, color=colour, marker=marker, markersize=4, linewidth=1.2, label=f"ε {epsilon:g}"
            )
            chosen = float(np.median(row.chosen[at]))
            axes.plot(
                chosen,
                row.private[at].mean(),
                color=colour,
                marker="*",
                markersize=14,
                markeredgecolor=BLACK,
                linewidth=0,
            )
        axes.plot([], [], color="white", marker="*", markersize=12, markeredgecolor=BLACK, linewidth=0,
                  label="chosen privately")  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="theta", title=network.title, ylim=(8e-3, 2))
        axes.title.set_fontsize(9)
    panels[0].set_ylabel("largest distance of shares of people")
    legend(figure, panels[0], columns=7 if len(found) > 1 else 3, fontsize=8)
    return figure


def degrees(study: Study) -> Figure:
    """How far released cumulative distributions are from the truth, by degree, with truncation apart from noise."""
    found = study.degrees
    figure, (panels,) = grid(1, len(found), (4.2 * len(found), 4.4))
    for axes, (network, row) in zip(panels, found.items(), strict=True):
        _off(axes, row.node, row.whole, color=RED, linewidth=1.2, label='released under "node"')
        _off(
            axes, row.projected, row.whole, color=BLACK, linestyle="--", linewidth=1.2, label="edges left out, no noise"
        )
        _off(axes, row.edge, row.truth, color=BLUE, linewidth=1.2, label='released under "edge"')
        axes.axvline(row.theta, color="grey", linestyle=":", linewidth=1.2, label="theta")
        axes.set(xscale="log", xlabel="edges, at most", title=f"{network.title}\ntheta {row.theta:,}")
        axes.title.set_fontsize(9)
    panels[0].set_ylabel("released less true share of people")
    legend(figure, panels[0], columns=4 if len(found) > 1 else 2, fontsize=8)
    return figure


def tradeoff(study: Study) -> Figure:
    """The noise of one count against epsilon, on two ranges, with the knee that each shows."""
    found = study.tradeoff
    figure, (panels,) = grid(1, 2, (9, 3.8))
    for axes, at in zip(panels, (0, 3), strict=True):
        low, high = RANGES[at]
        x = np.linspace(low, high, 300)
        y = np.interp(x, found.epsilons, found.noise[PAPER_DELTA])
        place = found.knees[PAPER_DELTA][at]
        axes.plot(x, y, color=RED, linewidth=1.6, label=f"noise, delta {PAPER_DELTA:g}")
        axes.plot([low, high], [y[0], y[-1]], color="grey", linestyle="--", linewidth=1)
        axes.plot(place, np.interp(place, x, y), color=BLUE, marker="o", markersize=8, linewidth=0, label="knee")
        axes.axvspan(*BEST, color=GREEN, alpha=0.25, linewidth=0, label="0.3 to 0.5")
        axes.set(xlabel="epsilon", title=f"epsilon from {low:g} to {high:g}")
        axes.title.set_fontsize(9)
    panels[0].set_ylabel("standard deviation of a count")
    panels[0].legend(fontsize=8)
    return figure


def questions(study: Study) -> Figure:
    """The noise of one answer among k, by epsilon, under the ways to share a loss."""
    found, epsilons = study.noise, study.epsilons
    figure = new_figure(5 * len(found), 4.4)
    panels = list(figure.subplots(1, len(found), squeeze=False)[0])
    norm = LogNorm(min(table.min() for table in found.values()), max(table.max() for table in found.values()))
    deltas = {AS_PUBLISHED: f" (delta {PAPER_DELTA:g} each)", PURE: "", SHARED: f" (delta {DELTA:g})"}
    for axes, (title, table) in zip(panels, found.items(), strict=True):
        image = axes.imshow(table, norm=norm, cmap="viridis", aspect="auto", origin="lower")
        for (row, column), value in np.ndenumerate(table):
            colour = "white" if norm(value) < 0.6 else "black"
            axes.text(column, row, short(value), ha="center", va="center", fontsize=7, color=colour)
        axes.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
        axes.set_yticks(range(len(QUESTIONS)), [str(k) for k in QUESTIONS])
        axes.set(xlabel=f"epsilon of all together{deltas[title]}", ylabel="questions that overlap")
        axes.set_title(title, fontsize=9)
    figure.colorbar(image, ax=panels, label="standard deviation of an answer")
    return figure


def rebalancing(study: Study) -> Figure:
    """Errors with rebalancing over those without, and where the bias goes."""
    found, epsilons = study.balanced, study.epsilons
    figure, panels = grid(len(found), 2, (11, 3.8 * len(found)))
    markers = dict(zip(BESIDE, ("s", "D", "o", "^"), strict=True))
    for (left, right), (network, row) in zip(panels, found.items(), strict=True):
        left.axhline(1, color="grey", linewidth=0.8)
        for method, marker in markers.items():
            left.plot(
                epsilons,
                row.ratio(method),
                color=WAYS[method],
                marker=marker,
                markersize=5,
                linewidth=1.2,
                label=method,
            )
        left.set(ylabel="error of a group, not rebalanced = 1")
        _losses(left, epsilons)
        left.set_title(network.title, fontsize=9)
        for i, (method, colour) in enumerate(WAYS.items()):
            mean, error = row.shift(method)
            right.bar(np.arange(4) + 0.14 * (i - 2.5), mean[0], 0.13, yerr=2 * error[0], color=colour, label=method,
                      error_kw={"linewidth": 0.8})  # fmt: skip
        right.axhline(0, color="grey", linewidth=0.8)
        right.set_xticks(range(4), ["smallest", "", "", "largest"])
        right.set(xlabel="groups, by quarters of size", ylabel=f"mean signed error at epsilon {epsilons[0]:g}")
    legend(figure, panels[0][1], columns=3, fontsize=8)
    return figure


def _losses(axes: Axes, epsilons: Sequence[float]) -> None:
    axes.set(xscale="log", xlabel=f"epsilon (delta {DELTA:g})")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()


def _band(axes: Axes, xs: Sequence[float], runs: NDArray[np.float64], colour: str, marker: str, label: str) -> None:
    low, high = np.quantile(runs, [0.025, 0.975], axis=1)
    axes.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(xs, runs.mean(axis=1), color=colour, marker=marker, markersize=4, linewidth=1, label=label)


def _off(axes: Axes, released: NDArray[np.int64], truth: NDArray[np.int64], **style: object) -> None:
    """Draw the difference of two cumulative distributions; above its last degree a released one is what it is there."""
    told = np.full(max(len(truth), len(released)), released[-1])
    told[: len(released)] = released
    true = np.full(len(told), truth[-1])
    true[: len(truth)] = truth
    axes.plot(np.arange(1, len(told)), ((told - true) / truth[-1])[1:], **style)  # type: ignore[arg-type]
