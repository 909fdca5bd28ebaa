"""The tables of the study, each with facts that are public of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import treetop as tt
from experiments.kit.cases import Table
from treetop.counts.reading import read_counts
from treetop.measure.questions import leaves_of

STATES = ("09", "25", "34", "36", "42")
"""Connecticut, Massachusetts, New Jersey, New York and Pennsylvania."""
SIZES = 7
"""Households are of 1 to 6 people, or of 7 and more."""


@dataclass(frozen=True, eq=False)
class Known:
    """A table with what is public of it."""

    table: Table
    """The table."""
    facts: Mapping[str, Any]
    """The facts, by table."""
    words: str
    """What they are, and where they are from."""

    @property
    def title(self) -> str:
        """A name for people."""
        return self.table.title

    @property
    def name(self) -> str:
        """A short name, for files and keys."""
        return self.table.name


def tables(data: Path | None) -> Iterator[Known]:
    """Yield the tables one after the other; without a folder of real ones, one that is made up."""
    if data is None:
        yield made_up()
    else:
        yield from (read(data) for read in (commuters, people, households))


def made_up() -> Known:
    """Trips within a few districts: none between them, and the totals of districts are public."""
    codes = [f"{district}{place}" for district in "ABCD" for place in range(6)]
    places = tt.Hierarchy.from_prefixes(codes, widths=[1], levels=["district", "place"])
    rng = np.random.default_rng(1)
    ends = rng.integers(0, len(codes), (2, 4000))
    within = ends[0] // 6 == ends[1] // 6
    named = zip(("origin", "destination"), ends, strict=True)
    rows = {name: pa.array([codes[one] for one in own[within]]) for name, own in named}
    table = Table.between("made-up", "made up: trips within districts", places, _counted(pa.table(rows)))
    totals = _totals(table, "destination")
    return Known(
        table,
        {"destination.district": totals, "destination.district * origin.district": tt.Fact(possible="same")},
        "No trip leaves its district, by construction; how many there are in each is public.",
    )


def _counted(rows: pa.Table) -> pa.Table:
    return rows.append_column("count", pa.array(np.ones(len(rows), np.int64)))


def _totals(table: Table, attribute: str) -> dict[str, int]:
    """Return the true counts of an attribute's coarsest level: here they stand for a publication."""
    at = list(table.spine.attributes).index(attribute)
    tree = table.spine.trees[at]
    leaves, count = leaves_of(table.spine, table.truth)
    sums = np.bincount(tree.ancestors(0)[leaves[at]], count, tree.sizes[0]).astype(int)
    return dict(zip(tree.codes[0].to_pylist(), sums.tolist(), strict=True))


def commuters(data: Path) -> Known:
    """Commuters within counties of five states (LODES 2018): nobody crosses a county line, by construction."""
    rows = pq.read_table(data / "od_us_lodes2018_within_county" / "od.parquet")
    state = pc.utf8_slice_codeunits(rows["home_tract"].cast(pa.string()), 0, 2)
    rows = rows.filter(pc.is_in(state, value_set=pa.array(STATES)))
    ends = {"origin": rows["home_tract"].cast(pa.string()), "destination": rows["work_tract"].cast(pa.string())}
    codes = sorted({code for one in ends.values() for code in pc.unique(one).to_pylist()})
    places = tt.Hierarchy.from_prefixes(codes, widths=[2, 5], levels=["state", "county", "tract"])
    made = pa.table({**ends, "count": rows["commuters"]})
    return Known(
        Table.between("commuters", "US commuters within counties, five states", places, made),
        {"destination.county * origin.county": tt.Fact(possible="same")},
        "The table has only commuters who live and work in one county, which its publisher says of it: "
        '`possible = "same"` at the level of counties.',
    )


def people(data: Path) -> Known:
    """People of the census of 2000 by state, county, tract and age: the population of every state is published."""
    rows = pq.read_table(data / "census_us2000_household_size" / "people_tract.parquet")
    ages = [name for name in rows.column_names if name.startswith("age")]
    parts = [
        pa.table({"place": rows["tract"].cast(pa.string()), "age": pa.array([age] * len(rows)), "count": rows[age]})
        for age in ages
    ]
    table = _placed("people", "US people by tract and age", rows["tract"], "age", ages, parts)
    return Known(
        table,
        {"place.state": _totals(table, "place")},
        "The population of every state is published, and stays exact: `place.state` as a file of counts.",
    )


def households(data: Path) -> Known:
    """Households of New York by tract and size, with what public populations and dwellings say of them."""
    folder = data / "census_us2000_household_size"
    public = _of_new_york(pq.read_table(folder / "people_tract.parquet"))
    rows = _of_new_york(pq.read_table(folder / "household_size_tract.parquet"))
    rows = rows.filter(pc.equal(rows["race"].cast(pa.string()), "total"))
    sizes = [str(size) for size in range(1, SIZES + 1)]
    made = {"place": rows["tract"], "size": rows["size"].cast(pa.string()), "count": rows["households"]}
    title = "New York households by tract and size"
    table = _placed("households", title, public["tract"], "size", sizes, [pa.table(made)])
    codes = public["tract"].to_pylist()
    dwellings = dict(zip(codes, public["housing_units"].to_pylist(), strict=True))
    persons = dict(zip(codes, public["pop"].to_pylist(), strict=True))
    most = {(code, size): min(persons[code] // int(size), dwellings[code]) for code in codes for size in sizes}
    return Known(
        table,
        {"place.tract": tt.Fact(at_most=dwellings), "place.tract * size": tt.Fact(at_most=most)},
        "Populations and dwellings of every tract are published. A tract has no more households than dwellings, and no "
        "more of s people than its population divided by s: both follow from the definitions, and nothing was tuned.",
    )


def _of_new_york(rows: pa.Table) -> pa.Table:
    tract = rows["tract"].cast(pa.string())
    return rows.set_column(0, "tract", tract).filter(pc.starts_with(tract, "36"))


def _placed(name: str, title: str, tracts: pa.Array, other: str, values: list[str], parts: list[pa.Table]) -> Table:
    """Make a table of tracts and one more attribute, places first."""
    codes = sorted(pc.unique(tracts.cast(pa.string())).to_pylist())
    places = tt.Hierarchy.from_prefixes(codes, widths=[2, 5], levels=["state", "county", "tract"])
    trees = {"place": places, other: tt.Hierarchy.flat(values)}
    spine = tt.Spine(["place.state", "place.county", "place.tract", other], trees)
    rows = pa.concat_tables([part.cast(parts[0].schema) for part in parts]).combine_chunks()
    kept = rows.filter(pc.greater(rows["count"], 0))
    return Table(name, title, spine, read_counts(kept, spine, count="count"))
