"""facts.parquet: what was public and was kept, cell by cell, so that whoever has the folder can verify it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop.domain.cells import Cells, Ints
from treetop.domain.fact import COUNTED, INVARIANT
from treetop.domain.facts import PublicFacts, TableFact
from treetop.domain.margin import depths_named
from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.intake.facts import fact_of
from treetop.release.stored import read_table

FACTS = "facts.parquet"


def facts_table(facts: PublicFacts) -> pa.Table:
    """Return one row per cell that a fact names: the table, what is stated, its codes, and its number if it has one."""
    names = list(facts.spine.attributes)
    texts = [(name, pa.string()) for name in ("level", "states", *names)]
    schema = pa.schema([*texts, ("count", pa.int64())])
    parts = [schema.empty_table()]
    for fact in facts:
        for kind, (cells, numbers) in fact.stated.items():
            nodes, size = fact.table.nodes(cells), len(cells)
            columns = {"level": pa.array([fact.name] * size), "states": pa.array([kind] * size)}
            for one in fact.table.attributes:
                columns[names[one]] = fact.table.codes(one).take(pa.array(nodes[one]))
            if kind in (*COUNTED, INVARIANT):
                columns["count"] = pa.array(numbers)
            parts.append(pa.table(columns))
    return pa.concat_tables(parts, promote_options="permissive").cast(schema).combine_chunks()


def read_facts_table(path: Path, spine: Spine, told: Sequence[Mapping[str, Any]]) -> PublicFacts:
    """Read what `facts_table` wrote, and refuse what is not what the plan of a card names by its SHA-256."""
    rows = read_table(path)
    facts, read = [], 0
    for about in told:
        table = Cells(spine, depths_named(spine, about["table"]))
        of_fact = rows.filter(pc.equal(rows.column("level"), about["table"]))
        own: dict[str, tuple[Ints, Ints]] = {}
        for kind in about["states"]:
            part = of_fact.filter(pc.equal(of_fact.column("states"), kind))
            own[kind] = _cells(path, table, part, kind in (*COUNTED, INVARIANT))
            read += len(part)
        facts.append(fact_of(table, tuple(about["states"]), own, unchecked=about.get("unchecked", False)))
        _refuse_other(path, facts[-1], about)
    if read != len(rows):
        raise ReleaseError(f"{path} has rows of tables that the plan states nothing of")
    found = PublicFacts(spine, tuple(facts))
    if not rows.equals(facts_table(found)):  # a code that no fact asks for, another order, a column more
        raise ReleaseError(f"{path} is not how these facts are written")
    found.check()
    return found


def _cells(path: Path, table: Cells, rows: pa.Table, counted: bool) -> tuple[Ints, Ints]:
    nodes = np.zeros((len(table.depths), len(rows)), np.int64)
    for one in table.attributes:
        tree, depth = table.spine.trees[one], table.depths[one]
        codes = rows.column(list(table.spine.attributes)[one]).combine_chunks()
        nodes[one] = pc.index_in(codes, value_set=tree.codes[depth - 1]).fill_null(-1).to_numpy()
    if (nodes < 0).any():
        raise ReleaseError(f"{path} has a code that is not in its hierarchy")
    cells = table.numbers(nodes, table.depths)
    if (np.diff(cells) <= 0).any():
        raise ReleaseError(f"{path}: the cells of {table.name} are out of order, or one stands twice")
    numbers = rows.column("count").to_numpy() if counted else np.zeros(len(rows), np.int64)
    if counted and (numbers.dtype != np.int64 or (len(numbers) and numbers.min() < 0)):
        raise ReleaseError(f"{path} has a number that is not whole, or is negative")
    return cells, np.asarray(numbers)


def _refuse_other(path: Path, fact: TableFact, about: Mapping[str, Any]) -> None:
    if fact.sha256 != about.get("sha256", ""):
        raise ReleaseError(f"{path}: what is stated of {fact.name} is not what the card names by its SHA-256")
    if INVARIANT in fact.kinds and len(fact.stated[INVARIANT][0]) != fact.table.number:
        raise ReleaseError(f"{path} does not have all cells of {fact.name}")
