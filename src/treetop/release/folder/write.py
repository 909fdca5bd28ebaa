"""Writing a release folder: complete and on disk beside its place, then moved there in one step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from treetop.release.folder.evidence import write_evidence
from treetop.release.folder.place import check_name, claimed, scratch, sync, take_place, writing
from treetop.release.folder.read import CARD, COUNTS, HIERARCHIES, NODES, PAGE, PLACES, PLAN, file_sha256
from treetop.release.folder.unresolved import UNRESOLVED
from treetop.release.release import Release


@dataclass(frozen=True)
class Draft:
    """A release folder that is complete and on disk, beside the place where it belongs."""

    path: Path
    """Where it is."""
    folder: Path
    """Where it belongs."""
    force: bool
    """Whether to replace what is there."""
    card_sha256: str
    """The SHA-256 of its card.json."""

    def place(self) -> None:
        """Move it to its place, in one step."""
        take_place(self.path, self.folder, self.force)


def save(release: Release, folder: Path, *, force: bool = False, nodes: bool = False) -> None:
    """Write the folder beside its place, flush it to disk, then move it there in one step."""
    with claimed(folder, force) as beside, drafted(release, folder, force=force, nodes=nodes, beside=beside) as draft:
        draft.place()


@contextmanager
def drafted(
    release: Release,
    folder: Path,
    *,
    force: bool = False,
    nodes: bool = False,
    places: Mapping[str, pa.Table] | None = None,
    progress: Callable[[str, float], None] | None = None,
    beside: Path | None = None,
) -> Iterator[Draft]:
    """Write the folder beside its place; unless it is placed there, nothing is left of it.

    `beside` is where, if the place is `claimed` already.
    `places` are the names and coordinates of the leaves of a hierarchy, by its digest: public, and for maps.
    """
    check_name(folder, force)  # on a disk that is nearly full it is tried: the loss may be spent by now
    with scratch(folder) if beside is None else nullcontext(beside) as room:
        whole = room / "release"
        with writing(folder):
            whole.mkdir()
            card_sha256 = _write(release, whole, nodes, places or {}, progress or (lambda stage, done: None))
            for path in [*whole.rglob("*"), whole]:
                sync(path)
        yield Draft(whole, folder, force, card_sha256)


def released(release: Release) -> dict[str, Any]:
    """Return the size of a release: post-processing, like the counts themselves."""
    names = ["total", *(level.name for level in release.spine.levels)]
    sizes = [{"name": name, "nodes": release.nodes_above_zero(index)} for index, name in enumerate(names)]
    size: dict[str, Any] = {"total": release.total, "leaves": len(release.count), "levels": sizes}
    if release.left is not None:
        size["unresolved"] = {"total": release.unresolved_total, "nodes": len(release.left)}
    return size


def nodes_table(release: Release, index: int) -> pa.Table:
    """Return one level as it stands in nodes.parquet: attributes that are not refined yet are null."""
    names = list(release.spine.attributes)
    level = release.table("total" if index == 0 else release.spine.splits[index - 1])
    size = level.num_rows
    columns = {
        name: level.column(name) if name in level.column_names else pa.nulls(size, pa.string()) for name in names
    }
    numbers = {name: level.column(name) for name in ("count", "lower", "upper") if name in level.column_names}
    return pa.table(
        {"level": pa.array(np.full(size, index, np.int32)), **columns, **numbers}, schema=nodes_schema(release)
    )


def nodes_schema(release: Release) -> pa.Schema:
    """Return the columns of nodes.parquet."""
    attributes = [(name, pa.string()) for name in release.spine.attributes]
    numbers = ("count",) if release.confidence is None else ("count", "lower", "upper")
    return pa.schema([("level", pa.int32()), *attributes, *((name, pa.int64()) for name in numbers)])


def _write(
    release: Release,
    folder: Path,
    nodes: bool,
    places: Mapping[str, pa.Table],
    progress: Callable[[str, float], None],
) -> str:
    from treetop.card.html import render
    from treetop.card.schema import validate
    from treetop.card.statement import bind

    rows: dict[str, int | None] = {COUNTS: len(release.count)}
    # Plain string columns, whatever reads them; stored as dictionaries all the same.
    pq.write_table(release.table(), folder / COUNTS, compression="zstd", store_schema=False)
    if release.left is not None:
        left = release.unresolved()
        rows[UNRESOLVED] = left.num_rows
        pq.write_table(left, folder / UNRESOLVED, compression="zstd", store_schema=False)
    rows |= write_evidence(release, folder)
    progress("writing", 0.3)
    if nodes:
        rows[NODES] = _write_nodes(release, folder / NODES, progress)
    trees = {tree.digest: tree.to_table() for tree in release.spine.trees}
    for kind, tables in ((HIERARCHIES, trees), (PLACES, places)):
        for digest, table in tables.items():
            name = f"{kind}/{digest}.parquet"
            (folder / kind).mkdir(exist_ok=True)
            pq.write_table(table, folder / name, compression="zstd", store_schema=False)
            rows[name] = table.num_rows
    rows[PLAN] = None
    card = {**release.card, "released": released(release)}
    plan_toml = bind(release.plan_toml or _plan_toml(release), card)
    (folder / PLAN).write_text(plan_toml, encoding="utf-8", newline="\n")
    card["files"] = [_about_file(folder, name, count) for name, count in rows.items()]
    validate(card)
    text = (json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    digest = sha256(text).hexdigest()
    (folder / CARD).write_bytes(text)
    (folder / PAGE).write_text(render(card, digest), encoding="utf-8", newline="\n")
    progress("writing", 1.0)
    return digest


def _write_nodes(release: Release, path: Path, progress: Callable[[str, float], None]) -> int:
    rows, levels = 0, len(release.spine.levels) + 1
    with pq.ParquetWriter(path, nodes_schema(release), compression="zstd", store_schema=False) as writer:
        for index in range(levels):
            table = nodes_table(release, index)
            writer.write_table(table)
            rows += table.num_rows
            progress("writing", 0.3 + 0.6 * (index + 1) / levels)
    return rows


def _plan_toml(release: Release) -> str:
    from treetop.card.facts import Facts
    from treetop.card.rebuild import rebuild_plan
    from treetop.plan.file import describe_plan

    return describe_plan(rebuild_plan(release.card, release.spine), Facts.of_card(release.card))


def _about_file(folder: Path, name: str, rows: int | None) -> dict[str, Any]:
    path = folder / name
    return {"path": name, "rows": rows, "bytes": path.stat().st_size, "sha256": file_sha256(path)}
