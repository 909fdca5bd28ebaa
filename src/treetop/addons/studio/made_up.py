"""A made-up twin: counts drawn over the public hierarchies of a plan, to see what its noise does.

A few places are large and many are small, as they mostly are; which ones, the codes decide, so that the twin is the
same for every loss. It says nothing about the private table, and a plan is not to be judged by its counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from treetop._util.dtypes import Ints
from treetop._util.system import Progress
from treetop.advice.expected import Depths
from treetop.advice.trials import fitted
from treetop.counts.counts import Counts
from treetop.domain.spine import Spine
from treetop.errors import PlanError
from treetop.noise import Key
from treetop.plan.plan import Plan
from treetop.release.run import run_plan

MOST = 1_000_000
"""Most records of a made-up twin."""


@dataclass(frozen=True, eq=False)
class MadeUp:
    """A made-up twin."""

    spine: Spine
    leaves: Ints
    """The leaf of every attribute (row) for every record."""

    @property
    def total(self) -> int:
        """The number of records."""
        return int(self.leaves.shape[1])

    def at(self, depths: Depths) -> dict[tuple[int, ...], int]:
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
    """Of the attributes that are told apart."""
    names: tuple[str | None, ...]
    made_up: int
    released: int
    lower: int | None
    """The ends of the released count's interval; None if the plan has none."""
    upper: int | None


@dataclass(frozen=True, eq=False)
class MadeUpRelease:
    """One release of a made-up twin, at one level of the spine."""

    spine: Spine
    depths: Depths
    """How many levels of every attribute are told apart."""
    true: Mapping[tuple[int, ...], int]
    """The made-up counts above zero, by the nodes of the attributes that are told apart."""
    released: Mapping[tuple[int, ...], tuple[int, int | None, int | None]]
    """The released counts above zero, each with the ends of its interval."""

    @property
    def attributes(self) -> list[str]:
        """The attributes that are told apart."""
        return [name for name, depth in zip(self.spine.attributes, self.depths, strict=True) if depth]

    def rows(self, number: int = 12) -> list[MadeUpRow]:
        """Return large and small counts: their ranks grow by about the same factor."""
        trees = [(tree, depth - 1) for tree, depth in zip(self.spine.trees, self.depths, strict=True) if depth]
        ranked = sorted(self.true, key=lambda node: (-self.true[node], node))
        rows = []
        for rank in (np.unique(np.geomspace(1, len(ranked), number).astype(np.int64)) - 1).tolist():
            node = ranked[rank]
            codes = tuple(tree.codes[depth][at].as_py() for (tree, depth), at in zip(trees, node, strict=True))
            names = tuple(tree.name(depth, at) for (tree, depth), at in zip(trees, node, strict=True))
            rows.append(MadeUpRow(codes, names, self.true[node], *self.released.get(node, (0, None, None))))
        return rows


def release_made_up(
    plan: Plan, twin: MadeUp, level: str | None = None, seed: int = 0, progress: Progress | None = None
) -> MadeUpRelease:
    """Release a made-up twin once by the plan, with noise that anybody can compute.

    `level` is one of the spine; the finest when None. The limit of contributions is not tried: the twin has no ids.
    """
    plan.refuse_unless_top_down()
    spine, counts = plan.spine, Counts.from_leaves(twin.spine, list(twin.leaves))
    key = Key(hashlib.blake2b(f"made up {seed}".encode(), digest_size=32).digest())
    # A card with what intervals need to know; nobody is shown it.
    card: dict[str, Any] = {"private": False, "title": plan.title, "plan": {"confidence": plan.confidence}}
    if plan.confidence is not None:
        card["accuracy"] = {"confidence": plan.confidence}
    table = run_plan(fitted(plan, counts), counts, key, card, progress=progress).level(level)
    depths = spine.depths(spine.levels[-1].index if level is None else spine.level(level).index)
    columns = []
    for name, tree, depth in zip(spine.attributes, spine.trees, depths, strict=True):
        if depth:
            place = {code: at for at, code in enumerate(tree.codes[depth - 1].to_pylist())}
            columns.append([place[code] for code in table[name].to_pylist()])
    nodes = zip(*columns, strict=True) if columns else [()] * len(table)
    ends = [table[end].to_pylist() if end in table.column_names else [None] * len(table) for end in ("lower", "upper")]
    released = dict(zip(nodes, zip(table["count"].to_pylist(), *ends, strict=True), strict=True))
    return MadeUpRelease(spine, depths, twin.at(depths), released)
