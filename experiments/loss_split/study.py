"""The whole study of one tree: what figures 2 to 7 need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

import treetop as tt
from experiments.kit.runs import Kept
from experiments.loss_split.measure import Budgets, Errors, Outcome, best, closed_form, measure, terms, uniform
from experiments.loss_split.trees import Population, Tree
from treetop.advice._error_laws import Allocation, least_error, least_loss, total_error
from treetop.advice._splits import optimal_split, refine_split
from treetop.advice.public import Prior
from treetop.advice.trials import squared_errors

Way: TypeAlias = Literal["uniform", "optimal"]
WAYS: tuple[Way, ...] = ("uniform", "optimal")

EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0)
FIXED = 2.0
"""The epsilon at which the paper varies the weights, and the comparisons are made."""
TAUS = (5_000.0, 10_000.0, 20_000.0, 40_000.0, 80_000.0)
WEIGHTS = (0.05, 0.1, 0.2, 1 / 3, 0.5, 0.7, 0.8, 0.9, 0.95)
"""What the blocks weigh; state and tracts share the rest."""


@dataclass(frozen=True)
class Size:
    """How much is run."""

    runs: int
    """Releases for each division of each loss."""
    weight_runs: int
    engine_runs: int
    tracts: int
    """In how many tracts shares are dealt out."""


PERSON, LOSS = tt.Unit("person", neighbours="add-remove"), tt.Loss(epsilon=FIXED)
"""What Treetop's own releases protect, and their loss: the paper's."""
TUNED = ("separate", "consistent", "refined")
"""What a split can be chosen for: measurements, consistent counts in closed form, or trials near the first."""
_ENGINE = Mapping[tuple[str, str], float]

FULL = Size(runs=400, weight_runs=60, engine_runs=20, tracts=40)
QUICK = Size(runs=20, weight_runs=10, engine_runs=4, tracts=6)


@dataclass(frozen=True)
class Study:
    """All results of one tree."""

    tree: Tree
    """The tree."""
    size: Size
    """How much was run."""
    tracts: tuple[int, ...]
    """The tracts in which shares are dealt out, drawn at random; the first is the one of the figure."""
    outcomes: Mapping[tuple[float, Way], Outcome]
    """By epsilon and way to divide it."""
    formulas: Mapping[tuple[float, Way], Errors]
    """The errors of separate counts, by formula."""
    least: Mapping[float, Allocation]
    """By total error, the least loss for it."""
    weighted: Mapping[float, Outcome]
    """By the weight of the blocks, at the fixed epsilon."""
    weighted_formulas: Mapping[float, Errors]
    """The same by formula, without consistency."""
    by_truth: float
    """The total error at the fixed epsilon, divided by the truth instead of the prior: never to be done."""
    by_prior: float
    """The same, divided by the prior."""
    neighbour: float
    """How far the epsilon of the blocks moves, if divided by the truth, when one person leaves it."""
    engine: Mapping[tuple[str, Way], float]
    """By repair, the mean total squared error of Treetop's own releases at the fixed epsilon."""
    tuned: Mapping[str, float]
    """The same with the euclidean repair, by what the split was chosen for with the prior."""

    @property
    def title(self) -> str:
        """The name of the tree for people."""
        return self.tree.title


def study(tree: Tree, size: Size, kept: Kept | None = None) -> Study:
    """Run everything on a tree; releases that are kept are not made again."""
    keep = kept or Kept()

    def releases(name: str, budgets: Budgets, runs: int, seed: int, inside: Sequence[int] = ()) -> Outcome:
        made = partial(measure, tree, budgets, runs, seed, inside)
        return keep.run(Outcome, f"{name}, {runs} runs in {len(inside)} tracts", made)

    tracts = _tracts(tree.truth, size.tracts)
    divided = {(epsilon, way): _divide(tree, epsilon, way) for epsilon in EPSILONS for way in WAYS}
    weighted = {weight: best(tree, FIXED, ((1 - weight) / 2, (1 - weight) / 2, weight)) for weight in WEIGHTS}
    truth = terms(tree.truth)
    return Study(
        tree,
        size,
        tracts,
        {at: releases(f"{at}", budgets, size.runs, 7, tracts) for at, budgets in divided.items()},
        {key: closed_form(tree.truth, budgets) for key, budgets in divided.items()},
        {tau: least_loss(terms(tree.prior), tau) for tau in TAUS},
        {at: releases(f"weight {at}", budgets, size.weight_runs, 8) for at, budgets in weighted.items()},
        {weight: closed_form(tree.truth, budgets) for weight, budgets in weighted.items()},
        least_error(truth, FIXED).error,
        total_error(truth, divided[FIXED, "optimal"]),
        _moved_by_one(tree.truth),
        keep.run(_ENGINE, f"engine, {size.engine_runs}", partial(engine, tree, size.engine_runs)),
        keep.run(Mapping[str, float], f"tuned, {size.engine_runs}", partial(tuned, tree, size.engine_runs)),
    )


