"""The six made-up tables of the InfTDA paper (Boninsegna and Silvestri, PETS 2025, section 5), made again.

The paper gives the trees, the law of the flows and the sizes of its tables. The authors' public generator draws the
flows from a Pareto law of shape 3 with the seed 42, scales them to a maximum of 1,000, and rounds: made so, all six
numbers of users are those of the paper's Table 1, to the last digit. Which leaves have a flow, and the random tree, are
our own draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.synthetic import Ints, OriginDestination
from treetop.counts.counts import Counts
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine

Tree: TypeAlias = Literal["binary", "random"]
Density: TypeAlias = Literal["complete", "dense", "sparse"]

BINARY_LEVELS = 8
RANDOM_LEVELS = 4
RANDOM_CHILDREN = (2, 10)
RANDOM_LEAVES = 435
"""The leaves of the paper's random tree: the root of the 189,225 pairs of its complete table."""
SHAPE = 3.0
"""A flow exceeds x with a probability in proportion to (1 + x)^-SHAPE."""
LARGEST = 1_000
"""The largest flow of every table."""
SEED = 42
"""That of the authors' generator."""


@dataclass(frozen=True)
class PaperTable:
    """What the paper's Table 1 says of one of its tables."""

    tree: Tree
    """Two children everywhere, or 2 to 10 at random."""
    density: Density
    """Flows between all pairs of leaves, half of them, or one in a hundred."""
    pairs: int
    """How many pairs have a flow."""
    users: int
    """How many trips there are in all."""

    @property
    def name(self) -> str:
        """A name for files and tables."""
        return f"{self.tree}-{self.density}"


TABLES = (
    PaperTable("binary", "complete", 65_536, 1_051_271),
    PaperTable("binary", "dense", 32_768, 734_688),
    PaperTable("binary", "sparse", 655, 23_302),
    PaperTable("random", "complete", 189_225, 2_019_580),
    # Printed as 95,612, which is not half of the leaves.
    PaperTable("random", "dense", 94_612, 1_003_943),
    PaperTable("random", "sparse", 1_892, 67_840),
)
"""The paper's tables, in its order."""


def paper_table(tree: Tree, density: Density, seed: int = 2025) -> OriginDestination:
    """Make one of the six tables; both the tree and the pairs are a function of the seed."""
    (wanted,) = (table for table in TABLES if (table.tree, table.density) == (tree, density))
    parents = binary_tree() if tree == "binary" else random_tree(seed)
    leaves = len(parents[-1])
    rng = np.random.default_rng([seed, TABLES.index(wanted)])
    pair = np.sort(rng.choice(leaves**2, wanted.pairs, replace=False))
    count = pareto_flows(wanted.pairs)
    origin, destination = (end.astype(np.int32) for end in np.divmod(pair, leaves))
    levels = tuple(f"level{depth}" for depth in range(1, len(parents) + 1))
    return OriginDestination(levels, parents, origin, destination, count)


def binary_tree() -> tuple[Ints, ...]:
    """The parents at each level of a tree whose nodes have two children."""
    return tuple(np.repeat(np.arange(2**depth, dtype=np.int32), 2) for depth in range(BINARY_LEVELS))


@cache
def random_tree(seed: int = 2025) -> tuple[Ints, ...]:
    """The parents at each level of a tree with 2 to 10 children a node: the first one drawn with 435 leaves."""
    rng = np.random.default_rng(seed)
    low, high = RANDOM_CHILDREN
    while True:
        parents = []
        nodes = 1
        for _ in range(RANDOM_LEVELS):
            children = rng.integers(low, high, nodes, endpoint=True)
            parents.append(np.repeat(np.arange(nodes, dtype=np.int32), children))
            nodes = int(children.sum())
        if nodes == RANDOM_LEAVES:
            return tuple(parents)


def pareto_flows(pairs: int) -> NDArray[np.int64]:
    """Draw the flows of a table of so many pairs, from 1 to 1,000, as the authors do."""
    draws = np.random.RandomState(SEED).pareto(SHAPE, pairs)
    flows: NDArray[np.int64] = np.floor(draws / draws.max() * (LARGEST - 1)).astype(np.int64) + 1
    return flows


def with_spine(table: OriginDestination) -> tuple[Spine, Counts]:
    """Return a made-up table as a destination-first spine, the paper's destination tree, and its counts."""
    places = Hierarchy.from_table(table.place_table(), table.levels)
    spine = Spine.destination_first(origin=places, destination=places)
    ends = {"origin": table.origin, "destination": table.destination}
    return spine, Counts.from_leaves(spine, [ends[name] for name in spine.attributes], table.count.copy())
