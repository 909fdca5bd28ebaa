"""Standard hierarchies: public codes that many tables have, and how a column becomes them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.choices import nearest
from treetop._util.lazy import FrozenMap
from treetop.domain.coding import MONTHLY, Bands, Coding, Dates, Rule
from treetop.errors import HierarchyError

_AGES = FrozenMap({"age10": tuple(range(0, 90, 10)), "age5": tuple(range(0, 90, 5))})
"""Where bands of ages begin, by level."""
_NUTS = FrozenMap({"country": 2, "nuts1": 3, "nuts2": 4, "nuts3": 5})
"""How many characters a code has, by level."""
_GRID = FrozenMap({"100km": 100, "10km": 10, "1km": 1})
"""How many kilometres a cell is wide, by level."""
_CELL = r"^(?:CRS3035RES1000MN(?P<n1>[0-9]{1,4})000E(?P<e1>[0-9]{1,4})000|1KMN(?P<n2>[0-9]{1,4})E(?P<e2>[0-9]{1,4})|1KME(?P<e3>[0-9]{1,4})N(?P<n3>[0-9]{1,4}))$"  # noqa: E501


class Branches(NamedTuple):
    """The codes of a standard, one per finest code in each column, by level; and what codes are called."""

    columns: Mapping[str, Sequence[str]]
    names: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Standard:
    """A standard hierarchy."""

    words: str
    """What it is, for people."""
    levels: tuple[str, ...]
    """The levels that it has, coarse to fine."""
    usual: tuple[str, ...]
    """Those that a hierarchy has if none are named."""
    branches: Callable[[Sequence[str]], Branches]
    """Returns its codes, given those of a public list if it needs one."""
    key: Callable[[pa.StringArray, str], pa.StringArray] = lambda capitals, _: capitals
    """Returns the part or the form of texts in capitals by which they are looked up, for codes of a level."""
    example: str = ""
    listed: bool = False
    """Whether it cuts codes of a public list, instead of having its own."""


@dataclass(frozen=True)
class StandardCodes:
    """Texts that stand for a code of a standard at one of its levels."""

    standard: str
    level: str
    known: Mapping[str, str] = field(default_factory=lambda: FrozenMap({}), repr=False)
    """By text, the code that it counts under."""

    def codes(self, text: pa.StringArray) -> pa.StringArray:
        """Return the code of each text; null for others."""
        capitals = pc.utf8_upper(pc.utf8_trim_whitespace(text))
        key = STANDARDS[self.standard].key(capitals, self.level)
        found = pc.index_in(key, pa.array(list(self.known), pa.string()), skip_nulls=True)
        return pa.array(list(self.known.values()), pa.string()).take(found)

    def words(self, name: str) -> str:
        """Say what is done to the attribute `name`, for the card."""
        return f"codes of {name} are read as {STANDARDS[self.standard].words}"

    def hint(self, text: str) -> str:
        """Say why a text has no code."""
        standard = STANDARDS[self.standard]
        listed = " or it is not in the public list" if standard.listed else ""
        return f"It is none of {standard.words}, such as {standard.example}{listed}"

    def stated(self) -> Mapping[str, Any]:
        """Return the fields of a plan file that state the rule."""
        return {"standard": self.standard}


def _ages(level: str) -> Standard:
    edges = {one: _AGES[one] for one in ("age10", "age5")[: 1 if level == "age10" else 2]}

    def branches(_: Sequence[str]) -> Branches:
        finest = edges[level]
        columns = {
            one: [Bands(own).names[sum(low <= age for low in own) - 1] for age in finest] for one, own in edges.items()
        }
        return Branches(columns, {})

    years = "5 and 10" if level == "age5" else "10"
    return Standard(f"ages in bands of {years} years", tuple(edges), tuple(edges), branches)


def _countries(_: Sequence[str] = ()) -> Branches:
    rows = _rows("countries")
    names = {row["code"]: row["name"] for row in rows}
    return Branches({"continent": [row["continent"] for row in rows], "country": list(names)}, {"country": names})


def _icd(_: Sequence[str] = ()) -> Branches:
    rows = _rows("icd-10-cm")
    blocks = [row for row in rows if row["block"]]
    each = [(row["chapter"], row["block"], code) for row in blocks for code in row["categories"].split()]
    chapter, block, category = (list(column) for column in zip(*each, strict=True))
    names = {
        "chapter": {row["chapter"]: row["name"] for row in rows if not row["block"]},
        "block": {row["block"]: row["name"] for row in blocks},
    }
    return Branches({"chapter": chapter, "block": block, "category": category}, names)


def _nuts(codes: Sequence[str]) -> Branches:
    lengths = {len(code) for code in codes}
    levels = {level: width for level, width in _NUTS.items() if width <= max(lengths)}
    if len(lengths) > 1 or max(lengths) not in _NUTS.values():
        raise HierarchyError(
            "codes of NUTS must all be of one level: two letters for the country, and one character more a level, as "
            "in DE21H"
        )
    return Branches({level: [code[:width].upper() for code in codes] for level, width in levels.items()}, {})


def _grid(codes: Sequence[str]) -> Branches:
    cells = _cells(pc.utf8_upper(pa.array(codes, pa.string())))
    if cells.null_count:
        wrong = codes[pc.index(pc.is_null(cells), True).as_py()]
        raise HierarchyError(f"{wrong!r} is no grid cell of 1 km: write it as in 1kmN2684E4332")
    places = [cell[4:].split("E") for cell in cells.to_pylist()]
    return Branches(
        {
            level: [f"{level}N{int(north) // wide}E{int(east) // wide}" for north, east in places]
            for level, wide in _GRID.items()
        },
        {},
    )


def _cells(capitals: pa.StringArray) -> pa.StringArray:
    """Return the cells of 1 km in one form, of several that are usual."""
    parts = pc.extract_regex(capitals, _CELL)

    def number(letter: str) -> pa.StringArray:
        found = (pc.struct_field(parts, f"{letter}{form}") for form in (1, 2, 3))
        filled = pc.coalesce(*(pc.if_else(pc.equal(one, ""), pa.scalar(None, pa.string()), one) for one in found))
        return filled.cast(pa.int64()).cast(pa.string())

    return pc.binary_join_element_wise(pa.scalar("1kmN"), number("n"), pa.scalar("E"), number("e"), "")


STANDARDS: Mapping[str, Standard] = FrozenMap(
    {
        "ages-5": _ages("age5"),
        "ages-10": _ages("age10"),
        "countries": Standard(
            "countries of ISO 3166", ("continent", "country"), ("continent", "country"), _countries, example="DE or DEU"
        ),
        "icd-10-cm": Standard(
            "codes of ICD-10-CM", ("chapter", "block", "category"), ("chapter", "block"), _icd,
            lambda capitals, _: pc.utf8_slice_codeunits(capitals, 0, 3), "A04.72 or A0472",
        ),
        "nuts": Standard(
            "regions of NUTS", tuple(_NUTS), tuple(_NUTS), _nuts,
            lambda capitals, level: pc.utf8_slice_codeunits(capitals, 0, _NUTS[level]), "DE21H", listed=True,
        ),
        "eu-grid": Standard(
            "cells of the European grid", tuple(_GRID), tuple(_GRID), _grid,
            lambda capitals, _: _cells(capitals), "1kmN2684E4332", listed=True,
        ),
    }
)  # fmt: skip
"""By name, the hierarchies that a plan can name."""


class Made(NamedTuple):
    """A standard hierarchy, as a plan asks for it: its levels, codes and names, and the rule of its column."""

    columns: Mapping[str, Sequence[str]]
    names: Mapping[str, Mapping[str, str]]
    rule: Rule


def standard_named(name: str) -> Standard:
    """Return a standard hierarchy by its name."""
    if name not in STANDARDS:
        raise HierarchyError(f"there is no standard {name!r}{nearest(name, STANDARDS)}: name {', '.join(STANDARDS)}")
    return STANDARDS[name]


def make_standard(name: str, levels: Sequence[str] | None, codes: Iterable[str] | None) -> Made:
    """Return a standard hierarchy with some of its levels, coarse to fine."""
    standard = standard_named(name)
    given = [] if codes is None else list(dict.fromkeys(codes))
    if standard.listed != bool(given):
        raise HierarchyError(
            f"standard {name!r} cuts codes of a public list: give them as values, or as codes of a hierarchy file"
            if standard.listed
            else f"standard {name!r} has its own codes: leave the list of codes out"
        )
    columns, names = standard.branches(given)
    units = [level for level in standard.usual if level in columns] if levels is None else list(levels)
    for level in units:
        if level not in columns:
            raise HierarchyError(
                f"standard {name!r} has no level {level!r}{nearest(level, columns)}; it has {', '.join(columns)}"
            )
    return Made({unit: columns[unit] for unit in units}, names, _rule(name, units[-1], columns))


def _rule(name: str, level: str, columns: Mapping[str, Sequence[str]]) -> Rule:
    if level in _AGES:
        return Bands(_AGES[level])
    finest = list(columns.values())[-1] if columns else ()
    known = dict(zip(finest, columns.get(level, ()), strict=True))
    if name == "countries":
        known |= {row["alpha3"]: known[row["code"]] for row in _rows("countries") if known}
    elif name == "icd-10-cm" and level != "category" and known:
        for chapter, block in dict.fromkeys(zip(columns["chapter"], columns["block"], strict=True)):  # newer categories
            first, last = block[:3], block[-3:]
            numbers = ("".join(one) for one in product(first[0], "0123456789", "0123456789"))
            code = block if level == "block" else chapter
            known |= {one: code for one in numbers if first <= one <= last and one not in known}
    elif name == "nuts":
        known = {region: region for region in known.values()}
    return StandardCodes(name, level, FrozenMap(known))


@lru_cache(maxsize=2)
def _rows(name: str) -> list[dict[str, str]]:
    text = files("treetop.domain").joinpath(f"data/{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def coding_of(stated: Mapping[str, Any]) -> Coding:
    """Return the rules that the fields of an attribute in a plan file state, without the codes of a public list."""
    rule: Rule | None = None
    levels = stated.get("levels")
    named = list(levels.values()) if isinstance(levels, Mapping) else levels
    if (bands := stated.get("bands")) is not None:
        rule = Bands(list(bands.values())[-1] if isinstance(bands, Mapping) else bands)
    elif (dates := stated.get("dates")) is not None:
        rule = Dates(named or MONTHLY, **dates)
    elif (name := stated.get("standard")) is not None:
        usual = standard_named(name).usual
        rule = _rule(name, (named or usual)[-1], {})
    return Coding(rule, stated.get("blank"))
