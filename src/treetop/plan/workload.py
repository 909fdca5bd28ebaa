"""A workload: the ordered tables of one run, each with its public cells and noise."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from treetop._util.choices import nearest
from treetop._util.numbers import Number, positive
from treetop.domain.marginal import MARGIN, Margin
from treetop.domain.spine import LARGEST_TOTAL, Spine
from treetop.domain.unit import TOTAL, Unknown, drops
from treetop.errors import LossError, PlanError
from treetop.noise import DiscreteGaussian, Law
from treetop.noise.sum_noise import sum_margin
from treetop.privacy import Loss, Split, SplitLike, Unit, shares
from treetop.privacy.accountant import cost, is_exact_by_default, level_noise, rho_of_levels
from treetop.privacy.composition import Cells


@dataclass(frozen=True)
class Exact:
    """Released exactly: all neighbours have the same."""


@dataclass(frozen=True)
class PassThrough:
    """Not measured, since it follows from another table: an only child from its parent, a sum from its parts."""


@dataclass(frozen=True)
class Measured:
    """Measured with noise on every cell."""

    law: Law


How: TypeAlias = Exact | PassThrough | Measured


def noise_of(how: How) -> Law | None:
    """Return the noise of a measured table; None for others."""
    return how.law if isinstance(how, Measured) else None


@dataclass(frozen=True)
class Part:
    """One table of a workload, such as a level of the spine."""

    index: int
    """Position in the workload; on a spine the total is 0."""
    name: str
    nodes: int
    share: Fraction
    how: How
    cost: Fraction = Fraction(0)

    @property
    def is_exact(self) -> bool:
        """Whether it is released without noise."""
        return isinstance(self.how, Exact)

    @property
    def is_measured(self) -> bool:
        """Whether it is measured with noise."""
        return isinstance(self.how, Measured)

    @property
    def law(self) -> Law:
        """The noise of one cell of a measured table."""
        if not isinstance(self.how, Measured):
            raise PlanError(f"{self.name} is not measured, and has no noise")
        return self.how.law

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of one cell; 0 without noise."""
        return self.law.standard_deviation if self.is_measured else 0.0

    def margin(self, risk: Fraction, terms: int = 1) -> int:
        """Return the exact quantile of the error of one measurement, a bound for a sum of several; 0 if exact."""
        if not self.is_measured:
            return 0
        return self.law.margin(risk) if terms == 1 else sum_margin(self.law, terms, risk / 2)

    def describe(self) -> dict[str, Any]:
        """Return it as plain values, for cards and digests."""
        return {
            "level": self.index,
            "name": self.name,
            "nodes": self.nodes,
            "share": str(self.share),
            "cost": str(self.cost),
            "noise": self.law.describe() if self.is_measured else None,
        }


@dataclass(frozen=True)
class Workload:
    """Everything that one run measures of private counts."""

    parts: tuple[Part, ...]

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def measured(self) -> list[tuple[Part, Law]]:
        """The measured tables, each with its noise."""
        return [(part, part.how.law) for part in self.parts if isinstance(part.how, Measured)]

    @property
    def spent(self) -> Fraction:
        """The cost of a run: its tables add up (Bun and Steinke 2016, Lemma 1.7)."""
        return sum((part.cost for part in self.parts), Fraction(0))


def cells_of(unit: Unit, workload: Workload) -> Cells | None:
    """Return the number of cells that one unit moves by one in each measured table, with the noise variance, in order.

    None if it may move one by more, or if some noise is not the discrete Gaussian. The cost of a table is half the sum
    of squared changes by the unit, divided by the variance; this gives the number of cells.
    """
    cells = []
    for part, law in workload.measured:
        if not unit.moves_by_one or type(law) is not DiscreteGaussian:
            return None
        number = 2 * part.cost * law.variance
        if number.denominator != 1:
            raise PlanError(f"{part.name} costs {part.cost}, which no number of cells with its noise does")
        cells.append((law.variance, int(number)))
    return tuple(cells) or None


