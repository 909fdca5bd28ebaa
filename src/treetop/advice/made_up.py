"""A made-up twin: counts drawn over the public hierarchies of a plan, to see what its noise does. Private data unread.

A few places are large and many are small, as they mostly are; which ones, the codes decide, so that the twin is the
same for every loss. It says nothing about the private table, and a plan is not to be judged by its counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.advice.trials import fitted
from treetop.counts.counts import Counts
from treetop.domain.spine import Spine
from treetop.errors import PlanError
from treetop.noise import Key
from treetop.plan.plan import Plan
from treetop.release.run import run_plan

MOST = 1_000_000
"""So many records a twin has at most."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MadeUp:
    """A made-up twin: how many records each combination of leaves has."""

    spine: Spine
    """The public hierarchies."""
    leaves: Ints
    """The leaf of every attribute (row) for every record."""

    @property
    def total(self) -> int:
        """How many records it has."""
        return int(self.leaves.shape[1])

    def counts(self) -> Counts:
        """Return it in the engine's form."""
        return Counts.from_leaves(self.spine, list(self.leaves))

    def at(self, depths: tuple[int, ...]) -> dict[tuple[int, ...], int]:
        """Return its counts above zero, with so many levels of every attribute told apart."""
        own = [
            tree.ancestors(depth - 1)[leaf]
            for tree, depth, leaf in zip(self.spine.trees, depths, self.leaves, strict=True)
            if depth
        ]
        if not own:
            return {(): self.total}
        nodes, often = np.unique(np.stack(own), axis=1, return_counts=True)
        return dict(zip(map(tuple, nodes.T.tolist()), often.tolist(), strict=True))


def made_up(spine: Spine, total: int = 100_000) -> MadeUp:
    """Make up records over the leaves of a spine: the same ones for the same hierarchies and the same total."""
    if not 0 < total <= MOST:
        raise PlanError(f"a made-up table has 1 to {MOST:,} records, not {total:,}")
    seed = int.from_bytes(hashlib.blake2b(spine.digest.encode(), digest_size=8).digest(), "big")
    chance = np.random.default_rng(seed)
    leaves = []
    for tree in spine.trees:
        weight = chance.lognormal(sigma=1.6, size=tree.sizes[-1])
        leaves.append(chance.choice(tree.sizes[-1], size=total, p=weight / weight.sum()))
    return MadeUp(spine, np.array(leaves, np.int64).reshape(len(spine.trees), total))


@dataclass(frozen=True)
class MadeUpRow:
    """One count of a trial on a made-up twin."""

    codes: tuple[str, ...]
    """The codes of the attributes that are told apart."""
    names: tuple[str | None, ...]
    """What they are called, where that is known."""
    made_up: int
    """The made-up count."""
    released: int
    """What a release of it would say."""
    lower: int | None
    """The lower end of its interval; None where the plan has none."""
    upper: int | None
    """The upper end."""


@dataclass(frozen=True, eq=False)
class MadeUpRelease:
    """One release of a made-up twin, at one level of the spine."""

    spine: Spine
    """The public hierarchies."""
    depths: tuple[int, ...]
    """How many levels of every attribute are told apart."""
    true: Mapping[tuple[int, ...], int]
    """The made-up counts above zero, by the nodes of the attributes that are told apart."""
    released: Mapping[tuple[int, ...], tuple[int, int | None, int | None]]
    """What a release says of them, above zero, each with the ends of its interval."""

    @property
    def attributes(self) -> list[str]:
        """The attributes that are told apart."""
        return [name for name, depth in zip(self.spine.attributes, self.depths, strict=True) if depth]

    def rows(self, number: int = 12) -> list[MadeUpRow]:
        """Return large and small counts: their ranks grow by about the same factor."""
        ranked = sorted(self.true, key=lambda node: (-self.true[node], node))
        ranks = np.unique(np.geomspace(1, len(ranked), number).astype(np.int64)) - 1
        return [self._row(ranked[rank]) for rank in ranks.tolist()]

    def _row(self, node: tuple[int, ...]) -> MadeUpRow:
        told = zip(self.spine.trees, self.depths, strict=True)
        trees = [(tree, depth - 1) for tree, depth in told if depth]
        codes = tuple(tree.codes[depth][at].as_py() for (tree, depth), at in zip(trees, node, strict=True))
        names = tuple(tree.name(depth, at) for (tree, depth), at in zip(trees, node, strict=True))
        return MadeUpRow(codes, names, self.true[node], *self.released.get(node, (0, None, None)))


def release_made_up(plan: Plan, twin: MadeUp, level: str | None = None, seed: int = 0) -> MadeUpRelease:
    """Release a made-up twin once by the plan, with noise that anybody can compute.

    `level` is one of the spine; the finest when None. The limit of contributions is not tried: the twin has no ids.
    """
    plan.refuse_unless_top_down()
    counts = twin.counts()
    key = Key(hashlib.blake2b(f"made up {seed}".encode(), digest_size=32).digest())
    release = run_plan(fitted(plan, counts), counts, key, _card(plan))
    own = plan.spine.levels[-1] if level is None else plan.spine.level(level)
    depths = plan.spine.depths(own.index)
    return MadeUpRelease(plan.spine, depths, twin.at(depths), _by_nodes(plan.spine, depths, release.table(level)))


def _card(plan: Plan) -> dict[str, Any]:
    """Return what intervals need to know; nobody is shown it."""
    sure = {} if plan.confidence is None else {"accuracy": {"confidence": plan.confidence}}
    return {"private": False, "title": plan.title, "plan": {"confidence": plan.confidence}, **sure}


def _by_nodes(spine: Spine, depths: tuple[int, ...], table: pa.Table) -> dict[tuple[int, ...], tuple[Any, Any, Any]]:
    columns = []
    for name, tree, depth in zip(spine.attributes, spine.trees, depths, strict=True):
        if depth:
            place = {code: at for at, code in enumerate(tree.codes[depth - 1].to_pylist())}
            columns.append([place[code] for code in table[name].to_pylist()])
    ends = [table[end].to_pylist() if end in table.column_names else [None] * len(table) for end in ("lower", "upper")]
    nodes = zip(*columns, strict=True) if columns else [()] * len(table)
    return dict(zip(nodes, zip(table["count"].to_pylist(), *ends, strict=True), strict=True))
