"""How far released counts are from the truth, level by level: computed from private data, for the steward only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from treetop._util.dtypes import Flags, Floats, Ints, Words
from treetop.counts.counts import Counts, Digit, layout, pack
from treetop.domain.marginal import Margin, cells_of, title_of
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.measure.measure import Remainders
from treetop.measure.questions import leaves_of
from treetop.release.release import Release
from treetop.release.tree import spans

SIZES = ((0, 0), (1, 4), (5, 10), (11, 24), (25, 99), (100, None))
"""Classes of true counts for the bias."""

Values: TypeAlias = Ints | Floats


@dataclass(frozen=True)
class Bias:
    """How far the nodes of one size are off on average, and in which direction."""

    size: str
    nodes: int
    bias: float | None
    """Mean of released less true count; None if there is no such node."""


@dataclass(frozen=True)
class LevelErrors:
    """The errors of one level."""

    level: int
    name: str
    nodes: int
    true_nodes: int
    released_nodes: int
    negative: int
    fractional: int
    largest: float
    """Largest absolute error; a whole number if all released counts are."""
    mean: float
    """Mean absolute error of the nodes above zero in truth or in the release."""
    mean_of_all: float
    """Mean absolute error of all public nodes."""
    root_mean_square: float
    """Root mean squared error of all public nodes."""
    largest_released: float
    """Largest absolute error of the nodes released above zero."""
    mean_released: float
    """Mean absolute error of the nodes released above zero."""
    false_discoveries: float
    """Share of the nodes released above zero that are truly zero."""
    false_mass: float
    """Share of the count released above zero that lies in nodes that are truly zero."""
    false_negatives: float
    """Share of the nodes truly above zero that are released as zero or less."""
    lost_mass: float
    """Share of the true count that lies in nodes released as zero or less, or in none."""
    resolved: float
    """Share of the released total that is resolved down to the level."""
    biases: tuple[Bias, ...]
    counts: str = ""
    """A title, such as "destination state × origin state"."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def measure_errors(release: Release, truth: Counts, dropped: int = 0) -> tuple[LevelErrors, ...]:
    """Compare a release with the true counts of the same spine, at the total and at every level.

    A remainder at a node counts there and above, and is in no node further down. `dropped` is the number of records
    left out of the truth: they belong to the total, and are lost at every level.
    """
    return errors_of(release.spine, pack(release.spine, release.nodes), release.count, truth, release.left, dropped)


def errors_of(
    spine: Spine, keys: Sequence[Words], values: Values, truth: Counts, left: Remainders | None = None, dropped: int = 0
) -> tuple[LevelErrors, ...]:
    """Compare any values of the leaves with the true counts of the same spine, at the total and at every level.

    `values` may be negative or fractions; a leaf that is not there is zero. The count of a coarser node is the sum of
    its leaves, on both sides, and of the remainders (`left`) at it or below. `dropped` records are in the true total
    only, and are lost at every level below.
    """
    left = left if left is not None else Remainders.join([], len(spine.attributes))
    whole = values.sum() + left.count.sum()
    public = [(TOTAL, TOTAL, 1)]
    public += [(level.name, title_of(spine, spine.depths(level.index)), level.nodes) for level in spine.levels]
    rows = []
    for index, nodes in merged_levels(spine, keys, values, truth, left):
        resolved = 1 - _share(left.count[left.level < index].sum(), whole)
        there, lost = (dropped, 0) if index == 0 else (0, dropped)
        rows.append(compared(index, *public[index], nodes.released, nodes.true + there, resolved, lost))
    return tuple(reversed(rows))


