"""Columns that could tell who is protected: how often their values repeat, and which differ in spelling only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from treetop.domain.unit import IdClean
from treetop.intake.inspect.columns import Column
from treetop.intake.spelling import cleaned, without_zeros

_MANY = 20
_OFTEN = 0.01
WAYS: tuple[IdClean, ...] = get_args(IdClean)


@dataclass(frozen=True)
class Identifier:
    """A column whose values may each be one person, household or device. Private."""

    column: str
    """The column."""
    ids: int
    """How many different values it has."""
    repeated: int
    """How many of them stand in more than one row."""
    most: int
    """In how many rows the commonest stands."""
    named: bool
    """Whether the column looks like ids; otherwise it only has very many values."""
    clean: tuple[IdClean, ...]
    """What has to be taken away so that values which differ in spelling only become one."""
    spellings: int
    """How many values are then another one."""
    zeros: int
    """How many are another one but for leading zeros."""

    @property
    def repeats(self) -> bool:
        """Whether any value stands in more than one row."""
        return self.most > 1

    def sentences(self) -> Iterator[str]:
        """Say how often values repeat, and what looks like one id in several spellings."""
        if self.repeats:
            yield (
                f"{self.column} repeats: {self.ids:,} values, {self.repeated:,} of them in several rows, one in "
                f"{self.most:,}. If one of them is who is protected, it is the id of the unit"
            )
        else:
            yield (
                f"WARNING: {self.column} never repeats: as the id of the unit it would make each row one of its own, "
                "and limit nothing. Who is protected if one of them has several rows?"
            )
        if self.clean:
            listed = ", ".join(f'"{way}"' for way in self.clean)
            yield (
                f"WARNING: {self.spellings:,} of the {self.ids:,} values of {self.column} are another one but for the "
                f"spelling (blanks, Unicode form or case), and would be units of their own: id_clean = [{listed}] "
                "under [unit] makes them one"
            )
        if self.zeros:
            yield (
                f"{self.zeros:,} of the {self.ids:,} values of {self.column} are another one but for leading zeros, as "
                '"7" and "07": they are different ids; if they are one, correct the table'
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "column": self.column,
            "ids": self.ids,
            "repeated": self.repeated,
            "most_rows": self.most,
            "id_clean": list(self.clean),
            "other_spellings": self.spellings,
            "other_zeros": self.zeros,
        }


def find_identifiers(table: pa.Table, columns: Sequence[Column], used: Collection[str]) -> tuple[Identifier, ...]:
    """Return the columns that look like ids, and others with very many values, that are not used otherwise."""
    return tuple(
        _identifier(table.column(column.name), column) for column in columns if _could_be(column, table.num_rows, used)
    )


def _could_be(column: Column, rows: int, used: Collection[str]) -> bool:
    if column.values is None or column.name in used:
        return False
    return column.kind == "id" or (column.kind == "code" and column.distinct >= max(_MANY, _OFTEN * rows))


def _identifier(rows: pa.ChunkedArray, column: Column) -> Identifier:
    assert column.values is not None
    often = pc.value_counts(pc.drop_null(rows)).field("counts")
    clean = _needed(column.values)
    return Identifier(
        column=column.name,
        ids=column.distinct,
        repeated=int(pc.sum(pc.greater(often, 1)).as_py() or 0),
        most=int(pc.max(often).as_py() or 0),
        named=column.kind == "id",
        clean=clean,
        spellings=_alike(column.values, cleaned(column.values, clean)),
        zeros=_alike(column.values, without_zeros(column.values)),
    )


def _needed(values: pa.Array) -> tuple[IdClean, ...]:
    """Return the fewest ways that make as many values one as all of them do."""
    needed, together = WAYS, _alike(values, cleaned(values, WAYS))
    for way in WAYS:
        fewer = tuple(one for one in needed if one != way)
        if _alike(values, cleaned(values, fewer)) == together:
            needed = fewer
    return needed


def _alike(values: pa.Array, changed: pa.Array) -> int:
    """Count the values that become another one."""
    return len(values) - int(pc.count_distinct(changed).as_py())
