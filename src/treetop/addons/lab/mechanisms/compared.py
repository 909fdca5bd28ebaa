"""An estimate: the published values of a mechanism, leaf by leaf; it may be negative, fractional, or not add up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from treetop._util.choices import nearest
from treetop._util.dtypes import Floats, Ints
from treetop._util.numbers import Number
from treetop.counts.counts import Counts, Digit, go_down, layout, pack
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.errors import LossError, PlanError, Refusal
from treetop.noise import Key, Law, NoiseStream
from treetop.noise.gate import bind, digest
from treetop.noise.sum_noise import sum_margin
from treetop.plan.workload import Part
from treetop.privacy import Loss, Unit, rho_from_epsilon_loose
from treetop.release.errors import starts

Values: TypeAlias = Ints | Floats
Words: TypeAlias = tuple[NDArray[np.uint64], ...]

ROUNDING = 1e-9
ROOT = Digit(0, 64, 0)
"""The position of the total, above all levels."""


@dataclass(frozen=True, eq=False)
class LevelEstimate:
    """The nodes of one level that are not zero, in spine order."""

    keys: Words = field(repr=False)
    """The packed paths of the nodes, all finer ranks zero: one array a word."""
    value: Values = field(repr=False)
    """Their values. A node that is not here is zero."""

    def __len__(self) -> int:
        return len(self.value)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Published values of the leaves; coarser counts are their sums unless `levels` is given."""

    spine: Spine
    keys: Words = field(repr=False)
    """The packed paths of the leaves that are not zero, ascending and distinct: one array a word."""
    value: Values = field(repr=False)
    """Their values, whole (int64) or real (float64). A leaf that is not here is zero."""
    levels: tuple[LevelEstimate, ...] | None = field(default=None, repr=False)
    """The total and every level as they were published, if they are not the sums of the leaves."""

    def __post_init__(self) -> None:
        words = layout(self.spine)[-1].word + 1
        if len(self.keys) != words or any(len(key) != len(self.value) for key in self.keys):
            raise ValueError(f"an estimate has {words} words a leaf, and a value")
        if self.value.dtype not in (np.int64, np.float64):
            raise ValueError(f"values are int64 or float64, not {self.value.dtype}")
        if not self.value.all():
            raise ValueError("a leaf that is zero is left out")
        if not _ascending(self.keys):
            raise ValueError("leaves stand in spine order, each once")
        if self.levels is not None and len(self.levels) != len(self.spine.levels) + 1:
            raise ValueError("give the total and every level of the spine, or no levels")

    @staticmethod
    def from_nodes(spine: Spine, nodes: NDArray[np.int32], value: Values) -> Estimate:
        """Make an estimate of leaves in spine order, given as one row of leaf numbers per attribute."""
        return Estimate.from_leaves(spine, pack(spine, nodes), value)

    @staticmethod
    def from_leaves(
        spine: Spine, keys: Sequence[NDArray[np.uint64]], value: Values, levels: tuple[LevelEstimate, ...] | None = None
    ) -> Estimate:
        """Make an estimate of leaves in spine order, leaving out those that are zero."""
        there = value != 0
        if not there.all():
            keys, value = [key[there] for key in keys], value[there]
        return Estimate(spine, tuple(keys), value, levels)

    @property
    def total(self) -> int | float:
        """The value at the root."""
        value: int | float = (self.value if self.levels is None else self.levels[0].value).sum().item()
        return value

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"Estimate({self.total:,} in {len(self):,} leaves; {self.spine!r})"

    def violations(self) -> int:
        """Return how many nodes differ from the sum of their children, over all levels."""
        digits = (ROOT, *layout(self.spine))
        return sum(_differences(*pair, digit) for pair, digit in zip(pairwise(self.levels or ()), digits, strict=False))


def _ascending(keys: Words) -> bool:
    """Whether each path is above the one before, words compared from the first."""
    undecided = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        if (undecided & (key[1:] < key[:-1])).any():
            return False
        undecided &= key[1:] == key[:-1]
    return not undecided.any()


def _differences(above: LevelEstimate, below: LevelEstimate, digit: Digit) -> int:
    """Count the nodes, of the digit's level, whose children do not sum to them."""
    keys = [np.concatenate(pair) for pair in zip(above.keys, below.keys, strict=True)]
    value = np.concatenate([above.value, -below.value])
    if len(value) == 0:
        return 0
    order = np.lexsort(keys[::-1])
    first = np.flatnonzero(starts([key[order] for key in keys], digit))
    left = np.abs(np.add.reduceat(value[order], first))
    if value.dtype.kind == "i":
        return int(np.count_nonzero(left))
    return int(np.count_nonzero(left > ROUNDING * np.add.reduceat(np.abs(value[order]), first)))