# The tables of a plan, levels and margins: their shares of the loss, their noise and their costs.

ALL_MARGINS = "margins"
"""Name of all margins together in a split."""
SHARE_OF_MARGINS = Fraction(3, 10)
"""Default share of the loss for all margins together."""
WEIGHT_OF_LEAVES = 2
"""Weight of the leaves relative to other levels, if margins are kept and the split is uniform: margins improve sums of
leaves, but hardly the leaves."""


def plan_tables(
    spine: Spine,
    unit: Unit,
    loss: Loss,
    split: SplitLike,
    margins: Sequence[Margin] = (),
    *,
    known: Container[int] = (),
    records_may_be_dropped: bool,
) -> tuple[Fraction, Workload]:
    """Return the budget of the tables (epsilon if pure, otherwise rho) and the tables: levels, then margins.

    The levels that are `known`, by their positions, follow from public facts and cost nothing.
    """
    public_total = unit.total_is_exact(records_may_be_dropped) or 0 in known
    nodes = [(TOTAL, 1, not (public_total or unit.total_follows))]
    nodes += [(level.name, level.nodes, level.divides and level.index not in known) for level in spine.levels]
    measured = [name for name, _, is_measured in nodes if is_measured]
    share = table_shares(split, measured, [margin.part for margin in margins])
    widest = [1, *(level.widest for level in spine.levels), *(margin.nodes for margin in margins)]
    nodes += [(margin.part, margin.nodes, True) for margin in margins]
    exact = {0} if public_total else set()
    exact |= {level.index for level in spine.levels if level.index in known and level.divides}
    return _measured(unit, loss, [(name, size) for name, size, _ in nodes], share, exact, widest)


def joint_tables(
    spine: Spine, unit: Unit, loss: Loss, split: SplitLike,
    margins: Sequence[Margin], *, dropped: bool,
) -> tuple[Fraction, Workload]:  # fmt: skip
    """Return the same of a joint fit, which measures no level below the total unless it is listed with the margins."""
    public_total = unit.total_is_exact(dropped)
    nodes = [(TOTAL, 1), *((level.name, level.nodes) for level in spine.levels)]
    nodes += [(margin.part, margin.nodes) for margin in margins]
    measured = [*([] if public_total else [TOTAL]), *(margin.part for margin in margins)]
    share = dict(zip(measured, shares(split, measured), strict=True))
    return _measured(unit, loss, nodes, share, {0} if public_total else set(), [size for _, size in nodes])


def _measured(
    unit: Unit, loss: Loss, nodes: Sequence[tuple[str, int]], share: Mapping[str, Fraction], exact: Container[int],
    widest: Sequence[int],
) -> tuple[Fraction, Workload]:  # fmt: skip
    """Return the budget, and tables by name and size, of which those with a share are measured."""
    divided = _spent_by(unit, loss, share)
    parts = []
    for index, (name, size) in enumerate(nodes):
        if name not in share:
            parts.append(Part(index, name, size, Fraction(0), Exact() if index in exact else PassThrough()))
            continue
        law = level_noise(unit, divided, name, share[name])
        if law.margin(Fraction(1, 2**80)) * widest[index] + LARGEST_TOTAL >= 2**56:  # sums could leave 64 bits
            raise LossError(f"the noise of {name} would be too wide for 64-bit counts: give the level more of the loss")
        parts.append(Part(index, name, size, share[name], Measured(law), cost(unit, name, law)))
    workload = Workload(tuple(parts))
    if workload.spent > divided.budget:  # exact arithmetic: a bug, not rounding
        raise PlanError(f"the levels would cost {workload.spent}, more than the loss {divided.budget}")
    return divided.budget, workload


