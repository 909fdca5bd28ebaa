"""Writing a release folder: complete and on disk beside its place, then moved there in one step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from treetop._util.system import behind
from treetop.card.binding import bind
from treetop.card.html import render, template
from treetop.card.rebuild import rebuild_plan
from treetop.card.run_info import RunInfo
from treetop.card.schema import validate
from treetop.errors import ReleaseError
from treetop.plan.file import describe_plan
from treetop.release.folder.evidence import evidence_tables
from treetop.release.folder.place import check_name, claimed, scratch, sync, take_place, writing
from treetop.release.folder.read import (
    CARD,
    COUNTS,
    HIERARCHIES,
    NODES,
    PAGE,
    PLAN,
    file_sha256,
)
from treetop.release.folder.shards import write_shards
from treetop.release.folder.tables import (
    FACTS,
    NAMES,
    PLACES,
    PUBLIC,
    UNRESOLVED,
    facts_table,
    names_table,
    public_table,
    unresolved_table,
)
from treetop.release.margins import MARGINS, MarginTable, margins_table
from treetop.release.shards import Shards, cut

if TYPE_CHECKING:
    from treetop.release.release import Release

Progress = Callable[[str, float], None]
"""Called with a step and its fraction that is done."""


@dataclass(frozen=True)
class Draft:
    """A release folder that is complete and on disk, beside the place where it belongs."""

    path: Path
    folder: Path
    force: bool
    card_sha256: str

    def place(self) -> None:
        """Move it to its place, in one step."""
        take_place(self.path, self.folder, self.force)


def save(release: Release, folder: Path, *, force: bool = False, nodes: bool = False, part: int | None = None) -> str:
    """Write the folder beside its place, flush it to disk, move it there in one step, and return its card's SHA-256."""
    options: dict[str, Any] = {"force": force, "nodes": nodes, "part": part}
    with claimed(folder, force) as beside, drafted(release, folder, beside=beside, **options) as draft:
        draft.place()
        return draft.card_sha256


@contextmanager
def drafted(
    release: Release,
    folder: Path,
    *,
    force: bool = False,
    nodes: bool = False,
    places: Mapping[str, pa.Table] | None = None,
    progress: Progress | None = None,
    beside: Path | None = None,
    part: int | None = None,
) -> Iterator[Draft]:
    """Write the folder beside its place, and remove it unless it is moved to its place.

    `beside` is the folder to write in, if the place is `claimed` already. A release with many leaves is written in
    parts, or one with more than `part`, if given. `places` are the names and coordinates of the leaves of a hierarchy,
    by its digest: public, and for maps.
    """
    if part is not None and part < 1:
        raise ReleaseError(f"a part of {part} leaves: give one at least")
    check_name(folder, force)  # on a disk that is nearly full it is tried: the loss may be spent by now
    with scratch(folder) if beside is None else nullcontext(beside) as room:
        whole = room / "release"
        with writing(folder):
            whole.mkdir()
            shards = cut(release, part)
            card_sha256 = _write(release, shards, whole, nodes, places or {}, progress or (lambda stage, done: None))
            for path in [*whole.rglob("*"), whole]:
                sync(path)
        yield Draft(whole, folder, force, card_sha256)


def sizes(release: Release, nodes: Sequence[int] | None = None) -> dict[str, Any]:
    """Return the size of a release, as its card states it: post-processing, like the counts themselves.

    `nodes` is how many nodes each level has, if that is known.
    """
    names = ["total", *(level.name for level in release.spine.levels)]
    if nodes is None:
        nodes = [release.tree.size(index) for index in range(len(names))]
    levels = [{"name": name, "nodes": number} for name, number in zip(names, nodes, strict=True)]
    size: dict[str, Any] = {"total": release.total, "leaves": nodes[-1], "levels": levels}
    if release.left is not None:
        size["unresolved"] = {"total": release.unresolved_total, "nodes": len(release.left)}
    if nearly := [table for table in release.margins if not table.exact]:
        size["margins"] = [_left_over(table) for table in nearly]
    return size


def _left_over(table: MarginTable) -> dict[str, Any]:
    """Return how far a margin that crosses another differs from its measurements."""
    off = np.abs(table.left_over)
    return {"name": table.margin.part, "mean": float(off.mean()), "largest": int(off.max())}


