"""Writing a release folder: complete and on disk beside its place, then moved there in one step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from treetop._util.system import behind
from treetop.card.html import bind, render, template
from treetop.card.rebuild import rebuild_plan
from treetop.card.run_info import RunInfo
from treetop.card.schema import validate
from treetop.errors import ReleaseError
from treetop.plan.file import describe_plan
from treetop.release.folder import _tables as files
from treetop.release.folder._shards import INDEX, TOP, index_rows, leaves_file, shard_files, top_table
from treetop.release.folder.place import check_name, claimed, scratch, sync, take_place, writing
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
        # How far margins that cross others differ from their measurements.
        size["margins"] = []
        for table in nearly:
            off = np.abs(table.left_over)
            size["margins"].append({"name": table.margin.part, "mean": float(off.mean()), "largest": int(off.max())})
    return size


def _write(
    release: Release, shards: Shards, folder: Path, nodes: bool, places: Mapping[str, pa.Table], progress: Progress
) -> str:
    rows: dict[str, int | None] = {files.PLAN: None}
    tree, levels = shards.top.tree, len(release.spine.levels) + 1
    level_sizes = np.array([tree.size(level) if level <= shards.top.level else 0 for level in range(levels)])

    def write(one: tuple[str, Iterable[pa.Table], int | None]) -> None:
        name, tables, group = one
        (folder / name).parent.mkdir(exist_ok=True)
        every, number = iter(tables), 0
        first = next(every)
        # Plain string columns for every reader; stored as dictionaries all the same.
        with pq.ParquetWriter(folder / name, first.schema, compression="zstd", store_schema=False) as writer:
            for table in chain([first], every):
                writer.write_table(table, row_group_size=group)
                number += table.num_rows
        rows[name] = number

    def of_shards() -> Iterator[tuple[str, Iterable[pa.Table], int | None]]:
        index = []
        for number, shard in enumerate(shards):
            yield leaves_file(shards, number), [shard.table(levels - 1, release.confidence)], shards.group
            for name, tables in shard_files(shards, number, shard, release.confidence, nodes):
                yield name, tables, None
            if shards.below:
                level_sizes[shards.below.start :] += [shard.tree.size(level) for level in shards.below]
                index.append(index_rows(shard, number, shards.group or 1, shards.top.level))
            progress("writing", 0.95 * (number + 1) / len(shards))
        if shards.below:
            yield TOP, [top_table(shards, release.confidence)], None
            yield INDEX, [pa.concat_tables(index)], None

    behind(write, ((name, [table], None) for name, table in _tables(release, shards, places)))
    for one in of_shards():  # one at a time, so that no more than a shard is in memory
        write(one)
    card = {**release.card, "released": sizes(release, level_sizes.tolist())}
    plan_toml = release.plan_toml or describe_plan(
        rebuild_plan(release.card, release.spine, release.facts), RunInfo.of_card(release.card)
    )
    (folder / files.PLAN).write_text(bind(plan_toml, card), encoding="utf-8", newline="\n")
    written = [(name, count, folder / name) for name, count in sorted(rows.items())]
    card["files"] = [
        {"path": name, "rows": count, "bytes": path.stat().st_size, "sha256": files.file_sha256(path)}
        for name, count, path in written
    ]
    validate(card)
    text = (json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    digest = sha256(text).hexdigest()
    (folder / files.CARD).write_bytes(text)
    (folder / files.PAGE).write_text(render(card, digest), encoding="utf-8", newline="\n")
    progress("writing", 1.0)
    return digest


def _tables(release: Release, shards: Shards, places: Mapping[str, pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a release except its shards, and then the public ones that it refers to."""
    yield from stored_tables(release, shards)
    named: set[str] = set()  # of two hierarchies with the same codes, the first that has names
    for tree in release.spine.trees:
        if tree.digest not in named and (table := files.names_table(tree, places.get(tree.digest))) is not None:
            named.add(tree.digest)
            yield f"{files.NAMES}/{tree.digest}.parquet", table
    yield from ((f"{files.PLACES}/{digest}.parquet", table) for digest, table in places.items())
    template()  # compiled while the last tables are written


def stored_tables(release: Release, shards: Shards) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a release, except its shards, and then its hierarchies."""
    if release.left is not None:
        yield files.UNRESOLVED, files.unresolved_table(release)
    yield from files.evidence_tables(shards)
    if release.margins:
        yield files.MARGINS, files.margins_table(release.margins, release.spine, release.confidence)
    if release.facts is not None:
        yield files.FACTS, files.facts_table(release.facts)
    if release.public is not None:
        yield files.PUBLIC, files.public_table(release.spine, release.public)
    trees = {tree.digest: tree for tree in release.spine.trees}
    yield from ((f"{files.HIERARCHIES}/{digest}.parquet", tree.to_table()) for digest, tree in trees.items())
