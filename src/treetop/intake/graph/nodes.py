"""The node table in memory: a number for every id, and the codes of its attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.basics.nearest import nearest
from treetop.errors import DataError
from treetop.intake.codebook import Codebook
from treetop.intake.dropping import may_drop
from treetop.intake.graph.cleaning import Changes, Cleaning, Column, clean
from treetop.sources import table as tables
from treetop.sources.batch import as_text, first_missing, require
from treetop.sources.header import is_unvouched

MOST_NODES = 1 << 31


@dataclass(frozen=True, eq=False, repr=False)
class Nodes:
    """The people of a graph, numbered as they stand in their table: private."""

    ids: pa.StringArray
    """Their ids."""
    columns: Mapping[str, Column]
    """Their attributes, cleaned, by column."""
    changes: Mapping[str, Changes]
    """For the steward only: what each rule changed."""
    book: Codebook
    """Finds the number of an id."""
    may_drop: str | None = None
    """What may have left people out when they were read; None where all rows of the table are here."""
    unvouched: bool = False
    """Whether the names of the columns are from a first line for which nobody vouches."""

    @staticmethod
    def read(
        table: tables.Table,
        id: str = "id",
        columns: Sequence[str] | None = None,
        cleaning: Mapping[str, Cleaning] | None = None,
    ) -> Nodes:
        """Read some columns of a node table, or all of them, by the rules that are declared for them."""
        rules = dict(cleaning or {})
        wanted = None if columns is None else list(dict.fromkeys([id, *columns]))
        rows = tables.read(tables.as_part_of_graph(table, "nodes"), wanted)
        require([id], rows.column_names, "the node table")
        for name in rules:
            if columns is None and name not in rows.column_names:
                raise DataError(
                    f"the node table has no column {name!r} to clean{nearest(name, rows.column_names)}; the columns "
                    f"are {', '.join(rows.column_names)}"
                )
        ids = _ids(rows.column(id), id)
        names = [name for name in rows.column_names if name != id] if columns is None else list(dict.fromkeys(columns))
        cleaned = {name: clean(rows.column(name), name, rules.get(name)) for name in names}
        return Nodes(
            ids,
            {name: column for name, (column, _) in cleaned.items()},
            {name: changes for name, (_, changes) in cleaned.items() if changes is not None},
            Codebook(ids),
            may_drop(table),
            is_unvouched(rows.schema),
        )

    @cached_property
    def width(self) -> int:
        """How many characters the longest id has."""
        return int(pc.max(pc.utf8_length(self.ids)).as_py() or 0)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return "Nodes(private)"

    def find(self, column: Any, name: str) -> NDArray[np.int64]:
        """Return the numbers of ids, -1 where nobody has one."""
        return self.book.find(as_text(column, name))

    def groups(self) -> NDArray[np.int64]:
        """Return for each node the position of its combination of codes, in the order of the codes as text."""
        place = np.zeros(len(self), np.int64)
        for column in self.columns.values():
            rank = np.empty(len(column.codes) + 1, np.int64)
            rank[np.asarray(pc.sort_indices(column.codes))] = np.arange(1, len(column.codes) + 1)
            rank[-1] = 0
            _, place = np.unique(place * (len(column.codes) + 1) + rank[column.index], return_inverse=True)
        return place

    def arrays(self, numbers: NDArray[np.integer[Any]] | None = None) -> dict[str, pa.DictionaryArray]:
        """Return the codes of some nodes, or of all, by column."""
        made = {}
        for name, column in self.columns.items():
            index = column.index if numbers is None else column.index[numbers]
            made[name] = pa.DictionaryArray.from_arrays(pa.array(index, mask=index < 0), column.codes)
        return made


def _ids(column: Any, name: str) -> pa.StringArray:
    ids = as_text(column, name)
    ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    row = first_missing(ids)
    if row is not None:
        raise DataError(f"the node table, column {name!r}, row {row + 1}: the id is missing. Every node needs one")
    if len(ids) > MOST_NODES:
        raise DataError(f"the node table has more than {MOST_NODES:,} rows")
    if len(ids) and len(pc.unique(ids)) < len(ids):
        counts = pc.value_counts(ids)
        twice = counts.field("values")[int(pc.index(pc.greater(counts.field("counts"), 1), True).as_py())].as_py()
        raise DataError(f"the node table, column {name!r}: {twice!r} is there more than once. Give each node one row")
    return ids
