"""What an export holds: flows with or without coordinates, a plain table, or synthetic records."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.errors import ReleaseError
from treetop.export.formulas import guard_rows, guard_schema
from treetop.export.levels import ENDS, Depths, counts_at, trees_of
from treetop.export.places import Places
from treetop.release.selection import Selection

Progress = Callable[[int], object]
"""Called with the number of rows just written."""

ROWS = 1 << 20
"""How many records are made at a time."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """One file to be written, in pieces."""

    file: str
    """Its name in a folder; what it ends in is how it is written."""
    schema: pa.Schema
    """Its columns."""
    batches: Iterable[pa.RecordBatch]
    """Its rows."""
    rows: int
    """How many there are."""
    total: int
    """The sum of its counts."""

    @staticmethod
    def of(file: str, table: pa.Table, count: str | None = None) -> Sheet:
        """Make a sheet of a table."""
        total = 0 if count is None else int(pc.sum(table[count]).as_py() or 0)
        return Sheet(file, table.schema, table.to_batches(), table.num_rows, total)

    def guarded(self) -> Sheet:
        """Return the sheet with texts that no spreadsheet computes."""
        return replace(self, schema=guard_schema(self.schema), batches=map(guard_rows, self.batches))

    def write(self, path: Path) -> None:
        """Write the file, as Parquet or CSV by what its name ends in."""
        if path.suffix == ".parquet":
            self._write_parquet(path)
        elif path.suffix == ".csvt":
            self._write_types(path)
        else:
            self._write_csv(path)

    def _write_parquet(self, path: Path) -> None:
        import pyarrow.parquet as pq

        with pq.ParquetWriter(path, self.schema, compression="zstd", store_schema=False) as writer:
            for batch in self.batches:
                writer.write_batch(batch)

    def _write_csv(self, path: Path) -> None:
        with path.open("wb") as file:
            file.write(csv_header(self.schema.names))
            write_csv(self.schema, self.batches, file)

    def _write_types(self, path: Path) -> None:
        kinds = (_kind(field, self.total) for field in self.schema)
        path.write_text(",".join(f'"{kind}"' for kind in kinds) + "\n", encoding="utf-8")


def csv_header(names: Iterable[str]) -> bytes:
    """Return a header line, quoted where a name needs it."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(names)
    return line.getvalue().encode()


