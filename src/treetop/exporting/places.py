"""Places: names and coordinates by leaf code, from a public file or from the release folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.choices import nearest
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import DataError
from treetop.exporting.levels import trees_of
from treetop.io import table as tables
from treetop.io.row_batch import as_text
from treetop.io.source import Source, as_public
from treetop.release.folder import PLACES
from treetop.release.selection import Selection

_USUAL = {
    "latitude": ("latitude", "lat", "y"),
    "longitude": ("longitude", "lon", "lng", "long", "x"),
    "name": ("name",),
}
_LIMIT = {"latitude": 90.0, "longitude": 180.0}


@dataclass(frozen=True, eq=False)
class Places:
    """One row per leaf that has coordinates."""

    code: pa.StringArray
    """The codes, each once."""
    name: pa.StringArray
    """Their names; a place without a name has its code."""
    latitude: NDArray[np.float64]
    """Degrees north."""
    longitude: NDArray[np.float64]
    """Degrees east, from -180 to 180."""

    def to_table(self) -> pa.Table:
        """Return the places as the table of a release folder."""
        names = ["code", "name", "latitude", "longitude"]
        return pa.table([self.code, self.name, self.latitude, self.longitude], names=names)

    def at(self, tree: Hierarchy, depth: int) -> Places:
        """Return the places of a coarser level: the mean of the leaves under each, by the name of its code."""
        row = pc.index_in(tree.codes[-1], value_set=self.code)
        known = row.is_valid().to_numpy(zero_copy_only=False)
        row = row.drop_null()
        if depth == len(tree.levels) - 1:
            number = row.to_numpy()
            return Places(self.code.take(row), self.name.take(row), self.latitude[number], self.longitude[number])
        node = pa.array(tree.ancestors(depth)[known])
        codes, called = tree.codes[depth].take(node), tree.names.get(tree.levels[depth])
        names = codes if called is None else pc.coalesce(called.take(node), codes)
        return _mean(codes, names, self.latitude[row.to_numpy()], self.longitude[row.to_numpy()])


def read_places(
    file: str | Path,
    leaf: str = "code",
    *,
    code: str | None = None,
    latitude: str | None = None,
    longitude: str | None = None,
    name: str | None = None,
    encoding: str | None = None,
) -> Places:
    """Read a file with coordinates; the column of codes is named after the `leaf` level unless it is given.

    Rows without coordinates are passed over, and rows that share a code are averaged. `encoding` is that of a text
    file; UTF-8 when None.
    """
    rows = tables.read(as_public(Source(Path(file), encoding=encoding)))
    given = {"latitude": latitude, "longitude": longitude, "name": name}
    columns = {what: _column(rows, file, what, column) for what, column in given.items()}
    columns["code"] = _code_column(rows, file, code, leaf)
    numbers = [_degrees(rows, file, what, str(columns[what])) for what in ("latitude", "longitude")]
    codes = _text(rows, file, str(columns["code"]))
    names = codes if columns["name"] is None else pc.coalesce(_text(rows, file, columns["name"]), codes)
    known = ~(np.isnan(numbers[0]) | np.isnan(numbers[1])) & codes.is_valid().to_numpy(zero_copy_only=False)
    mask = pa.array(known)
    return _mean(codes.filter(mask), names.filter(mask), numbers[0][known], numbers[1][known])


def saved_places(release: Selection, folder: Path) -> dict[str, Places]:
    """Return the places that a release folder carries, by attribute."""
    files = {name: folder / PLACES / f"{tree.digest}.parquet" for name, tree in trees_of(release).items()}
    return {name: read_places(file) for name, file in files.items() if file.is_file()}


def place_attribute(release: Selection, file: str | Path, columns: Mapping[str, str | None]) -> str:
    """Return the attribute of a coordinates file: the one with the most leaves in the file."""
    trees = trees_of(release)
    if len(trees) == 1:
        return next(iter(trees))
    known: dict[str, int] = {}
    for name, tree in trees.items():
        with suppress(DataError):
            codes = read_places(file, tree.levels[-1], **columns).code
            known[name] = pc.sum(pc.is_in(tree.codes[-1], value_set=codes)).as_py()
    best = max(known, key=lambda name: known[name], default=None)
    if best is None or known[best] == 0:
        raise DataError(
            f"{file}: lists the places of none of the attributes {', '.join(trees)}: name its column of codes "
            "(`code`), which must agree with the release to the letter"
        )
    return best


def _mean(codes: pa.Array, names: pa.Array, latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> Places:
    """Average the rows of each code; one that has several names is called by its code."""
    encoded = codes.dictionary_encode()
    distinct, group = encoded.dictionary, encoded.indices.to_numpy()
    rows = np.bincount(group, minlength=len(distinct))
    first = np.zeros(len(distinct), np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    called = names.take(pa.array(first))
    same = pc.equal(names, called.take(encoded.indices)).to_numpy(zero_copy_only=False)
    several = np.bincount(group[~same], minlength=len(distinct)) > 0
    return Places(
        distinct,
        pc.if_else(pa.array(several), distinct, called),
        np.bincount(group, latitude, len(distinct)) / rows,
        _mean_longitude(group, longitude, rows),
    )


def _mean_longitude(
    group: NDArray[np.int64], longitude: NDArray[np.float64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Average longitudes; if places lie closer together across the 180° meridian, across it."""
    means, spreads = [], []
    for degrees in (longitude, longitude % 360):
        low, high = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
        np.minimum.at(low, group, degrees)
        np.maximum.at(high, group, degrees)
        means.append(np.bincount(group, degrees, len(rows)) / rows)
        spreads.append(high - low)
    across = (means[1] + 180) % 360 - 180
    return np.where(spreads[1] < spreads[0] - 1e-9, across, means[0])


