"""How good are synthetic records? Their margins and two-way tables beside the truth, for the steward only.

    python quality.py plan.toml records.parquet

reads the private table that the plan names, and prints a line a table: how far a cell is off on average, of all public
cells; which share of the records would have to move to other cells to make the table right; and the same for records
that were drawn from the true margins as if no two attributes had anything to do with each other. Records that do no
better than these tell nothing about how two attributes go together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import treetop as tt
from treetop.io import table as tables
from treetop.io.row_batch import as_text
from treetop.plan.workload import text_table

Table = NDArray[np.float64]
HEAD = ("table", "cells", "off by, mean", "in wrong cells", "if unrelated")


@dataclass(frozen=True)
class People:
    """Records, one row a person, as leaves of the hierarchies."""

    spine: tt.Spine
    leaf: Mapping[str, NDArray[np.int64]]
    """By attribute, the leaf of each."""

    @staticmethod
    def released(records: str, spine: tt.Spine) -> People:
        """Read synthetic records: a column an attribute, with codes of the finest level that is released."""
        codes = _read(records, {name: name for name in spine.attributes})
        trees = zip(spine.attributes, spine.trees, strict=True)
        return People(spine, {name: tree.encode(codes[name]) for name, tree in trees})

    @staticmethod
    def true(table: tt.Source, spine: tt.Spine, columns: Mapping[str, str]) -> People:
        """Read the private table, whose codes may be finer than what is released."""
        codes = _read(table, columns)
        leaf = {}
        for (name, whole), tree in zip(spine.attributes.items(), spine.trees, strict=True):
            finest = whole.depth(tree.levels[-1])
            node = whole.ancestors(finest)[whole.encode(codes[name])]
            leaf[name] = tree.encode(whole.codes[finest].take(pa.array(node)))
        return People(spine, leaf)

    def table(self, *levels: str) -> Table:
        """Return how many records each cell of a table has: one axis a level."""
        names = list(self.spine.attributes)
        axes, sizes = [], []
        for part in (part for level in levels for part in self.spine.refinements(level)):
            tree = self.spine.trees[part.attribute]
            axes.append(tree.ancestors(part.depth)[self.leaf[names[part.attribute]]])
            sizes.append(tree.sizes[part.depth])
        cells = np.ravel_multi_index(axes, sizes)
        return np.bincount(cells, minlength=int(np.prod(sizes))).astype(float).reshape(sizes)


def _read(table: str | tt.Source, columns: Mapping[str, str]) -> dict[str, pa.Array]:
    rows = tables.read(table, list(columns.values()))
    return {name: as_text(rows.column(column), name).combine_chunks() for name, column in columns.items()}


def asked(spine: tt.Spine) -> Iterator[tuple[str, ...]]:
    """Yield every margin, and every pair of attributes at their coarsest and at their finest levels."""
    by_attribute = [
        [name if len(tree.levels) == 1 else f"{name}.{level}" for level in tree.levels]
        for name, tree in zip(spine.attributes, spine.trees, strict=True)
    ]
    yield from ((level,) for levels in by_attribute for level in levels)
    for one, other in combinations(by_attribute, 2):
        yield from dict.fromkeys(((one[0], other[0]), (one[-1], other[-1])))


def wrong(released: Table, true: Table) -> float:
    """Return the share of the records that stand in wrong cells."""
    return float(np.abs(released / released.sum() - true / true.sum()).sum() / 2)


def row(levels: Sequence[str], records: People, truth: People) -> tuple[str, ...]:
    """Compare one table."""
    released, true = records.table(*levels), truth.table(*levels)
    unrelated = "" if len(levels) == 1 else f"{wrong(np.outer(true.sum(1), true.sum(0)), true):.1%}"
    return (
        " × ".join(levels),
        f"{true.size:,}",
        f"{np.abs(released - true).mean():,.1f}",
        f"{wrong(released, true):.1%}",
        unrelated,
    )


def main(plan: str, records: str) -> str:
    """Return the report."""
    file = tt.read_plan(plan)
    if file.source is None:
        raise SystemExit(f"{plan} does not name its source")
    spine = file.plan.spine
    made, truth = People.released(records, spine), People.true(file.table(file.source), spine, file.columns)
    return text_table([HEAD, *(row(levels, made, truth) for levels in asked(spine))], left=(0,))


if __name__ == "__main__":
    print(main(*sys.argv[1:3]))