# What every mechanism of a comparison offers: its guarantee, its noise, its cost, and one run on private counts.


class NotServed(Refusal):
    """A mechanism that cannot serve this unit, this loss, or a tree of this size."""


@dataclass(frozen=True, eq=False)
class ComparedMechanism:
    """A way to publish counts. Making one does all public work, checks included; only `run` sees private counts.

    The counts hold every record of the private table. Under `replace` with one record a unit the total is then the same
    for all neighbours; `records_may_be_dropped` tells mechanisms that use it that rows may have been dropped on the
    way.
    """

    name: ClassVar[str]
    about: ClassVar[str]

    spine: Spine
    unit: Unit
    loss: Loss

    @property
    def levels(self) -> tuple[Part, ...]:
        """The total and every level of the spine, with measurements, noise and cost."""
        raise NotImplementedError

    @property
    def spent(self) -> Fraction:
        """Cost of a run, never more than the loss: rho or, if the guarantee is stated in it, epsilon."""
        return sum((level.cost for level in self.levels), Fraction(0))

    @property
    def definition(self) -> str:
        """The privacy that a run gives, in one sentence."""
        return promise(self.unit, self.loss.kept_by("zcdp").sentence())

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Measure the private counts once and return the publishable estimate.

        The noise is a function of the key, the mechanism's decisions and the counts; it does not depend on `threads`.
        """
        raise NotImplementedError


def paper_loss(epsilon: Number, delta: Number) -> Loss:
    """The loss that papers with the looser conversion, rho + 2√(rho·ln(1/δ)), spend at (epsilon, delta).

    >>> float(paper_loss(1, 1e-8).budget)
    0.0132153628528
    """
    return Loss(rho=rho_from_epsilon_loose(epsilon, delta), delta=delta)


def promise(unit: Unit, guarantee: str) -> str:
    """Return the sentence that names the protected unit and its guarantee."""
    records = "1 record" if unit.contributions == 1 else f"{unit.contributions} records"
    way = "replaced by another" if unit.neighbours == "replace" else "added or removed"
    return f"For one {unit.entity} of at most {records}, {way}: {guarantee[:1].lower()}{guarantee[1:]}"


def check_parts(spine: Spine, unit: Unit, loss: Loss) -> None:
    """Refuse parts of the wrong kind, and caps on levels that the spine does not have."""
    for what, value, kind in (("spine", spine, Spine), ("unit", unit, Unit), ("loss", loss, Loss)):
        if not isinstance(value, kind):
            raise PlanError(f"{what} is {value!r}: give a treetop.{kind.__name__}")
    names = [level.name for level in spine.levels]
    for name in unit.per_node:
        if name not in names:
            raise PlanError(f"the unit caps records per node of {name!r}, which is not a level{nearest(name, names)}")


def check_width(law: Law, leaves: int) -> None:
    """Refuse noise so wide that sums of it over all leaves could leave 64 bits."""
    if law.margin(Fraction(1, 2**80)) * leaves >= 2**61:
        raise LossError("the noise would be too wide for 64-bit counts: give a larger loss")


def bound_key(key: Key, counts: Counts, name: str, spine: Spine, decisions: dict[str, Any]) -> Key:
    """Bind a key to the mechanism's decisions and to the data."""
    return bind(key, name, digest([spine.digest, decisions]), counts.digest)


# The whole public tree, node by node, for mechanisms that put noise on every leaf, empty or not.

MOST_LEAVES = 2**24
"""By default a dense mechanism refuses more public leaves: they take about 50 bytes each while it runs."""

_PIECE = 1 << 18


@dataclass(frozen=True, eq=False)
class PublicTree:
    """Every public node in spine order. Nodes of a level are numbered in that order, so siblings are consecutive."""

    first: tuple[Ints, ...] = field(repr=False)
    """The children of node i of level l (the root is level 0) are `first[l][i] : first[l][i + 1]`."""
    spine: Spine = field(repr=False)
    keys: tuple[NDArray[np.uint64], ...] = field(repr=False)

    @staticmethod
    def of(spine: Spine) -> PublicTree:
        """Write out the nodes of a spine, level by level."""
        nodes = np.zeros((len(spine.attributes), 1), np.int32)
        first = []
        for level in spine.levels:
            fanout = level.fanout(nodes)
            bounds = np.concatenate([[0], np.cumsum(fanout)])
            nodes = level.children(nodes, fanout)
            first.append(bounds)
        return PublicTree(tuple(first), spine, tuple(pack(spine, nodes)))

    def ancestors(self, counts: Counts) -> Iterator[Ints]:
        """Give, level by level below the root, the node above every private leaf. Private: for measuring only."""
        node = np.zeros(len(counts), np.int64)
        nodes = np.zeros((len(self.spine.trees), len(counts)), np.int64)
        for first, level in zip(self.first, self.spine.levels, strict=True):
            go_down(self.spine, level.index, counts, nodes)
            node = first[node] + level.ranks(nodes)
            yield node


