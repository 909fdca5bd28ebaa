"""Made-up origin/destination tables, of the shape and size of the real ones and free to share.

Nothing here is private: a table is a function of its seed, and of the version of NumPy, whose streams of
random numbers may change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int32]
Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Block: TypeAlias = tuple[Ints, Ints, Counts]

LEVELS = ("region", "province", "municipality", "area", "section")
"""The levels of the Italian places, from the top."""

SIZES = (20, 110, 8_092, 40_000, 362_292)
"""How many places each level has: Italy at the census of 2011."""

CAPS = (32, 12, 320, 256, 64)
"""The most children a place may have, by the child's level: 5 + 4 + 9 + 8 + 6 = 32 bits name a section."""

_ROWS = 128  # origins whose destinations are drawn together: 8 MB an array


@dataclass(frozen=True, eq=False)
class OriginDestination:
    """Trips between the leaves of one tree of places, which serves both origins and destinations."""

    levels: tuple[str, ...]
    """The names of the levels, from the top."""
    parents: tuple[Ints, ...]
    """For each level, each node's parent as an index into the level above (all 0, the root, at the top).

    Never decreasing, so a node's children are contiguous, and onto, so that every node has a child.
    """
    origin: Ints
    """The leaf where each pair's trips start; pairs are distinct and in order of origin, then destination."""
    destination: Ints
    """The leaf where each pair's trips end."""
    count: Counts
    """How many trips each pair has, at least 1."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many nodes each level has."""
        return tuple(len(parent) for parent in self.parents)

    @property
    def trips(self) -> int:
        """How many trips there are in all."""
        return int(self.count.sum())

    @property
    def fanouts(self) -> tuple[int, ...]:
        """The most children that a node has, by the children's level."""
        return tuple(int(np.bincount(parent).max()) for parent in self.parents)

    @property
    def key_bits(self) -> int:
        """The bits that name a leaf when each level has a field for the child's number."""
        return sum((fanout - 1).bit_length() for fanout in self.fanouts)

    def ancestors(self, level: str) -> Ints:
        """For each leaf, the index of its ancestor at `level`."""
        index = np.arange(self.sizes[-1], dtype=np.int32)
        for parent in reversed(self.parents[self.levels.index(level) + 1 :]):
            index = parent[index]
        return index

    def codes(self, level: str) -> NDArray[np.str_]:
        """The codes at `level`, which sort as indices: the parent's code and the child's number."""
        codes = np.array([""])
        for parent in self.parents[: self.levels.index(level) + 1]:
            number = np.arange(len(parent)) - np.searchsorted(parent, parent) + 1
            width = len(str(number.max()))
            codes = np.strings.add(codes[parent], np.strings.zfill(number.astype(f"U{width}"), width))
        return codes

    def place_table(self) -> pa.Table:
        """The tree as a table: a row for each leaf, and a column of codes for each level."""
        return pa.table({level: self.codes(level)[self.ancestors(level)] for level in self.levels})

    def at(self, level: str) -> OriginDestination:
        """The same trips between the places of a higher level."""
        depth = self.levels.index(level) + 1
        above = self.ancestors(level)
        pairs = _count_pairs(above[self.origin], above[self.destination], self.count, self.sizes[depth - 1])
        return OriginDestination(self.levels[:depth], self.parents[:depth], *pairs)

    def records(self, seed: int | None = 0) -> tuple[Ints, Ints]:
        """The origin and the destination of every single trip, shuffled; in order if `seed` is `None`.

        Real records come in no useful order, and sorted ones would flatter whoever reads them.
        """
        if seed is None:
            return np.repeat(self.origin, self.count), np.repeat(self.destination, self.count)
        pairs = np.stack([self.origin, self.destination], axis=1).view(np.int64).ravel()
        records = np.repeat(pairs, self.count)
        np.random.default_rng(seed).shuffle(records)
        ends = records.view(np.int32).reshape(-1, 2)
        return ends[:, 0].copy(), ends[:, 1].copy()


