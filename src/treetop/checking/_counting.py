"""The checks of a release folder that read its tables: rows, leaves, and sums at every level."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop.card.html import bound, statement_sha256
from treetop.domain.constraints import COUNTED, LISTED
from treetop.domain.standard_hierarchies import coding_of
from treetop.errors import HierarchyError, ReleaseError
from treetop.io.source import Prepare
from treetop.plan.fields.declarations import ELSEWHERE
from treetop.plan.file import describe_plan
from treetop.plan.plan import Plan
from treetop.release import folder as files
from treetop.release.estimates.reestimate import with_lower_error
from treetop.release.intervals.table_evidence import fitted_leaves
from treetop.release.measurements import FEW_NODES
from treetop.release.release import Release

# Where two JSON values differ, each place by its name.

_ABSENT = object()


def differences(stated: object, expected: object, where: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield each place where two values differ, with both.

    >>> list(differences({"a": [1, 2]}, {"a": [1, 3]}))
    [('a[1]', '2', '3')]
    """
    if isinstance(stated, dict) and isinstance(expected, dict):
        for name in {**stated, **expected}:
            place = f"{where}.{name}" if where else str(name)
            yield from differences(stated.get(name, _ABSENT), expected.get(name, _ABSENT), place)
    elif isinstance(stated, list) and isinstance(expected, list) and len(stated) == len(expected):
        for index, (one, other) in enumerate(zip(stated, expected, strict=True)):
            yield from differences(one, other, f"{where}[{index}]")
    elif stated != expected or isinstance(stated, bool) != isinstance(expected, bool):
        yield where, _say(stated), _say(expected)


def _say(value: object) -> str:
    text = "absent" if value is _ABSENT else repr(value)
    return text if len(text) <= 200 else f"{text[:199]}…"


NAMES = ("group", "size", "quantity", "list", "list_group", "list_region")
"""What a plan for group sizes calls columns and files: like those of the attributes, no part of the plan itself."""

_RULES_OF_EDGES = ("relation", "directed", "degree_bound", "self_loops", "repeated", "weighted")
GRAPH = (*_RULES_OF_EDGES, "largest", "form", "degree", "choosing")
"""What is stated of a graph in the plan itself."""


def needed(card: dict[str, Any]) -> list[str]:
    """Return the tables that every folder of this card has."""
    trees = {tree["sha256"] for tree in card["hierarchies"]}
    tables = [f"{files.HIERARCHIES}/{digest}.parquet" for digest in sorted(trees)]
    tables += (
        [files.TOP, files.INDEX, files.part_name(files.COUNT_PARTS, 0)] if files.in_parts(card) else [files.COUNTS]
    )
    plan = card["plan"]
    joint, intervals = "mechanism" in plan, "interval" in card["accuracy"]
    wanted = {
        files.UNRESOLVED: "resolve" in plan,
        files.MARGINS: "margins" in plan,
        files.PUBLIC: keeps_regions(plan),
        files.FACTS: "facts" in plan,
        files.EVIDENCE: intervals and not joint and not files.measures_cells(card),
        files.MEASUREMENTS: intervals or joint,  # a joint fit always keeps them
    }
    return [*tables, *(name for name, needed in wanted.items() if needed)]


def unneeded(card: dict[str, Any]) -> list[str]:
    """Return what a card lists that no folder like this has."""
    listed = [file["path"] for file in card["files"]]
    trees = {tree["sha256"] for tree in card["hierarchies"]}
    known = {
        *needed(card),
        files.PLAN,
        *(f"{kind}/{digest}.parquet" for kind in (files.NAMES, files.PLACES) for digest in trees),
    }
    if not files.measures_cells(card) and files.EVIDENCE in listed and files.MEASUREMENTS in listed:
        known |= {files.EVIDENCE, files.MEASUREMENTS}  # a release may keep them without intervals
    if not files.in_parts(card):
        return [name for name in listed if name not in known | {files.NODES}]
    number = len(files.parts_listed(card, files.COUNT_PARTS))
    for kind in (files.COUNT_PARTS, *((files.EVIDENCE_PARTS,) if files.EVIDENCE in listed else ()), files.NODE_PARTS):
        if len(parts := files.parts_listed(card, kind)) == number:
            known |= set(parts)
    return [name for name in listed if name not in known]