def _column(rows: pa.Table, file: str | Path, what: str, given: str | None) -> str | None:
    if given is not None:
        return _present(rows, file, given, what)
    by_lower = {column.lower(): column for column in reversed(rows.column_names)}
    found = next((by_lower[usual] for usual in _USUAL[what] if usual in by_lower), None)
    if found is None and what != "name":
        raise DataError(
            f"{file}: none of the columns {', '.join(rows.column_names)} is called {what}: name it (`{what}`)"
        )
    return found


def _code_column(rows: pa.Table, file: str | Path, given: str | None, leaf: str) -> str:
    if given is not None:
        return _present(rows, file, given, "code")
    for usual in (leaf, "code", "id"):
        if usual in rows.column_names:
            return usual
    raise DataError(
        f"{file}: which column has the codes of level {leaf!r}? Name one of {', '.join(rows.column_names)} (`code`)"
    )


def _present(rows: pa.Table, file: str | Path, column: str, what: str) -> str:
    if column not in rows.column_names:
        raise DataError(
            f"{file}: there is no column {column!r} for the {what}{nearest(column, rows.column_names)}; "
            f"the columns are {', '.join(rows.column_names)}"
        )
    return column


def _text(rows: pa.Table, file: str | Path, column: str) -> pa.Array:
    try:
        text = as_text(rows.column(column), column).combine_chunks()
    except DataError as problem:
        raise DataError(f"{file}: {problem}") from problem
    return pc.if_else(pc.equal(text, ""), None, text)


def _degrees(rows: pa.Table, file: str | Path, what: str, column: str) -> NDArray[np.float64]:
    """Return a column of coordinates, NaN if missing; refuse values that are no coordinates."""
    values = rows.column(column).combine_chunks()
    if pa.types.is_floating(values.type) or pa.types.is_integer(values.type) or pa.types.is_decimal(values.type):
        degrees = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    else:
        degrees = _parsed(_text(rows, file, column).to_pylist(), f"{file}, column {column!r}", what)
    wrong = np.flatnonzero(np.abs(np.nan_to_num(degrees, nan=0.0)) > _LIMIT[what])
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{file}, column {column!r}, row {row + 1}: {degrees[row]:g} is not a {what} in degrees "
            f"(-{_LIMIT[what]:g} to {_LIMIT[what]:g})"
        )
    return np.asarray(degrees, np.float64)


def _parsed(texts: Sequence[Any], where: str, what: str) -> NDArray[np.float64]:
    degrees = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        if text is None:
            continue
        try:
            degrees[row] = float(text.replace(",", ".") if text.count(",") == 1 and "." not in text else text)
        except ValueError:
            raise DataError(
                f"{where}, row {row + 1}: {text!r} is not a {what}: write degrees with a decimal point, as in 45.4642"
            ) from None
    return degrees
