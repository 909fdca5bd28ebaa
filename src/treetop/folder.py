"""The release folder: written whole or not at all, and read back with its own hierarchies."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from treetop.errors import ReleaseError, TreetopError
from treetop.hierarchy import Hierarchy
from treetop.release import Release
from treetop.spine import Spine


def save(release: Release, folder: Path) -> None:
    """Write the folder beside its place, flush it to disk, then move it there in one step."""
    if folder.exists():
        raise ReleaseError(f"{folder} exists already: choose another folder, or remove it first")
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise ReleaseError(f"{parent} is not a folder: create it first")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=parent) as draft:
            whole = Path(draft) / "release"
            whole.mkdir()
            _write(release, whole)
            for path in [*whole.rglob("*"), whole]:
                _sync(path)
            whole.rename(folder)
            _sync(parent)
    except OSError as problem:
        raise ReleaseError(f"{folder}: cannot be written: {problem.strerror or problem}") from problem


def load(folder: Path) -> Release:
    """Read a release folder, and refuse one whose hierarchies or counts are not what its card says."""
    card = _read_card(folder)
    try:
        described = card["plan"]["attributes"]
        trees = {
            name: Hierarchy.from_table(folder / "hierarchies" / f"{about['sha256']}.parquet", about["levels"])
            for name, about in described.items()
        }
        for name, tree in trees.items():
            if tree.digest != described[name]["sha256"]:
                raise ReleaseError(f"{folder}: the hierarchy of {name!r} is not the one that the card names")
        spine = Spine(card["plan"]["spine"], trees)
        leaves = pq.read_table(folder / "counts.parquet", columns=[*trees, "count"])
        nodes = [tree.encode(leaves.column(name).combine_chunks()) for name, tree in trees.items()]
    except (KeyError, TypeError) as problem:
        raise ReleaseError(f"{folder}: card.json lacks {problem}") from problem
    except (OSError, pa.ArrowException) as problem:
        raise ReleaseError(f"{folder}: cannot be read: {problem}") from problem
    except TreetopError as problem:
        raise ReleaseError(f"{folder}: {problem}") from problem
    count = leaves.column("count").to_numpy()
    if count.dtype != np.int64 or (len(count) and count.min() <= 0):
        raise ReleaseError(f"{folder}: counts.parquet must hold whole numbers above zero")
    if any(len(node) and node.min() < 0 for node in nodes):
        raise ReleaseError(f"{folder}: counts.parquet has a code that is not in its hierarchy")
    return Release(spine, np.array(nodes, dtype=np.int32), count, card)


def _write(release: Release, folder: Path) -> None:
    # Plain string columns, whatever reads them; stored as dictionaries all the same.
    pq.write_table(release.table(), folder / "counts.parquet", compression="zstd", store_schema=False)
    (folder / "hierarchies").mkdir()
    for tree in release.spine.trees:
        path = folder / "hierarchies" / f"{tree.digest}.parquet"
        if not path.exists():
            pq.write_table(tree.to_table(), path, compression="zstd", store_schema=False)
    text = json.dumps(release.card, indent=2, ensure_ascii=False)
    (folder / "card.json").write_text(text + "\n", encoding="utf-8")


def _read_card(folder: Path) -> dict[str, Any]:
    path = folder / "card.json"
    if not path.is_file():
        raise ReleaseError(f"{folder} is not a release folder: there is no card.json in it")
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise ReleaseError(f"{path}: not a card: {problem}") from problem
    if not isinstance(card, dict) or "plan" not in card:
        raise ReleaseError(f"{path}: not a card")
    return card


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