def keeps_regions(plan: dict[str, Any]) -> bool:
    """Whether a plan of group sizes, or of degrees by region, keeps the public number of every region."""
    groups, degrees = plan.get("groups", {}), plan.get("degrees", {})
    return bool(groups.get("public") == "regions" or degrees.get("mechanism", "").endswith("r+dp"))


def rows(path: Path, file: dict[str, Any]) -> Iterator[str]:
    """Compare the rows of a table with those that the card states."""
    count = None
    if path.suffix == ".parquet":
        try:
            count = files.parquet_file(path).metadata.num_rows
        except (OSError, pa.ArrowException) as problem:
            yield f"{file['path']} cannot be read: {problem}"
            return
    if count != file["rows"]:
        yield f"{file['path']} has {count} rows, but the card says {file['rows']}"


def plan_file(folder: Path, plan: Plan, card: dict[str, Any]) -> Iterator[str]:
    """Compare plan.toml, field by field, with the plan that the card describes, and with what it says of the data."""
    try:
        stated = tomllib.loads(files.read_text(folder / files.PLAN))
    except ValueError as problem:
        raise ReleaseError(f"{files.PLAN} is not a plan: {problem}") from problem
    yield from _said(stated, card)
    expected = tomllib.loads(describe_plan(plan))
    for told in (stated, expected):
        told.pop("description", None)
        attributes = told.get("attributes", {})
        told["attributes"] = {name: about.get("hierarchy_sha256") for name, about in attributes.items()}
        unknown = told.get("data", {}).get("unknown")
        told["data"] = {"unknown": dict.fromkeys(attributes, ELSEWHERE) if unknown == ELSEWHERE else unknown}
        for name in NAMES:
            told.get("groups", {}).pop(name, None)
        # The SHA-256 of a fact stands for the names of its files.
        told["facts"] = {
            name: {key: "" if key in (*COUNTED, *LISTED) else value for key, value in fact.items()}
            for name, fact in told.get("facts", {}).items()
        }
        told["graph"] = {name: entry for name, entry in told.get("graph", {}).items() if name in GRAPH}
    split = stated.get("loss", {}).get("split")
    if split != "uniform" and isinstance(split, dict) and expected["loss"]["split"] == "uniform":
        expected["loss"]["split"] = dict.fromkeys(split, next(iter(split.values())))
    for where, one, other in differences(stated, expected):
        yield f"{files.PLAN}: {where} is {one}, but the card's plan has {other}"


def bond(folder: Path, card: dict[str, Any]) -> Iterator[str]:
    """Compare the hash of what the card states with the one at the end of plan.toml."""
    if bound(files.read_text(folder / files.PLAN)) != [statement_sha256(card)]:
        yield f"{files.PLAN} is not bound to this card: what the card states has SHA-256 {statement_sha256(card)}"


def _said(stated: dict[str, Any], card: dict[str, Any]) -> Iterator[str]:
    """Compare what plan.toml says about the data beside the plan with the card."""
    data, attributes, groups = (stated.get(name, {}) for name in ("data", "attributes", "groups"))
    columns = {name: about["column"] for name, about in attributes.items() if "column" in about}
    columns |= {name: groups[name] for name in ("group", "size", "quantity") if name in groups}
    told, chosen = card["data"], ("keep", "drop")
    own = {"description": stated.get("description", ""), "period": data.get("period"), "columns": columns}
    own |= {"count_column": data.get("count")} | {name: data.get(name, {}) for name in chosen}
    expected = {"description": card["description"], "period": told["period"], "columns": told["columns"] or {}}
    expected |= {"count_column": told["count_column"]} | {name: told.get(name, {}) for name in chosen}
    prepared, coded = told.get("prepared", []), _coded(attributes)
    if prepared[len(prepared) - len(coded) :] != coded:
        yield f"card.json: data.prepared is {prepared}, but {files.PLAN} says of the attributes {coded}"
    yield from _prepared(data, prepared[: len(prepared) - len(coded)])
    for where, one, other in differences(own, expected):
        yield f"{files.PLAN}: {where} is {one}, but the card says {other}"


