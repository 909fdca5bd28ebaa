"""A grid: the expected errors of every level at several losses, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from treetop.basics.exact import Number
from treetop.choose.error_laws import mean_absolute
from treetop.domain.spine import Spine
from treetop.errors import LossError
from treetop.plan.accuracy import text_table
from treetop.plan.plan import Plan
from treetop.privacy import Loss, Split, Unit
from treetop.read.encode import Unknown


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
    """The mean absolute error of one measurement."""
    margin: int
    """One measurement is within this of the truth with the confidence that was asked for."""


def error_grid(
    spine: Spine,
    unit: Unit,
    epsilons: Sequence[Number],
    delta: Number | None = None,
    split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform",
    *,
    unknown: Unknown = "error",
    confidence: float = 0.95,
) -> tuple[GridRow, ...]:
    """Return the errors of every level at every epsilon (pure without a delta); no data is read."""
    if not epsilons:
        raise LossError("the grid has no epsilon: give at least one")
    if not 0 < confidence < 1:
        raise LossError(f"confidence is {confidence}: give a probability between 0 and 1")
    risk = 1 - Fraction(str(confidence))
    rows = []
    for epsilon in epsilons:
        plan = Plan(spine, unit, Loss(epsilon=epsilon, delta=delta), split=split, unknown=unknown)
        for level in plan.levels:
            law = level.law
            errors = (0.0, 0.0, 0) if law is None else (law.standard_deviation, mean_absolute(law), law.margin(risk))
            rows.append(GridRow(float(epsilon), level.index, level.name, level.nodes, *errors))
    return tuple(rows)


def render_grid(rows: Sequence[GridRow]) -> str:
    """Return the margins as a table for people: a row a level, a column an epsilon."""
    epsilons = list(dict.fromkeys(row.epsilon for row in rows))
    cells = {(row.level, row.epsilon): f"{row.margin:,.4g}" for row in rows}
    levels = {row.level: (str(row.level), row.name, f"{row.nodes:,}") for row in rows}
    head = ("level", "name", "public nodes", *(f"epsilon {epsilon:g}" for epsilon in epsilons))
    body = [(*start, *(cells[level, epsilon] for epsilon in epsilons)) for level, start in levels.items()]
    return text_table([head, *body], left=(1,))
