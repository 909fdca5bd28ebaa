"""Boundaries from a public GeoJSON file, found by the codes of a hierarchy."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop._util.choices import nearest
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import DataError

Degrees = NDArray[np.float64]
"""A ring: a row per point, longitude and latitude."""

_ID = "id"
_NAMES = ("name", "Name", "NAME")


@dataclass(frozen=True, eq=False)
class Boundaries:
    """The outlines of places, by code."""

    shapes: Mapping[str, list[list[Degrees]]]
    """The polygons of each code: an outer ring, then its holes."""
    names: Mapping[str, str]

    def depth(self, tree: Hierarchy) -> int | None:
        """Return the level of the hierarchy with the largest share of codes in the file; None if no code is in it.

        Between equals, the finest is chosen, and the coarser ones are made from it.
        """
        found = [sum(code in self.shapes for code in codes.to_pylist()) / len(codes) for codes in tree.codes]
        best = max(found)
        return None if best == 0 else max(depth for depth, share in enumerate(found) if share == best)


def read_boundaries(
    file: str | Path, trees: Sequence[Hierarchy], code: str | None = None, encoding: str | None = None
) -> Boundaries:
    """Read a GeoJSON file; `code` is the property with the codes, found by its values if None.

    GeoJSON is UTF-8; `encoding` is for a file that is not.
    """
    features = _features(Path(file), encoding)
    known = {code for tree in trees for codes in tree.codes for code in codes.to_pylist()}
    name = code if code is not None else _guess(file, features, known)
    shapes: dict[str, list[list[Degrees]]] = {}
    names: dict[str, str] = {}
    for number, feature in enumerate(features, start=1):
        properties = _codes(feature)
        value = properties.get(name)
        if value is not None and value in known:
            shapes.setdefault(value, []).extend(_polygons(feature, f"{file}, feature {number}"))
            called = next((properties[usual] for usual in _NAMES if usual in properties and usual != name), None)
            if called:
                names[value] = called
    if not shapes:
        every = sorted({name for feature in features for name in _codes(feature)})
        raise DataError(
            f"{file}: no feature has a code of the release under {name!r}{nearest(name, every)}; "
            f"the properties are {', '.join(every) or 'none'}"
        )
    return Boundaries(shapes, names)


def _features(file: Path, encoding: str | None) -> list[Mapping[str, Any]]:
    text = _text(file, encoding)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as problem:
        raise DataError(
            f"{file}: is not GeoJSON: line {problem.lineno}, column {problem.colno} is not JSON; other formats of "
            "boundaries can be turned into GeoJSON (ogr2ogr)"
        ) from problem
    except (ValueError, RecursionError) as problem:
        raise DataError(
            f"{file}: is not GeoJSON: it is nested too deeply, or a number has too many digits"
        ) from problem
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list) or not all(isinstance(feature, dict) for feature in features):
        raise DataError(f"{file}: is not a GeoJSON FeatureCollection; other formats can be turned into one (ogr2ogr)")
    _refuse_other_systems(file, content)
    return features


def _text(file: Path, encoding: str | None) -> str:
    """Return the text of a file, unpacked if it is gzip."""
    if file.is_char_device():  # it may have no end
        raise DataError(f"{file}: is a device, not a file: name a GeoJSON file")
    try:
        raw = file.read_bytes()
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise DataError(f"{file}: is a damaged gzip file: fetch it again") from problem
    except OSError as problem:
        raise DataError(f"{file}: cannot be read: {problem.strerror or problem}") from problem
    try:
        return raw.decode(json.detect_encoding(raw))
    except UnicodeDecodeError as problem:
        if encoding is None:
            raise DataError(
                f"{file}: byte {problem.start} is not UTF-8, which GeoJSON is: name its encoding, such as "
                '`encoding="latin-1"`'
            ) from problem
    try:
        return raw.decode(encoding)
    except (UnicodeDecodeError, LookupError) as problem:
        raise DataError(f"{file}: is not {encoding} text: name its true encoding, such as latin-1") from problem


def _refuse_other_systems(file: Path, content: Mapping[str, Any]) -> None:
    """Refuse coordinates that are not degrees, if the file names its system (older GeoJSON does)."""
    system = str(((content.get("crs") or {}).get("properties") or {}).get("name", "CRS84"))
    if not system.endswith(("CRS84", "4326", "4258")):
        raise DataError(f"{file}: its coordinates are in {system}, not in degrees: convert it to EPSG:4326 (ogr2ogr)")


def _codes(feature: Mapping[str, Any]) -> dict[str, str]:
    """Return possible codes: texts and whole numbers among the properties, and the feature's own id."""
    given = {_ID: feature.get(_ID)} | (feature.get("properties") or {})
    return {
        name: str(value)
        for name, value in given.items()
        if isinstance(value, str | int) and not isinstance(value, bool)
    }


def _guess(file: str | Path, features: Sequence[Mapping[str, Any]], known: set[str]) -> str:
    held: dict[str, set[str]] = {}
    for feature in features:
        for name, value in _codes(feature).items():
            held.setdefault(name, set()).add(value)
    found = {name: len(values & known) for name, values in held.items() if values & known}
    if not found:
        raise DataError(
            f"{file}: none of the properties {', '.join(held) or '(there are none)'} holds codes of the release: "
            "codes must agree to the letter, leading zeros included"
        )
    most = [name for name, number in found.items() if number == max(found.values())]
    if len({frozenset(held[name] & known) for name in most}) > 1:
        raise DataError(
            f"{file}: {' and '.join(most)} hold equally many codes of the release: name one (`boundaries_code`)"
        )
    return most[0]


def _polygons(feature: Mapping[str, Any], where: str) -> list[list[Degrees]]:
    geometry = feature.get("geometry") or {"type": "Polygon", "coordinates": []}
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    if kind not in ("Polygon", "MultiPolygon"):
        raise DataError(f"{where}: has a {kind}, and a boundary is a Polygon or a MultiPolygon")
    try:
        polygons: Any = [coordinates] if kind == "Polygon" else coordinates
        rings = [[_ring(ring) for ring in polygon] for polygon in polygons if polygon]
    except (TypeError, ValueError, IndexError) as problem:
        raise DataError(f"{where}: its coordinates cannot be read: {problem}") from problem
    for ring in (ring for polygon in rings for ring in polygon):
        if not np.all(np.abs(ring) <= (180.0001, 90.0001)):
            raise DataError(f"{where}: its coordinates are not degrees: convert the file to EPSG:4326 (ogr2ogr)")
    return rings


def _ring(points: Sequence[Sequence[float]]) -> Degrees:
    ring = np.array([(float(point[0]), float(point[1])) for point in points], np.float64).reshape(-1, 2)
    if not np.isfinite(ring).all():
        raise ValueError("a coordinate is not a number")
    return ring