_PREPARING = ("trim", "missing", "thousands", "replace", "pad")
_REPLACED = re.compile(r"([1-9][0-9,]*) (code|codes) of (.*) (is counted as another|are counted as others)")

_RULES = (
    r"blanks at the ends of .* do not count",
    r"'.*' stands? for a missing value",
    r"'.*' between the thousands of .* does not count",
    _REPLACED.pattern,
    r"codes of .* have zeros in front up to [0-9]+ characters",
)
"""What may be said of prepared columns, in this order."""


def _coded(attributes: dict[str, Any]) -> list[str]:
    """Return what the attributes of plan.toml say of how columns become codes."""
    try:
        return [
            words
            for name, stated in attributes.items()
            for words in coding_of(attributes.get(stated.get("same_as"), stated)).words(name)
        ]
    except (AttributeError, TypeError, HierarchyError) as problem:
        raise ReleaseError(f"{files.PLAN}: [attributes] cannot be read: {problem}") from problem


def _prepared(data: dict[str, Any], stated: list[str]) -> Iterator[str]:
    """Compare what the card says of prepared columns with plan.toml, or with itself if a program prepared them.

    How many codes were replaced stands in a public file, which is not in the folder.
    """
    about = {name: data[name] for name in _PREPARING if name in data}
    if not about:
        kinds = [at for text in stated for at, rule in enumerate(_RULES) if re.fullmatch(rule, text)]
        if len(kinds) != len(stated) or kinds != sorted(kinds) or len(set(stated)) < len(stated):
            yield "card.json: data.prepared has a rule twice, out of order, or one that there is not"
        return
    about["replace"] = {column: {"": ""} for column in about.get("replace", {})}
    expected = Prepare(**about).words()
    if [_REPLACED.sub(_one_code, text) for text in stated] != expected:
        yield f"card.json: data.prepared is {stated}, but {files.PLAN} gives {expected}"


def _one_code(found: re.Match[str]) -> str:
    """Return what is said of one replaced code, whatever their number; wrong grammar stays as it is."""
    number, codes, column, counted = found.groups()
    alone = number == "1"
    if alone != (codes == "code") or alone != counted.startswith("is") or f"{int(number.replace(',', '')):,}" != number:
        return found[0]
    return f"1 code of {column} is counted as another"


def left_over(released: dict[str, Any]) -> str:
    """Say how far margins that cross others are off what was measured of them, as the card states it."""
    crossing = released.get("margins", [])
    told = (f"{one['name']} {one['mean']:,.3g} on average, {one['largest']:,} at most" for one in crossing)
    return f"; off what was measured: {', '.join(told)}" if crossing else ""


BOUNDED = (files.UNRESOLVED, files.MARGINS)
"""The tables beside the leaves that have intervals, if the release has any."""


def tables(release: Release, folder: Path) -> dict[str, list[str]]:
    """Compare every table, with all its columns, with what this release writes; return the findings by table."""
    found = {}
    for name, expected in files.stored_tables(release, release.shards):
        given = "the measurements give" if name in BOUNDED and release.confidence is not None else "this release has"
        found[name] = list(compared(folder, name, expected, given))
    if files.MEASUREMENTS in found and release.cells is None and release.tables is None:
        found[files.MEASUREMENTS] += _missing(release)
    return found


def _missing(release: Release) -> Iterator[str]:
    """Say which levels lack measurements: of levels with few public nodes all are kept."""
    top, kept = release.shards.top, release.shards.measurements.levels
    for level, seen in zip(release.spine.levels[: top.level + 1], kept, strict=False):
        if seen is None and level.nodes <= FEW_NODES and (top.tree.fanout(level.index) > 1).any():
            yield f"{files.MEASUREMENTS} lacks those of {level.name}, of which all are kept"


