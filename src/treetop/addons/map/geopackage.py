"""A GeoPackage for QGIS and other geographic software: places with their totals, flows as lines, and all rows."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop.addons.map.boundaries import Boundaries, read_boundaries
from treetop.errors import ReleaseError
from treetop.exporting.any_table import attributes_of, notes_of, rows_at
from treetop.exporting.formats import Content, Format, Request
from treetop.exporting.levels import ENDS, counts_at, trees_of
from treetop.exporting.places import Places
from treetop.release.count_table import with_outside

_SCHEMA = """
CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
    organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
CREATE TABLE gpkg_contents (table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE,
    description TEXT DEFAULT '', last_change DATETIME NOT NULL, min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE,
    srs_id INTEGER REFERENCES gpkg_spatial_ref_sys (srs_id));
CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL UNIQUE REFERENCES gpkg_contents (table_name),
    column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL, z TINYINT NOT NULL,
    m TINYINT NOT NULL, PRIMARY KEY (table_name, column_name));
INSERT INTO gpkg_spatial_ref_sys VALUES ('Undefined Cartesian', -1, 'NONE', -1, 'undefined', NULL),
    ('Undefined geographic', 0, 'NONE', 0, 'undefined', NULL),
    ('WGS 84', 4326, 'EPSG', 4326, 'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],'
    || 'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433],AXIS["Latitude",NORTH],AXIS["Longitude",EAST],'
    || 'AUTHORITY["EPSG","4326"]]', NULL);