def _write(
    release: Release,
    shards: Shards,
    folder: Path,
    nodes: bool,
    places: Mapping[str, pa.Table],
    progress: Progress,
) -> str:
    tables = _write_tables(folder, _all_tables(release, shards, places))
    rows: dict[str, int | None] = {name: size for name, size in tables.items() if "/" not in name}
    level_sizes = None
    if shards.below:
        written, level_sizes = write_shards(
            shards, folder, release.confidence, nodes, lambda done: progress("writing", 0.95 * done)
        )
        rows |= written
    else:
        progress("writing", 0.3)
        if nodes:
            rows[NODES] = _write_nodes(shards, folder / NODES, release.confidence, progress)
    rows |= {name: size for name, size in tables.items() if "/" in name}
    rows[PLAN] = None
    card = {**release.card, "released": sizes(release, level_sizes)}
    plan_toml = bind(release.plan_toml or _plan_toml(release), card)
    (folder / PLAN).write_text(plan_toml, encoding="utf-8", newline="\n")
    card["files"] = [_about_file(folder, name, count) for name, count in sorted(rows.items())]
    validate(card)
    text = (json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    digest = sha256(text).hexdigest()
    (folder / CARD).write_bytes(text)
    (folder / PAGE).write_text(render(card, digest), encoding="utf-8", newline="\n")
    progress("writing", 1.0)
    return digest


def _all_tables(release: Release, shards: Shards, places: Mapping[str, pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a release, and then, in folders of their own, the public ones that it refers to."""
    yield from stored_tables(release, shards)
    for kind, public in ((NAMES, _names(release, places)), (PLACES, places)):
        yield from ((f"{kind}/{digest}.parquet", table) for digest, table in public.items())
    template()  # compiled while the last tables are written


def stored_tables(release: Release, shards: Shards) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a release, except leaves in several shards, and then its hierarchies."""
    if not shards.below:
        yield COUNTS, shards.table(shards.top.level, release.confidence)
    if release.left is not None:
        yield UNRESOLVED, unresolved_table(release)
    yield from evidence_tables(shards)
    if release.margins:
        yield MARGINS, margins_table(release.margins, release.spine, release.confidence)
    if release.facts is not None:
        yield FACTS, facts_table(release.facts)
    if release.public is not None:
        yield PUBLIC, public_table(release.spine, release.public)
    trees = {tree.digest: tree for tree in release.spine.trees}
    yield from ((f"{HIERARCHIES}/{digest}.parquet", tree.to_table()) for digest, tree in trees.items())


def _names(release: Release, places: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the names of codes, by the digest of their hierarchy; of two that share it, the first that has any."""
    found: dict[str, pa.Table] = {}
    for tree in release.spine.trees:
        if tree.digest not in found and (table := names_table(tree, places.get(tree.digest))) is not None:
            found[tree.digest] = table
    return found


def _write_tables(folder: Path, tables: Iterable[tuple[str, pa.Table]]) -> dict[str, int]:
    """Write Parquet files, each while the next table is made; return how many rows each has."""

    def write(one: tuple[str, pa.Table]) -> tuple[str, int]:
        name, table = one
        (folder / name).parent.mkdir(exist_ok=True)
        # Plain string columns for every reader; stored as dictionaries all the same.
        pq.write_table(table, folder / name, compression="zstd", store_schema=False)
        return name, table.num_rows

    return dict(behind(write, tables))


def _write_nodes(shards: Shards, path: Path, confidence: float | None, progress: Progress) -> int:
    rows, levels = 0, shards.top.level + 1
    (total,) = shards.tables(0, confidence, numbered=True)
    with pq.ParquetWriter(path, total.schema, compression="zstd", store_schema=False) as writer:
        for index in range(levels):
            (table,) = shards.tables(index, confidence, numbered=True)
            writer.write_table(table)
            rows += table.num_rows
            progress("writing", 0.3 + 0.6 * (index + 1) / levels)
    return rows


def _plan_toml(release: Release) -> str:
    return describe_plan(rebuild_plan(release.card, release.spine, release.facts), RunInfo.of_card(release.card))


def _about_file(folder: Path, name: str, rows: int | None) -> dict[str, Any]:
    path = folder / name
    return {"path": name, "rows": rows, "bytes": path.stat().st_size, "sha256": file_sha256(path)}