def engine(tree: Tree, runs: int) -> dict[tuple[str, Way], float]:
    """Release the tree by Treetop: discrete noise, whole counts, both repairs."""
    spine, twin = _public(tree.truth)
    names = ("total", *(level.name for level in spine.levels))
    found: dict[tuple[str, Way], float] = {}
    for repair in ("chebyshev", "euclidean"):
        for way in WAYS:
            split = {name: round(share, 9) for name, share in zip(names, _divide(tree, FIXED, way), strict=True)}
            plan = tt.Plan(spine, PERSON, LOSS, split=split, repair=repair, margins="none")
            found[repair, way] = float(squared_errors(plan, twin, runs=runs, threads=1).sum(axis=1).mean())
    return found


def tuned(tree: Tree, runs: int) -> dict[str, float]:
    """Release the tree with splits that the prior chooses: for measurements, for consistent counts, and by trials."""
    spine, twin = _public(tree.truth)
    known, prior = _public(tree.prior)
    splits: dict[str, Any] = {
        objective: optimal_split(tt.Plan(known, PERSON, LOSS), prior, objective=objective)  # type: ignore[arg-type]
        for objective in TUNED[:2]
    }
    start = tt.Plan(known, PERSON, LOSS, split=splits[TUNED[0]], repair="euclidean", margins="none")
    splits[TUNED[2]] = refine_split(start, prior, threads=1).plan.split
    found = {}
    for name, split in splits.items():
        plan = tt.Plan(spine, PERSON, LOSS, split=split, repair="euclidean", margins="none")
        found[name] = float(squared_errors(plan, twin, runs=runs, threads=1).sum(axis=1).mean())
    return found


def _public(population: Population) -> tuple[tt.Spine, Prior]:
    """Return a population as a public table, with its spine."""
    block = np.arange(len(population.blocks))
    table = pa.table({"tract": _codes(population.tract), "block": _codes(block), "count": population.blocks})
    places = tt.Hierarchy.from_table(table.select(["tract", "block"]), levels=["tract", "block"])
    spine = tt.Spine(["block.tract", "block.block"], {"block": places})
    return spine, Prior.from_public_table(table, spine, source="public", count="count")


def _divide(tree: Tree, epsilon: float, way: Way) -> Budgets:
    return uniform(epsilon) if way == "uniform" else best(tree, epsilon)


def _tracts(population: Population, number: int) -> tuple[int, ...]:
    """Choose tracts at random, among those with people in at least two blocks."""
    peopled = np.bincount(population.tract, population.blocks > 0)
    choice = np.flatnonzero(peopled >= 2)
    drawn = np.random.default_rng(6).permutation(choice)[:number]
    return tuple(int(tract) for tract in drawn)


def _moved_by_one(population: Population) -> float:
    """How far the blocks' epsilon moves when somebody who lives alone in a block leaves."""
    blocks = population.blocks.copy()
    alone = np.flatnonzero(blocks == blocks[blocks > 0].min())[0]
    blocks[alone] -= 1
    other = Population(blocks, population.tract)
    here, there = (least_error(terms(one), FIXED).budgets[2] for one in (population, other))
    return abs(here - there)


def _codes(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[str]:
    return [f"{number:05d}" for number in numbers.tolist()]