def italy_like(
    seed: int = 2011, detail: Literal["municipality", "section"] = "section", trips: int = 28_800_000
) -> OriginDestination:
    """Commuting in a country like Italy: its tree has the exact sizes, the places and the trips are made up.

    Three trips in five stay in their municipality (more in large ones), and about one in a hundred leaves the
    region, as in the ISTAT matrix of 2011. Both details of a seed have the same trips between municipalities.
    """
    for_tree, for_flows, for_sections = np.random.default_rng(seed).spawn(3)
    regions, provinces, municipalities, areas, sections, size = _italian_tree(for_tree)
    depth = LEVELS.index(detail) + 1
    parents = (regions, provinces, municipalities, areas, sections)[:depth]
    where = _scatter(for_tree, (regions, provinces, municipalities), spread=(250.0, 45.0, 15.0))
    # Small places send more of their people elsewhere: 35% stay where 1,000 live, 86% where 2.7 million do.
    stay = np.clip(0.35 + 0.045 * np.log2(size / 1_000), 0.2, 0.9)
    groups = (provinces[municipalities], municipalities)
    flows = _flows(for_flows, trips, size, where, groups, stay, shares=(0.845, 0.125, 0.03))
    if detail == "section":
        flows = _between_sections(for_sections, flows, sections, areas[sections])
    return OriginDestination(LEVELS[:depth], parents, *_join(flows))


def two_level_square(seed: int = 300, zones: int = 300, regions: int = 20, trips: int = 1_000_000) -> OriginDestination:
    """A small square table, `zones` by `zones`, whose zones lie in `regions`: two levels on each side."""
    rng = np.random.default_rng(seed)
    top = np.zeros(regions, dtype=np.int32)
    parents = (top, _children(_apportion(zones, rng.lognormal(0, 0.5, regions), most=zones)))
    size = rng.lognormal(10, 1, zones)
    where = _scatter(rng, parents, spread=(150.0, 25.0))
    stay = np.full(zones, 0.5)
    pairs = _join(_flows(rng, trips, size, where, parents[1:], stay, shares=(0.75, 0.25)))
    return OriginDestination(("region", "zone"), parents, *pairs)


def _italian_tree(rng: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints, Ints, Floats]:
    """The parents at each of the five levels, and how many people live in each municipality."""
    counts = _apportion(SIZES[1], rng.lognormal(0, 0.5, SIZES[0]), CAPS[1])
    regions, provinces = np.zeros(SIZES[0], dtype=np.int32), _children(counts)
    # A province has at least 6 municipalities, as Trieste does.
    municipalities = _children(5 + _apportion(SIZES[2] - 5 * SIZES[1], rng.lognormal(0, 0.7, SIZES[1]), CAPS[2] - 5))
    # Municipalities are log-normal, but for the capitals of the provinces: Zipf's law from Rome down.
    people = rng.lognormal(7.8, 1.2, SIZES[2])
    first = np.searchsorted(municipalities, np.arange(SIZES[1]))
    capitals = first + rng.integers(np.bincount(municipalities))
    people[capitals] = 2.7e6 * rng.permutation(np.arange(1.0, SIZES[1] + 1)) ** -0.8
    # Only larger municipalities are divided into areas; most have one.
    areas = _children(_apportion(SIZES[3], np.maximum(people - 4_000, 0), CAPS[3]))
    crowd = (people / np.bincount(areas))[areas] * rng.lognormal(0, 0.4, SIZES[3])
    sections = _children(_apportion(SIZES[4], crowd, CAPS[4]))
    return regions, provinces, municipalities, areas, sections, people


def _apportion(total: int, weight: Floats, most: int) -> Counts:
    """Whole numbers from 1 to `most` that sum to `total`; what exceeds 1 goes by `weight` if it can."""
    share = np.ones(len(weight), dtype=np.int64)
    if not len(weight) <= total <= most * len(weight):
        raise ValueError(f"{total} children cannot be given to {len(weight)} places, 1 to {most} each")
    while left := total - int(share.sum()):
        open_weight = np.where(share < most, weight, 0.0)
        if not open_weight.any():
            open_weight = (share < most).astype(np.float64)
        ideal = left * open_weight / open_weight.sum()
        extra = ideal.astype(np.int64)
        if not extra.any():  # fewer left than places: to those with the largest remainders
            extra[np.argsort(-ideal, kind="stable")[:left]] = 1
        share = np.minimum(share + extra, most)
    return share


def _children(counts: Counts) -> Ints:
    """The parents of a level whose nodes above have `counts` children each."""
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def _scatter(rng: np.random.Generator, parents: Sequence[Ints], spread: Sequence[float]) -> Floats:
    """A point on the plane, in kilometres, for each leaf: children lie about their parent."""
    where = np.zeros((1, 2))
    for parent, width in zip(parents, spread, strict=True):
        where = where[parent] + rng.normal(0, width, (len(parent), 2))
    return where