def beside(release: Release, folder: Path, card: dict[str, Any]) -> Iterator[str]:
    """See that names and places are written as such; which they are, no folder can prove."""
    listed = {file["path"] for file in card["files"]}
    for tree in release.spine.trees:
        if (name := f"{files.NAMES}/{tree.digest}.parquet") in listed:
            if (named := files.names_table(tree, None)) is None:
                yield f"{name} has no names"
            else:
                yield from compared(folder, name, named, "this release has")
        if (name := f"{files.PLACES}/{tree.digest}.parquet") in listed:
            yield from _places(files.read_table(folder / name), name)


_PLACE_COLUMNS = {"code": pa.string(), "name": pa.string(), "latitude": pa.float64(), "longitude": pa.float64()}


def _places(table: pa.Table, name: str) -> Iterator[str]:
    """See that places have a code of their own, and are somewhere on earth."""
    if dict(zip(table.column_names, table.schema.types, strict=True)) != {
        one: kind for one, kind in _PLACE_COLUMNS.items() if one != "name" or one in table.column_names
    }:
        yield f"{name} has the columns {', '.join(table.column_names)}, of other names or types than it should"
        return
    if any(column.null_count for column in table.columns):
        yield f"{name} has a blank"
    codes = table["code"].combine_chunks()
    if len(codes) == 0 or len(pc.unique(codes)) < len(codes):
        yield f"{name} has a code twice, or none at all"
    for what, most in (("latitude", 90), ("longitude", 180)):
        degrees = table[what].to_numpy()
        if not (np.abs(degrees) <= most).all():
            yield f"{name} has a {what} that is none"


def compared(folder: Path, name: str, expected: pa.Table, given: str) -> Iterator[str]:
    """Compare a table of a folder, with its columns and their types, row by row with what it should hold."""
    yield from told(name, files.read_table(folder / name), expected, given)


def told(name: str, stated: pa.Table, expected: pa.Table, given: str) -> Iterator[str]:
    """Say where two tables differ, in their columns or first in their rows; Parquet files have no dictionaries."""
    for at, field in enumerate(expected.schema):
        if pa.types.is_dictionary(field.type):
            expected = expected.set_column(at, field.name, expected.column(at).cast(field.type.value_type))
    if [(one.name, one.type) for one in stated.schema] != [(one.name, one.type) for one in expected.schema]:
        names = ", ".join(expected.column_names)
        yield f"{name} has the columns {', '.join(stated.column_names)}, not {names}, or of other types"
    elif not stated.equals(expected):
        yield differing(name, stated, expected, given)


def estimated(release: Release) -> Iterator[str]:
    """Make the counts again from all measurements, which gives the same ones."""
    if release.tables is not None:
        nodes, count = fitted_leaves(release.tables.evidence)
        again = replace(release, nodes=nodes, count=count)
    elif release.measurements.complete:
        again = with_lower_error(release)
    else:
        yield f"{files.MEASUREMENTS} does not hold all that was measured, which counts of lower error are made from"
        return
    plain: dict[str, Any] = {"margins": (), "evidence": None, "all_measured": None}
    stated, expected = (replace(one, **plain).table().arrow for one in (release, again))
    yield from told(files.COUNTS, stated, expected, "the measurements give")


def differing(name: str, stated: pa.Table, expected: pa.Table, given: str) -> str:
    """Say where two tables with the same columns differ first."""
    first, last = 0, min(stated.num_rows, expected.num_rows)
    while first < last:  # by halves: a table may have millions of rows
        middle = (first + last) // 2
        if stated.slice(first, middle - first + 1).equals(expected.slice(first, middle - first + 1)):
            first = middle + 1
        else:
            last = middle
    rows = (table.slice(first, 1).to_pylist() for table in (stated, expected))
    one, other = (row[0] if row else "nothing" for row in rows)
    return f"{name}, row {first + 1}: {one} stands where {given} {other}"