def table_shares(split: SplitLike, levels: Sequence[str], margins: Sequence[str]) -> dict[str, Fraction]:
    """Return each measured table's share of the loss.

    A split that names no margin divides the levels' part among the levels. A split that names margins only states their
    shares of the loss, and the levels divide the rest.
    """
    if not levels:
        return {}
    if not margins:
        return dict(zip(levels, shares(split, levels), strict=True))
    named = split.shares if isinstance(split, Split) else split if isinstance(split, Mapping) else {}
    beside = [name for name in named if name == ALL_MARGINS or name.startswith(MARGIN)]
    if not beside:
        weights = split if split != "uniform" else _usual(levels)
        own = dict(zip(levels, shares(weights, levels), strict=True))
        left = {name: (1 - SHARE_OF_MARGINS) * share for name, share in own.items()}
        return left | dict.fromkeys(margins, SHARE_OF_MARGINS / len(margins))
    if len(beside) == len(named):
        return _with_shares_of_margins(named, levels, margins)
    stated = _stated(named, margins)
    every = [*levels, *margins]
    return dict(zip(every, shares(Split(stated) if isinstance(split, Split) else stated, every), strict=True))


def without_margins(split: SplitLike) -> Literal["uniform"] | Split:
    """Return the split of the loss among levels alone."""
    named = split.shares if isinstance(split, Split) else split if isinstance(split, Mapping) else {}
    own = {name: weight for name, weight in named.items() if name != ALL_MARGINS and not name.startswith(MARGIN)}
    return Split.weighted(own) if own else "uniform"


def _usual(levels: Sequence[str]) -> dict[str, Number]:
    return {**dict.fromkeys(levels, 1), levels[-1]: WEIGHT_OF_LEAVES}


def _with_shares_of_margins(
    named: Mapping[str, Number], levels: Sequence[str], margins: Sequence[str]
) -> dict[str, Fraction]:
    """Return the shares if only those of margins are stated."""
    stated = _stated(named, margins)
    for name in stated:
        if name not in margins:
            raise LossError(f"The split names {name!r}, which is not measured{nearest(name, margins)}.")
    if missing := [name for name in margins if name not in stated]:
        raise LossError(
            f"The split leaves out {', '.join(missing)}; give them a share, or all that are not named one: "
            f"{ALL_MARGINS} = 0.3."
        )
    taken = sum(stated.values(), Fraction(0))
    if taken >= 1:
        raise LossError(
            f"The split names margins alone, which then are shares of the whole loss, and they take {float(taken):g} "
            "of 1; leave the levels something, or give every level a weight as well."
        )
    own = shares(_usual(levels), levels)
    return {level: (1 - taken) * share for level, share in zip(levels, own, strict=True)} | stated


def _stated(named: Mapping[str, Number], margins: Sequence[str]) -> dict[str, Fraction]:
    """Return the numbers of a split; the number of all margins is divided evenly among those without their own."""
    stated = {name: positive(value, f"The weight of {name}") for name, value in named.items() if name != ALL_MARGINS}
    rest = [name for name in margins if name not in stated]
    if ALL_MARGINS in named:
        if not rest:
            raise LossError(f"The split names every margin, and {ALL_MARGINS} as well; leave one of them out.")
        stated |= dict.fromkeys(rest, positive(named[ALL_MARGINS], "The weight of margins") / len(rest))
    return stated


def _spent_by(unit: Unit, loss: Loss, share: Mapping[str, Fraction]) -> Loss:
    """Return the loss that the levels divide: with exact accounting, the rho that it allows for these shares."""
    by_default = is_exact_by_default(unit, loss)
    if not share or not (by_default or loss.accounting == "exact"):
        return loss
    try:
        return Loss(rho=rho_of_levels(unit, loss, share))
    except LossError:
        if not by_default:
            raise
        return loss  # too extreme to be computed: rho keeps it too


# Splits of the loss that need only the plan: presets, and by the number of public nodes. All return a weight for every
# measured level, for `Plan(split=…)`.