def refuse_large(spine: Spine, limit: int, name: str) -> None:
    """Refuse a domain with more public leaves than the limit, before allocating memory for them."""
    if spine.leaves > limit:
        raise NotServed(
            f"{name} puts noise on every public leaf, and there are {spine.leaves:,} of them, more than its limit of "
            f"{limit:,}: raise the limit (about 50 bytes a leaf), drop the finest level, or take inftda"
        )


def measure_leaves(tree: PublicTree, counts: Counts, law: Law, key: Key, threads: int) -> Ints:
    """Return every public leaf's true count plus noise: the only look at the counts of a flat mechanism.

    One unit moves the leaf counts by at most the sensitivity of the last level, for which the law was made.
    """
    x = draw(law, key, len(tree.keys[0]), threads)
    *_, leaf = tree.ancestors(counts)
    np.add.at(x, leaf, np.diff(counts.before))
    return x


def measure_levels(
    tree: PublicTree, counts: Counts, levels: tuple[Part, ...], key: Key, threads: int
) -> list[Ints | None]:
    """Return the true counts plus noise of all nodes, level by level from the total, None if it is not measured.

    One unit moves the counts of a level by at most that level's sensitivity, for which its law was made. An exact total
    has no noise, since it is the same for all neighbours.
    """
    total, *below = levels
    root = draw(total.law, key.derive("level", 0), 1, threads) if total.is_measured else np.zeros(1, np.int64)
    root += counts.total
    measured: list[Ints | None] = [root]
    for level, node in zip(below, tree.ancestors(counts), strict=True):
        if not level.is_measured:
            measured.append(None)
            continue
        x = draw(level.law, key.derive("level", level.index), level.nodes, threads)
        np.add.at(x, node, np.diff(counts.before))
        measured.append(x)
    return measured


def draw(law: Law, key: Key, size: int, threads: int) -> Ints:
    """Return the noise of the slots 0, 1, … of a stream, the same on any number of threads."""
    out = np.empty(size, np.int64)

    def fill(start: int) -> None:
        NoiseStream(law, key).fill(out[start : start + _PIECE], start)

    pieces = range(0, size, _PIECE)
    if threads > 1 and len(pieces) > 1:
        with ThreadPoolExecutor(max_workers=threads) as pool:
            list(pool.map(fill, pieces))
    else:
        NoiseStream(law, key).fill(out, 0)
    return out


# How far the baselines may be off, level by level: Proposition 1 of the InfTDA paper, with its constants.


def leaves_under(spine: Spine) -> list[int]:
    """Return the most leaves that lie under a node, for the total and every level.

    A node is a pair, or tuple, of places, so its leaves are the product of theirs.
    """
    return [
        prod(_most_under(tree, depth) for tree, depth in zip(spine.trees, spine.depths(index), strict=True))
        for index in range(len(spine.levels) + 1)
    ]


def _most_under(tree: Hierarchy, depth: int) -> int:
    under = np.ones(tree.sizes[-1], np.int64)
    for first in reversed(tree.first[depth:]):
        under = np.add.reduceat(under, first[:-1])
    return int(under.max())


def sums_of_noise(spine: Spine, law: Law, risk: Fraction) -> tuple[int, ...]:
    """Bound the largest error of the total and of every level if counts are sums of noisy leaves (equation 4)."""
    nodes = [1, *(level.nodes for level in spine.levels)]
    return tuple(
        sum_margin(law, under, risk / (2 * number)) for number, under in zip(nodes, leaves_under(spine), strict=True)
    )


def sums_of_clipped(spine: Spine, law: Law, risk: Fraction) -> tuple[int, ...]:
    """Bound the same if negative leaves are set to zero."""
    margin = law.margin(risk / spine.leaves)
    return tuple(under * margin for under in leaves_under(spine))


def sums_of_survivors(spine: Spine, law: Law, least: int, records: int, risk: Fraction) -> tuple[int, ...]:
    """Bound the same of a stability histogram of so many records (equation 5)."""
    there = min(spine.leaves, records)
    if there == 0:
        return (0,) * (len(spine.levels) + 1)
    one = least - 1 + law.margin(risk / there)
    return tuple(min(under, there) * one for under in leaves_under(spine))
