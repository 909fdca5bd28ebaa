"""A first look at what a drafted plan would be worth on its table: which counts would be noise. For the steward only.

It reads the private table, and nothing of it goes into the draft. A loss and a unit stand in for those that the draft
leaves open; the hierarchy of an attribute without a public file is made of the table's own codes, and thrown away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treetop._util.dtypes import Flags, Ints
from treetop.counts.encode import Weighing
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.domain.standard_hierarchies import STANDARDS
from treetop.domain.unit import Unit
from treetop.errors import TreetopError
from treetop.inspection import Inspection
from treetop.inspection.suggest import Suggestion
from treetop.io.source import Source, as_public, reads_once
from treetop.io.table import batches
from treetop.plan.file.draft import drafted_splits
from treetop.plan.plan import Plan
from treetop.privacy.loss import Loss

STAND_IN = Loss(epsilon=1.0, delta=1e-8)
"""The loss of a first look."""
_DAYS = {"first": "1990-01-01", "last": "2029-12-31"}
_MANY = 0.5
"""Where more of the records than this are in counts below the margin, a level is mostly noise."""


@dataclass(frozen=True)
class LevelLook:
    """What the counts of one level are like."""

    name: str
    counts: str
    """What is counted, in words."""
    margin: int
    """How far off one measurement is, at 95 % confidence."""
    cells: int
    """How many counts are above zero. Private."""
    small: int
    """How many of them are below the margin. Private."""
    share: float
    """The share of the records that are in these. Private."""


@dataclass(frozen=True)
class FirstLook:
    """What a drafted plan would be worth. Private."""

    tables: tuple[LevelLook, ...]
    count: str | None = None
    """The column that was taken for the count; None where each row was taken for one record."""

    @property
    def finest(self) -> LevelLook:
        """The leaves."""
        return self.tables[-1]

    @property
    def coarser(self) -> LevelLook | None:
        """The finest level that is not mostly noise; None where there is none."""
        return next((table for table in reversed(self.tables) if table.share <= _MANY), None)

    def sentences(self) -> list[str]:
        """Say what would be noise, and what would help."""
        last = self.finest
        taken = "each row taken for one" if self.count is None else f"as many as {self.count} says"
        told = [
            f"at epsilon 1 and one record each, counts of {last.counts} would be off by up to {last.margin:,}: those "
            f"smaller than about {last.margin:,} are noise, one by one. That is {last.small:,} of {last.cells:,} here, "
            f"with {last.share:.0%} of the records ({taken})"
        ]
        if last.share > _MANY / 5:
            told.append(
                "resolve = { fdr = 0.05 } would name only what the measurements show, and leave the rest at coarser "
                "levels"
            )
        better = self.coarser
        if better is not None and better is not last:
            told.append(
                f"stopping at {better.counts} would help: there {1 - better.share:.0%} of the records are in counts "
                f"above its margin of {better.margin:,}"
            )
        return told

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"tables": [vars(table) for table in self.tables], "sentences": self.sentences()}


def first_look(inspection: Inspection) -> FirstLook | None:
    """Look at the table of an inspection; None where no plan can be made of it yet, or it can be read only once."""
    if not inspection.attributes or not inspection.rows or reads_once(inspection.source.location):
        return None
    try:
        trees = _trees(inspection)
        is_flow = set(trees) == {"origin", "destination"}
        spine = Spine.destination_first(**trees) if is_flow else Spine(drafted_splits(inspection), trees)
        plan = Plan(spine, Unit("record", contributions=1, neighbours="replace", may_be_missing=True), STAND_IN)
        leaves, worth = _leaves(inspection, plan.spine)
    except TreetopError:  # what is wrong is told where a plan is read
        return None
    total = int(worth.sum())
    if not total:
        return None
    found = []
    for level, row in zip(plan.spine.levels, plan.accuracy().levels[1:], strict=True):
        count = _counts(plan.spine, level.index, leaves, worth)
        small = count < row.margin
        share = float(count[small].sum() / total)
        found.append(LevelLook(level.name, row.title, int(row.margin), len(count), int(small.sum()), share))
    return FirstLook(tuple(found), inspection.count)


def _leaves(inspection: Inspection, spine: Spine) -> tuple[Ints, Ints]:
    """Return the leaf of every attribute (row) for the rows with known codes, and how many records each stands for.

    Nothing is compiled for it, as it is for a release: to look is quick the first time, too.
    """
    source, count = replace(inspection.source, prepare=inspection.prepare), inspection.count
    columns = [one.column for one in inspection.attributes]
    weighing = None if count is None else Weighing(count)
    leaves, weights = [], []
    for batch in batches(source, list(dict.fromkeys([*columns, *([] if count is None else [count])]))):
        pairs = zip(columns, spine.attributes.values(), strict=True)
        own = np.array([tree.encode(tree.read(batch.rows.column(name), name)) for name, tree in pairs])
        known: Flags = np.logical_and.reduce(own >= 0)
        leaves.append(own[:, known])
        weights.append((np.ones(len(known), np.int64) if weighing is None else weighing.read(batch))[known])
    return np.concatenate(leaves, axis=1), np.concatenate(weights)


def _counts(spine: Spine, index: int, leaves: Ints, worth: Ints) -> Ints:
    """Return the counts above zero of a level, in any order."""
    group = np.zeros(len(worth), np.int64)
    for tree, depth, leaf in zip(spine.attributes.values(), spine.depths(index), leaves, strict=True):
        if depth:
            node = tree.ancestors(depth - 1)[leaf]
            _, group = np.unique(group * tree.sizes[depth - 1] + node, return_inverse=True)
    count = np.bincount(group, worth).astype(np.int64)
    return count[count > 0]


def _trees(inspection: Inspection) -> dict[str, Hierarchy]:
    trees: dict[str, Hierarchy] = {}
    for one in inspection.attributes:
        trees[one.name] = _tree(one, inspection) if one.same_as is None else trees[one.same_as]
    return trees


def _ruled(one: Suggestion, inspection: Inspection) -> Hierarchy:
    """Return the hierarchy of bands, dates or a standard; a long time stands in for the days that are counted."""
    given = one.proposed
    if "bands" in given:
        return Hierarchy.from_bands(given["bands"])
    if "dates" in given:
        return Hierarchy.from_dates(**{**given["dates"], **_DAYS}, levels=one.levels)
    listed = STANDARDS[given["standard"]].listed
    values = next(column.values for column in inspection.columns if column.name == one.column)
    return Hierarchy.standard(given["standard"], given.get("levels"), values.to_pylist() if listed and values else None)


def _tree(one: Suggestion, inspection: Inspection) -> Hierarchy:
    if one.match is not None:
        file = as_public(Source(one.match.lookup.path, **one.match.lookup.reading))
        return Hierarchy.from_table(file, one.match.levels, "repeat" if one.match.ragged else "error")
    if one.proposed.keys() & {"bands", "dates", "standard"}:
        return _ruled(one, inspection)
    sharing = [other.column for other in inspection.attributes if one.name in (other.name, other.same_as)]
    values = {
        value
        for column in inspection.columns
        if column.name in sharing and column.values is not None
        for value in column.values.to_pylist()
    }
    if one.prefixes is not None:
        return Hierarchy.from_prefixes(sorted(values), one.prefixes.widths, one.prefixes.levels)
    if one.chain and len(sharing) == 1:
        return Hierarchy.from_table(inspection.source, one.chain)
    return Hierarchy.flat(sorted(values), level=one.levels[-1] if one.levels else "value")
