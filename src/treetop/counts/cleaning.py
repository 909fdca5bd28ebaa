"""Public rules that clean the columns of a node table, each value by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.lazy import FrozenMap
from treetop.errors import DataError, PlanError
from treetop.io import table as tables
from treetop.io.row_batch import as_text
from treetop.io.source import as_public

MISSING = "missing"
OTHER = "other"
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}")


@dataclass(frozen=True, eq=False)
class Cleaning:
    """What is done to the values of one column; without a vocabulary or a range only gaps are, and get their code.

    >>> Cleaning(least=100, most=229, width=10).code("183"), Cleaning(least=100, most=229, width=10).code("900")
    ('180-189', 'missing')
    """

    vocabulary: Mapping[str, str] | None = None
    """For free text: by keyword, the code. The first keyword that stands in the text as words of its own counts."""
    least: int | None = None
    """For whole numbers: the smallest that is plausible."""
    most: int | None = None
    width: int | None = None
    missing: str = MISSING
    """The code of a value that is missing, or implausible."""
    other: str = OTHER

    def __post_init__(self) -> None:
        ranged = self.least is not None or self.most is not None
        if self.vocabulary is not None and ranged:
            raise PlanError("a column is cleaned by a vocabulary, or by a least and a most number: give one of them")
        if self.vocabulary is not None:
            if not self.vocabulary or not all(word.strip() for word in self.vocabulary):
                raise PlanError("a vocabulary needs at least one keyword, and none that is blank")
            spelt = FrozenMap({" ".join(word.casefold().split()): code for word, code in self.vocabulary.items()})
            object.__setattr__(self, "vocabulary", spelt)
        elif ranged and (self.least is None or self.most is None or self.least > self.most):
            raise PlanError(f"the plausible numbers are from {self.least} to {self.most}: give the least and the most")
        if self.width is not None and (not ranged or self.width < 1):
            raise PlanError(f"the width of a class is {self.width}: give a whole number, 1 or more, for numbers only")

    @staticmethod
    def read(
        table: tables.Table, keyword: str = "keyword", code: str = "code", missing: str = MISSING, other: str = OTHER
    ) -> Cleaning:
        """Read a public vocabulary: a keyword and its code a row, the more important ones first."""
        rows = tables.read(as_public(table), list(dict.fromkeys([keyword, code])))
        words, found = (as_text(rows.column(name), name).to_pylist() for name in (keyword, code))
        for row, pair in enumerate(zip(words, found, strict=True)):
            if not all(pair):
                raise DataError(f"the vocabulary, row {row + 1}: a keyword and its code, and one of them is missing")
        if len(set(words)) < len(words):
            raise DataError("the vocabulary has a keyword twice: keep one row of it")
        return Cleaning(vocabulary=dict(zip(words, found, strict=True)), missing=missing, other=other)

    @property
    def codes(self) -> list[str] | None:
        """Every code that a cleaned column may hold, which its public hierarchy needs; None where values stay."""
        if self.vocabulary is not None:
            return sorted({*self.vocabulary.values(), self.missing, self.other})
        if self.least is None or self.most is None:
            return None
        numbers = range(self.least, self.most + 1, self.width or 1)
        return [*(self._class(number) for number in numbers), self.missing]

    def code(self, value: str | None) -> str:
        """Return the code of one value: a function of nothing else."""
        if value is None or not value.strip():
            return self.missing
        if self.vocabulary is not None:
            text = " ".join(value.casefold().split())
            for word, code in self.vocabulary.items():
                if word in text and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text):
                    return code
            return self.other
        if self.least is None or self.most is None:
            return value
        number = value.strip()
        if not _NUMBER.fullmatch(number):
            return self.missing
        return self._class(int(number)) if self.least <= int(number) <= self.most else self.missing

    def _class(self, number: int) -> str:
        assert self.least is not None
        if self.width is None:
            return str(number)
        first = self.least + (number - self.least) // self.width * self.width
        return f"{first}-{first + self.width - 1}"

    def describe(self) -> dict[str, Any]:
        """Return the rule as plain values."""
        if self.vocabulary is not None:
            return {"vocabulary": dict(self.vocabulary), "missing": self.missing, "other": self.other}
        numbers = {"least": self.least, "most": self.most, "width": self.width}
        return {**{key: number for key, number in numbers.items() if number is not None}, "missing": self.missing}


@dataclass(frozen=True)
class Changes:
    """Changes that a rule made to a column."""

    missing: int
    implausible: int
    """How many numbers were out of range, or no numbers."""
    unread: int


@dataclass(frozen=True, eq=False)
class NodeColumn:
    """The codes of one column, by row: private."""

    index: NDArray[np.int32]
    """The position of each row's code; -1 if it is missing and no rule gives it a code."""
    codes: pa.StringArray


def clean(column: Any, name: str, rule: Cleaning | None) -> tuple[NodeColumn, Changes | None]:
    """Return a column's codes, as its rule makes them; without one they stay as they are."""
    values = as_text(column, name)
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    encoded = pc.dictionary_encode(values)
    index = np.asarray(encoded.indices.fill_null(-1)).astype(np.int32)
    if rule is None:
        index[np.append(np.asarray(pc.equal(encoded.dictionary, "")), False)[index]] = -1
        return NodeColumn(index, encoded.dictionary), None
    given = [*encoded.dictionary.to_pylist(), None]
    made = [rule.code(value) for value in given]
    codes = sorted(set(made))
    at = np.array([codes.index(code) for code in made], np.int32)
    often = np.bincount(index % len(given), minlength=len(given))
    blank = np.array([value is None or not value.strip() for value in given])
    lost = np.array([code == rule.missing for code in made]) & ~blank
    unread = np.array([rule.vocabulary is not None and code == rule.other for code in made]) & ~blank
    changes = Changes(*(int(often[which].sum()) for which in (blank, lost, unread)))
    return NodeColumn(at[index], pa.array(codes, pa.string())), changes
