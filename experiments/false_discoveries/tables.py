"""The real tables of the study, read where they lie: beside the repository, never copied into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import treetop as tt
from treetop.counts import Counts
from treetop.data.encode import read_counts

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
"""Where the tables are unless the caller says otherwise."""

Filters: TypeAlias = list[tuple[str, str, int]] | None


@dataclass(frozen=True, eq=False)
class Table:
    """A table of trips with its public tree, destinations refined first, and the truth to compare with."""

    name: str
    """A short name, for files and keys."""
    title: str
    """A name for people."""
    spine: tt.Spine
    """The public order of refinement."""
    rows: pa.Table = field(repr=False)
    """The columns `origin`, `destination` and `count`."""
    truth: Counts = field(repr=False)
    """The true counts."""

    @staticmethod
    def between(name: str, title: str, places: tt.Hierarchy, rows: pa.Table) -> Table:
        """Make a table of the trips between places of one tree."""
        spine = tt.Spine.destination_first(origin=places, destination=places)
        return Table(name, title, spine, rows, read_counts(rows, spine, count="count"))


def real_tables(data: Path) -> Iterator[Table]:
    """Read the three tables, one after the other: the largest has five million rows."""
    yield new_york(data)
    yield commuters_in_counties(data)
    yield slovenia(data)


def new_york(data: Path) -> Table:
    """Flows between the census tracts of New York State; few pairs occur, and hardly any with small counts."""
    rows = _read(data / "od_ny_tract_mobility" / "od.parquet", "o_tract", "d_tract", "flow")
    places = tt.Hierarchy.from_prefixes(_codes(rows), widths=[5], levels=["county", "tract"])
    return Table.between("new-york", "New York, census tracts", places, rows)


def commuters_in_counties(data: Path) -> Table:
    """Commuters between census tracts of one county (LODES 2018): in a fourth of the pairs there is one person."""
    file = data / "od_us_lodes2018_within_county" / "od.parquet"
    rows = _read(file, "home_tract", "work_tract", "commuters")
    places = tt.Hierarchy.from_prefixes(_codes(rows), widths=[2, 5], levels=["state", "county", "tract"])
    return Table.between("us-counties", "US commuters within counties", places, rows)


def slovenia(data: Path) -> Table:
    """Commuters between the municipalities of Slovenia in 2008: half of the pairs that occur have one or two."""
    folder = data / "od_slovenia_2000_2008"
    rows = _read(folder / "od.parquet", "o_mun", "d_mun", "commuters", [("year", "=", 2008)])
    lookup = pq.read_table(folder / "lookup.parquet")
    tree = pa.table({"region": lookup["region"], "municipality": lookup["mun"].cast(pa.string())})
    places = tt.Hierarchy.from_table(tree, levels=["region", "municipality"])
    return Table.between("slovenia", "Slovenia, municipalities", places, rows)


def _read(file: Path, origin: str, destination: str, count: str, filters: Filters = None) -> pa.Table:
    rows = pq.read_table(file, columns=[origin, destination, count], filters=filters)
    # Dictionaries are quick to read, and every release reads them again.
    ends = {
        name: rows[column].cast(pa.string()).dictionary_encode()
        for name, column in (("origin", origin), ("destination", destination))
    }
    return pa.table({**ends, "count": rows[count]})


def _codes(rows: pa.Table) -> list[str]:
    """Return the tracts that occur: they stand in for the published list, which is not in the folder.

    Never do this for a real release: which codes occur in a private table is private.
    """
    codes: set[str] = set()
    for name in ("origin", "destination"):
        codes.update(pc.unique(rows[name].cast(pa.string())).to_pylist())
    return sorted(codes)
