"""Recognise tables whose rows are no plain records: households with a size, people in households, edges of a graph.

Names of columns decide, and shares of rows that no single record turns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow.compute as pc

from treetop.errors import DataError
from treetop.inspection.column_profile import Column, words
from treetop.inspection.suggest import Suggestion

_GROUP = words("household hh hhid hhnr dwelling family haushalt menage foyer hogar famiglia")
_SIZE = words("size members occupants persons people numprec")
_PERSON = words("person id pid persona person_id individual resident")
_ENDS = (
    ("source", "target"), ("src", "dst"), ("from", "to"), ("caller", "callee"), ("sender", "receiver"),
    ("follower", "followee"), ("user", "friend"), ("1", "2"), ("person1", "person2"), ("fromnode", "tonode"),
)  # fmt: skip
_PEOPLE_A_GROUP = 1.2
_FEW = 2
_KNOWN = 0.5


@dataclass(frozen=True)
class GroupLayout:
    """Columns of a table of groups, or of people in groups."""

    rows: Literal["people", "groups"]
    group: str
    size: str | None = None
    person: str | None = None

    def sentence(self) -> str:
        """Say what the table looks like."""
        if self.rows == "people":
            return f"rows look like people in groups, told apart by {self.group}: the draft counts groups by size"
        return f"rows look like groups with their size, {self.size}: the draft counts groups by size"


@dataclass(frozen=True, eq=False)
class EdgeLayout:
    """Columns of a table of edges, and what is known of the people's table."""

    source: str
    target: str
    id: str = "id"
    nodes: str | None = None
    attributes: tuple[Suggestion, ...] = ()
    """The attributes of the people."""

    def sentence(self) -> str:
        """Say what the table looks like."""
        people = "" if self.nodes else "; name the table of the people as `nodes`, and their places are drafted as well"
        return f"rows look like edges of a graph, from {self.source} to {self.target}{people}"


def recognise_groups(columns: Sequence[Column], rows: int, attributes: Sequence[Suggestion]) -> GroupLayout | None:
    """Return the layout of a table of groups; None for other tables.

    People with several attributes are records: their household is a unit, and not what is counted.
    """
    sizes = [column.name for column in columns if words(column.name) & _SIZE and column.distinct]
    named = (one for one in columns if words(one.name) & _GROUP and one.name not in sizes)
    group = next((one for one in named if one.kind in ("id", "code") and one.distinct), None)
    others = [one for one in attributes if group is not None and one.column not in (group.name, *sizes)]
    if group is None or len(others) >= _FEW:
        return None
    if rows >= _PEOPLE_A_GROUP * group.distinct:
        person = (one.name for one in columns if words(one.name) <= _PERSON and one.name != group.name)
        return GroupLayout("people", group.name, person=next(person, None))
    return GroupLayout("groups", group.name, sizes[0]) if sizes else None


def recognise_edges(columns: Sequence[Column], taken: Sequence[str]) -> EdgeLayout | None:
    """Return the layout of a table of edges by the names of its ends; `taken` columns have codes or counts."""
    plain = {re.sub(r"[^a-z0-9]|id", "", one.name.lower()): one.name for one in columns if one.name not in taken}
    found = next(((plain[first], plain[last]) for first, last in _ENDS if first in plain and last in plain), None)
    return None if found is None else EdgeLayout(*found)


def edges_of(
    columns: Sequence[Column], nodes: str, people: Sequence[Column], found: Sequence[Suggestion]
) -> EdgeLayout:
    """Return the layout of a table of edges, given that of its people: its ends hold ids of theirs."""
    ids = max(people, key=lambda one: (one.kind == "id", one.distinct))
    known = [
        column.name
        for column in columns
        if column.values is not None
        and len(column.values)
        and ids.values is not None
        and pc.mean(pc.is_in(column.values, value_set=ids.values)).as_py() > _KNOWN
    ]
    if len(known) < _FEW:
        raise DataError(f"no two columns hold ids of {nodes}, column {ids.name!r}: is it the table of their people?")
    attributes = tuple(one for one in found if one.column != ids.name)
    return EdgeLayout(known[0], known[1], ids.name, nodes, attributes)
