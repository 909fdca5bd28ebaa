"""The paper's figures 3 to 6 from what was measured: points are means, bars reach from the least to the largest run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.inftda.measure import EPSILONS, REAL
from experiments.kit.cases import MADE_UP
from experiments.kit.figures import save_all
from treetop._util.picture import new_figure
from treetop.addons.lab.comparison import Comparison
from treetop.addons.lab.plots import Runs, draw_errors, draw_invented, draw_times, legend, style

SHOWN = ("inftda", "tda-l2", "tda-linf", "gauss", "sh", "hay")
"""The paper's mechanisms, and the hierarchical one that it names and leaves out."""
ERROR, INVENTED, TIME = "largest absolute error", "false discovery rate (%)", "processor seconds"


def draw(found: Mapping[str, Comparison], images: Path) -> list[Path]:
    """Draw all figures whose tables were measured, and return the files."""
    there = [name for name in MADE_UP if name in found]
    figures = {"new-york": figure_3(found[REAL])} if REAL in found else {}
    for tree in ("binary", "random"):
        figures[f"error_{tree}"] = _grid(found, [name for name in there if name.startswith(tree)], draw_errors, ERROR)
    sparse = [name for name in there if name.endswith("sparse")]
    figures["false_discoveries"] = _grid(found, sparse, draw_invented, INVENTED)
    figures["time"] = figure_6(found, there)
    return save_all({f"inftda_{name}.png": figure for name, figure in figures.items()}, images, dpi=105)


def runs_at(found: Comparison, epsilon: float, names: Sequence[str] = SHOWN) -> Runs:
    """Return the runs of some mechanisms at one epsilon under the paper's accounting."""
    return {
        setting: trials
        for setting, trials in found.by_setting().items()
        if (setting.accounting, setting.epsilon) == ("paper", epsilon) and setting.mechanism in names
    }


def figure_3(found: Comparison) -> Figure:
    """The real table: error, false discoveries and time, a column an epsilon."""
    figure = new_figure(9.5, 8.2)
    grid = figure.subplots(3, len(EPSILONS), sharey="row")
    for column, epsilon in enumerate(EPSILONS):
        runs = runs_at(found, epsilon)
        draw_errors(grid[0][column], runs)
        draw_invented(grid[1][column], runs)
        draw_times(grid[2][column], runs)
        grid[0][column].set_title(f"ε = {epsilon:g}")
    for line, what in zip(grid, (ERROR, INVENTED, TIME), strict=True):
        line[0].set_ylabel(what)
    legend(figure, grid[0])
    return figure


def figure_6(found: Mapping[str, Comparison], names: Sequence[str]) -> Figure:
    """The time on each made-up table, a panel an epsilon."""
    figure = new_figure(9.5, 4.3)
    panels = figure.subplots(1, len(EPSILONS), sharey=True, squeeze=False)[0]
    for axes, epsilon in zip(panels, EPSILONS, strict=True):
        for aside, mechanism in enumerate(SHOWN):
            look = style(mechanism)
            shift = (aside - (len(SHOWN) - 1) / 2) * 0.11
            for place, name in enumerate(names):
                for trials in runs_at(found[name], epsilon, (mechanism,)).values():
                    times = [trial.seconds for trial in trials]
                    mean = sum(times) / len(times)
                    bar = [[mean - min(times)], [max(times) - mean]]
                    axes.errorbar(place + shift, mean, bar, markersize=5, **look.mark)
        axes.set_xticks(range(len(names)), names, fontsize="small", rotation=40, ha="right")
        axes.set_yscale("log")
        axes.set_title(f"ε = {epsilon:g}")
        axes.grid(alpha=0.25, linewidth=0.5)
    panels[0].set_ylabel(TIME)
    legend(figure, panels)
    return figure


def _grid(
    found: Mapping[str, Comparison], names: Sequence[str], panel: Callable[[Axes, Runs], None], what: str
) -> Figure:
    figure = new_figure(9.5, 2.5 * len(names) + 0.9)
    grid = figure.subplots(len(names), len(EPSILONS), sharex="row", sharey="row", squeeze=False)
    for line, name in zip(grid, names, strict=True):
        for axes, epsilon in zip(line, EPSILONS, strict=True):
            panel(axes, runs_at(found[name], epsilon))
            axes.set_title(f"{name.replace('-', ', ')}, ε = {epsilon:g}", fontsize="medium")
            axes.set_xlabel("level" if name == names[-1] else "")
        line[0].set_ylabel(what)
    legend(figure, grid.flat)
    return figure
