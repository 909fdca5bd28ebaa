"""The checks of a release folder that read its tables: rows, leaves, and sums at every level."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from treetop.card.bond import bound, statement_sha256
from treetop.checking.compare import differences
from treetop.domain.boxes import Boxes
from treetop.domain.fact import COUNTED, LISTED
from treetop.domain.facts import TableFact
from treetop.errors import ReleaseError
from treetop.plan.fields.ordinary import ELSEWHERE
from treetop.plan.file import describe_plan
from treetop.plan.plan import PurePlan
from treetop.release.estimates.again import with_lower_error
from treetop.release.folder import (
    COUNT_PARTS,
    COUNTS,
    EVIDENCE,
    EVIDENCE_PARTS,
    FACTS,
    FOLDERS,
    HIERARCHIES,
    INDEX,
    MARGINS,
    MEASUREMENTS,
    NODE_PARTS,
    NODES,
    PLAN,
    PUBLIC,
    TOP,
    UNRESOLVED,
    in_parts,
    nodes_schema,
    nodes_table,
    part_name,
    parts_listed,
    sizes,
)
from treetop.release.margins import codes_of, margins_table
from treetop.release.release import Release

NAMES = ("group", "size", "quantity", "list", "list_group", "list_region")
"""What a plan for group sizes calls columns and files: like those of the attributes, no part of the plan itself."""

GRAPH = ("relation", "directed", "degree_bound", "self_loops", "repeated", "largest", "form", "degree", "choosing")
"""What is stated of a graph in the plan itself."""


def needed(card: dict[str, Any]) -> list[str]:
    """Return the tables that every folder of this card has."""
    trees = {tree["sha256"] for tree in card["hierarchies"]}
    tables = [f"{HIERARCHIES}/{digest}.parquet" for digest in sorted(trees)]
    tables += [TOP, INDEX, part_name(COUNT_PARTS, 0)] if in_parts(card) else [COUNTS]
    tables += [UNRESOLVED] if "resolve" in card["plan"] else []
    tables += [MARGINS] if "margins" in card["plan"] else []
    tables += [PUBLIC] if keeps_regions(card["plan"]) else []
    tables += [FACTS] if "facts" in card["plan"] else []
    if "interval" not in card["accuracy"]:
        return tables
    return (
        [*tables, MEASUREMENTS]
        if "degrees" in card["plan"] or "groups" in card["plan"]
        else [*tables, EVIDENCE, MEASUREMENTS]
    )


def unneeded(card: dict[str, Any]) -> list[str]:
    """Return the tables that a card lists, and that no folder like this has: one in parts has them in parts."""
    parted, listed = in_parts(card), [file["path"] for file in card["files"]]
    if not parted:
        return [name for name in listed if name == INDEX or name.startswith(tuple(f"{kind}/" for kind in FOLDERS))]
    wrong, number = [name for name in listed if name in (COUNTS, NODES)], len(parts_listed(card, COUNT_PARTS))
    for kind, with_it in ((EVIDENCE_PARTS, EVIDENCE in listed), (NODE_PARTS, True)):
        parts = parts_listed(card, kind)
        if parts and (len(parts) != number or not with_it):
            wrong += parts
    return wrong


def keeps_regions(plan: dict[str, Any]) -> bool:
    """Whether a plan of group sizes, or of degrees by region, keeps the public number of every region."""
    groups, degrees = plan.get("groups", {}), plan.get("degrees", {})
    kept = "edition" in groups and groups["public"] == "regions"
    return bool(kept or degrees.get("mechanism", "").endswith("r+dp"))


def rows(path: Path, file: dict[str, Any]) -> Iterator[str]:
    """Compare the rows of a table with those that the card states."""
    count = None
    if path.suffix == ".parquet":
        try:
            count = pq.ParquetFile(path).metadata.num_rows
        except (OSError, pa.ArrowException) as problem:
            yield f"{file['path']} cannot be read: {problem}"
            return
    if count != file["rows"]:
        yield f"{file['path']} has {count} rows, but the card says {file['rows']}"


def plan_file(folder: Path, plan: PurePlan, card: dict[str, Any]) -> Iterator[str]:
    """Compare plan.toml, field by field, with the plan that the card describes, and with what it says of the data."""
    try:
        stated = tomllib.loads((folder / PLAN).read_text(encoding="utf-8"))
    except ValueError as problem:
        raise ReleaseError(f"{PLAN} is not a plan: {problem}") from problem
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
        told["facts"] = {name: _nameless(fact) for name, fact in told.get("facts", {}).items()}
        told["graph"] = {name: entry for name, entry in told.get("graph", {}).items() if name in GRAPH}
    if "accounting" not in stated.get("loss", {}) and expected["loss"].get("accounting") == "zcdp":
        del expected["loss"]["accounting"]  # up to version 0.3 it was what is meant where nothing is said
    if plan.margins == "none" and "margins" not in stated.get("spine", {}):
        expected.get("spine", {}).pop("margins", None)  # a plan of before there were any
    split = stated.get("loss", {}).get("split")
    if split != "uniform" and isinstance(split, dict) and expected["loss"]["split"] == "uniform":
        expected["loss"]["split"] = dict.fromkeys(split, next(iter(split.values())))
    for where, one, other in differences(stated, expected):
        yield f"{PLAN}: {where} is {one}, but the card's plan has {other}"


def _nameless(fact: dict[str, Any]) -> dict[str, Any]:
    """Return what a plan.toml states of a table without the names of files, which its SHA-256 stands for."""
    return {name: "" if name in (*COUNTED, *LISTED) else value for name, value in fact.items()}


def said(stated: dict[str, Any]) -> dict[str, Any]:
    """Return what a plan.toml says about the data beside the plan, under the names of the card."""
    data, attributes, groups = (stated.get(name, {}) for name in ("data", "attributes", "groups"))
    columns = {name: about["column"] for name, about in attributes.items() if "column" in about}
    columns |= {name: groups[name] for name in ("group", "size", "quantity") if name in groups}
    return {
        "description": stated.get("description", ""),
        "period": data.get("period"),
        "columns": columns,
        "count_column": data.get("count"),
        "keep": data.get("keep", {}),
        "drop": data.get("drop", {}),
    }


def bond(folder: Path, card: dict[str, Any]) -> Iterator[str]:
    """Compare the hash of what the card states with the one at the end of plan.toml."""
    if bound((folder / PLAN).read_text(encoding="utf-8")) != [statement_sha256(card)]:
        yield f"{PLAN} is not bound to this card: what the card states has SHA-256 {statement_sha256(card)}"


def _said(stated: dict[str, Any], card: dict[str, Any]) -> Iterator[str]:
    told = card["data"]
    expected = {
        "description": card["description"],
        "period": told["period"],
        "columns": told["columns"] or {},
        "count_column": told["count_column"],
        "keep": told.get("keep", {}),
        "drop": told.get("drop", {}),
    }
    for where, one, other in differences(said(stated), expected):
        yield f"{PLAN}: {where} is {one}, but the card says {other}"


def leaves(release: Release, card: dict[str, Any], folder: Path) -> Iterator[str]:
    """Compare the leaves, which are valid once they are loaded, with the number that the card states."""
    stated = card["released"]
    bounds = [] if release.confidence is None else ["lower", "upper"]
    names, expected = pq.read_schema(folder / COUNTS).names, [*release.spine.attributes, "count", *bounds]
    if names != expected:
        yield f"{COUNTS} has the columns {', '.join(names)}, not {', '.join(expected)}"
    if len(release.count) != stated["leaves"]:
        yield f"{COUNTS} has {len(release.count):,} leaves, but the card says {stated['leaves']:,}"
    if release.total != stated["total"]:
        tables = COUNTS if release.left is None else f"{COUNTS} with {UNRESOLVED}"
        yield f"{tables} sums to {release.total:,}, but the card says {stated['total']:,}"


def sums(release: Release, card: dict[str, Any], folder: Path) -> Iterator[str]:
    """Recompute every level from the leaves, and compare it with the card and with nodes.parquet."""
    if (release.left is not None) != ("resolve" in card["plan"]):
        yield f"{UNRESOLVED} is there, or is missing, against the plan"
    for where, one, other in differences(card["released"], sizes(release)):
        yield f"card.json: released.{where} is {one}, but the leaves give {other}"
    if not any(file["path"] == NODES for file in card["files"]):
        return
    stated = pq.read_table(folder / NODES)
    schema = nodes_schema(release)
    if [(field.name, field.type) for field in stated.schema] != [(field.name, field.type) for field in schema]:
        yield f"{NODES} has the columns {', '.join(stated.column_names)}, of other names or types than it should"
        return
    at = 0
    for index in range(len(release.spine.levels) + 1):
        expected = nodes_table(release, index)
        found = stated.slice(at, expected.num_rows)
        at += expected.num_rows
        if not found.equals(expected):
            row = _first_row(found, expected)
            name = "total" if index == 0 else release.spine.levels[index - 1].name
            yield f"{NODES}, level {name}: {_row(found, row)} stands where the leaves give {_row(expected, row)}"
            return
    if at != stated.num_rows:
        yield f"{NODES} has {stated.num_rows - at} rows too many"


def margins(release: Release) -> Iterator[str]:
    """Compare every cell of a margin with what the leaves add up to; what is unresolved may belong to any.

    A margin that crosses another has what they add up to, and nothing of what is unresolved.
    """
    yield from margin_findings(release, [table.sums(release.tree) for table in release.margins])


def margin_findings(release: Release, sums: Sequence[NDArray[np.int64]]) -> Iterator[str]:
    """Compare every cell of every margin with the sum of its leaves."""
    for table, sum_of in zip(release.margins, sums, strict=True):
        missing = table.count - sum_of
        if table.exact and table.count.sum() != release.total:
            yield f"{MARGINS}: {table.margin.name} sums to {table.count.sum():,}, not to the total {release.total:,}"
        wrong = np.flatnonzero(missing < 0 if table.exact and release.left is not None else missing)
        if len(wrong):
            codes = ", ".join(str(code[0]) for code in codes_of(release.spine, table.margin, wrong[:1]).values())
            cell = int(wrong[0])
            yield (
                f"{MARGINS}: {table.margin.name} {codes} is {table.count[cell]:,}, but its leaves add up to "
                f"{table.count[cell] - missing[cell]:,}"
            )


def facts(release: Release) -> Iterator[str]:
    """Compare every cell that a fact names with what is released; what is unresolved may belong to any."""
    assert release.facts is not None
    finest = release.spine.finest
    for fact in release.facts:
        levels = {attribute: depth - 1 for attribute, depth in enumerate(fact.table.depths) if depth}
        leaf, count = release.tree.resolved(levels)
        cells = np.unique(fact.table.numbers(leaf, finest))
        if fact.rule is not None and len(wrong := cells[~np.isin(cells, fact.rule.cells)]):
            yield f"{fact.words}: {fact.table.words(int(wrong[0]))} is impossible, and is released"
        if fact.boxes is not None:
            found = fact.table.counted(fact.boxes.cells, leaf, finest, count)
            yield from beyond(fact, fact.boxes, found, release.total - int(count.sum()))


def beyond(fact: TableFact, boxes: Boxes, found: NDArray[np.int64], missing: int) -> Iterator[str]:
    """Say which released counts are not within bounds, whatever of what is missing belongs to them."""
    for wrong in np.flatnonzero((found > boxes.upper) | (found + missing < boxes.lower))[:1].tolist():
        told = (
            f"{boxes.lower[wrong]:,}"
            if boxes.lower[wrong] == boxes.upper[wrong]
            else f"between {boxes.lower[wrong]:,} and {boxes.upper[wrong]:,}"
        )
        cell = fact.table.words(int(boxes.cells[wrong]))
        yield f"{fact.words}: {cell} is released as {found[wrong]:,}, and the fact says {told}"


def left_over(released: dict[str, Any]) -> str:
    """Say how far margins that cross others are off what was measured of them, as the card states it."""
    crossing = released.get("margins", [])
    told = (f"{one['name']} {one['mean']:,.3g} on average, {one['largest']:,} at most" for one in crossing)
    return f"; off what was measured, since they cross others: {', '.join(told)}" if crossing else ""


def intervals(release: Release, folder: Path) -> Iterator[str]:
    """Recompute the bounds of every leaf, and of what is unresolved, from the measurements that were kept."""
    tables = {COUNTS: release.table()} | ({} if release.left is None else {UNRESOLVED: release.unresolved()})
    if release.margins:
        tables[MARGINS] = margins_table(release.margins, release.spine, release.confidence)
    for name, expected in tables.items():
        stated = pq.read_table(folder / name)
        if stated.column_names != expected.column_names:
            yield f"{name} has the columns {', '.join(stated.column_names)}, not {', '.join(expected.column_names)}"
        elif not stated.equals(expected):
            yield differing(name, stated, expected, "the measurements give")


def estimated(release: Release) -> Iterator[str]:
    """Estimate the counts of lower error again from all measurements, which gives the same ones."""
    if not release.measurements.complete:
        yield f"{MEASUREMENTS} does not hold all that was measured, which counts of lower error are made from"
        return
    tables = (with_lower_error(release), release)
    expected, stated = (replace(one, evidence=None, all_measured=None).table() for one in tables)
    if not stated.equals(expected):
        yield differing(COUNTS, stated, expected, "the measurements give")


def differing(name: str, stated: pa.Table, expected: pa.Table, given: str) -> str:
    """Say where two tables differ first."""
    row = _first_row(stated, expected)
    return f"{name}, row {row + 1}: {_row(stated, row)} stands where {given} {_row(expected, row)}"


def _first_row(found: pa.Table, expected: pa.Table) -> int:
    """Return the first row in which two tables with the same columns differ."""
    first, last = 0, min(found.num_rows, expected.num_rows)
    while first < last:  # by halves: a table may have millions of rows
        middle = (first + last) // 2
        if found.slice(first, middle - first + 1).equals(expected.slice(first, middle - first + 1)):
            first = middle + 1
        else:
            last = middle
    return first


def _row(table: pa.Table, row: int) -> str:
    """Return a row for a message."""
    return str(table.slice(row, 1).to_pylist()[0]) if row < table.num_rows else "nothing"