SMALLEST_SHARE = 0.001
"""Least share of a level, given to levels with weight 0: they are measured all the same."""

_DIGITS = 6


@dataclass(frozen=True)
class NamedSplit:
    """A split that a plan file can name."""

    words: str
    weights: Callable[[Spine, Unit, Loss, Unknown, Container[str]], dict[str, Fraction]]


def measured_levels(spine: Spine, unit: Unit, unknown: Unknown = "error", known: Container[str] = ()) -> list[str]:
    """Return the names of the levels that a plan would measure, from the top, without those `known` from facts."""
    total = [] if unit.total_is_exact(records_may_be_dropped=drops(unknown)) else [TOTAL]
    return [name for name in (*total, *(level.name for level in spine.levels if level.divides)) if name not in known]


def named_split(
    name: str, spine: Spine, unit: Unit, loss: Loss, *, unknown: Unknown = "error", known: Container[str] = ()
) -> dict[str, Fraction]:
    """Return a split by the name that a plan file may give."""
    if name not in SPLITS:
        raise LossError(f"there is no split {name!r}{nearest(name, SPLITS)}; choose one of {', '.join(SPLITS)}")
    return SPLITS[name].weights(spine, unit, loss, unknown, known)


def split_by_nodes(
    spine: Spine,
    unit: Unit,
    loss: Loss,
    unknown: Unknown = "error",
    known: Container[str] = (),
    weights: Mapping[str, float] | None = None,
) -> dict[str, Fraction]:
    """Return the best split if all counts are large, so that only the number of public nodes matters.

    rho ∝ √(w·n·Δ²), epsilon ∝ ∛(w·n·Δ²), for weights w by level (default 1).
    """
    levels = measured_levels(spine, unit, unknown, known)
    weight = weights or {}
    worth = [weight.get(name, 1.0) * (1 if name == TOTAL else spine.level(name).nodes) for name in levels]
    return as_weights(levels, budgets_by_worth(unit, loss, levels, worth)) if levels else {}


def budgets_by_worth(unit: Unit, loss: Loss, levels: Sequence[str], worth: Sequence[float]) -> list[float]:
    """Minimise Σ worth·variance: the variance is Δ²/(2·rho), or 2Δ²/epsilon² (a little less for discrete noise)."""
    pure = loss.definition == "pure"
    changes = [unit.sensitivity(name) for name in levels]
    squares = [change.l1**2 if pure else change.l2_squared for change in changes]
    budgets = [(one * square) ** (1 / 3 if pure else 1 / 2) for one, square in zip(worth, squares, strict=True)]
    if not sum(budgets) > 0:
        raise LossError("no measured level has a weight: give at least one")
    scale = float(loss.budget) / math.fsum(budgets)
    return [scale * budget for budget in budgets]


def as_weights(levels: Sequence[str], budgets: Sequence[float]) -> dict[str, Fraction]:
    """Round budgets to short decimals, with a least share for levels of zero worth."""
    whole = math.fsum(budgets)
    shares = [budget / whole for budget in budgets]
    rest = 1 - SMALLEST_SHARE * sum(share <= 0 for share in shares)
    kept = [SMALLEST_SHARE if share <= 0 else share * rest for share in shares]
    return {name: Fraction(Decimal(f"{share:.{_DIGITS}g}")) for name, share in zip(levels, kept, strict=True)}


def _preset(words: str, powers: Callable[[int], Sequence[int]]) -> NamedSplit:
    """Return a geometric split: 2 to these powers, by level."""

    def weights(spine: Spine, unit: Unit, loss: Loss, unknown: Unknown, known: Container[str]) -> dict[str, Fraction]:
        levels = measured_levels(spine, unit, unknown, known)
        return {name: Fraction(2) ** power for name, power in zip(levels, powers(len(levels)), strict=True)}

    return NamedSplit(words, weights)


