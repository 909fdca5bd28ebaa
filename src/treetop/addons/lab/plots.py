"""Plots for the steward only: of a comparison (errors, false discoveries and times) and of the errors of a release."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from treetop._util.picture import EARTH, INK, LEAF, LINE, SOFT, new_figure, plain_ticks, save_figure, tidy
from treetop.addons.lab.comparison import FENCE, Comparison, Setting, Trial
from treetop.release.errors import LevelErrors

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Runs: TypeAlias = Mapping[Setting, Sequence[Trial]]

_ENTRY = 1.55
"""Inches that one entry of a legend takes."""
_MOST_NAMES = 16
"""Most names of levels side by side under a panel; if there are more, every second is shown, or fewer."""


class Style(NamedTuple):
    """The look of a mechanism in every plot."""

    label: str
    colour: str
    marker: str
    line: str

    @property
    def mark(self) -> dict[str, Any]:
        """The arguments of its marks in Matplotlib."""
        return {"label": self.label, "color": self.colour, "marker": self.marker}


# Colours by Okabe and Ito, which people with any common colour blindness tell apart; markers for print in grey.
STYLES = {
    "inftda": Style("InfTDA", "#0072B2", "o", "-"),
    "margins": Style("With margins", "#332288", "d", "-"),
    "facts": Style("With facts", "#117733", "<", "-"),
    "lower-error": Style("Lower error", "#882255", "p", "-"),
    "tda-l2": Style("TDA ℓ₂", "#E69F00", "s", "-"),
    "tda-l2-exact": Style("TDA ℓ₂, exact", "#F0E442", "P", "-"),
    "tda-linf": Style("TDA ℓ∞", "#009E73", "^", "-"),
    "gauss": Style("VanillaGauss", "#D55E00", "D", "--"),
    "sh": Style("SH", "#CC79A7", "v", "--"),
    "bottom-up": Style("Bottom-up", "#999999", "X", ":"),
    "hay": Style("Hay", "#000000", "*", ":"),
    "per-level": Style("Per level", "#56B4E9", "h", ":"),
    "suppression": Style("Suppression", "#AA4499", "1", ":"),
    "rounding": Style("Rounding", "#44AA99", "2", ":"),
}
GROUP_STYLES = {
    "direct-rounded": Style("M_H, rounded", "#E69F00", "s", ":"),
    "direct-exact": Style("M_H, exact", "#D55E00", "D", "--"),
    "direct-joint": Style("M_H, joint", "#CC79A7", "v", "-"),
    "cumulative-rounded": Style("M_c, rounded", "#56B4E9", "h", ":"),
    "cumulative-exact": Style("M_c, exact", "#009E73", "^", "--"),
    "cumulative-joint": Style("M_c, joint", "#0072B2", "o", "-"),
}
"""The same for group sizes, which are never beside the others."""
_EVERY = STYLES | GROUP_STYLES


def style(mechanism: str) -> Style:
    """Return the style of a mechanism; one without has grey crosses."""
    return _EVERY.get(mechanism, Style(mechanism, "#666666", "x", "-."))


def draw_levels(axes: Axes, runs: Runs, metric: Callable[[Trial, int], float]) -> None:
    """Draw a metric by level, a line per setting: means, and bars from the least to the largest run."""
    for place, (setting, trials) in enumerate(_ordered(runs)):
        levels = range(len(trials[0].errors))
        values = [[metric(trial, level) for trial in trials] for level in levels]
        mean = [fmean(value) for value in values]
        below = [at - min(value) for at, value in zip(mean, values, strict=True)]
        above = [max(value) - at for at, value in zip(mean, values, strict=True)]
        look = style(setting.mechanism)
        # Side by side: bars at one place would hide one another.
        aside = (place - (len(runs) - 1) / 2) * 0.06
        places = [level + aside for level in levels]
        thin: dict[str, Any] = {"linewidth": 1.1, "markersize": 4, "capsize": 1.5, "elinewidth": 0.8}
        axes.errorbar(places, mean, yerr=[below, above], linestyle=look.line, **look.mark, **thin)
    axes.set_xlabel("level")
    tidy(axes)


def draw_times(axes: Axes, runs: Runs) -> None:
    """Draw the time of whole runs, a point a setting with a bar to its extremes, on a logarithmic scale."""
    for place, (setting, trials) in enumerate(_ordered(runs)):
        values = [trial.seconds for trial in trials]
        mean = fmean(values)
        look = style(setting.mechanism)
        bar = [[mean - min(values)], [max(values) - mean]]
        axes.errorbar(place, mean, yerr=bar, capsize=3, **look.mark)
    axes.set_xticks(range(len(runs)), [style(setting.mechanism).label for setting, _ in _ordered(runs)], rotation=60)
    axes.set_xlim(-0.5, len(runs) - 0.5)
    axes.set_yscale("log")
    tidy(axes)
    plain_ticks(axes, "y", every=(1, 2, 5))


def draw_errors(axes: Axes, runs: Runs) -> None:
    """Draw the largest absolute error of every level."""
    draw_levels(axes, runs, lambda trial, level: trial.errors[level].largest)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=-0.3)
    plain_ticks(axes, "y")


def draw_invented(axes: Axes, runs: Runs) -> None:
    """Draw the false discovery rate of every level, in percent."""
    draw_levels(axes, runs, lambda trial, level: 100 * trial.errors[level].false_discoveries)
    axes.set_ylim(-3, 103)


def legend(figure: Figure, all_axes: Iterable[Axes]) -> None:
    """Put one legend for all panels below them."""
    found: dict[str, Artist] = {}
    for axes in all_axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(str(label), handle)
    order = [look.label for look in _EVERY.values()]
    labels = sorted(found, key=lambda label: order.index(label) if label in order else len(order))
    columns = min(len(labels), _legend_columns(figure.get_figwidth()))
    figure.legend([found[label] for label in labels], labels, loc="outside lower center", ncols=columns)


def _legend_columns(width: float) -> int:
    return max(1, min(int(width / _ENTRY), 7))


def save_plots(comparison: Comparison, folder: Path, title: str) -> list[Path]:
    """Draw error, false discoveries and time, a row per accounting and a column per epsilon; return the files."""
    runs = comparison.by_setting()
    rows = sorted({setting.accounting for setting in runs}, reverse=True)
    columns = sorted({setting.epsilon for setting in runs})
    width = max(3.2 * len(columns) + 0.8, 6.4)
    heading = "\n".join([*textwrap.wrap(title, int(11 * width)), FENCE])
    mechanisms = len({setting.mechanism for setting in runs})
    names = [level.name for level in next(iter(runs.values()))[0].errors]
    below = 0.25 * ceil(mechanisms / _legend_columns(width)) + 0.06 * max(map(len, names))
    files = []
    for name, what, panel in (
        ("error", "largest absolute error", draw_errors),
        ("false_discoveries", "false discovery rate (%)", draw_invented),
        ("time", "seconds of one processor", draw_times),
    ):
        figure = new_figure(width, 2.7 * len(rows) + 0.8 + below)
        grid = figure.subplots(len(rows), len(columns), sharex=name != "time", sharey=True, squeeze=False)
        for accounting, line in zip(rows, grid, strict=True):
            line[0].set_ylabel(what)
            for epsilon, axes in zip(columns, line, strict=True):
                here = {at: runs[at] for at in runs if (at.accounting, at.epsilon) == (accounting, epsilon)}
                panel(axes, here)
                axes.set_xlabel("")
                axes.set_title(f"epsilon {epsilon:g}, {accounting} accounting", fontsize="medium", loc="left")
        if name != "time":  # there every point stands above its name
            for axes in grid[-1]:
                shown = range(0, len(names), ceil(len(names) / _MOST_NAMES))
                labels = [names[at] for at in shown]
                axes.set_xticks(shown, labels, rotation=50, ha="right", rotation_mode="anchor", fontsize="small")
            legend(figure, grid.flat)
        figure.suptitle(heading, fontsize="medium", x=0.01, ha="left", color=INK)
        files.append(folder / f"{name}.png")
        figure.savefig(files[-1], dpi=130)
    return files


def _ordered(runs: Runs) -> list[tuple[Setting, Sequence[Trial]]]:
    order = list(_EVERY)
    return sorted(
        runs.items(), key=lambda item: order.index(item[0].mechanism) if item[0].mechanism in order else len(order)
    )


def plot_errors(rows: tuple[LevelErrors, ...], file: Path, title: str) -> None:
    """Draw errors, invented and lost counts by level, and biases of leaves, to a file of the steward's choice."""
    names = [row.counts for row in rows]
    figure = new_figure(13, 1.6 + 0.3 * len(rows), dpi=120)
    left, middle, right = figure.subplots(1, 3, width_ratios=(4, 3, 3))
    most = max(1, *(row.largest for row in rows))
    _pairs(left, names, [row.mean for row in rows], [row.largest for row in rows], ("mean", "largest"))
    left.set_title("How far off a count is", loc="left")
    left.set(xscale="symlog", xlim=(-0.3, 2.5 * most), xlabel="absolute error")
    invented, lost = (
        [100 * (getattr(row, name) or 0) for row in rows] for name in ("false_discoveries", "false_negatives")
    )
    _pairs(middle, names, lost, invented, ("lost", "invented"))
    middle.set_title("Invented and lost", loc="left")
    middle.set(xlim=(-3, 103), xlabel="% of released counts invented, of true counts lost", yticklabels=[])
    leaves = max(rows, key=lambda row: row.nodes)
    known = [(at, bias.bias) for at, bias in enumerate(leaves.biases) if bias.bias is not None]
    right.bar(
        [at for at, _ in known],
        [bias for _, bias in known],
        color=[LEAF if b >= 0 else EARTH for _, b in known],
        width=0.6,
    )
    right.axhline(0, color=SOFT, linewidth=0.8)
    right.set_title("Too high or too low, at the leaves", loc="left")
    right.set(xlabel="true count", ylabel="mean of released less true")
    right.set_xticks(range(len(leaves.biases)), [bias.size for bias in leaves.biases])
    for axes, grid in ((left, "x"), (middle, "x"), (right, "y")):
        tidy(axes, grid)  # type: ignore[arg-type]
    plain_ticks(left, "x")
    figure.suptitle(f"{title}: {FENCE}", x=0.01, ha="left", color=INK, fontsize=12)
    save_figure(figure, file)


def _pairs(
    axes: Axes, names: Sequence[str], one: Sequence[float], other: Sequence[float], words: tuple[str, str]
) -> None:
    """Draw two numbers a row as two dots on a line, named above the first row."""
    rows = range(len(names))
    axes.hlines(rows, one, other, color=LINE, linewidth=2.5, zorder=1)
    for values, colour, word in ((one, LEAF, words[0]), (other, EARTH, words[1])):
        axes.scatter(values, rows, color=colour, s=26, zorder=2, label=word)
    axes.set_yticks(rows, names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.legend(
        loc="lower right", bbox_to_anchor=(1, 0.99), ncols=2, fontsize=9, frameon=False, handletextpad=0.1, borderpad=0
    )
