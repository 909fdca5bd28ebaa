"""A made-up social network like Pokec, the Slovak one: people in regions and towns, and who is a friend of whom.

Takac and Zabovsky (2012) collected the real one, 1.6 million profiles and 30 million friendships. Here regions and
towns are the real ones, and everything else is drawn from a seed: nothing is anybody's. Profiles are as people write
them: free text for hobbies, gaps, and heights that nobody has.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.csv import read_csv

TOWNS = read_csv(Path(__file__).with_name("slovak_towns.csv"))
"""The eight regions of Slovakia and their 79 districts, which Pokec calls towns."""
HOBBIES = read_csv(Path(__file__).with_name("hobbies.csv"))
"""Public keywords and the hobby that each stands for."""

_PHRASES = ("{}", "I like {}", "{} and my friends", "mostly {}", "{}, always {}", "my dog and {}")
_UNREAD = ("nothing special", "ask me", "my family", "life")


@dataclass(frozen=True, eq=False)
class SocialNetwork:
    """A made-up network as two tables, with the public files that belong to it."""

    nodes: pa.Table
    """id, gender, age, height, weight, region, town, hobby: as people typed them."""
    edges: pa.Table
    """source, target: a directed friendship a row, none twice, none to oneself."""

    @staticmethod
    def places() -> pa.Table:
        """Return the public hierarchy: a town a row, with its region, and the two that stand for gaps."""
        return pa.concat_tables([TOWNS, pa.table({"region": ["missing"], "town": ["missing"]})])

    @staticmethod
    def vocabulary() -> pa.Table:
        """Return the public vocabulary of hobbies."""
        return HOBBIES


def pokec_like(nodes: int = 20_000, edges: int = 300_000, seed: int = 2012) -> SocialNetwork:
    """Make a network: half of all friendships stay in a town, a quarter more in a region, and lists are long-tailed.

    >>> network = pokec_like(nodes=200, edges=1_000)
    >>> network.nodes.num_rows, network.edges.num_rows
    (200, 1000)
    """
    rng = np.random.default_rng(seed)
    size = rng.lognormal(0.0, 0.8, len(TOWNS))
    town = np.sort(rng.choice(len(TOWNS), nodes, p=size / size.sum()))
    return SocialNetwork(_people(rng, town), _friendships(rng, town, edges))


def _people(rng: np.random.Generator, town: NDArray[np.int64]) -> pa.Table:
    people = len(town)
    female = rng.random(people) < 0.5
    age = np.clip(rng.gamma(6.0, 4.0, people) + 12, 15, 99).astype(np.int64)
    height = rng.normal(np.where(female, 167, 180), 7).astype(np.int64)
    weight = (0.9 * (height - 100) + rng.normal(0, 9, people)).astype(np.int64).clip(35)
    height[rng.random(people) < 0.01] = 900
    weight[rng.random(people) < 0.01] = 1
    words = HOBBIES["keyword"].to_numpy().astype(str)
    popular = 1 / np.arange(2, len(words) + 2)
    chosen = words[rng.choice(len(words), people, p=popular / popular.sum())]
    phrases = np.array(_PHRASES)[rng.integers(len(_PHRASES), size=people)]
    hobby = [phrase.format(word, word) for phrase, word in zip(phrases.tolist(), chosen.tolist(), strict=True)]
    unread = rng.random(people) < 0.05
    hobby = [str(rng.choice(_UNREAD)) if lost else text for text, lost in zip(hobby, unread.tolist(), strict=True)]
    gaps = {name: rng.random(people) < share for name, share in
            (("age", 0.1), ("height", 0.4), ("weight", 0.45), ("place", 0.02), ("hobby", 0.3))}  # fmt: skip
    return pa.table(
        {
            "id": pa.array(np.arange(people)),
            "gender": pa.array(np.where(female, "0", "1")),
            "age": pa.array(age, mask=gaps["age"]),
            "height": pa.array(height, mask=gaps["height"]),
            "weight": pa.array(weight, mask=gaps["weight"]),
            "region": pa.array(TOWNS["region"].to_numpy().astype(str)[town], mask=gaps["place"]),
            "town": pa.array(TOWNS["town"].to_numpy().astype(str)[town], mask=gaps["place"]),
            "hobby": pa.array(np.array(hobby), mask=gaps["hobby"]),
        }
    )


def _friendships(rng: np.random.Generator, town: NDArray[np.int64], edges: int) -> pa.Table:
    """Draw ends until there are enough different pairs: a target in the same town, region, or anywhere."""
    people = len(town)
    if edges > people * (people - 1) // 4:
        raise ValueError(f"{people:,} people cannot have {edges:,} friendships that are far from all there may be")
    region = TOWNS["region"].combine_chunks().dictionary_encode().indices.to_numpy()[town]
    active = rng.lognormal(0.0, 1.1, people)
    popular = rng.lognormal(0.0, 1.0, people)
    cumulative = np.cumsum(popular)  # people stand in order of town, so a town and a region are ranges
    start_of_town, end_of_town = (np.searchsorted(town, town, side) for side in ("left", "right"))
    start_of_region, end_of_region = (np.searchsorted(region, region, side) for side in ("left", "right"))
    before = np.append(0.0, cumulative)
    found = np.empty(0, np.uint64)
    while len(found) < edges:
        missing = int((edges - len(found)) * 1.2) + 100
        source = rng.choice(people, missing, p=active / active.sum())
        where = rng.random(missing)
        start = np.where(where < 0.5, start_of_town[source], np.where(where < 0.75, start_of_region[source], 0))
        end = np.where(where < 0.5, end_of_town[source], np.where(where < 0.75, end_of_region[source], people))
        aim = before[start] + rng.random(missing) * (before[end] - before[start])
        target = np.minimum(np.searchsorted(cumulative, aim, side="right"), people - 1)
        pairs = (source.astype(np.uint64) << np.uint64(32)) | target.astype(np.uint64)
        found = np.unique(np.concatenate([found, pairs[source != target]]))
    kept = np.sort(rng.permutation(found)[:edges])
    return pa.table(
        {"source": (kept >> np.uint64(32)).astype(np.int64), "target": (kept & np.uint64(2**32 - 1)).astype(np.int64)}
    )