def _flows(
    rng: np.random.Generator,
    trips: int,
    size: Floats,
    where: Floats,
    groups: Sequence[Ints],
    stay: Floats,
    shares: Sequence[float],
) -> Iterator[Block]:
    """Trips by gravity, in blocks of origins: pull grows with size and falls with the cube of distance.

    `groups` are each place's ancestors from the top. `stay` of the trips end where they began; the others
    leave for the innermost group, the next, and so on out to anywhere, in these `shares`.
    """
    leaving_shares = np.array(shares[::-1])
    attraction = size**1.4
    starts = rng.multinomial(trips, size / size.sum())
    for first in range(0, len(size), _ROWS):
        rows = np.arange(first, min(first + _ROWS, len(size)))
        squared = sum(((axis[rows, None] - axis) ** 2 for axis in where.T), np.float64(5**2))
        pull = attraction / (squared * np.sqrt(squared))
        pull[np.arange(len(rows)), rows] = 0
        common = sum((group[rows, None] == group for group in groups), np.zeros(pull.shape, dtype=np.int8))
        total = np.stack([(pull * (common == ring)).sum(axis=1) for ring in range(len(shares))], axis=1)
        # A place that is alone in its group sends the group's share outwards instead.
        share = np.where(total > 0, leaving_shares, 0)
        share *= (1 - stay[rows, None]) / share.sum(axis=1, keepdims=True)
        chance = pull * np.take_along_axis(share / np.maximum(total, 1e-300), common, axis=1)
        chance[np.arange(len(rows)), rows] = stay[rows]
        drawn = rng.multinomial(starts[rows], chance)
        row, column = np.nonzero(drawn)
        yield (row + first).astype(np.int32), column.astype(np.int32), drawn[row, column]


def _between_sections(
    rng: np.random.Generator, flows: Iterator[Block], area: Ints, municipality: Ints
) -> Iterator[Block]:
    """Draw the sections of each trip between municipalities.

    Homes are spread out, schools and work are concentrated; half of the trips inside a municipality stay in
    their area, too.
    """
    homes = _cumulative(rng.lognormal(0, 0.8, len(area)), municipality)
    pull = rng.lognormal(0, 2.6, len(area))
    town_work, local_work = _cumulative(pull, municipality), _cumulative(pull, area)
    for start, end, count in flows:
        home = _draw(rng, homes, np.repeat(start, count))
        work = _draw(rng, town_work, np.repeat(end, count))
        local = np.flatnonzero(np.repeat(start == end, count) & (rng.random(len(home), np.float32) < 0.5))
        work[local] = _draw(rng, local_work, area[home[local]])
        yield _count_pairs(home, work, None, len(area))


def _draw(rng: np.random.Generator, edges: Floats, group: Ints) -> Counts:
    """A random member of each group, whose members have the upper `edges`."""
    # Single precision, where a number below 1 is at most 1 - 2^-24: no sum rounds up to the next group.
    return np.searchsorted(edges, group + rng.random(len(group), np.float32).astype(np.float64), side="right")


def _cumulative(weight: Floats, group: Ints) -> Floats:
    """Upper edges that divide the interval from g to g + 1 among the members of group g by weight."""
    share = weight / np.bincount(group, weight)[group]
    edges = np.cumsum(share)
    last = np.flatnonzero(np.diff(group, append=group[-1] + 1))
    edges += group - np.concatenate(([0.0], edges[last[:-1]]))[group]
    edges[last] = group[last] + 1
    return edges


def _count_pairs(
    origin: NDArray[np.integer], destination: NDArray[np.integer], count: Counts | None, leaves: int
) -> Block:
    """The distinct pairs in order, and how many trips each has."""
    key = origin.astype(np.int64) * leaves + destination
    if count is None:
        key.sort()
    else:
        order = np.argsort(key, kind="stable")
        key, count = key[order], count[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    totals = np.diff(first, append=len(key)) if count is None else np.add.reduceat(count, first)
    start, end = np.divmod(key[first], leaves)
    return start.astype(np.int32), end.astype(np.int32), totals


def _join(blocks: Iterator[Block]) -> Block:
    origins, destinations, counts = zip(*blocks, strict=True)
    return np.concatenate(origins), np.concatenate(destinations), np.concatenate(counts)
