"""The tables that studies read: the six of the InfTDA paper, made again, and some real ones, read where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import treetop as tt
from experiments.kit.paper_tables import TABLES, paper_table, with_spine
from treetop.counts.counts import Counts
from treetop.counts.reading import read_counts

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
"""Where the real tables are unless the caller says otherwise: beside the repository, never copied into it."""
DOCS = ROOT / "docs"
"""Where pages and pictures go unless the caller says otherwise."""

TRIP = tt.Unit("trip", contributions=1, neighbours="replace")
"""The papers' unit: one trip each, exchanged for another, so that the total is public."""
MADE_UP = tuple(table.name for table in TABLES)

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
    truth: Counts = field(repr=False)
    """The true counts."""
    runs: int = 10
    """How often it is released with each setting."""

    @staticmethod
    def between(name: str, title: str, places: tt.Hierarchy, rows: pa.Table) -> Table:
        """Make a table of the trips between places of one tree: `origin`, `destination` and `count`."""
        spine = tt.Spine.destination_first(origin=places, destination=places)
        return Table(name, title, spine, read_counts(rows, spine, count="count"))

    @property
    def widest(self) -> int:
        """The largest number of children that a node has."""
        return max(level.widest for level in self.spine.levels)


def made_up(name: str) -> Table:
    """Make one of the paper's six tables."""
    (wanted,) = (table for table in TABLES if table.name == name)
    spine, counts = with_spine(paper_table(wanted.tree, wanted.density))
    return Table(name, f"made up: {name.replace('-', ', ')}", spine, counts, 20)


def tables(data: Path | None, quick: bool = False) -> Iterator[Table]:
    """Yield the tables, one after the other; without a folder of real ones, or `quick`, only some that are made up."""
    yield from (made_up(name) for name in MADE_UP if not quick or name.endswith("sparse"))
    yield from real_tables(None if quick else data)


def real_tables(data: Path | None) -> Iterator[Table]:
    """Read the real tables, one after the other: the second has five million rows."""
    if data is not None:
        yield from (read(data) for read in (new_york, commuters_in_counties, slovenia))


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


def sardinia(data: Path) -> Table:
    """Commuters between the municipalities of Sardinia in 2001: one in thirteen pairs occurs, most with few people."""
    rows = _read(data / "od_it_istat" / "od_comune_sardinia_2001.parquet", "o_com", "d_com", "commuters")
    lookup = pq.read_table(data / "lookup_it" / "comuni_2011.parquet", columns=["prov", "com_103"])
    there = lookup.filter(pc.is_in(lookup["com_103"], value_set=pa.array(_codes(rows), lookup["com_103"].type)))
    tree = pa.table({"province": there["prov"], "municipality": there["com_103"]})
    places = tt.Hierarchy.from_table(tree, levels=["province", "municipality"])
    return Table.between("sardinia", "Sardinia, municipalities", places, rows)


def flights(data: Path) -> Table:
    """Flights between US airports in the first half of 2001: most pairs have none, and those that occur have many."""
    folder = data / "shippable" / "od_us_flights_2001"
    rows = _read(folder / "od_total.parquet", "origin", "destination", "flights")
    levels = ["region", "division", "state", "iata"]
    places = tt.Hierarchy.from_table(pq.read_table(folder / "lookup_airport.parquet").select(levels), levels=levels)
    return Table.between("flights", "US flights", places, rows)


def hawaii(data: Path) -> Table:
    """People in the blocks of Hawaii in 2020, by race and whether they may vote: three attributes, many empty cells."""
    rows = pq.read_table(data / "census_us_block_hi_ri" / "hi_block_2020.parquet")
    blocks = rows["block"].cast(pa.string())
    races = [name.removeprefix("vap_") for name in rows.column_names if name.startswith("vap_")]
    parts = []
    for race in races:
        adults = rows[f"vap_{race}"].cast(pa.int64())
        for age, count in (("adult", adults), ("minor", pc.subtract(rows[f"pop_{race}"].cast(pa.int64()), adults))):
            same = {name: pa.array([value] * len(rows)) for name, value in (("race", race), ("age", age))}
            parts.append(pa.table({"place": blocks.combine_chunks(), **same, "count": count.combine_chunks()}))
    levels = ["county", "tract", "group", "block"]
    places = tt.Hierarchy.from_prefixes(blocks.to_pylist(), widths=[5, 11, 12], levels=levels)
    trees = {"place": places, "race": tt.Hierarchy.flat(races), "age": tt.Hierarchy.flat(["adult", "minor"])}
    spine = tt.Spine(["place.county", "place.tract", "race", "age", "place.group", "place.block"], trees)
    counts = read_counts(pa.concat_tables(parts), spine, count="count")
    return Table("hawaii", "Hawaii, blocks by race and age", spine, counts)


def patients() -> Table:
    """The made-up patients of the examples: five attributes, a deep tree of diagnoses, hardly a leaf that occurs."""
    file = tt.read_plan(ROOT / "examples" / "patients" / "top_down.toml")
    assert file.source is not None
    counts = tt.read_true_counts(file.plan, file.table(file.source), columns=file.columns)
    return Table("patients", "made up: patients", file.plan.spine, counts)


def _read(file: Path, origin: str, destination: str, count: str, filters: Filters = None) -> pa.Table:
    rows = pq.read_table(file, columns=[origin, destination, count], filters=filters)
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
