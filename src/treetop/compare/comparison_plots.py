"""Plots of a comparison: errors, false discoveries and times, with bars from the least to the largest run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from treetop.compare.comparison import FENCE, Comparison
from treetop.compare.trial import Setting, Trial
from treetop.errors import ReleaseError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Runs: TypeAlias = Mapping[Setting, Sequence[Trial]]

_ENTRY = 1.55
"""The inches that one entry of a legend takes."""
_MOST_NAMES = 16
"""How many names of levels stand side by side under a panel; of more, every second is shown, or fewer."""


class Style(NamedTuple):
    """How a mechanism looks in every plot."""

    label: str
    colour: str
    marker: str
    line: str


# Colours by Okabe and Ito, which people with any common colour blindness tell apart; markers for print in grey.
STYLES = {
    "inftda": Style("InfTDA", "#0072B2", "o", "-"),
    "lower-error": Style("Lower error", "#882255", "p", "-"),
    "tda-l2": Style("TDA ℓ₂", "#E69F00", "s", "-"),
    "tda-l2-exact": Style("TDA ℓ₂, exact", "#F0E442", "P", "-"),
    "tda-linf": Style("TDA ℓ∞", "#009E73", "^", "-"),
    "gauss": Style("VanillaGauss", "#D55E00", "D", "--"),
    "sh": Style("SH", "#CC79A7", "v", "--"),
    "bottom-up": Style("Bottom-up", "#999999", "X", ":"),
    "hay": Style("Hay", "#000000", "*", ":"),
    "per-level": Style("Per level", "#56B4E9", "h", ":"),
}
"""By mechanism, in the order of legends."""


def style(mechanism: str) -> Style:
    """Return the style of a mechanism; one without has grey crosses."""
    return STYLES.get(mechanism, Style(mechanism, "#666666", "x", "-."))


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that needs no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ReleaseError(
            'plots need matplotlib, which is not installed: pip install "treetop[compare]", or leave the plots out '
            "(--no-plots)"
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def draw_levels(axes: Axes, runs: Runs, metric: Callable[[Trial, int], float]) -> None:
    """Draw a metric by level, a line a setting: means, and bars from the least to the largest run."""
    for place, (setting, trials) in enumerate(_ordered(runs)):
        levels = range(len(trials[0].errors))
        values = [[metric(trial, level) for trial in trials] for level in levels]
        mean = [fmean(value) for value in values]
        below = [at - min(value) for at, value in zip(mean, values, strict=True)]
        above = [max(value) - at for at, value in zip(mean, values, strict=True)]
        look = style(setting.mechanism)
        # Side by side: bars at one place would hide one another.
        aside = (place - (len(runs) - 1) / 2) * 0.06
        axes.errorbar(
            [level + aside for level in levels],
            mean,
            yerr=[below, above],
            label=look.label,
            color=look.colour,
            marker=look.marker,
            linestyle=look.line,
            linewidth=1.1,
            markersize=4,
            capsize=1.5,
            elinewidth=0.8,
        )
    axes.set_xlabel("level")
    axes.grid(alpha=0.25, linewidth=0.5)


def draw_points(axes: Axes, runs: Runs, metric: Callable[[Trial], float]) -> None:
    """Draw a metric of whole runs, a point a setting with a bar to its extremes, on a logarithmic scale."""
    for place, (setting, trials) in enumerate(_ordered(runs)):
        values = [metric(trial) for trial in trials]
        mean = fmean(values)
        look = style(setting.mechanism)
        bar = [[mean - min(values)], [max(values) - mean]]
        axes.errorbar(place, mean, yerr=bar, color=look.colour, marker=look.marker, label=look.label, capsize=3)
    axes.set_xticks(range(len(runs)), [style(setting.mechanism).label for setting, _ in _ordered(runs)], rotation=60)
    axes.set_xlim(-0.5, len(runs) - 0.5)
    axes.set_yscale("log")
    axes.grid(alpha=0.25, linewidth=0.5)


def largest(trial: Trial, level: int) -> float:
    """The largest absolute error at a level."""
    return trial.errors[level].largest


def invented(trial: Trial, level: int) -> float:
    """The false discovery rate at a level, in percent."""
    return 100 * trial.errors[level].false_discoveries


def legend(figure: Figure, all_axes: Iterable[Axes]) -> None:
    """Put one legend for all panels below them."""
    found: dict[str, Artist] = {}
    for axes in all_axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(str(label), handle)
    order = [look.label for look in STYLES.values()]
    labels = sorted(found, key=lambda label: order.index(label) if label in order else len(order))
    columns = min(len(labels), _legend_columns(figure.get_figwidth()))
    figure.legend([found[label] for label in labels], labels, loc="outside lower center", ncols=columns)


def _legend_columns(width: float) -> int:
    return max(1, min(int(width / _ENTRY), 7))


def name_levels(axes: Axes, names: Sequence[str]) -> None:
    """Name the levels on the axis that they are drawn along."""
    shown = range(0, len(names), ceil(len(names) / _MOST_NAMES))
    axes.set_xticks(
        shown, [names[at] for at in shown], rotation=50, ha="right", rotation_mode="anchor", fontsize="small"
    )


def save_plots(comparison: Comparison, folder: Path, title: str) -> list[Path]:
    """Draw error, false discoveries and time, a row an accounting and a column an epsilon; return the files."""
    runs = comparison.by_setting()
    rows = sorted({setting.accounting for setting in runs}, reverse=True)
    columns = sorted({setting.epsilon for setting in runs})
    width = max(3.2 * len(columns) + 0.8, 6.4)
    heading = "\n".join([*textwrap.wrap(title, int(11 * width)), FENCE])
    mechanisms = len({setting.mechanism for setting in runs})
    below = 0.25 * ceil(mechanisms / _legend_columns(width)) + 0.06 * max(map(len, _level_names(runs)))
    files = []
    for name, what in (
        ("error", "largest absolute error"),
        ("false_discoveries", "false discovery rate (%)"),
        ("time", "seconds of one processor"),
    ):
        figure = new_figure(width, 2.7 * len(rows) + 0.8 + below)
        grid = figure.subplots(len(rows), len(columns), sharex=name != "time", sharey=True, squeeze=False)
        for accounting, line in zip(rows, grid, strict=True):
            line[0].set_ylabel(what)
            for epsilon, axes in zip(columns, line, strict=True):
                here = {at: runs[at] for at in runs if (at.accounting, at.epsilon) == (accounting, epsilon)}
                _panel(axes, here, name)
                axes.set_title(f"ε = {epsilon:g}, {accounting} accounting", fontsize="medium")
        if name != "time":  # there every point stands above its name
            for axes in grid[-1]:
                name_levels(axes, _level_names(runs))
            legend(figure, grid.flat)
        figure.suptitle(heading, fontsize="medium")
        files.append(folder / f"{name}.png")
        figure.savefig(files[-1], dpi=130)
    return files


def _panel(axes: Axes, runs: Runs, name: str) -> None:
    if name == "time":
        draw_points(axes, runs, lambda trial: trial.seconds)
    elif name == "error":
        draw_levels(axes, runs, largest)
        axes.set_xlabel("")
        axes.set_yscale("symlog", linthresh=1)
    else:
        draw_levels(axes, runs, invented)
        axes.set_xlabel("")
        axes.set_ylim(-3, 103)


def _level_names(runs: Runs) -> list[str]:
    return [level.name for level in next(iter(runs.values()))[0].errors]


def _ordered(runs: Runs) -> list[tuple[Setting, Sequence[Trial]]]:
    order = list(STYLES)
    return sorted(
        runs.items(),
        key=lambda item: order.index(item[0].mechanism) if item[0].mechanism in order else len(order),
    )