def write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: object) -> None:
    """Write rows as CSV: text in quotes, so that no reader takes "" or a line break for anything else."""
    import pyarrow.csv as arrow_csv

    options = arrow_csv.WriteOptions(include_header=False)
    with arrow_csv.CSVWriter(file, schema, write_options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def table_sheet(release: Selection, depths: Depths) -> list[Sheet]:
    """Return the counts of any release with their types beside them."""
    names = list(release.spine.attributes)
    if all(end in names for end in ENDS):
        names = [*ENDS, *(name for name in names if name not in ENDS)]
    return _typed(counts_at(release, depths, names))


def flow_sheets(
    release: Selection, to: str, depths: Depths, places: dict[str, Places] | None, skip_missing: bool
) -> tuple[list[Sheet], tuple[str, ...]]:
    """Return the files of a format for flows, and the codes that were left out."""
    flows = counts_at(release, depths, ENDS)
    if places is None:
        count = "flow" if to == "skmob" else "count"
        return [Sheet.of("flows.csv", flows.rename_columns([*ENDS, count]), count)], ()
    trees = trees_of(release)
    here = {end: places[end].at(trees[end], depths[end]) for end in ENDS}
    rows = [pc.index_in(flows[end], value_set=here[end].code) for end in ENDS]
    missing = _missing(flows, rows, skip_missing)
    if missing:
        kept = pc.and_(pc.is_valid(rows[0]), pc.is_valid(rows[1]))
        flows, rows = flows.filter(kept), [row.filter(kept) for row in rows]
    numbers = [row.to_numpy() for row in rows]
    if to == "flowmap":
        locations = _locations([here[end] for end in ENDS], numbers)
        named = flows.rename_columns(["origin", "dest", "count"])
        return [Sheet.of("flows.csv", named, "count"), Sheet.of("locations.csv", locations)], missing
    degrees = [
        column[number]
        for end, number in zip(ENDS, numbers, strict=True)
        for column in (here[end].latitude, here[end].longitude)
    ]
    if to == "qgis":
        return _typed(flows.append_column("WKT", _lines(degrees))), missing
    for name, column in zip(("lat0", "lng0", "lat1", "lng1"), degrees, strict=True):
        flows = flows.append_column(name, pa.array(column))
    return [Sheet.of("flows.csv", flows, "count")], missing


def record_sheet(release: Selection, depths: Depths, progress: Progress | None = None) -> Sheet:
    """Return synthetic records, one row a unit of count, made a piece at a time."""
    schema = pa.schema([(name, pa.string()) for name in release.spine.attributes])
    batches = _records(release, depths, schema, progress)
    resolved = release.total - release.unresolved_total  # the rest belongs to no leaf, and has no record
    return Sheet("records.parquet", schema, batches, resolved, resolved)


def _records(
    release: Selection, depths: Depths, schema: pa.Schema, progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    ends = np.cumsum(release.count)
    total = release.total - release.unresolved_total
    columns = [
        (tree.codes[depths[name]], tree.ancestors(depths[name]), nodes)
        for (name, tree), nodes in zip(trees_of(release).items(), release.nodes, strict=True)
    ]
    for start in range(0, total, ROWS):
        leaf = np.searchsorted(ends, np.arange(start, min(start + ROWS, total)), side="right")
        arrays = [codes.take(pa.array(ancestor[nodes[leaf]])) for codes, ancestor, nodes in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if progress is not None:
            progress(len(leaf))


def _missing(flows: pa.Table, rows: list[pa.ChunkedArray], skip_missing: bool) -> tuple[str, ...]:
    """Return the codes without coordinates; refuse them unless they are to be left out."""
    found = {code for end, row in zip(ENDS, rows, strict=True) for code in _codes(flows[end], row)}
    missing = tuple(sorted(found))
    if not missing or skip_missing:
        return missing
    shown = ", ".join(map(repr, missing[:10])) + (f" and {len(missing) - 10:,} more" if len(missing) > 10 else "")
    raise ReleaseError(
        f"{len(missing):,} code{'s' * (len(missing) > 1)} with flows lack coordinates: {shown}. Add them to the file, "
        "or leave their flows out (--skip-missing)"
    )


def _codes(codes: pa.ChunkedArray, rows: pa.ChunkedArray) -> list[str]:
    lacking: list[str] = pc.unique(codes.filter(pc.is_null(rows))).to_pylist()
    return lacking


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


def _typed(table: pa.Table) -> list[Sheet]:
    return [Sheet.of("table.csv", table, "count"), Sheet.of("table.csvt", table, "count")]


def _kind(field: pa.Field, total: int) -> str:
    """Return the type that a .csvt states; `Integer` has 32 bits, and `Integer64` is not known everywhere."""
    if pa.types.is_integer(field.type):
        return "Integer" if total < 1 << 31 else "Integer64"
    return "WKT" if field.name == "WKT" else "String"


def _lines(degrees: list[NDArray[np.float64]]) -> pa.Array:
    """Return the straight line of each flow, longitude before latitude."""
    lat0, lng0, lat1, lng1 = (pc.cast(pa.array(column), pa.string()) for column in degrees)
    start, stop = pc.binary_join_element_wise(lng0, lat0, " "), pc.binary_join_element_wise(lng1, lat1, " ")
    joined = pc.binary_join_element_wise(start, stop, ", ")
    return pc.binary_join_element_wise("LINESTRING (", joined, ")", "")
