"""The populations: a state, its tracts and its blocks; a made-up one of Wyoming's shape, and real ones where they are.

Each comes with a prior: other public counts of the same kind, by which the loss is divided, as the paper divides that
of 2020 by the counts of 2010. All of them are public.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

BLOCKS = "census_us_block_hi_ri"

LEVELS = ("state", "tract", "block")
WYOMING = (563_626, 576_851)
"""Wyoming's people in 2010 and in 2020; the shape is of 128 tracts and 20,975 blocks."""
SHAPE = (128, 20_975)
EMPTY = 0.46
"""The share of blocks where nobody lives."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Population:
    """People by block, with the tract of each block."""

    blocks: Ints = field(repr=False)
    """How many live in each block; the blocks of a tract are side by side."""
    tract: Ints = field(repr=False)
    """The number of each block's tract, from 0, never decreasing."""

    @cached_property
    def first(self) -> Ints:
        """Where the blocks of each tract start."""
        return np.flatnonzero(np.diff(self.tract, prepend=-1))

    @cached_property
    def levels(self) -> tuple[Ints, Ints, Ints]:
        """The counts of the state, of its tracts and of its blocks."""
        tracts = np.add.reduceat(self.blocks, self.first)
        return tracts.sum(keepdims=True), tracts, self.blocks

    def inside(self, tract: int) -> slice:
        """Where the blocks of a tract are."""
        ends = np.append(self.first, len(self.blocks))
        return slice(int(ends[tract]), int(ends[tract + 1]))


@dataclass(frozen=True, eq=False)
class Tree:
    """A population to release, and the prior by which the loss is divided."""

    name: str
    """A short name, for files."""
    title: str
    """A name for people."""
    truth: Population
    """What is released."""
    prior: Population
    """What the split is chosen by."""
    about: str
    """What the two are."""


def trees(folder: Path | None) -> Iterator[Tree]:
    """Yield the made-up tree, and the real ones if there is a folder with their files."""
    yield made_up()
    if folder is not None:
        yield from real(folder)


def made_up(shape: tuple[int, int] = SHAPE, people: tuple[int, int] = WYOMING) -> Tree:
    """Make a tree of Wyoming's shape, and another by the same recipe to be its prior."""
    prior, truth = (_population(shape, number, seed) for seed, number in enumerate(people))
    about = "Made up; its prior is made up by the same recipe with other random numbers."
    return Tree("wyoming", "Wyoming's shape", truth, prior, about)


def real(folder: Path) -> Iterator[Tree]:
    """Read the blocks of Hawaii and Rhode Island."""
    hawaii = {year: _read(folder / f"hi_block_{year}.parquet") for year in (2010, 2020)}
    yield Tree(
        "hawaii",
        "Hawaii, 2020",
        hawaii[2020],
        hawaii[2010],
        "The census of 2020, itself released with noise below the state; its prior is that of 2010, which has other "
        "tracts and 70 % more blocks.",
    )
    rhode_island = _read(folder / "ri_block_2010.parquet")
    about = (
        "The census of 2010; no earlier one is at hand, so that its prior is another state, Hawaii in 2010: where only "
        "the prior matters, it is the case of Hawaii again, and does not count twice."
    )
    yield Tree("rhode-island", "Rhode Island, 2010", rhode_island, hawaii[2010], about)


def _read(file: Path) -> Population:
    table = pq.read_table(file, columns=["block", "pop"]).sort_by("block")
    codes = np.array([code[:11] for code in table["block"].to_pylist()])
    return Population(table["pop"].to_numpy().astype(np.int64), np.unique(codes, return_inverse=True)[1])


def _population(shape: tuple[int, int], people: int, seed: int) -> Population:
    """Tracts of uneven size, blocks spread unevenly over them, half of the blocks empty and a few very full."""
    rng = np.random.default_rng([seed, 20_975])
    tracts, blocks = shape
    size = rng.lognormal(0, 0.4, tracts)
    many = 2 + rng.multinomial(blocks - 2 * tracts, rng.dirichlet(np.full(tracts, 1.5)))
    tract = np.repeat(np.arange(tracts), many)
    weight = rng.lognormal(0, 1.3, blocks) * (rng.random(blocks) >= EMPTY)
    weight[np.flatnonzero(np.diff(tract, prepend=-1))] += 0.1  # nobody's tract would have no people to share out
    weight *= (size / np.bincount(tract, weight))[tract]
    return Population(rng.multinomial(people, weight / weight.sum()), tract)
