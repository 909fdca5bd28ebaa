"""The plots of the study. They show the truth, so those of a private network would be for its steward only."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from experiments.graphs.measure import DELTA, METHODS, QUESTIONS, Study

# Colours of Okabe and Ito (2008), which the colour-blind tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73")
MARKERS = ("o", "s", "^")


def save(figure: Figure, file: Path) -> Path:
    """Write few colours: a third of the bytes, and the eye sees no difference."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110)
    Image.open(picture).convert("RGB").quantize(64).save(file, optimize=True)
    return file


def errors(study: Study) -> Figure:
    """Errors against epsilon, with the band that holds 95% of the runs, a line for each relation."""
    found, epsilons = study.errors, study.epsilons
    figure = Figure(figsize=(4 * len(found), 4.2), layout="constrained")
    for axes, (network, rows) in zip(_row(figure, len(found)), found.items(), strict=True):
        for row, colour, marker in zip(rows, COLOURS, MARKERS, strict=True):
            label = {"edge": "edge", "user-out": f"user-out, {network.most} edges", "node": f"node, {network.bound:,}"}
            _band(axes, epsilons, row.misplaced, colour, marker, label[row.relation])
            if row.truncated:
                axes.axhline(row.truncated / 2, color=colour, linestyle=":", linewidth=1, label="its truncation alone")
        axes.set(yscale="log", title=network.title)
        axes.title.set_fontsize(9)
        _losses(axes, epsilons)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.axes[0].set_ylabel("sum of errors / twice the edges")
    return figure


def degrees(study: Study) -> Figure:
    """True and released cumulative degree distributions, log-log, with theta and truncation apart from noise."""
    found = study.degrees
    figure = Figure(figsize=(4 * len(found), 4.2), layout="constrained")
    for axes, (network, row) in zip(_row(figure, len(found)), found.items(), strict=True):
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
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="lower right")
    figure.axes[0].set_ylabel("people")
    return figure


def questions(study: Study) -> Figure:
    """The noise of one answer among k, by epsilon, under the two ways to share a loss."""
    found, epsilons = study.noise, study.epsilons
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    panels = _row(figure, len(found))
    norm = LogNorm(min(table.min() for table in found.values()), max(table.max() for table in found.values()))
    for axes, (title, table) in zip(panels, found.items(), strict=True):
        image = axes.imshow(table, norm=norm, cmap="viridis", aspect="auto", origin="lower")
        for (row, column), value in np.ndenumerate(table):
            dark = norm(value) < 0.6
            axes.text(
                column,
                row,
                f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if dark else "black",
            )
        axes.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
        axes.set_yticks(range(len(QUESTIONS)), [str(k) for k in QUESTIONS])
        delta = "" if title.startswith("pure") else f" (delta {DELTA:g})"
        axes.set(title=title, xlabel=f"epsilon of all together{delta}", ylabel="questions that overlap")
    figure.colorbar(image, ax=panels, label="standard deviation of an answer")
    return figure


def rebalancing(study: Study) -> Figure:
    """Errors with and without rebalancing, and where the bias goes."""
    found, epsilons = study.balanced, study.epsilons
    figure = Figure(figsize=(10, 3.8 * len(found)), layout="constrained")
    grid = figure.subplots(len(found), 2, squeeze=False)
    for (left, right), (network, row) in zip(grid, found.items(), strict=True):
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
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8)
    return figure


def _losses(axes: Axes, epsilons: Sequence[float]) -> None:
    axes.set(xscale="log", xlabel=f"epsilon (delta {DELTA:g})")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()


def _row(figure: Figure, panels: int) -> list[Axes]:
    return list(figure.subplots(1, panels, squeeze=False)[0])


def _band(axes: Axes, xs: Sequence[float], runs: NDArray[np.float64], colour: str, marker: str, label: str) -> None:
    low, high = np.quantile(runs, [0.025, 0.975], axis=1)
    axes.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(xs, runs.mean(axis=1), color=colour, marker=marker, markersize=4, linewidth=1, label=label)


def _steps(axes: Axes, cumulative: NDArray[np.int64], label: str, **style: object) -> None:
    axes.plot(np.arange(len(cumulative))[1:], np.maximum(cumulative[1:], 0.5), label=label, **style)  # type: ignore[arg-type]
