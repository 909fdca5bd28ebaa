"""How far the counts of margins are from the truth, table by table: for the steward, since private data tell it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from treetop.domain.margin import Margin, cells_of, title_of
from treetop.domain.spine import Spine
from treetop.intake.counts import Counts
from treetop.measure.questions import leaves_of
from treetop.release.contents import Contents
from treetop.release.errors import LevelErrors, Values, compared


def measure_margin_errors(release: Contents, truth: Counts, dropped: int = 0) -> tuple[LevelErrors, ...]:
    """Compare the margins of a release with the true counts of the same spine; `dropped` records are in no cell."""
    margins, own = [table.margin for table in release.margins], (table.count for table in release.margins)
    return _compared(release.spine, margins, own, truth, dropped)


def true_margins(spine: Spine, margins: Sequence[Margin], truth: Counts) -> Iterator[NDArray[np.int64]]:
    """Yield the true counts of every cell of margins, from those of the leaves."""
    leaf, count = leaves_of(spine, truth)
    for margin in margins:
        yield _sums(spine, margin, leaf, count).astype(np.int64, copy=False)


def margin_errors_of(
    spine: Spine, margins: Sequence[Margin], keys: Sequence[NDArray[np.uint64]], values: Values, truth: Counts
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


def _sums(spine: Spine, margin: Margin, leaf: Sequence[NDArray[np.int64]], values: Values) -> Values:
    """Return what values of leaves add up to in every cell."""
    cell = cells_of(spine.trees, margin.depths, [len(tree.levels) for tree in spine.trees], np.asarray(leaf))
    sums: Values = np.zeros(margin.nodes, values.dtype)  # type: ignore[assignment]
    np.add.at(sums, cell, values)
    return sums
