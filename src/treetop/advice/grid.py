"""A grid: the expected errors of every level at several losses, side by side, as a table or as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias

from treetop._util.numbers import Number
from treetop._util.picture import INK, label_ends, new_figure, plain_ticks, save_figure, tidy
from treetop.advice.expected import mean_absolute_of_count
from treetop.advice.simulate import Trials
from treetop.domain.constraints import PublicFacts
from treetop.domain.marginal import Margins
from treetop.domain.spine import Spine
from treetop.domain.unit import Unknown
from treetop.errors import LossError
from treetop.plan.plan import Plan
from treetop.plan.workload import text_table
from treetop.privacy import Loss, Split, Unit
from treetop.privacy.loss import Accounting

Lines: TypeAlias = dict[tuple[int, ...], list[str]]
"""By the margins at each epsilon, the levels that have them."""


@dataclass(frozen=True)
class GridRow:
    """What to expect of the measurements of one level at one loss."""

    epsilon: float
    """The epsilon of the whole release."""
    level: int
    """The position in the spine; the total is 0."""
    name: str
    """The name of the level."""
    nodes: int
    """How many nodes the public domain has there."""
    noise: float
    """The standard deviation of one measurement; 0 where nothing is measured."""
    mean: float
    """The mean absolute error of one count, by the measurements of its level alone."""
    margin: int
    """One count is within this of the truth with the confidence that was asked for, by its level alone."""


def error_grid(
    spine: Spine,
    unit: Unit,
    epsilons: Sequence[Number],
    delta: Number | None = None,
    split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform",
    *,
    unknown: Unknown = "error",
    confidence: float = 0.95,
    accounting: Accounting | None = None,
    margins: Margins = "none",
    facts: PublicFacts | None = None,
    terms: int = 1,
) -> tuple[GridRow, ...]:
    """Return the errors of every level and margin at every epsilon (pure without a delta); no data is read.

    `terms` is the number of measurements that one count is made of (`Plan.terms`).
    """
    if not epsilons:
        raise LossError("the grid has no epsilon: give at least one")
    if not 0 < confidence < 1:
        raise LossError(f"confidence is {confidence}: give a probability between 0 and 1")
    risk = 1 - Fraction(str(confidence))
    rows = []
    for epsilon in epsilons:
        loss = Loss(epsilon=epsilon, delta=delta, accounting=accounting)
        plan = Plan(spine, unit, loss, split=split, unknown=unknown, margins=margins, facts=facts or {})
        for level in plan.workload:
            mean = mean_absolute_of_count(level.law, terms) if level.is_measured else 0.0
            errors = (level.deviation, mean, level.margin(risk, terms))
            rows.append(GridRow(float(epsilon), level.index, level.name, level.nodes, *errors))
    return tuple(rows)


def render_grid(rows: Sequence[GridRow]) -> str:
    """Return the margins as a table for people: a row per level, a column per epsilon."""
    epsilons = list(dict.fromkeys(row.epsilon for row in rows))
    cells = {(row.level, row.epsilon): f"{row.margin:,.4g}" for row in rows}
    levels = {row.level: (str(row.level), row.name, f"{row.nodes:,}") for row in rows}
    head = ("level", "name", "public nodes", *(f"epsilon {epsilon:g}" for epsilon in epsilons))
    body = [(*start, *(cells[level, epsilon] for epsilon in epsilons)) for level, start in levels.items()]
    return text_table([head, *body], left=(1,))


def plot_grid(
    rows: Sequence[GridRow], file: Path, title: str, confidence: float, trials: Mapping[float, Trials] | None = None
) -> None:
    """Draw the margins of a grid to a file; with trials at the same epsilons, those of released counts beside them."""
    epsilons = sorted({row.epsilon for row in rows})
    panels = [("one count, as measured", _measured(rows, epsilons))]
    if trials:
        panels.append(("released counts, on the twin", _released(trials, epsilons)))
    longest = max(len(_label(names)) for _, lines in panels for names in lines.values()) if panels[0][1] else 0
    figure = new_figure(1.2 + (3.6 + 0.075 * longest) * len(panels), 4.2, dpi=130)
    from matplotlib import colormaps

    found = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (what, lines) in zip(found, panels, strict=True):
        for place, margins in enumerate(lines):
            axes.plot(epsilons, margins, marker="o", markersize=4, linewidth=1.8, color=_shade(colormaps, place, lines))
        axes.set(xlabel="epsilon", xscale="log", yscale="log" if _positive(panels) else "symlog")
        axes.set_title(what, loc="left")
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        tidy(axes)
        plain_ticks(axes, "y")
    figure.axes[0].set_ylabel(f"off by at most this, {100 * confidence:g} times in 100")
    figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=12)
    figure.draw_without_rendering()  # limits are known from here on
    for axes, (_, lines) in zip(found, panels, strict=True):
        ends = enumerate(lines.items())
        label_ends(
            axes, epsilons[-1], [(own[-1], _label(names), _shade(colormaps, at, lines)) for at, (own, names) in ends]
        )
    save_figure(figure, file)


def _shade(maps: Any, place: int, lines: Lines) -> Any:
    return maps["viridis"](0.1 + 0.65 * place / max(len(lines) - 1, 1))


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
