"""Inspecting a private table: its columns, and the attributes that a plan could have.

The description tells about private data, and is for the steward only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.choices import nearest
from treetop._util.lazy import FrozenMap
from treetop.errors import DataError
from treetop.inspection._layouts import EdgeLayout, GroupLayout, edges_of, recognise_edges, recognise_groups
from treetop.inspection.column_profile import Column, describe_columns
from treetop.inspection.detect import detect
from treetop.inspection.lookup import (
    SAMPLE,
    HierarchyFile,
    Match,
    find_chains,
    match_columns,
    nearest_leaf,
    read_lookup,
    sample_codes,
)
from treetop.inspection.suggest import (
    Identifier,
    Reason,
    Suggestion,
    chosen_attributes,
    find_identifiers,
    find_names,
    nearly_nested,
    reasons_of,
    suggest_attributes,
    suggest_count,
    why_left_out,
)
from treetop.io import table as tables
from treetop.io.fixed_width import refuse_fixed
from treetop.io.header import MISSING, is_unvouched, refuse_code, refuse_first_row, refuse_value
from treetop.io.row_batch import as_text
from treetop.io.source import Prepare, Source
from treetop.io.table import same_table

__all__ = [
    "SAMPLE", "Column", "EdgeLayout", "GroupLayout", "HierarchyFile", "Identifier", "Inspection", "Match", "Suggestion",
    "inspect_table",
]  # fmt: skip


_BLANK = 0.02
"""From this share of blank rows on, a blank may be a category."""


@dataclass(frozen=True, eq=False)
class Inspection:
    """The description of a private table."""

    path: str
    source: Source
    rows: int
    columns: tuple[Column, ...]
    chains: tuple[tuple[str, ...], ...]
    """Columns that nest, coarse to fine: each value of a finer one stands under one value of the coarser."""
    lookups: tuple[HierarchyFile, ...]
    matches: tuple[Match, ...]
    names: Mapping[str, str]
    """Columns that are names, one to one with the codes of another column, each with that column."""
    count: str | None
    """The column that says, or may say, how many records a row stands for."""
    count_is_stated: bool
    """Whether the steward named it; otherwise it is a guess, and a question."""
    identifiers: tuple[Identifier, ...]
    attributes: tuple[Suggestion, ...]
    left_out: Mapping[str, str]
    """By column that is no attribute, the reason; the steward may take it all the same."""
    notes: tuple[str, ...] = ()
    """Changes that would make more of the table fit: near misses, and marks that stand for nothing."""
    layout: GroupLayout | EdgeLayout | None = None
    """What a row is, if it is no plain record."""

    @property
    def prepare(self) -> Prepare | None:
        """Cleaning that would make codes match and counts numbers; None if none is needed."""
        matches = [attribute.match for attribute in self.attributes if attribute.match is not None]
        written = {column.name: column.thousands for column in self.columns if column.name == self.count}
        thousands = {name: mark for name, mark in written.items() if mark is not None}
        trim = [match.column for match in matches if match.trimmed or match.both]
        listed = {one.column for one in self.attributes if one.match is None}
        trim += [column.name for column in self.columns if column.name in listed and column.is_padded]
        pad = {match.column: match.width for match in matches if match.lost_zeros}
        return Prepare(trim=trim, pad=pad, thousands=thousands) or None

    @property
    def sampled(self) -> bool:
        """Whether nesting was judged from a sample of the rows."""
        return self.rows > SAMPLE

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "path": self.path,
            "rows": self.rows,
            "columns": [column.to_dict() for column in self.columns],
            "chains": [list(chain) for chain in self.chains],
            "chains_from_sample": self.sampled,
            "hierarchy": next((str(lookup.path) for lookup in self.lookups), None),
            "hierarchies": [str(lookup.path) for lookup in self.lookups],
            "matches": [match.to_dict() for match in self.matches],
            "names": dict(self.names),
            "count": self.count,
            "count_is_stated": self.count_is_stated,
            "identifiers": [identifier.to_dict() for identifier in self.identifiers],
            "attributes": [attribute.to_dict() for attribute in self.attributes],
            "left_out": dict(self.left_out),
            "levels": [reason.to_dict() for reason in self.reasons()],
            "notes": list(self.notes),
            "layout": None if self.layout is None else self.layout.sentence(),
        }

    def reasons(self) -> list[Reason]:
        """Say which columns of hierarchy files are levels, and why others are none."""
        seen = {match.place: match for match in self.matches}
        return [reason for match in seen.values() for reason in reasons_of(match)]


def _nearest_columns(
    columns: Sequence[Column], lookups: Sequence[HierarchyFile], matches: Sequence[Match]
) -> list[str]:
    """Say, of a hierarchy file that no column matches, which one comes nearest."""
    notes = []
    used = {match.lookup.path for match in matches}
    for lookup in lookups:
        near = [] if lookup.path in used else [one for column in columns for one in nearest_leaf(column, lookup)]
        if near:
            shared, codes, column, leaf = max(near)
            notes.append(f"the nearest to {lookup.path}: {shared:,} of {codes:,} codes of {column} are in {leaf}")
    return notes


def _marks(rows: pa.Table, columns: Sequence[Column], matches: Sequence[Match]) -> list[str]:
    """Say which values look as if they stood for a missing one, and how often; a code of a hierarchy is none."""
    notes = []
    known = {match.column: match.lookup.known(match.leaf) for match in matches}
    for column in columns:
        texts = [] if column.values is None or column.type != "text" else column.values.to_pylist()
        marks = [text for text in texts if text.strip().lower() in MISSING]
        if column.name in known:
            marks = [mark for mark in marks if not pc.is_in(pa.scalar(mark), value_set=known[column.name]).as_py()]
        if marks:
            plain = as_text(rows.column(column.name), column.name)
            often = pc.sum(pc.is_in(plain, value_set=pa.array(marks))).as_py()
            listed = ", ".join(json.dumps(mark, ensure_ascii=False) for mark in marks)
            in_rows = f"{often:,} row{'s' * (often != 1)} with {listed}"
            notes.append(f"{column.name}: {in_rows}: if that is a missing value, missing = [{listed}]")
    return notes


def inspect_table(
    table: str | Path | Source,
    hierarchy: str | Path | Source | Sequence[str | Path | Source] | None = None,
    count: str | None = None,
    nodes: str | Path | Source | None = None,
    attributes: Mapping[str, Sequence[str]] | None = None,
    detects: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Inspection:
    """Describe a private table; `hierarchy` is a public file, or several, `count` names a column of counts.

    For a table of edges, `nodes` is that of the people. `attributes` chooses the columns of the draft, each with its
    levels, the numbers at which its bands begin, or the name of a standard, or with nothing: `{"age": ["0", "18"]}`.
    Encodings, sheets and blanks between fields are found, unless `detects` is False. `progress` is called with the
    share of the table that is read.
    """
    given = table if isinstance(table, Source) else Source(table)
    source, seen = detect(given) if detects else (given, [])
    described = _described(source, hierarchy, count, attributes, progress)
    described = replace(described, notes=(*seen, *described.notes))
    if attributes is not None:
        return described
    columns, found = described.columns, described.attributes
    if nodes is not None:
        people = _described(detect(nodes if isinstance(nodes, Source) else Source(nodes))[0], hierarchy, None)
        return replace(described, layout=edges_of(columns, people.path, people.columns, people.attributes))
    matched = [match.column for match in described.matches]
    edges = recognise_edges(columns, matched) if described.count is None else None
    return replace(described, layout=edges or recognise_groups(columns, described.rows, found))


def _described(
    source: Source,
    hierarchy: str | Path | Source | Sequence[str | Path | Source] | None,
    count: str | None,
    chosen: Mapping[str, Sequence[str]] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Inspection:
    path = str(source)
    given = [] if hierarchy is None else [hierarchy] if isinstance(hierarchy, str | Path | Source) else hierarchy
    public = [file if isinstance(file, Source) else Source(file) for file in given]
    if any(same_table(file, source) for file in public):
        raise DataError(
            f"{path} is given as its own hierarchy, but which codes occur in a private table is private: "
            "take the hierarchy from a public file"
        )
    refuse_fixed(source)
    rows = tables.read(source, None, progress)
    if is_unvouched(rows.schema):
        refuse_first_row(rows, path)
    if not len(rows):
        tables.warn_of_none(source)
    if len(set(rows.column_names)) < len(rows.column_names):
        twice = next(name for name in rows.column_names if rows.column_names.count(name) > 1)
        raise DataError(
            f"{path}: two columns have the same name, {twice!r}: give names of your own, `header=False` and `names=…`, "
            f"and leave the first line out, `drop` with the value {rows.column_names[0]!r} of the first column"
        )
    if count is not None and count not in rows.column_names:
        raise DataError(
            f"{path}: there is no column {count!r}{nearest(count, rows.column_names)}; "
            f"the columns are {', '.join(rows.column_names)}"
        )
    columns = describe_columns(rows, count)
    lookups = tuple(read_lookup(file) for file in public)
    if is_unvouched(rows.schema):  # names that are values or codes: the draft would hold a private row
        known = [one.values for lookup in lookups for one in lookup.columns.values() if one.values is not None]
        for column in columns:
            refuse_code(column.name, known, path)
            if column.values is not None:
                refuse_value(column.name, column.values, path)
    matches = match_columns(columns, lookups)
    matched = {match.column for match in matches}
    columns = tuple(replace(column, kind="code") if column.name in matched else column for column in columns)
    sample = sample_codes(rows, [column.name for column in columns if column.kind == "code"])
    names = find_names(columns, sample, matches)
    rules = {"bands", "dates", "standard"}
    flat = {column.name for column in columns if column.reason or rules & column.proposed.keys()}
    chains = find_chains({name: codes for name, codes in sample.items() if name not in {*names, *(flat - matched)}})
    nearly = nearly_nested({name: codes for name, codes in sample.items() if name not in (*names, *matched)})
    counts = suggest_count(columns, sample) if count is None else count
    matching = [match for match in matches if match.column not in names]
    if chosen is not None:
        attributes = chosen_attributes(chosen, columns, chains, matches)
    else:
        unnamed = [column for column in columns if column.name not in names]
        attributes = suggest_attributes(unnamed, chains, matching, sample, counts)
    many = {column.name for column in columns if column.missing >= _BLANK * rows.num_rows > 0}
    attributes = tuple(replace(one, has_blanks=one.column in many) for one in attributes)
    used = {attribute.column for attribute in attributes} | {name for chain in chains for name in chain}
    used |= {*names, *matched, *([] if counts is None else [counts])}
    return Inspection(
        path=path,
        # Names that were compared with rows and public codes are vouched for; without public codes, a release compares.
        source=replace(source, header=True) if is_unvouched(rows.schema) and lookups else source,
        rows=rows.num_rows,
        columns=columns,
        chains=chains,
        lookups=lookups,
        matches=matches,
        names=FrozenMap(names),
        count=counts,
        count_is_stated=count is not None,
        identifiers=find_identifiers(rows, columns, used),
        attributes=attributes,
        left_out=FrozenMap(why_left_out(columns, attributes, used)),
        notes=(*_nearest_columns(columns, lookups, matches), *_marks(rows, columns, matches), *nearly),
    )