PRAGMA application_id = 1196444487;
PRAGMA user_version = 10300;
"""
_POINT, _LINE, _POLYGONS = "POINT", "LINESTRING", "MULTIPOLYGON"
_WGS84 = 4326


@dataclass(frozen=True, eq=False)
class FeatureLayer:
    """One table of a GeoPackage."""

    name: str
    table: pa.Table
    kind: str | None = None
    """The type of its geometries; None for rows without any."""
    shapes: Sequence[bytes | None] = ()
    extent: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, eq=False)
class GeoPackage:
    """One file to be written."""

    file: str
    layers: Sequence[FeatureLayer]
    day: str
    rows: int
    total: int
    size: int = 0

    def guarded(self) -> GeoPackage:
        """Return it as it is: no spreadsheet computes its texts."""
        return self

    def write(self, path: Path) -> None:
        """Write the file."""
        with closing(sqlite3.connect(path)) as database:
            database.executescript(_SCHEMA)
            for layer in self.layers:
                self._write(database, layer)
            database.commit()

    def _write(self, database: sqlite3.Connection, layer: FeatureLayer) -> None:
        taken = {"fid", "geom"} if layer.kind else {"fid"}
        names = list(_distinct(layer.table.column_names, taken))
        kinds = ["TEXT" if pa.types.is_string(kind) else "INTEGER" for kind in layer.table.schema.types]
        columns = [f"{_quoted(name)} {kind}" for name, kind in zip(names, kinds, strict=True)]
        shape = [f"geom {layer.kind}"] if layer.kind else []
        table = _quoted(layer.name)
        head = ", ".join(["fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL", *shape, *columns])
        database.execute(f"CREATE TABLE {table} ({head})")
        rows = zip(*([layer.shapes] if layer.kind else []), *(c.to_pylist() for c in layer.table.columns), strict=True)
        marks = ", ".join("?" * (len(shape) + len(columns)))
        listed = ", ".join([*(["geom"] if shape else []), *map(_quoted, names)])
        database.executemany(f"INSERT INTO {table} ({listed}) VALUES ({marks})", rows)
        kind, srs = ("features", _WGS84) if layer.kind else ("attributes", None)
        box = layer.extent or (None,) * 4
        content = (layer.name, kind, layer.name, "", f"{self.day}T00:00:00.000Z", *box, srs)
        database.execute("INSERT INTO gpkg_contents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", content)
        if layer.kind:
            geometry = (layer.name, "geom", layer.kind, _WGS84, 0, 0)
            database.execute("INSERT INTO gpkg_geometry_columns VALUES (?, ?, ?, ?, ?, ?)", geometry)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _distinct(names: Iterable[str], taken: set[str]) -> Iterator[str]:
    """Yield names that differ in more than the size of their letters, as SQLite needs."""
    for name in names:
        own = name
        while own.lower() in taken:
            own += "_"
        taken.add(own.lower())
        yield own


def _blob(kind: int, body: bytes) -> bytes:
    """Return a geometry: a header without an envelope, and the shape as well-known binary."""
    return struct.pack("<2sBBi", b"GP", 0, 1, _WGS84) + _shape(kind, body)


def _shape(kind: int, body: bytes) -> bytes:
    return struct.pack("<BI", 1, kind) + body


def _points(points: np.ndarray) -> bytes:
    return struct.pack("<I", len(points)) + np.ascontiguousarray(points, "<f8").tobytes()


def _polygons(polygons: Sequence[Sequence[np.ndarray]]) -> bytes:
    shapes = [struct.pack("<I", len(one)) + b"".join(map(_points, one)) for one in polygons]
    return _blob(6, struct.pack("<I", len(shapes)) + b"".join(_shape(3, shape) for shape in shapes))


def _extent(points: Iterable[np.ndarray]) -> tuple[float, float, float, float] | None:
    found = [point for point in points if len(point)]
    if not found:
        return None
    every = np.concatenate(found)
    (west, south), (east, north) = every.min(axis=0), every.max(axis=0)
    return float(west), float(south), float(east), float(north)


def geopackage_of(request: Request, table: pa.Table) -> GeoPackage:
    """Return the package: a layer of places for each level with positions or outlines, flows, and all rows."""
    release, depths = request.release, request.depths
    boundaries = None
    if file := request.options.get("boundaries"):
        given = request.options
        boundaries = read_boundaries(file, release.spine.trees, given.get("boundaries_code"), given.get("encoding"))
    layers = list(_layers(request, boundaries))
    if not layers:
        raise ReleaseError(
            "a GeoPackage needs to know where the places are: give a public file with a row per place and columns for "
            "code, latitude and longitude (`coordinates`), or their outlines (`boundaries`)"
        )
    if all(end in depths and end in (request.places or {}) for end in ENDS):
        layers.append(_flows(request))
    taken: set[str] = set()
    named = [FeatureLayer("counts", table), *layers]
    names = _distinct([layer.name for layer in named], taken)
    named = [
        FeatureLayer(name, own.table, own.kind, own.shapes, own.extent) for name, own in zip(names, named, strict=True)
    ]
    day = str(release.card.get("time") or "2000-01-01")[:10]
    total = int(pc.sum(table["count"]).as_py() or 0)
    return GeoPackage("counts.gpkg", [*named[1:], named[0]], day, table.num_rows, total)


def _layers(request: Request, boundaries: Boundaries | None) -> Iterator[FeatureLayer]:
    """Yield places by attribute and level: outlines where they are known, and points otherwise."""
    trees, places = trees_of(request.release), request.places or {}
    for name in attributes_of(request.release):
        tree = trees[name]
        outlined = None if boundaries is None else boundaries.depth(tree)
        for depth in range(request.depths[name] + 1):
            rows = with_outside(counts_at(request.release, {**request.depths, name: depth}, [name], more=True))
            codes = rows[name].to_pylist()
            called = name if len(tree.levels) == 1 else f"{name}_{tree.levels[depth]}"
            if boundaries is not None and depth == outlined:
                shapes = [boundaries.shapes.get(code) for code in codes]
                extent = _extent(ring for shape in shapes if shape for polygon in shape for ring in polygon)
                yield FeatureLayer(
                    called, rows, _POLYGONS, [None if one is None else _polygons(one) for one in shapes], extent
                )
            elif name in places:
                points = _positions(places[name].at(tree, depth), rows[name])
                known = points[~np.isnan(points[:, 0])]
                yield FeatureLayer(called, rows, _POINT, [_dot(point) for point in points], _extent([known]))


def _positions(places: Places, codes: pa.ChunkedArray) -> np.ndarray:
    """Return longitude and latitude by code; NaN if unknown."""
    row = pc.index_in(codes.combine_chunks(), value_set=places.code)
    ends = (pc.take(pa.array(one), row).to_numpy(zero_copy_only=False) for one in (places.longitude, places.latitude))
    return np.stack(list(ends), axis=1)


def _dot(point: np.ndarray) -> bytes | None:
    return None if np.isnan(point[0]) else _blob(1, np.ascontiguousarray(point, "<f8").tobytes())


def _flows(request: Request) -> FeatureLayer:
    """Return the flows between places with positions as straight lines."""
    trees, places = trees_of(request.release), request.places or {}
    rows = with_outside(counts_at(request.release, request.depths, ENDS, more=True))
    ends = [_positions(places[end].at(trees[end], request.depths[end]), rows[end]) for end in ENDS]
    lines = np.stack(ends, axis=1)
    lost = np.isnan(lines).any(axis=(1, 2))
    shapes = [None if gone else _blob(2, _points(line)) for line, gone in zip(lines, lost, strict=True)]
    return FeatureLayer("flows", rows, _LINE, shapes, _extent([lines[~lost].reshape(-1, 2)]))


def _make(request: Request) -> Content:
    table = rows_at(request.release, request.depths)
    return Content([geopackage_of(request, table)], notes=notes_of(request, table))


GEOPACKAGE = Format(
    "geopackage",
    "places with their totals, flows as lines, and all rows, for QGIS and other geographic software (.gpkg)",
    ("counts.gpkg",),
    _make,
    coordinates="any",
    outlines=True,
    suffixes=(".gpkg",),
)