@dataclass(frozen=True, eq=False)
class Merged:
    """Released and true values side by side, in spine order."""

    keys: list[Words]
    """The packed paths, one array a word. Counts are 0 if only the other side has the node."""
    released: Values
    true: Ints

    def at(self, digit: Digit) -> Merged:
        """Sum consecutive nodes with the same path down to the digit's level."""
        first = np.flatnonzero(starts(self.keys, digit))
        if len(first) == 0:
            return self
        keys = [word[first] for word in self.keys]
        return Merged(keys, np.add.reduceat(self.released, first), np.add.reduceat(self.true, first))

    def __add__(self, other: Merged) -> Merged:
        """Bring both into one order; a node of both stands there twice."""
        words = [np.concatenate(pair) for pair in zip(self.keys, other.keys, strict=True)]
        # A stable sort recognises runs: of one word it merges them as fast as a loop that is written for it.
        order = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(words[::-1])
        released: Values = np.concatenate([self.released, other.released])
        true = np.concatenate([self.true, other.true])
        return Merged([word[order] for word in words], released[order], true[order])


def merge(keys: Sequence[Words], values: Values, truth: Counts) -> Merged:
    """Bring released values and the truth into one order; a leaf of both stands there twice.

    `keys` are the leaves' packed paths as `read.counts.pack` makes them, best in spine order: both sides are then
    two sorted runs, which are merged in linear time.
    """
    if len(keys) != len(truth.keys) or any(len(key) != len(values) for key in keys):
        raise ValueError(f"give {len(truth.keys)} words of keys, each as long as the values: {len(values)}")
    if not np.isfinite(values).all():
        raise ValueError("values must be finite")
    nothing: Values = np.zeros(len(truth), values.dtype)  # type: ignore[assignment]
    released = Merged(list(keys), values, np.zeros(len(values), np.int64))
    return released + Merged(list(truth.keys), nothing, np.diff(truth.before))


def merged_levels(
    spine: Spine, keys: Sequence[Words], values: Values, truth: Counts, left: Remainders | None = None
) -> Iterator[tuple[int, Merged]]:
    """Yield the nodes of either side at every level, with its position, from the leaves up to the total."""
    nodes = merge(keys, values, truth)
    for level, digit in zip(reversed(spine.levels), reversed(layout(spine)), strict=True):
        nodes = nodes.at(digit)
        yield level.index, nodes
        above = None if left is None else left[left.level == level.index - 1]
        if above is not None and len(above):
            # At the first leaf of its node, from where it is summed.
            first = pack(spine, spans(spine, above)[0])
            nodes += Merged(first, above.count, np.zeros(len(above), np.int64))
    yield 0, Merged([], nodes.released.sum(keepdims=True), nodes.true.sum(keepdims=True))


def starts(keys: Sequence[Words], digit: Digit) -> Flags:
    """Return a mask of the sorted keys at which a node of the digit's level begins."""
    found = np.zeros(len(keys[0]), dtype=bool)
    found[:1] = True
    for i, word in enumerate(keys[: digit.word + 1]):
        below = digit.shift if i == digit.word else 0
        if below < 64:  # a level above all that is told apart has nothing to compare
            found[1:] |= (word[1:] ^ word[:-1]) >> np.uint64(below) != 0
    return found


def compared(
    index: int,
    name: str,
    counts: str,
    nodes: int,
    released: Values,
    true: Ints,
    resolved: float = 1.0,
    dropped: int = 0,
) -> LevelErrors:
    """Compare the nodes of one table, of which those may be left out that are zero in truth and in the release."""
    error = released - true
    absolute = np.abs(error)
    found, there = released > 0, true > 0
    true_nodes, released_nodes = int(np.count_nonzero(there)), int(np.count_nonzero(found))
    invented, lost = found & ~there, there & ~found
    shown = int(np.count_nonzero(there | (released != 0)))
    off = float(absolute.sum())
    return LevelErrors(
        level=index,
        name=name,
        nodes=nodes,
        true_nodes=true_nodes,
        released_nodes=released_nodes,
        negative=int(np.count_nonzero(released < 0)),
        fractional=0 if released.dtype.kind == "i" else int(np.count_nonzero(released != np.rint(released))),
        largest=absolute.max(initial=0).item(),
        mean=off / max(shown, 1),
        mean_of_all=off / nodes,
        root_mean_square=math.sqrt(np.square(error, dtype=np.float64).sum() / nodes),
        largest_released=absolute[found].max(initial=0).item(),
        mean_released=float(absolute[found].sum()) / max(released_nodes, 1),
        false_discoveries=_share(np.count_nonzero(invented), released_nodes),
        false_mass=_share(released[invented].sum(), released[found].sum()),
        false_negatives=_share(np.count_nonzero(lost), true_nodes),
        lost_mass=_share(true[lost].sum() + dropped, true.sum() + dropped),
        resolved=resolved,
        biases=_biases(nodes - true_nodes, error, true),
        counts=counts,
    )


