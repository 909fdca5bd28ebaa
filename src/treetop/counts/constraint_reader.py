"""Public facts from files and tables: codes become cells, numbers are whole, and every fault is named with its row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.choices import nearest
from treetop._util.dtypes import Ints
from treetop._util.lazy import FrozenMap
from treetop._util.numbers import NO_BOUND
from treetop.counts.codebook import Codebook
from treetop.counts.encode import Weighing, first_unknown
from treetop.domain.constraints import COUNTED, INVARIANT, LISTED, ORDERED, SAME, Fact, PublicFacts, TableFact
from treetop.domain.marginal import depths_named
from treetop.domain.spine import TIMES, Spine, apart
from treetop.domain.table_cells import (
    CellBounds,
    CellNumbering,
    PossibleCells,
    complement,
    equal_codes,
    ordered_cells,
    refuse_many,
)
from treetop.errors import DataError, FactError, SpineError, TreetopError
from treetop.io import table as tables
from treetop.io.row_batch import RowBatch, as_text, first_missing
from treetop.io.source import as_public, as_source

COUNT = "count"


def read_facts(spine: Spine, given: Mapping[str, Any]) -> PublicFacts:
    """Read facts by the tables that they are about; refuse those that cannot be understood, or not all be true."""
    read: list[TableFact] = []
    for name, stated in given.items():
        try:
            fact = _read(spine, name, Fact.of(stated))
        except TreetopError as problem:
            raise FactError(f"{name}: {problem}") from problem
        for other in read:
            if other.table.depths == fact.table.depths:
                raise FactError(f"{name} and {other.name} are the same table: state all about it at one place")
        read.append(fact)
    facts = PublicFacts(spine, tuple(read))
    facts.check()
    return facts


def _read(spine: Spine, name: str, fact: Fact) -> TableFact:
    table = CellNumbering(spine, _depths(spine, name))
    parts = [part.strip() for part in name.split(TIMES.strip())]
    stated_cells = {
        kind: _Listed(table, parts, kind).read(getattr(fact, kind)) for kind in fact.kinds if kind != INVARIANT
    }
    if not stated_cells:
        refuse_many(table.number, f"{name}, of which all cells are published, has")
    places = {kind: _place_of(getattr(fact, kind)) for kind in stated_cells}
    # Edges are turned as they are read, so that every table agrees with the order of their ends.
    unchecked = fact.unchecked or ORDERED in places.values()
    constraint = fact_of(table, fact.kinds, stated_cells, unchecked=unchecked, places=places)
    stated = [getattr(fact, kind) for kind in stated_cells if places[kind] not in ("", SAME, ORDERED)]
    constraint = replace(constraint, sources=tuple(stated))
    if fact.sha256 is not None and fact.sha256.lower() != constraint.sha256:
        raise FactError(
            f"what is stated has SHA-256 {constraint.sha256}, but sha256 is {fact.sha256}: "
            "the plan was made for other facts"
        )
    return constraint


def fact_of(
    table: CellNumbering,
    kinds: tuple[str, ...],
    stated_cells: Mapping[str, tuple[Ints, Ints]],
    *,
    unchecked: bool = False,
    places: Mapping[str, str] | None = None,
) -> TableFact:
    """Return the constraint on a table from its stated cells and numbers, by kind."""
    bounds = []
    for kind in (kind for kind in (*COUNTED, INVARIANT) if kind in stated_cells):
        cells, numbers = stated_cells[kind]
        lower = np.zeros(len(cells), np.int64) if kind == "at_most" else numbers
        upper = np.full(len(cells), NO_BOUND, np.int64) if kind == "at_least" else numbers
        bounds.append(CellBounds(table, cells, lower, upper))
    boxes = CellBounds.joined(table, bounds) if bounds else None
    rule = None
    for kind in LISTED:
        if kind in stated_cells:
            cells = stated_cells[kind][0]
            rule = PossibleCells(table, cells if kind == "possible" else complement(table, cells))
    public = {kind: stated for kind, stated in stated_cells.items() if kind != INVARIANT}
    digest = _digest(table, public) if public else ""
    return TableFact(table, kinds, boxes, rule, unchecked, digest, FrozenMap(places or {}), FrozenMap(stated_cells))


def _depths(spine: Spine, name: str) -> tuple[int, ...]:
    """Return the depths of a table; an error names a level that the spine leaves out."""
    try:
        return depths_named(spine, name)
    except SpineError as problem:
        for part in str(name).split(TIMES.strip()):
            attribute, level = apart(part.strip(), spine.attributes)
            whole = spine.attributes.get(attribute)
            if whole is not None and level in whole.levels:
                kept = spine.trees[list(spine.attributes).index(attribute)].levels
                if level not in kept:
                    raise FactError(
                        f"{part.strip()} is no level of the spine, which leaves it out, so that no count is released "
                        f"there: put it into the spine, or state the fact at {', '.join(kept)}"
                    ) from None
        raise FactError(str(problem).removeprefix("margins: ").replace("margins has", "there is")) from problem


class _Listed:
    """Reads the cells that a fact lists, with their numbers if it has any."""

    def __init__(self, table: CellNumbering, parts: Sequence[str], kind: str) -> None:
        self._table, self._kind = table, kind
        self._counted = kind in COUNTED
        names = list(table.spine.attributes)
        # In the order in which the table's name has them, which is that of columns without names.
        self._attributes = [names.index(apart(part, table.spine.attributes)[0]) for part in parts]
        self._names = [
            (names[attribute], table.spine.trees[attribute].levels[table.depths[attribute] - 1])
            for attribute in self._attributes
        ]

    def read(self, stated: Any) -> tuple[Ints, Ints]:
        """Return the numbers of the listed cells, ascending, and the value of each."""
        if isinstance(stated, str) and stated == SAME and not self._counted:
            if len(self._attributes) < 2:
                raise FactError('"same" is about the codes of two attributes: name two, as in "origin.county * …"')
            same = equal_codes(self._table)
            if len(same) == 0:
                raise FactError('"same": no code stands in all of these levels, so that nothing is possible')
            return same, np.zeros(len(same), np.int64)  # as for a list of the same cells, which is the same fact
        if isinstance(stated, str) and stated == ORDERED and self._kind == "possible":
            if (pairs := ordered_cells(self._table)) is None:
                raise FactError(
                    '"ordered" is about two ends with one hierarchy at one level: name both, at their leaves'
                )
            return pairs, np.zeros(len(pairs), np.int64)
        given, where = self._as_table(stated)
        columns = self._columns(given)
        books = [Codebook(self._table.codes(attribute)) for attribute in self._attributes]
        weighing = Weighing(COUNT) if self._counted else None
        batches, cells, numbers = [], [], []
        for read in tables.batches(given, columns + [COUNT] * self._counted):
            batch = read if where is None else replace(read, where=where)
            nodes = np.zeros((len(self._table.depths), len(batch.rows)), np.int64)
            for one, column, book, name in zip(self._attributes, columns, books, self._names, strict=True):
                nodes[one] = self._find(batch, column, book, self._table.codes(one), ".".join(name))
            cells.append(self._table.numbers(nodes, self._table.depths))
            numbers.append(weighing.read(batch) if weighing is not None else np.zeros(len(batch.rows), np.int64))
            batches.append(batch)
        every = np.concatenate(cells)
        order = np.argsort(every, kind="stable")
        twice = np.flatnonzero(np.diff(every[order]) == 0)
        if len(twice):
            at = int(order[twice + 1].min())
            first = int(np.flatnonzero(every == every[at])[0])
            raise FactError(
                f"{_place(batches, at)}: {self._table.words(int(every[at]))} stands there twice, first in "
                f"{_place(batches, first)}: keep one of the rows"
            )
        if len(every) == 0:
            raise FactError(f"{batches[0].where}: there are no rows: list at least one cell, or leave {self._kind} out")
        return every[order], np.concatenate(numbers)[order]

    def _as_table(self, stated: Any) -> tuple[Any, str | None]:
        """Return a stated source as a table, with its name in messages if it has no place of its own."""
        if as_source(stated) is not None and not _is_codes(stated):
            return as_public(stated), None
        if hasattr(stated, "__arrow_c_stream__"):
            return stated, f"the table of {self._kind}"
        if self._counted and not isinstance(stated, Mapping):
            raise FactError(f"{self._kind} is {type(stated).__name__}: give a file, a table, or a mapping to counts")
        if not isinstance(stated, Iterable):
            raise FactError(f"{self._kind} is {stated!r}: give a file, a table, or a list of codes")
        rows = [key if isinstance(key, tuple | list) else (key,) for key in stated]
        for row in rows:
            if len(row) != len(self._attributes) or not all(isinstance(code, str) for code in row):
                shown = row[0] if len(row) == 1 else row
                raise FactError(
                    f"{self._kind} has {shown!r}, which is not {len(self._attributes)} codes: codes are text, and of "
                    "several attributes a tuple"
                )
        columns = {".".join(name): [row[at] for row in rows] for at, name in enumerate(self._names)}
        made = {name: pa.array(codes, pa.string()) for name, codes in columns.items()}
        if self._counted:
            try:
                made[COUNT] = pa.array(list(dict(stated).values()))
            except (pa.ArrowException, OverflowError) as problem:
                raise FactError(f"{self._kind}: the counts are not all numbers: {problem}") from problem
        return pa.table(made), f"the cells of {self._kind}"

    def _columns(self, given: Any) -> list[str]:
        """Return the columns of the codes: by the names of attributes or levels, or else in order."""
        batch = next(iter(tables.batches(given)))
        present = [name for name in batch.rows.schema.names if name != COUNT]
        if self._counted and len(present) == batch.rows.num_columns:
            raise FactError(
                f"{batch.where}: there is no column {COUNT!r}{nearest(COUNT, present)}, with the numbers; the columns "
                f"are {', '.join(present)}"
            )
        levels = [level for _, level in self._names]
        found = []
        for attribute, level in self._names:
            names = [f"{attribute}.{level}", attribute, *([level] if levels.count(level) == 1 else [])]
            found.append(next((name for name in names if name in present), None))
        if all(name is not None for name in found):
            return [name for name in found if name is not None]
        if not any(found) and len(present) == len(self._names):
            return present
        wanted = " and ".join(
            repr(".".join(name)) for name, column in zip(self._names, found, strict=True) if not column
        )
        raise FactError(
            f"{batch.where}: there is no column {wanted}; the columns are {', '.join(present)}. Name the columns of "
            "codes as the table is named"
        )

    def _find(self, batch: RowBatch, column: str, book: Codebook, codes: pa.StringArray, level: str) -> Ints:
        """Return the nodes of the codes in a column."""
        try:
            text = as_text(batch.rows.column(column), column)
        except DataError as problem:
            raise FactError(f"{batch.where}: {problem}") from problem
        if (row := first_missing(text)) is not None:
            raise FactError(f"{batch.place(column, row)}: the code is missing: give one, or delete the row")
        numbers = book.find(text)
        if (unknown := first_unknown(text, numbers)) is not None:
            hint = nearest(str(unknown.code), codes.slice(0, 20_000).to_pylist())
            raise FactError(
                f"{batch.place(column, unknown.row)}: {unknown.code!r} is not a code of {level}{hint}{unknown.more}: "
                "correct the row, or delete it"
            )
        return numbers


def _place(batches: Sequence[RowBatch], row: int) -> str:
    for batch in batches:
        if row < len(batch.rows):
            number = row if batch.numbers is None else int(batch.numbers[row])
            return f"{batch.where}, row {batch.first + number + 1}"
        row -= len(batch.rows)
    return "the table"


def _is_codes(stated: Any) -> bool:
    """Whether a list is one of codes, and not of files: nothing in it is the name of a file's kind."""
    return isinstance(stated, list | tuple | set) and not any(isinstance(item, Path) for item in stated)


def _place_of(stated: Any) -> str:
    """Return the name of the file that a fact is in, or of its rule; empty where it was given in memory."""
    if isinstance(stated, str) and stated in (SAME, ORDERED):
        return stated
    source = None if _is_codes(stated) else as_source(stated)
    return "" if source is None else Path(str(source)).name


def _digest(table: CellNumbering, stated_cells: Mapping[str, tuple[Ints, Ints]]) -> str:
    """A SHA-256 of the stated values: by kind, the codes of each cell in order and its number, however it was
    written."""
    digest = hashlib.sha256(table.name.encode())
    for kind in sorted(stated_cells):
        cells, numbers = stated_cells[kind]
        nodes = table.nodes(cells)
        digest.update(f"\n{kind} {len(cells)}\n".encode())
        for attribute in table.attributes:
            codes = table.codes(attribute).take(pa.array(nodes[attribute]))
            digest.update(pc.binary_length(codes).to_numpy().astype("<i4").tobytes())
            digest.update("".join(codes.to_pylist()).encode())
        digest.update(numbers.astype("<i8").tobytes())
    return digest.hexdigest()
