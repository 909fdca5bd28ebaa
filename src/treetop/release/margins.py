"""The margins of a release: measurements of tables beside the spine, their released counts and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from treetop._util.arrays import writable
from treetop._util.dtypes import Ints
from treetop.domain.constraints import PublicFacts
from treetop.domain.marginal import Margin, exact_margins
from treetop.domain.spine import Spine
from treetop.domain.table_cells import CellNumbering, below
from treetop.measure.level import runs
from treetop.measure.margin_tables import ConsistentMarginals, coarser
from treetop.noise import Law
from treetop.plan.constraints_kept import kept_exactly
from treetop.release.intervals.boxes import Boxes
from treetop.release.intervals.nodes import risk_of
from treetop.release.intervals.table_evidence import TableEvidence
from treetop.release.tree import ReleasedTree


@dataclass(frozen=True, eq=False)
class MarginTable:
    """One margin: a number for every public cell, in the order of the hierarchies."""

    margin: Margin
    law: Law
    count: Ints = field(repr=False)
    """Released counts: the sums of the leaves, with remainders."""
    measured: Ints = field(repr=False)
    exact: bool = True
    """Whether the leaves add up to the counts exactly; margins that cross others may not."""
    known: tuple[Ints, Ints] | None = field(default=None, repr=False)
    """Lower and upper bounds of each cell by public facts."""
    evidence: TableEvidence | None = field(default=None, repr=False)
    """All tables that were measured together, if intervals come from all of them."""

    @property
    def left_over(self) -> Ints:
        """Difference of each count from its measurement."""
        return self.count - self.measured

    def under(self, tree: ReleasedTree) -> MarginTable:
        """Return the margin with the counts of other leaves, if they need not agree with it; else unchanged."""
        return self if self.exact else replace(self, count=self.sums(tree))

    def intervals(self, confidence: float) -> tuple[Ints, Ints]:
        """Return the bounds of every true count: its own measurement, give or take an exact quantile of the noise.

        If several tables were measured together, all of them decide.
        """
        if self.evidence is not None:
            return self.evidence.bounds(self.margin.depths, np.arange(self.margin.nodes), risk_of(confidence))
        within = self.law.margin(risk_of(confidence))
        upper = np.maximum(self.measured + within, 0)
        lower = np.clip(self.measured - within, 0, upper)
        return (lower, upper) if self.known is None else (np.clip(lower, *self.known), np.clip(upper, *self.known))

    def cells(self, boxes: Boxes) -> Ints:
        """Return which cell each box is."""
        return CellNumbering(boxes.spine, self.margin.depths).numbers(boxes.leaf, boxes.spine.finest)

    def leaves(self, spine: Spine) -> Ints:
        """Return, for each attribute (row) and cell (column), the first leaf; 0 if it is summed over."""
        table = CellNumbering(spine, self.margin.depths)
        leaf = table.nodes(np.arange(self.margin.nodes))
        for attribute in table.attributes:
            tree, depth = spine.trees[attribute], table.depths[attribute]
            leaf[attribute] = below(tree, depth, len(tree.levels), leaf[attribute])[0]
        return leaf

    def sums(self, tree: ReleasedTree) -> Ints:
        """Return the sums of the released leaves in every cell."""
        sums, table = np.zeros(self.margin.nodes, np.int64), CellNumbering(tree.spine, self.margin.depths)
        for run in runs(len(tree.count)):
            np.add.at(sums, table.numbers(tree.nodes[:, run], tree.spine.finest), tree.count[run])
        return sums


def tables_of(
    margins: Sequence[Margin], laws: Sequence[Law], kept: ConsistentMarginals | None, leaves: ReleasedTree,
    facts: PublicFacts | None = None,
) -> tuple[MarginTable, ...]:  # fmt: skip
    """Return the margins of a release; one that is not kept has the sums of the leaves."""
    found = []
    for margin, law, exact in zip(margins, laws, agreed_margins(leaves.spine, margins, facts), strict=True):
        assert kept is not None
        count, measured = (values[margin.depths].ravel() for values in (kept.counts, kept.measured))
        known = bounds_of(leaves.spine, margin, facts)
        found.append(MarginTable(margin, law, count, measured, exact, known).under(leaves))
    return tuple(found)


def jointly_measured(evidence: TableEvidence, tree: ReleasedTree) -> tuple[MarginTable, ...]:
    """Return the margins of a joint fit, each with the sums of the leaves."""
    about = zip(evidence.margins, evidence.laws, evidence.measured, strict=True)
    margins = (MarginTable(margin, law, value, value, False, None, evidence) for margin, law, value in about)
    return tuple(margin.under(tree) for margin in margins)


def bounds_of(spine: Spine, margin: Margin, facts: PublicFacts | None) -> tuple[Ints, Ints] | None:
    """Return the bounds of a margin's cells by public facts; None if there are none."""
    if facts is None:
        return None
    return facts.around(margin.depths, CellNumbering(spine, margin.depths).nodes(np.arange(margin.nodes)))


def agreed_margins(spine: Spine, margins: Sequence[Margin], facts: PublicFacts | None) -> tuple[bool, ...]:
    """Return which margins the counts agree with exactly; facts about single cells leave some only nearly."""
    return exact_margins(spine, margins) if facts is None else kept_exactly(spine, facts, margins)


def find(tables: Sequence[MarginTable], spine: Spine, depths: Sequence[int]) -> MarginTable | None:
    """Return the margin of a table given by its depths; None if there is none. Only children change nothing."""

    def needed(attribute: int, depth: int) -> int:
        sizes = (1, *spine.trees[attribute].sizes)
        return max((one for one in range(1, depth + 1) if sizes[one] > sizes[one - 1]), default=0)

    wanted = tuple(needed(attribute, depth) for attribute, depth in enumerate(depths))
    return next((table for table in tables if table.margin.depths == wanted), None)


def columns_of(tables: Sequence[MarginTable], spine: Spine, depths: Sequence[int], attribute: int) -> Ints:
    """Return the counts of a table from one of several margins, with a row for each cell of its other attributes."""
    fine = next(table for table in tables if all(map(int.__le__, depths, table.margin.depths)))
    shape = [spine.trees[own].sizes[fine.margin.depths[own] - 1] for own in fine.margin.attributes]
    counts = coarser(spine.trees, fine.count.reshape(shape), fine.margin.depths, tuple(depths))
    axis = np.count_nonzero(depths[:attribute])
    moved = np.moveaxis(counts, axis, -1)
    return writable(np.ascontiguousarray(moved).reshape(-1, moved.shape[-1]))


def codes_of(spine: Spine, margin: Margin, cells: Ints) -> dict[str, pa.Array]:
    """Return one column for each attribute of a margin, the codes of some cells."""
    table, names = CellNumbering(spine, margin.depths), list(spine.attributes)
    nodes = table.nodes(cells)
    return {names[one]: table.codes(one).take(pa.array(nodes[one])) for one in table.attributes}