def _share(part: np.number | int, whole: np.number | int) -> float:
    """Return a part divided by the whole; 0 if the whole is 0."""
    return float(part) / float(whole) if whole else 0.0


def size_label(low: int, high: int | None) -> str:
    """Name a class of true counts.

    >>> [size_label(low, high) for low, high in SIZES]
    ['0', '1–4', '5–10', '11–24', '25–99', '100+']
    """
    return f"{low}+" if high is None else f"{low}–{high}" if high > low else str(low)


def _biases(zeros: int, error: Values, true: Ints) -> tuple[Bias, ...]:
    most = SIZES[-1][0]
    size = np.minimum(true, most)
    nodes = np.bincount(size, minlength=most + 1)
    off = np.bincount(size, error.astype(np.float64, copy=False), minlength=most + 1)
    biases = []
    for low, high in SIZES:
        inside = slice(low, most + 1 if high is None else high + 1)
        # Public nodes that are in neither table are zeros without error; they may be too many for 64 bits.
        number = zeros if low == 0 else int(nodes[inside].sum())
        biases.append(Bias(size_label(low, high), number, float(off[inside].sum()) / number if number else None))
    return tuple(biases)


# How far the counts of margins are from the truth, table by table: for the steward, since private data tell it.


def measure_margin_errors(release: Release, truth: Counts, dropped: int = 0) -> tuple[LevelErrors, ...]:
    """Compare the margins of a release with the true counts of the same spine; `dropped` records are in no cell."""
    margins, own = [table.margin for table in release.margins], (table.count for table in release.margins)
    return _compared(release.spine, margins, own, truth, dropped)


def true_margins(spine: Spine, margins: Sequence[Margin], truth: Counts) -> Iterator[Ints]:
    """Yield the true counts of every cell of margins, from those of the leaves."""
    leaf, count = leaves_of(spine, truth)
    for margin in margins:
        yield _sums(spine, margin, leaf, count).astype(np.int64, copy=False)


def margin_errors_of(
    spine: Spine, margins: Sequence[Margin], keys: Sequence[Words], values: Values, truth: Counts
) -> tuple[LevelErrors, ...]:
    """Compare the sums of any values of the leaves, given by their packed paths, with the true counts of margins."""
    leaf, _ = leaves_of(spine, Counts(tuple(keys), np.arange(len(values) + 1)))
    return _compared(spine, margins, (_sums(spine, margin, leaf, values) for margin in margins), truth)


def _compared(
    spine: Spine, margins: Sequence[Margin], released: Iterable[Values], truth: Counts, dropped: int = 0
) -> tuple[LevelErrors, ...]:
    rows = []
    every = zip(margins, released, true_margins(spine, margins, truth), strict=True)
    for index, (margin, own, true) in enumerate(every, start=len(spine.levels) + 1):
        title = title_of(spine, margin.depths)
        rows.append(compared(index, margin.part, title, margin.nodes, own, true, dropped=dropped))
    return tuple(rows)


def _sums(spine: Spine, margin: Margin, leaf: Sequence[Ints], values: Values) -> Values:
    """Return the sums of the leaves' values in every cell."""
    cell = cells_of(spine.trees, margin.depths, [len(tree.levels) for tree in spine.trees], np.asarray(leaf))
    sums: Values = np.zeros(margin.nodes, values.dtype)  # type: ignore[assignment]
    np.add.at(sums, cell, values)
    return sums
