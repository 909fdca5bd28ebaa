"""Flows for other tools: pairs of places with their counts, with or without coordinates; and any table for QGIS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import disk_usage

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.errors import Refusal, ReleaseError
from treetop.exporting.any_table import are_leaves, as_they_are, leaves_of
from treetop.exporting.formats import Content, Format, Progress, Request
from treetop.exporting.levels import ENDS, Depths, counts_at, trees_of
from treetop.exporting.places import Places
from treetop.exporting.sheet import Sheet, say_bytes
from treetop.release.selection import Selection


@dataclass(frozen=True, eq=False)
class _Located:
    """The flows that have coordinates at both ends."""

    flows: pa.Table
    places: list[Places]
    rows: list[NDArray[np.int32]]
    """The place of each flow's origin, and of its destination."""
    missing: tuple[str, ...]
    """The codes without coordinates; their flows were left out."""

    @staticmethod
    def of(request: Request, *, more: bool = False) -> _Located:
        assert request.places is not None
        flows, trees = counts_at(request.release, request.depths, ENDS, more=more), trees_of(request.release)
        here = [request.places[end].at(trees[end], request.depths[end]) for end in ENDS]
        rows = [pc.index_in(flows[end], value_set=place.code) for end, place in zip(ENDS, here, strict=True)]
        missing = _missing(flows, rows, request.options.get("skip_missing", False))
        if missing:
            kept = pc.and_(pc.is_valid(rows[0]), pc.is_valid(rows[1]))
            flows, rows = flows.filter(kept), [row.filter(kept) for row in rows]
        return _Located(flows, here, [row.to_numpy() for row in rows], missing)

    @property
    def degrees(self) -> list[NDArray[np.float64]]:
        """Latitude and longitude of the origins, then of the destinations."""
        pairs = zip(self.places, self.rows, strict=True)
        return [column[row] for place, row in pairs for column in (place.latitude, place.longitude)]


def _plain(request: Request, count: str = "count") -> Content:
    release = request.release
    if are_leaves(release, request.depths) and len(release.spine.trees) == len(ENDS):
        return Content([as_they_are("flows.csv", release, [*ENDS, "count"], [*ENDS, count])])
    flows = counts_at(request.release, request.depths, ENDS).rename_columns([*ENDS, count])
    return Content([Sheet.of("flows.csv", flows, count)])


def _flowmap(request: Request) -> Content:
    found = _Located.of(request)
    locations = _locations(found.places, found.rows)
    flows = found.flows.rename_columns(["origin", "dest", "count"])
    return Content([Sheet.of("flows.csv", flows, "count"), Sheet.of("locations.csv", locations)], found.missing)


def _kepler(request: Request) -> Content:
    found = _Located.of(request, more=True)
    flows = found.flows
    for name, column in zip(("lat0", "lng0", "lat1", "lng1"), found.degrees, strict=True):
        flows = flows.append_column(name, pa.array(column))
    return Content([Sheet.of("flows.csv", flows, "count")], found.missing)


def _qgis(request: Request) -> Content:
    """Make any table, or lines if the ends of flows have coordinates; their types stand beside them."""
    missing: tuple[str, ...] = ()
    if request.places is None:
        names = list(request.release.spine.attributes)
        if all(end in names for end in ENDS):
            names = [*ENDS, *(name for name in names if name not in ENDS)]
        table = counts_at(request.release, request.depths, names, more=True)
    else:
        found = _Located.of(request, more=True)
        table, missing = found.flows.append_column("WKT", _lines(found.degrees)), found.missing
    return Content([Sheet.of(file, table, "count") for file in ("table.csv", "table.csvt")], missing)


def _missing(flows: pa.Table, rows: list[pa.ChunkedArray], skip_missing: bool) -> tuple[str, ...]:
    """Return the codes without coordinates; refuse them unless they are to be left out."""
    lacking = (pc.unique(flows[end].filter(pc.is_null(row))).to_pylist() for end, row in zip(ENDS, rows, strict=True))
    missing = tuple(sorted({code for codes in lacking for code in codes}))
    if not missing or skip_missing:
        return missing
    shown = ", ".join(map(repr, missing[:10])) + (f" and {len(missing) - 10:,} more" if len(missing) > 10 else "")
    raise ReleaseError(
        f"{len(missing):,} code{'s' * (len(missing) > 1)} with flows lack coordinates: {shown}. Add them to the file, "
        "or leave their flows out (`skip_missing=True`)"
    )


def _locations(places: list[Places], numbers: list[NDArray[np.int32]]) -> pa.Table:
    """Return every place that a flow touches, once; a code that stands for two places is refused."""
    used = [place.to_table().take(pa.array(np.unique(number))) for place, number in zip(places, numbers, strict=True)]
    both = pa.concat_tables(used).rename_columns(["id", "name", "lat", "lon"])
    both = both.group_by(["id", "name", "lat", "lon"], use_threads=False).aggregate([])
    again = pc.value_counts(both["id"])
    twice = again.field("values").filter(pc.greater(again.field("counts"), 1))
    if len(twice):
        raise ReleaseError(
            f"{twice[0].as_py()!r} is one place as origin and another as destination: flowmap.blue needs a code to be "
            "one place. Give the two hierarchies codes that differ"
        )
    return both.sort_by("id")


