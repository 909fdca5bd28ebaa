"""Step 7: explore. A release as a map and a table, with search, sort and intervals, and answers to any question."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop.addons.studio.forms import Form
from treetop.addons.studio.workspace import Workspace
from treetop.card import in_words
from treetop.domain.conditions import parse_conditions, typed_conditions
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import QueryError, ReleaseError, TreetopError
from treetop.exporting import FORMATS, export
from treetop.exporting.any_table import attributes_of
from treetop.exporting.levels import trees_of
from treetop.release.folder import PLACES
from treetop.release.release import Release
from treetop.release.selection import Selection

PAGE = 25
NUMBERS = ("count", "lower", "upper")
DOWNLOADS = {"csv": "counts.csv", "excel": "counts.xlsx"}


def show(workspace: Workspace, entered: Form) -> dict[str, Any]:
    """Return the values of the page."""
    names = workspace.folder.releases()
    name = entered.get("release") or (names[0] if names else "")
    values: dict[str, Any] = {"releases": names, "release": name, "trouble": None, "table": None, "answer": None}
    values["entered"] = {key: entered.get(key) for key in ("q", "where", "sort")}
    if not name:
        return values
    release = workspace.release(name)
    levels = _levels(release)
    by = [one for one in entered.all("by") if one in levels] or _first(release)
    values |= {
        "card": in_words({key: release.card.get(key) for key in ("title", "guarantee", "private")}),
        "total": release.total,
        "counted": in_words(release.card.get("counted", {}).get("sentences", [])),
        "levels": levels,
        "by": by,
        "examples": _examples(release),
        "has_map": any((workspace.folder.release(name) / PLACES).glob("*.parquet")),
        "downloads": downloads(),
    }
    try:
        chosen = release.where(**parse_conditions(typed_conditions(entered.get("where")), release.spine))
        values["answer"] = _answer(chosen)
        values["table"] = _table(chosen, by, entered)
    except TreetopError as problem:
        values["trouble"] = str(problem)
    return values


def downloads() -> list[tuple[str, str]]:
    """List the downloads of a release."""
    return [(name, file) for name, file in DOWNLOADS.items() if name in FORMATS]


def find_map(workspace: Workspace, name: str) -> str | None:
    """Return the page of a map, made once and kept in memory; None if places have no coordinates."""
    path = workspace.folder.release(name)

    def make() -> str | None:
        with TemporaryDirectory() as room:
            try:
                export(path, "map", Path(room) / "map.html", skip_missing=True)
            except ReleaseError:
                return None
            return (Path(room) / "map.html").read_text(encoding="utf-8")

    workspace.release(name)
    return workspace.kept(("map", str(path), (path / "card.json").stat().st_mtime_ns), make)


def download(workspace: Workspace, name: str, to: str, room: Path) -> Path:
    """Write an export of a release into a temporary folder of its own, and return the file."""
    if to not in DOWNLOADS:
        raise QueryError(f"there is no download {to!r} here: choose one that is listed")
    file = room / DOWNLOADS[to]
    export(workspace.folder.release(name), to, file)
    return file


def _levels(release: Release) -> list[str]:
    trees = trees_of(release.where())
    return [
        _called(name, trees[name], level) for name in attributes_of(release.where()) for level in trees[name].levels
    ]


def _called(name: str, tree: Hierarchy, level: str) -> str:
    return name if len(tree.levels) == 1 else f"{name}.{level}"


def _first(release: Release) -> list[str]:
    """Return the first levels of a table: the finest that a page can hold, of all attributes."""
    trees = trees_of(release.where())
    return [
        _called(name, trees[name], trees[name].levels[0 if len(trees[name].levels) > 2 else -1])
        for name in attributes_of(release.where())
    ]


def _examples(release: Release) -> list[str]:
    found = []
    for name in attributes_of(release.where())[:2]:
        tree = trees_of(release.where())[name]
        code = tree.name(0, 0) or tree.codes[0][0].as_py()
        found.append(f'{name}="{code}"' if " " in code else f"{name}={code}")
    return found


def _answer(chosen: Selection) -> dict[str, Any]:
    bounds = None if chosen.confidence is None else chosen.interval()
    outside = bounds is not None and not bounds.lower <= chosen.total <= bounds.upper
    return {"count": chosen.total, "bounds": bounds, "confidence": chosen.confidence, "outside": outside,
            "where": list(chosen.conditions), "unresolved": chosen.partly_unresolved}  # fmt: skip


def _table(chosen: Selection, by: list[str], entered: Form) -> dict[str, Any]:
    """Return one page of a table, searched and sorted."""
    table = chosen.table(by, names=True).arrow
    codes = {f"{name}_name": name for name in table.column_names}
    texts = [name for name in table.column_names if name not in NUMBERS]
    texts = [name for name in texts if name not in codes or not table[name].equals(table[codes[name]])]
    whole = table.num_rows
    if asked := entered.get("q"):
        found = np.zeros(whole, np.bool_)
        for name in texts:
            found |= pc.match_substring(table[name], asked, ignore_case=True).fill_null(False).to_numpy()
        table = table.filter(pa.array(found))
    sort, _, direction = (entered.get("sort") or "count:down").partition(":")
    if sort not in table.column_names:
        sort, direction = "count", "down"
    table = table.sort_by([(sort, "ascending" if direction == "up" else "descending")])
    pages = max(-(-table.num_rows // PAGE), 1)
    page = min(int(entered.get("page")) if entered.get("page").isdecimal() else 1, pages)
    shown = table.slice(PAGE * (page - 1), PAGE)
    ranges = "lower" in table.column_names
    top = max([*(shown["upper"].to_pylist() if ranges else shown["count"].to_pylist()), 1])
    rows = [{"texts": [row[name] for name in texts], "count": row["count"], "lower": row.get("lower"),
             "outside": ranges and not row["lower"] <= row["count"] <= row["upper"],
             "upper": row.get("upper"), "bar": _bar(row, top)} for row in shown.to_pylist()]  # fmt: skip
    return {"texts": texts, "rows": rows, "ranges": ranges, "whole": whole, "found": table.num_rows, "page": page,
            "pages": pages, "sort": sort, "direction": direction or "down"}  # fmt: skip


def _bar(row: dict[str, Any], top: int) -> dict[str, float]:
    lower, upper = row.get("lower", row["count"]), row.get("upper", row["count"])
    return {"from": round(100 * max(lower, 0) / top, 2), "wide": round(100 * max(upper - max(lower, 0), 0) / top, 2),
            "released": round(100 * row["count"] / top, 2)}  # fmt: skip
