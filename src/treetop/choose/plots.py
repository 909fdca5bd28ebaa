"""The errors of every level against epsilon, as a picture: of measurements and, with a twin, of released counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from treetop.choose.grid import GridRow
from treetop.choose.simulate import Trials
from treetop.errors import PlanError

Lines = dict[tuple[int, ...], list[str]]


def plot_grid(
    rows: Sequence[GridRow], file: Path, title: str, confidence: float, trials: Mapping[float, Trials] | None = None
) -> None:
    """Draw the margins of a grid to a file; with trials at the same epsilons, those of released counts beside them."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlanError(
            "a plot needs matplotlib, which is not installed: pip install 'treetop[plot]', or leave --plot out"
        ) from None
    epsilons = sorted({row.epsilon for row in rows})
    panels = [("one measurement", _measured(rows, epsilons))]
    if trials:
        panels.append(("released counts, on the twin", _released(trials, epsilons)))
    figure = Figure(figsize=(1.2 + 4.4 * len(panels), 4.2), layout="constrained", dpi=110)
    for axes, (what, lines) in zip(figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels, strict=True):
        for place, (margins, names) in enumerate(lines.items()):
            shade = 0.15 + 0.7 * place / max(len(lines) - 1, 1)
            axes.plot(epsilons, margins, marker="o", markersize=4, label=_label(names), color=_colour(shade))
        axes.set(title=what, xlabel="epsilon", xscale="log", yscale="log" if _positive(panels) else "symlog")
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        axes.grid(alpha=0.25, linewidth=0.5)
        axes.legend(fontsize="x-small")
    figure.axes[0].set_ylabel(f"{100 * confidence:g}% are within ± this")
    figure.suptitle(title)
    try:
        figure.savefig(file)
    except (OSError, ValueError) as problem:
        raise PlanError(f"{file}: the plot cannot be written: {problem}") from problem


def _measured(rows: Sequence[GridRow], epsilons: Sequence[float]) -> Lines:
    margins = {(row.name, row.epsilon): row.margin for row in rows}
    # What is not measured is exact, or as the level above.
    names = dict.fromkeys(row.name for row in rows if row.noise > 0)
    return _joined({name: tuple(margins[name, epsilon] for epsilon in epsilons) for name in names})


def _released(trials: Mapping[float, Trials], epsilons: Sequence[float]) -> Lines:
    names = [row.name for row in trials[epsilons[0]].rows]
    margins = {
        name: tuple(trials[epsilon].rows[place].margin for epsilon in epsilons) for place, name in enumerate(names)
    }
    return _joined({name: line for name, line in margins.items() if any(line)})


def _joined(margins: Mapping[str, tuple[int, ...]]) -> Lines:
    """Put levels with the same errors together: their lines would hide one another."""
    lines: Lines = {}
    for name, line in margins.items():
        lines.setdefault(line, []).append(name)
    return lines


def _positive(panels: Sequence[tuple[str, Lines]]) -> bool:
    return all(margin > 0 for _, lines in panels for line in lines for margin in line)


def _label(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 3 else f"{names[0]} … {names[-1]} ({len(names)} levels)"


def _colour(shade: float) -> tuple[float, float, float, float]:
    from matplotlib import colormaps

    red, green, blue, alpha = colormaps["viridis"](shade)
    return red, green, blue, alpha