def _lines(degrees: list[NDArray[np.float64]]) -> pa.Array:
    """Return the straight line of each flow, longitude before latitude."""
    lat0, lng0, lat1, lng1 = (pc.cast(pa.array(column), pa.string()) for column in degrees)
    start, stop = pc.binary_join_element_wise(lng0, lat0, " "), pc.binary_join_element_wise(lng1, lat1, " ")
    joined = pc.binary_join_element_wise(start, stop, ", ")
    return pc.binary_join_element_wise("LINESTRING (", joined, ")", "")


_FLOWS = ("flows.csv",)
FLOWMAP, SKMOB, KEPLER, OD = (
    Format(name, about, files, make, flows=True, coordinates="needed" if needed else "none", suffixes=suffixes)
    for name, files, suffixes, needed, make, about in (
        ("flowmap", (*_FLOWS, "locations.csv"), (), True, _flowmap,
         "flowmap.blue: locations.csv (id,name,lat,lon) and flows.csv (origin,dest,count)"),
        ("skmob", _FLOWS, (".csv",), False, partial(_plain, count="flow"), "scikit-mobility: origin,destination,flow"),
        ("kepler", _FLOWS, (".csv",), True, _kepler, "kepler.gl: origin,destination,count,…,lat0,lng0,lat1,lng1"),
        ("od", _FLOWS, (".csv",), False, _plain, "R od and stplanr: origin,destination,count"),
    )
)  # fmt: skip
QGIS = Format(
    "qgis",
    "QGIS: a CSV with its .csvt, so that codes stay text; with coordinates, lines",
    ("table.csv", "table.csvt"),
    _qgis,
    coordinates="used",
)


# Synthetic records, one row per unit of count: how large they become is told first, and refused where hardly meant.

ROWS = 1 << 20
MANY = 10_000_000
"""Announce the number of records from this size on, before writing."""
MOST = 1_000_000_000
"""More records than this are written only with `large`: minutes become hours, and files become terabytes."""


@dataclass(frozen=True)
class Size:
    """The size of exported records."""

    records: int
    bytes: int
    """Approximate size as CSV; Parquet, which packs rows that repeat, is far smaller."""

    @staticmethod
    def of(release: Selection, depths: Depths) -> Size:
        """Measure the records of a release: one line per unit of count, without writing any."""
        total = 0.0  # as an integer it may overflow
        for nodes, count in leaves_of(release):
            lengths = np.full(len(count), 3 * len(nodes), np.int64)  # quotes, and what comes after them
            for (name, tree), own in zip(trees_of(release).items(), nodes, strict=True):
                codes = np.asarray(pc.binary_length(tree.codes[depths[name]]), np.int64)
                lengths += codes[tree.ancestors(depths[name])[own]]
            total += float(np.dot(count.astype(np.float64), lengths.astype(np.float64)))
        # What is not resolved belongs to no leaf, and has no record.
        return Size(release.total - release.unresolved_total, int(total))

    def refuse_unless(self, large: bool, out: Path) -> None:
        """Refuse more records than are likely meant, and a CSV file that the disk does not hold."""
        if self.records > MOST and not large:
            raise Refusal(
                f"{out}: would hold {self}. Export counts instead (`to=csv`), or a coarser `level`, which has fewer "
                "codes; if it is meant, give `large=True`"
            )
        if out.suffix == ".csv" and self.bytes > (free := disk_usage(out.absolute().parent).free):
            raise ReleaseError(
                f"{out}: would hold {self}, and its disk has {say_bytes(free)} left: write .parquet instead"
            )

    def __str__(self) -> str:
        return f"{self.records:,} records, about {say_bytes(self.bytes)} as CSV"


def _make(request: Request) -> Content:
    release = request.release
    size = Size.of(release, request.depths)
    size.refuse_unless(request.options.get("large", False), request.out)
    announce = request.options.get("announce")
    if announce is not None and size.records >= MANY:
        announce(f"writing {size}")
    schema = pa.schema([(name, pa.string()) for name in release.spine.attributes])
    batches = _records(release, request.depths, schema, request.options.get("progress"))
    return Content([Sheet("records.parquet", schema, batches, size.records, size.records)])


def _records(
    release: Selection, depths: Depths, schema: pa.Schema, progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    trees = [(tree.codes[depths[name]], tree.ancestors(depths[name])) for name, tree in trees_of(release).items()]
    for nodes, count in leaves_of(release):
        ends = np.cumsum(count)
        total = int(count.sum())
        for start in range(0, total, ROWS):
            leaf = np.searchsorted(ends, np.arange(start, min(start + ROWS, total)), side="right")
            columns = zip(trees, nodes, strict=True)
            arrays = [codes.take(pa.array(ancestor[own[leaf]])) for (codes, ancestor), own in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            if progress is not None:
                progress(len(leaf))


RECORDS = Format(
    "records",
    "synthetic records, one row per unit: .parquet or .csv",
    ("records.parquet",),
    _make,
    suffixes=(".parquet", ".csv"),
    told="records",
    long=True,
)
