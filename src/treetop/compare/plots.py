"""The errors of a release as a picture, for the steward only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from treetop.errors import ReleaseError
from treetop.release.errors import LevelErrors

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_errors(rows: tuple[LevelErrors, ...], file: Path, title: str) -> None:
    """Draw errors, rates and biases by level, marked as private, to a file of the steward's choice."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ReleaseError(
            "a plot needs matplotlib, which is not installed: pip install 'treetop[plot]', or leave --plot out"
        ) from None
    names = [row.name for row in rows]
    figure = Figure(figsize=(11, 4 + 0.15 * len(rows)), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _bars(left, names, {"largest": [row.largest for row in rows], "mean": [row.mean for row in rows]})
    left.set(title="absolute error", xscale="symlog")
    rates = {
        "false discoveries, of nodes": [row.false_discoveries for row in rows],
        "of the released count": [row.false_mass for row in rows],
        "false negatives, of nodes": [row.false_negatives for row in rows],
        "of the true count": [row.lost_mass for row in rows],
    }
    _bars(middle, names, rates)
    middle.set(title="rates", xlim=(0, 1), yticklabels=[])
    for row in rows[1:]:
        known = [(at, bias.bias) for at, bias in enumerate(row.biases) if bias.bias is not None]
        right.plot([at for at, _ in known], [bias for _, bias in known], marker="o", label=row.name)
    right.axhline(0, color="grey", linewidth=0.8)
    right.set(title="bias by true count", xlabel="true count")
    right.set_xticks(range(len(rows[0].biases)), [bias.size for bias in rows[0].biases])
    right.legend(fontsize="small")
    figure.suptitle(f"{title}: for the steward only, not for release")
    try:
        figure.savefig(file)
    except (OSError, ValueError) as problem:
        raise ReleaseError(f"{file}: the plot cannot be written: {problem}") from problem


def _bars(axes: Axes, names: list[str], series: dict[str, list[Any]]) -> None:
    height = 0.8 / len(series)
    for i, (label, values) in enumerate(series.items()):
        axes.barh([at + i * height for at in range(len(names))], values, height, label=label)
    axes.set_yticks([at + 0.4 - height / 2 for at in range(len(names))], names)
    axes.invert_yaxis()
    axes.legend(fontsize="small")
