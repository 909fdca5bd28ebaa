"""A hierarchy: the public tree of one attribute, with named levels from coarse to fine and a code for every node.

Nodes of a level are numbered in depth-first order, siblings by code. So the children of a node, and the leaves under
it, are always a range of numbers, and the numbering does not depend on the order of the rows it was read from. Names of
codes, and the order in which they were listed, are for people: they decide nothing, and are no part of the digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.arrays import buffers
from treetop._util.choices import nearest
from treetop._util.dtypes import Ints
from treetop._util.lazy import FrozenMap
from treetop.domain.branches import (
    Ragged,
    as_strings,
    fill_down,
    level_names,
    mixed_lengths,
    names_of,
    paths,
    read_columns,
    renamed_levels,
)
from treetop.domain.coding import MONTHLY, Bands, Coding, Dates, Rule
from treetop.domain.standard_hierarchies import make_standard
from treetop.errors import HierarchyError
from treetop.io import table as tables
from treetop.io.row_batch import as_text, first_missing

KEPT = 1 << 18
"""The ancestors of at most so many nodes are kept once they were asked for."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The public tree of one attribute, and how a column becomes its codes.

    Make one with `from_table`, `from_parents`, `from_prefixes`, `from_bands`, `from_dates`, `standard` or
    `flat`.
    """

    levels: tuple[str, ...]
    """Names of the levels, coarse to fine."""
    codes: tuple[pa.StringArray, ...] = field(repr=False)
    """The codes of each level, by node number."""
    first: tuple[Ints, ...] = field(repr=False)
    """From `first[k][i]` to before `first[k][i + 1]` are the nodes of level k under node i of the level above."""
    names: Mapping[str, pa.StringArray] = field(default_factory=lambda: FrozenMap({}), repr=False)
    """By level, the names of nodes by node number; null for nodes without one."""
    listed: tuple[Ints | None, ...] = field(default=(), repr=False)
    """By level, the place of each node in the order in which codes were listed; None where that is the numbering."""
    coding: Coding | None = field(default=None, repr=False)
    """How the text of a column becomes codes; None where it is the code."""
    _ancestors: dict[tuple[int, int], Ints] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def from_table(
        table: tables.Table,
        levels: Sequence[str] | Mapping[str, str],
        ragged: Ragged = "error",
        *,
        names: Mapping[str, str] | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
    ) -> Hierarchy:
        """Read a lookup table with one column per level, coarse to fine, and one row per leaf.

        Levels are called as their columns, or are renamed: `{"region": "Cód. CCAA"}` says of each level its column.

        Where branches end early (the finer columns are blank), `ragged="repeat"` carries the last code down; such
        single-child steps pass through a release unmeasured and cost nothing. `names` are the columns with the names of
        codes, by level: `{"town": "town_name"}`. The delimiter of a CSV file is found from its header, and its encoding
        is UTF-8, unless they are given.

        >>> places = pa.table({"region": ["N", "N", "S"], "town": ["n1", "n2", "s1"]})
        >>> Hierarchy.from_table(places, levels=["region", "town"])
        Hierarchy(region 2 > town 3)
        """
        own, called = renamed_levels(levels), dict(names or {})
        both = list(dict.fromkeys((*own.values(), *called.values())))
        columns = dict(zip(both, read_columns(table, both, delimiter, encoding), strict=True))
        named = {level: columns[column] for level, column in own.items()}
        tree = _build(tuple(named), fill_down(list(named), list(named.values()), ragged))
        return tree.with_names({level: (named.get(level), columns[column]) for level, column in called.items()})

    @staticmethod
    def from_parents(
        table: tables.Table,
        child: str = "child",
        parent: str = "parent",
        levels: Sequence[str] | None = None,
        ragged: Ragged = "error",
        *,
        name: str | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
    ) -> Hierarchy:
        """Read a list of (child, parent) codes; a code without a parent is at the top.

        Where branches end at different depths, `ragged="repeat"` carries the last code down. `name` is the column with
        the names of the children.

        >>> edges = pa.table({"child": ["n1", "n2", "N"], "parent": ["N", "N", None]})
        >>> Hierarchy.from_parents(edges)
        Hierarchy(level1 1 > level2 2)
        """
        wanted = [child, parent, *([] if name is None else [name])]
        codes, above, *called = read_columns(table, wanted, delimiter, encoding)
        by_level = paths(codes, above)
        names = level_names(levels or [f"level{depth + 1}" for depth in range(len(by_level))])
        if len(names) != len(by_level):
            raise HierarchyError(f"the tree is {len(by_level)} levels deep, but {len(names)} level names were given")
        tree = _build(names, fill_down(names, by_level, ragged))
        return tree.with_names({level: (codes, column) for level in names for column in called})

    @staticmethod
    def from_prefixes(codes: Iterable[str], widths: Sequence[int], levels: Sequence[str] | None = None) -> Hierarchy:
        """Cut codes of constant length into levels: `widths=[2, 5]` makes state and county of longer FIPS codes.

        >>> Hierarchy.from_prefixes(["01001", "01003", "02013"], widths=[2], levels=["state", "county"])
        Hierarchy(state 2 > county 3)
        """
        leaves = pa.array(as_strings(codes), pa.string())
        lengths = pc.unique(pc.utf8_length(leaves)).to_pylist()
        if not lengths:
            raise HierarchyError("the hierarchy is empty: give at least one code")
        longest = max(lengths)
        if len(lengths) > 1:
            raise HierarchyError(mixed_lengths(leaves, sorted(lengths)))
        cuts = [int(width) for width in widths]
        if cuts != sorted(set(cuts)) or (cuts and not 0 < cuts[0] <= cuts[-1] <= longest):
            raise HierarchyError(f"widths {cuts} must increase and lie between 1 and the code length {longest}")
        if not cuts or cuts[-1] < longest:
            cuts.append(longest)
        names = level_names(levels or [f"digits{width}" for width in cuts])
        if len(names) != len(cuts):
            raise HierarchyError(f"widths {cuts} make {len(cuts)} levels, but {len(names)} level names were given")
        return _build(names, [pc.utf8_slice_codeunits(leaves, 0, width) for width in cuts])

    @staticmethod
    def flat(values: Iterable[str], level: str = "value") -> Hierarchy:
        """Make a hierarchy of one level, of a list of codes or of a mapping of codes to labels.

        >>> Hierarchy.flat({"0": "female", "1": "male"}, level="sex")
        Hierarchy(sex 2)
        """
        if isinstance(values, str):
            raise HierarchyError(f"give a list of codes, not the text {values!r}")
        tree = _build(level_names([level]), [pa.array(as_strings(values), pa.string())])
        return tree.named({level: values}) if isinstance(values, Mapping) else tree

    @staticmethod
    def from_bands(bands: Sequence[Any] | Mapping[str, Sequence[Any]], level: str = "value") -> Hierarchy:
        """Count a column of numbers in bands, which begin at the numbers given; the last has no end.

        With several levels, coarse to fine, every coarse band begins where a finer one does.

        >>> Hierarchy.from_bands([0, 18, 40, 60, 80]).codes[0].to_pylist()
        ['0-17', '18-39', '40-59', '60-79', '80+']
        >>> Hierarchy.from_bands({"adult": [0, 18], "age": [0, 10, 18, 65]})
        Hierarchy(adult 2 > age 4)
        """
        given = bands if isinstance(bands, Mapping) else {level: bands}
        named = {name: Bands(edges) for name, edges in given.items()}
        if not named:
            raise HierarchyError("bands has no level: give rising numbers, as in bands = [0, 15, 65]")
        (finest_level, finest), columns = list(named.items())[-1], []
        for name, coarse in named.items():
            if coarse.edges[0] != finest.edges[0] or not set(coarse.edges) <= set(finest.edges):
                raise HierarchyError(
                    f"bands of {name!r} must begin where bands of {finest_level!r} do: give both the same first "
                    "number, and every other of the coarse bands to the fine ones"
                )
            at = np.searchsorted(np.array(coarse.edges), np.array(finest.edges), side="right") - 1
            columns.append(pa.array(coarse.names, pa.string()).take(pa.array(at)))
        return _build(level_names(list(named)), columns).coded(finest)

    @staticmethod
    def from_dates(
        first: str | date,
        last: str | date,
        levels: Sequence[str] | Mapping[str, str] = MONTHLY,
        format: str = "yyyy-mm-dd",
    ) -> Hierarchy:
        """Count a column of dates, from a public first to a public last day, by some of year, quarter, month, week and
        day; `{"Jahr": "year", "Monat": "month"}` renames them.

        >>> Hierarchy.from_dates("2020-03-01", "2021-12-31", ["year", "month", "day"], format="dd/mm/yyyy")
        Hierarchy(year 2 > month 22 > day 671)
        """
        named = renamed_levels(levels)
        dates = Dates(list(named.values()), first, last, format)
        return _build(tuple(named), [pa.array(codes, pa.string()) for codes in dates.columns]).coded(dates)

    @staticmethod
    def standard(
        name: str, levels: Sequence[str] | Mapping[str, str] | None = None, codes: Iterable[str] | None = None
    ) -> Hierarchy:
        """Return a hierarchy that many tables have: "ages-5", "ages-10", "countries", "icd-10-cm", "nuts" or "eu-grid".

        The last two cut `codes` of a public list into levels.

        >>> Hierarchy.standard("countries"), Hierarchy.standard("nuts", codes=["DE211", "DE212", "ITC11"])
        (Hierarchy(continent 7 > country 249), Hierarchy(country 2 > nuts1 2 > nuts2 2 > nuts3 3))
        """
        named = None if levels is None else renamed_levels(levels)
        made = make_standard(name, None if named is None else list(named.values()), codes)
        called = named or dict(zip(made.columns, made.columns, strict=True))
        tree = _build(tuple(called), [pa.array(made.columns[unit], pa.string()) for unit in called.values()])
        names = {level: made.names[unit] for level, unit in called.items() if unit in made.names}
        return tree.named(names).coded(made.rule)

    def coded(self, rule: Rule) -> Hierarchy:
        """Return the same tree, whose codes a rule makes of the text of a column."""
        return replace(self, coding=replace(self.coding or Coding(), rule=rule))

    def with_blank(self, code: str) -> Hierarchy:
        """Return the tree under which records without a value count as `code`, which is added if it is not there.

        >>> Hierarchy.flat(["AZ", "Pfizer"], level="brand").with_blank("not vaccinated")
        Hierarchy(brand 3)
        """
        tree = self if code in self.codes[-1].to_pylist() else self.with_leaf(code)
        return replace(tree, coding=replace(self.coding or Coding(), blank=code))

    def read(self, column: Any, name: str) -> pa.StringArray:
        """Return the codes of a column of a private table; a value without a code stays as it is."""
        return as_text(column, name) if self.coding is None else self.coding.codes(self.coding.text(column, name))

    def named(self, names: Mapping[str, Mapping[str, str]]) -> Hierarchy:
        """Return the same tree with names for codes, by level; codes that it does not have are passed over.

        >>> tree = Hierarchy.flat(["f", "m"], level="sex").named({"sex": {"f": "women", "m": "men"}})
        >>> tree.names["sex"].to_pylist()
        ['women', 'men']
        """
        columns = {}
        for level, listed in names.items():
            codes, called = as_strings(listed), as_strings(listed.values())
            columns[level] = (pa.array(codes, pa.string()), pa.array(called, pa.string()))
        return self.with_names(columns)

    def with_names(self, given: Mapping[str, tuple[pa.Array | None, pa.Array]]) -> Hierarchy:
        """Return the same tree with names from pairs of columns (code, name) by level."""
        if not given:
            return self
        found = dict(self.names)
        for depth, level in enumerate(self.levels):
            own = given.get(level)
            if own is not None and own[0] is not None:
                names = names_of(level, self.codes[depth], own[0], own[1])
                found[level] = pc.coalesce(names, found[level]) if level in found else names
            if depth and level in found and self.levels[depth - 1] in found:
                # A code that was carried down is called as it is above.
                above = pa.array(self.ancestors(depth - 1, depth))
                same = pc.equal(self.codes[depth], self.codes[depth - 1].take(above))
                names_above = found[self.levels[depth - 1]].take(above)
                found[level] = pc.coalesce(found[level], pc.if_else(same, names_above, pa.scalar(None, pa.string())))
        for level in given:
            self.depth(level)
        return replace(self, names=FrozenMap({level: found[level] for level in self.levels if level in found}))

    def with_leaf(self, code: str) -> Hierarchy:
        """Return the tree with one leaf more, under a branch of its own with the same code at every level.

        >>> Hierarchy.from_prefixes(["AX", "AY"], widths=[1], levels=["state", "county"]).with_leaf("elsewhere")
        Hierarchy(state 2 > county 3)
        """
        if found := self.find(code):
            raise HierarchyError(
                f"the code {code!r} stands at the level {self.levels[found[0][0]]!r} already, and would be two things: "
                "rename it in the hierarchy, or name a leaf that there is"
            )
        rows = [pa.concat_arrays([column.combine_chunks(), pa.array([code])]) for column in self.to_table().columns]
        tree = replace(_build(self.levels, rows), coding=self.coding)
        return tree.with_names({level: (self.codes[self.depth(level)], names) for level, names in self.names.items()})

    def name(self, depth: int, node: int) -> str | None:
        """Return the name of a node; None if it has none."""
        names = self.names.get(self.levels[depth])
        return None if names is None else names[node].as_py()

    def listing(self, depth: int) -> Ints:
        """Return the place of every node of a level in the order in which codes were listed."""
        listed = self.listed[depth] if self.listed else None
        return np.arange(self.sizes[depth]) if listed is None else listed

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes at each level."""
        return tuple(len(codes) for codes in self.codes)

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of the levels, codes and parents: the same for the same tree, however it was read."""
        digest = hashlib.sha256(repr(self.levels).encode())
        for codes, first in zip(self.codes, self.first, strict=True):
            digest.update(pc.binary_length(codes).to_numpy().astype("<i4").tobytes())
            start, letters = buffers(codes)
            digest.update(letters[start[0] : start[-1]].data)
            digest.update(first.astype("<i8").tobytes())
        return digest.hexdigest()

    def depth(self, level: str) -> int:
        """Return the position of a level by its name."""
        if level not in self.levels:
            raise HierarchyError(
                f"there is no level {level!r}{nearest(level, self.levels)}; the levels are {', '.join(self.levels)}"
            )
        return self.levels.index(level)

    def select(self, levels: Sequence[str]) -> Hierarchy:
        """Return the hierarchy with some of its levels only, which keep their order."""
        depths = [self.depth(level) for level in levels]
        if not depths or depths != sorted(set(depths)):
            raise HierarchyError(f"levels {', '.join(levels)} must be distinct and go from coarse to fine")
        if depths == list(range(len(self.levels))):
            return self
        if depths == list(range(len(depths))):
            names = FrozenMap({level: self.names[level] for level in levels if level in self.names})
            few = len(depths)
            return Hierarchy(tuple(levels), self.codes[:few], self.first[:few], names, self.listed[:few])
        # Without a level in between, siblings stand in another order: number them anew.
        finest = depths[-1]
        rows = np.argsort(self.listing(finest))
        columns = [self.codes[depth].take(pa.array(self.ancestors(depth, finest)[rows])) for depth in depths]
        tree = _build(tuple(levels), columns)
        return tree.with_names(
            {
                level: (self.codes[depth], self.names[level])
                for level, depth in zip(levels, depths, strict=True)
                if level in self.names
            }
        )

    def below(self, depth: int, node: int, finer: int | None = None) -> tuple[int, int]:
        """Return the range of nodes of a finer level (the leaves when None) under a node."""
        start, stop = node, node + 1
        for bounds in self.first[depth + 1 : None if finer is None else finer + 1]:
            start, stop = int(bounds[start]), int(bounds[stop])
        return start, stop

    def ancestors(self, depth: int, finer: int | None = None) -> Ints:
        """Return, for every node of a finer level (every leaf when None), its ancestor at `depth`."""
        finer = len(self.levels) - 1 if finer is None else finer
        if (kept := self._ancestors.get((depth, finer))) is not None:
            return kept
        bounds = np.arange(self.sizes[depth] + 1)
        for below in range(depth + 1, finer + 1):
            bounds = self.first[below][bounds]
        parents = np.repeat(np.arange(self.sizes[depth]), np.diff(bounds))
        if len(parents) <= KEPT:
            parents.flags.writeable = False  # others are given the same
            self._ancestors[depth, finer] = parents
        return parents

    def find(self, code: str) -> list[tuple[int, int]]:
        """Return (depth, node) of every node with this code, coarse to fine."""
        places = ((depth, pc.index(codes, code).as_py()) for depth, codes in enumerate(self.codes))
        return [(depth, node) for depth, node in places if node >= 0]

    def encode(self, codes: pa.Array) -> Ints:
        """Return the leaf numbers of leaf codes, -1 where a code is not one."""
        numbers = pc.index_in(codes, value_set=self.codes[-1])
        return np.asarray(pc.fill_null(numbers, -1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def to_table(self) -> pa.Table:
        """Return one row per leaf, as they were listed, and one column per level: what `from_table` reads."""
        rows = np.argsort(self.listing(len(self.levels) - 1))
        columns = [codes.take(pa.array(self.ancestors(depth)[rows])) for depth, codes in enumerate(self.codes)]
        return pa.table(columns, names=list(self.levels))

    def __repr__(self) -> str:
        chain = " > ".join(f"{name} {size:,}" for name, size in zip(self.levels, self.sizes, strict=True))
        return f"Hierarchy({chain})"


def _build(names: tuple[str, ...], columns: Sequence[pa.Array]) -> Hierarchy:
    """Number the nodes depth first; refuse a code with two parents."""
    if not columns or len(columns[0]) == 0:
        raise HierarchyError("the hierarchy is empty: give at least one code")
    codes: list[pa.StringArray] = []
    first: list[Ints] = []
    listed: list[Ints | None] = []
    node = np.zeros(len(columns[0]), dtype=np.int64)  # each row's node at the level above
    above = 1
    for depth, column in enumerate(columns):
        distinct, rank = _ranks(column, names[depth])
        # Parent first, then code: sorting these numbers is the depth-first order.
        pairs, row, node = np.unique(node * len(distinct) + rank, return_index=True, return_inverse=True)
        parent, code = np.divmod(pairs, len(distinct))
        if len(pairs) > len(distinct):
            twice = int(np.flatnonzero(np.bincount(code) > 1)[0])
            parents = [codes[-1][int(node)].as_py() for node in parent[code == twice][:2]]
            raise HierarchyError(
                f"code {distinct[twice].as_py()!r} of level {names[depth]!r} has two parents, {parents[0]!r} and "
                f"{parents[1]!r}: correct the table, or use codes that are unique within the level"
            )
        codes.append(distinct.take(pa.array(code)))
        first.append(np.searchsorted(parent, np.arange(above + 1)).astype(np.int64))
        places = None  # by the first row that each node stands in; None where they stand as they are numbered
        if not (np.diff(row) > 0).all():
            places = np.empty(len(row), np.int64)
            places[np.argsort(row)] = np.arange(len(row))
        listed.append(places)
        above = len(pairs)
    return Hierarchy(names, tuple(codes), tuple(first), listed=tuple(listed))


def _ranks(column: pa.Array, name: str) -> tuple[pa.StringArray, Ints]:
    """Return the distinct codes in order, and each row's rank among them."""
    row = first_missing(column)
    if row is not None:
        raise HierarchyError(f"row {row + 1} has an empty code at level {name!r}")
    before, after = column[:-1], column[1:]
    if pc.all(pc.less_equal(before, after)).as_py():  # as most files have it, and every release folder
        new = np.append(True, pc.not_equal(before, after).to_numpy(zero_copy_only=False))
        return column.filter(pa.array(new)), np.cumsum(new) - 1
    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return encoded.dictionary.take(pa.array(order)), rank[encoded.indices.to_numpy()]
