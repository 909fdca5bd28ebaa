"""Release folders as a forger leaves them: something is changed, and every hash that follows from it is put right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from treetop.card.html import bind, render
from treetop.checking.check import check_folder
from treetop.release.folder import file_sha256


def every_part(value: Any) -> list[tuple[Any, Any]]:
    """The parts of a part of a card by name or number."""
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []


def places(
    value: Any, path: tuple[Any, ...] = (), parts: Callable[[Any], list[tuple[Any, Any]]] = every_part
) -> list[tuple[Any, ...]]:
    """Every place in a card, by its path; the card itself first."""
    return [path, *(place for name, item in parts(value) for place in places(item, (*path, name), parts))]


def at(card: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        card = card[name]
    return card


def put(card: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a card with another value at a place."""
    if not path:
        return new
    copy = json.loads(json.dumps(card))
    at(copy, path[:-1])[path[-1]] = new
    return copy


def findings(folder: Path) -> list[str]:
    return [finding for verdict in check_folder(folder) for finding in verdict.findings]


def card_of(folder: Path) -> Any:
    return json.loads((folder / "card.json").read_text(encoding="utf-8"))


def restate(folder: Path, card: Any) -> Path:
    """Write a card with its page, bind plan.toml to it, and put right the sizes and hashes of all files."""
    plan = folder / "plan.toml"
    if plan.exists():
        plan.write_text(bind(plan.read_text(encoding="utf-8"), card), encoding="utf-8")
    for file in card["files"]:
        if (path := folder / file["path"]).exists():
            file |= {"sha256": file_sha256(path), "bytes": path.stat().st_size}
    (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    page = render(card, file_sha256(folder / "card.json"))
    (folder / "card.html").write_text(page, encoding="utf-8", newline="\n")
    return folder


def relist(folder: Path) -> Path:
    """Put right the card of a folder whose files were added, removed or changed."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    listed = [name for name in sorted(names) if name not in ("card.json", "card.html")]
    rows = {name: pq.read_metadata(folder / name).num_rows for name in listed if name.endswith(".parquet")}
    files = [{"path": name, "rows": rows.get(name)} for name in listed]
    return restate(folder, {**card_of(folder), "files": files})


def edit_table(folder: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> Path:
    """Change a table of a folder."""
    changed, card = change(pq.read_table(folder / name)), card_of(folder)
    pq.write_table(changed, folder / name, compression="zstd", store_schema=False)
    for file in card["files"]:
        if file["path"] == name:
            file["rows"] = changed.num_rows
    return restate(folder, card)
