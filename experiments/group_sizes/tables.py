"""The tables of the experiments: made-up ones in the shapes of the paper, and the real households of Census 2000.

The paper took households of 2010 by county, with sizes above 7 in one, and gave them a heavy tail: sizes fall by the
ratio of size 7 to size 6, and 50 outliers lie anywhere from 10 to 1,000. The same is done here to made-up counties with
the shares of Census 2000. Its taxi data are trips of 13,282 taxis in 263 zones; here taxis and zones are made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from treetop.counts.group_reader import GroupSizes
from treetop.domain.hierarchy import Hierarchy

HOUSEHOLDS = Path("census_us2000_household_size", "household_size_county.parquet")

CENSUS_2000 = (27_230_075, 34_418_046, 17_439_027, 14_973_089, 6_936_886, 2_636_134, 1_846_844)
"""Households of 1, 2, …, 6 and 7 or more people."""
CENSUS_GROUPS = 117_630_445
CENSUS_LARGEST = 1_000
OUTLIERS = 50

TAXIS = 13_282
TRIPS = 24_489_743
TAXI_LARGEST = 13_282
ZONES = (43, 61, 1, 69, 69, 20)
"""How many zones the six boroughs have: 263 in all."""
_POPULARITY = 2.35
"""How unequal the zones are: chosen so that about 1.6 million pairs of taxi and zone have a trip."""


@dataclass(frozen=True)
class Table:
    """Group sizes with the name under which results are told."""

    name: str
    """What they are."""
    sizes: GroupSizes
    """The sizes."""

    def __str__(self) -> str:
        return f"{self.name}: {self.groups:,} groups, {self.people:,} people, sizes to {self.sizes.largest:,}"

    @property
    def groups(self) -> int:
        """The number of groups."""
        return int(self.sizes.number.sum())

    @property
    def people(self) -> int:
        """The sum of all sizes."""
        return int((self.sizes.number @ np.arange(self.sizes.largest + 1)).sum())


def regions(counts: NDArray[np.int64], coarse: str, fine: str) -> Hierarchy:
    """Return a tree of two levels with so many fine regions in each coarse one."""
    codes = [f"{i:02}{j:04}" for i, count in enumerate(counts.tolist()) for j in range(count)]
    return Hierarchy.from_prefixes(codes, [2], [coarse, fine])


def household_shares(largest: int) -> NDArray[np.float64]:
    """Return the shares of the sizes 0 … largest: as in Census 2000 up to 6, then falling by the ratio of 7 to 6.

    The ratio r makes the sizes from 7 on add up to the households of 7 or more: n6 (r + r² + …) is their number.
    """
    *below, above = CENSUS_2000
    ratio = above / (below[-1] + above)
    tail = below[-1] * ratio ** np.arange(1, largest - 5)
    number = np.concatenate([[0], below, tail])[: largest + 1]
    return np.asarray(number / number.sum(), np.float64)


def census_like(
    groups: int = CENSUS_GROUPS,
    largest: int = CENSUS_LARGEST,
    states: int = 52,
    counties: int = 3_143,
    seed: int = 1,
    name: str = "census-like",
) -> Table:
    """Return households of made-up counties, of very unequal sizes, whose shares differ a little from each other."""
    rng = np.random.default_rng(seed)
    of_state = 1 + rng.multinomial(counties - states, rng.dirichlet(np.full(states, 2.0)))
    tree = regions(of_state, "state", "county")
    weight = rng.lognormal(0.0, 1.4, counties)
    inside = groups - OUTLIERS
    per_county = rng.multinomial(inside, weight / weight.sum())
    shares = household_shares(largest) * rng.lognormal(0.0, 0.12, (counties, largest + 1))
    shares /= shares.sum(axis=1, keepdims=True)
    number = rng.multinomial(per_county, shares).astype(np.int64)
    low = min(10, largest)
    np.add.at(number, (rng.integers(counties, size=OUTLIERS), rng.integers(low, largest + 1, OUTLIERS)), 1)
    return Table(name, GroupSizes(tree, number))


def taxi_like(
    largest: int = TAXI_LARGEST, taxis: int = TAXIS, seed: int = 2, by_zone: bool = True, trips: int = TRIPS
) -> Table:
    """Return the trips of made-up taxis by zone: a group is a taxi in a zone or, not `by_zone`, a taxi at its home.

    Larger groups than the largest are left out, as in the paper's table for times; the full one has none.
    """
    rng = np.random.default_rng(seed)
    tree = regions(np.array(ZONES), "borough", "zone")
    zones = sum(ZONES)
    popularity = rng.permutation(np.exp(-_POPULARITY * rng.standard_normal(zones)))
    popularity /= popularity.sum()
    activity = rng.lognormal(0.0, 0.5, taxis)
    activity *= trips / TAXIS * taxis / activity.sum()
    number = np.zeros((zones, largest + 1), np.int64)
    if by_zone:
        for zone in range(zones):
            made = rng.poisson(activity * popularity[zone] * rng.gamma(2.0, 0.5, taxis))
            made = made[(made > 0) & (made <= largest)]
            number[zone] = np.bincount(made, minlength=largest + 1)
        return Table("taxi-like, taxis in zones", GroupSizes(tree, number))
    home = rng.choice(zones, taxis, p=popularity)
    np.add.at(number, (home, np.minimum(rng.poisson(activity), largest)), 1)
    return Table("taxi-like, taxis at home", GroupSizes(tree, number))


def households(data: Path, largest: int = 7, seed: int = 3) -> Table | None:
    """Return the households of Census 2000 by county and size; None where they are not there.

    The census has 7 or more in one. With a larger `largest` they get the paper's tail: of each county, they are drawn
    from 7, 8, … with probabilities that fall by the national ratio of size 7 to size 6, and 50 outliers, as of group
    quarters, are added anywhere from 10 to the largest, in counties drawn evenly.
    """
    file = data / HOUSEHOLDS
    if not file.is_file():
        return None
    table = pq.read_table(file)
    table = table.filter(pc.equal(table["race"].cast(pa.string()), "total"))
    codes = table["county"].cast(pa.string()).combine_chunks()
    tree = Hierarchy.from_prefixes(codes.unique().to_pylist(), [2], ["state", "county"])
    size, number = (table[name].cast(pa.int64()).to_numpy() for name in ("size", "households"))
    sizes = GroupSizes.from_rows(tree, tree.encode(codes), size, number, largest=7)
    if largest == 7:
        return Table("Census 2000", sizes)
    rng = np.random.default_rng(seed)
    ratio = CENSUS_2000[-1] / (CENSUS_2000[-2] + CENSUS_2000[-1])
    falling = ratio ** np.arange(largest - 6)
    wide = np.zeros((len(sizes.number), largest + 1), np.int64)
    wide[:, :7] = sizes.number[:, :7]
    wide[:, 7:] = rng.multinomial(sizes.number[:, 7], falling / falling.sum())
    np.add.at(wide, (rng.integers(len(wide), size=OUTLIERS), rng.integers(10, largest + 1, OUTLIERS)), 1)
    return Table("Census 2000 with a tail", GroupSizes(tree, wide))