SPLITS: Mapping[str, NamedSplit] = MappingProxyType(
    {
        "uniform": _preset("every level the same", lambda levels: [0] * levels),
        "top-heavy": _preset("each level twice the next finer one", lambda levels: range(levels - 1, -1, -1)),
        "bottom-heavy": _preset("each level twice the next coarser one", range),
        "by-nodes": NamedSplit("by the number of public nodes, the best where all counts are large", split_by_nodes),
    }
)
"""The splits that a plan file can name."""


# How accurate a plan will be, level by level, before any private data is read.

CONFIDENCE = 0.95
"""Default confidence of intervals, margins and bounds."""


@dataclass(frozen=True)
class LevelAccuracy:
    """Expected accuracy of the counts of one level."""

    level: int
    """Position in the spine; the total is 0, and margins come after the leaves."""
    name: str
    nodes: int
    share: float
    noise: float
    """Standard deviation of one measurement; 0 if nothing is measured."""
    margin: int
    """"± one": one count is within this of the truth with the stated confidence, by the measurements of its level."""
    bound: int | None
    """"± all": all counts of the level are, at once, within this of the truth with the stated confidence; None if
    margins are kept, since no such bound is proved for counts that agree with two tables."""
    title: str = ""
    exact: bool = False
    """Whether its counts are released without noise: all neighbours have the same, or facts fix them."""
    fitted: bool = False
    """Whether it is not measured, and fitted to the margins."""


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of every level and margin. Print it for people; `to_dicts` is for programs."""

    levels: tuple[LevelAccuracy, ...]
    confidence: float
    margins: tuple[LevelAccuracy, ...] = ()

    @property
    def rows(self) -> tuple[LevelAccuracy, ...]:
        """All tables: the levels, then the margins."""
        return self.levels + self.margins

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dictionary per level, then one per margin."""
        return [asdict(row) for row in self.rows]

    def __str__(self) -> str:
        percent = f"{100 * self.confidence:g}%"
        head = (
            "level",
            "name",
            "counts",
            "public nodes",
            "share",
            "noise (sd)",
            f"± one, {percent}",
            f"± all, {percent}",
        )
        cells = [(str(row.level), *_cells(row)) for row in self.levels]
        cells += [(str(row.level), *_cells(row)) for row in self.margins]
        # Omit empty columns: titles that repeat names, and missing bounds.
        told = [any(" × " in row.title for row in self.levels), any(row.bound for row in self.levels)]
        shown = [index for index in range(len(head)) if (index != 2 or told[0]) and (index != 7 or told[1])]
        return text_table([[row[index] for index in shown] for row in (head, *cells)], left=(1, 2) if told[0] else (1,))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in (str(row.level), *_cells(row))) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_COLUMNS = ("level", "name", "counts", "nodes", "share", "noise", "margin", "bound")


def _cells(row: LevelAccuracy) -> tuple[str, ...]:
    start = (row.name, row.title, f"{row.nodes:,}")
    bound = "-" if row.bound is None else f"{row.bound:,}"
    if row.share == 0:
        above = ("exact", "0") if row.exact else ("as above", "-") if row.level else ("as below", "-")
        above = ("fitted", "-") if row.fitted else above
        return (*start, "-", *above, bound)
    return (*start, f"{row.share:.1%}", f"{row.noise:,.4g}", f"{row.margin:,}", bound)


def text_table(rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> str:
    """Lay out rows of text, the first a header, in columns; those in `left` are aligned to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return "\n".join([line(rows[0]), "  ".join("─" * width for width in widths), *(line(row) for row in rows[1:])])


def as_confidence(value: object) -> float:
    """Parse a confidence: a probability between 0 and 1."""
    try:
        confidence = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        confidence = 0.0
    if not 0 < confidence < 1:
        raise PlanError(f"confidence is {value!r}: give a probability between 0 and 1, such as 0.95")
    return confidence
