"""Splits: presets, by nodes, the best for a prior, and the closed form for consistent releases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from treetop.advice._error_laws import least_error, total_error
from treetop.advice._splits import SplitObjective, optimal_split, reached_coefficients, terms_of
from treetop.advice.public import Prior
from treetop.errors import LossError, PlanError, SpineError
from treetop.plan.workload import SMALLEST_SHARE, measured_levels, named_split, split_by_nodes

PERSON = tt.Unit("person", neighbours="add-remove")
GAUSS, LAPLACE = tt.Loss(epsilon=1, delta=1e-8), tt.Loss(epsilon=1)


@pytest.fixture
def prior(spine: tt.Spine, people: pa.Table) -> Prior:
    return Prior.from_public_table(people, spine, source="published")


@pytest.mark.parametrize("unit", [PERSON, tt.Unit("trip", neighbours="replace")])
@pytest.mark.parametrize("unknown", ["error", "drop"])
def test_the_measured_levels_are_those_of_the_plan(spine: tt.Spine, unit: tt.Unit, unknown: Any) -> None:
    plan = tt.Plan(spine, unit, GAUSS, unknown=unknown)
    assert measured_levels(spine, unit, unknown) == [level.name for level in plan.levels if level.is_measured]


def test_presets_are_geometric(spine: tt.Spine, trip: tt.Unit) -> None:
    assert list(named_split("uniform", spine, trip, GAUSS).values()) == [1, 1, 1]
    assert named_split("top-heavy", spine, trip, GAUSS) == {"place.state": 4, "sex": 2, "place.county": 1}
    assert list(named_split("bottom-heavy", spine, trip, GAUSS).values()) == [1, 2, 4]
    assert len(named_split("top-heavy", spine, PERSON, GAUSS)) == 4
    with pytest.raises(LossError, match="did you mean 'top-heavy'"):
        named_split("topheavy", spine, trip, GAUSS)


@pytest.mark.parametrize("loss", [GAUSS, LAPLACE, tt.Loss(rho=0.1)])
@pytest.mark.parametrize("objective", ["separate", "consistent"])
def test_every_split_is_one_that_a_plan_takes(
    spine: tt.Spine, prior: Prior, loss: tt.Loss, objective: SplitObjective
) -> None:
    split = optimal_split(tt.Plan(spine, PERSON, loss), prior, objective=objective)
    plan = tt.Plan(spine, PERSON, loss, split=split)
    assert plan.spent == plan.budget >= loss.budget
    assert sum(split.values()) == pytest.approx(1, abs=1e-5)


def test_without_a_prior_the_number_of_nodes_decides(spine: tt.Spine) -> None:
    unit = tt.Unit("person", contributions=3, neighbours="replace", per_node={"place.county": 1})
    nodes = {"total": 1, "place.state": 5, "sex": 10, "place.county": 58}
    for loss, power in ((GAUSS, 1 / 2), (LAPLACE, 1 / 3)):
        split = split_by_nodes(spine, unit, loss, "error", (), dict.fromkeys(nodes, 1.0) | {"sex": 4.0})
        for name, size in nodes.items():
            change = unit.sensitivity(name)
            square = change.l1**2 if loss is LAPLACE else change.l2_squared
            expected = (size * (4 if name == "sex" else 1) * square) ** power
            assert float(split[name] / split["total"]) == pytest.approx(
                expected / (9**power), rel=1e-4
            )  # the total's Δ² is 9 in both norms


def test_the_best_split_is_the_answer_of_the_program(spine: tt.Spine, prior: Prior) -> None:
    names = measured_levels(spine, PERSON)
    for loss in (GAUSS, LAPLACE):
        terms = [term for term in terms_of(PERSON, loss, prior, {}, names) if term is not None]
        budget = float(loss.budget)
        split = optimal_split(tt.Plan(spine, PERSON, loss), prior)
        error = total_error(terms, [budget * float(split[name]) for name in names])
        assert error == pytest.approx(least_error(terms, budget).error, rel=1e-4)
        assert error < total_error(terms, [budget / len(names)] * len(names))


def test_a_level_whose_errors_weigh_nothing_is_given_little(spine: tt.Spine, prior: Prior) -> None:
    plan = tt.Plan(spine, PERSON, GAUSS)
    split = optimal_split(plan, prior, {"sex": 0, "total": 0})
    assert float(split["sex"]) == float(split["total"]) == SMALLEST_SHARE
    # After consistency its errors are passed on to the counties, which do weigh.
    assert optimal_split(plan, prior, {"sex": 0}, objective="consistent")["sex"] > 0.01
    with pytest.raises(LossError, match="no level has a weight"):
        optimal_split(plan, prior, dict.fromkeys(["total", "place.state", "sex", "place.county"], 0))


def test_wrong_weights_and_priors_are_refused(spine: tt.Spine, prior: Prior) -> None:
    with pytest.raises(SpineError, match="did you mean 'sex'"):
        optimal_split(tt.Plan(spine, PERSON, GAUSS), prior, {"sexx": 1})
    with pytest.raises(LossError, match="zero or a positive"):
        optimal_split(tt.Plan(spine, PERSON, GAUSS), prior, {"sex": -1})
    with pytest.raises(PlanError, match="another spine"):
        optimal_split(tt.Plan(tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])}), PERSON, GAUSS), prior)


def test_a_prior_with_changed_codes_serves_for_its_distribution_alone(spine: tt.Spine, people: pa.Table) -> None:
    """Last decade's codes are others, one to one: the split is the same, and trials, which need nodes, are refused."""
    here = Prior.from_public_table(people, spine, source="published")

    def old(codes: pa.Array) -> pa.Array:
        return pa.array([f"{code}-old" for code in codes.to_pylist()])

    place = spine.attributes["place"]
    tree = pa.table(
        {level: old(place.codes[at].take(pa.array(place.ancestors(at)))) for at, level in enumerate(place.levels)}
    )
    trees = {"place": tt.Hierarchy.from_table(tree, levels=list(place.levels)), "sex": spine.attributes["sex"]}
    earlier = tt.Spine([level.name for level in spine.levels], trees)
    changed = people.set_column(people.schema.get_field_index("place"), "place", old(people["place"]))
    there = Prior.from_public_table(changed, earlier, source="published")
    plan = tt.Plan(spine, PERSON, GAUSS)
    assert earlier.digest != spine.digest and optimal_split(plan, there) == optimal_split(plan, here)
    report = tt.split_for(plan, there)
    assert report["split"] == tt.split_for(plan, here)["split"] and "other codes" in str(report.public_notes)
    with pytest.raises(PlanError, match="nodes cannot be matched"):
        optimal_split(plan, there, objective="consistent")
    with pytest.raises(PlanError, match="nodes cannot be matched"):
        tt.split_for(plan, there, refine=True)


def _uneven() -> tt.Spine:
    tree = tt.Hierarchy.from_prefixes(
        ["AAA", "AAB", "ABA", "ACA", "ACB", "ACC", "ACD", "BAA", "BBA", "BBB"], widths=[1, 2]
    )
    return tt.Spine(
        ["place.digits1", "sex", "place.digits2", "place.digits3"],
        {"place": tree, "sex": tt.Hierarchy.flat(["f", "m", "x"])},
    )


def _by_noise(spine: tt.Spine, sigma: list[float], weights: list[float], runs: int) -> float:
    """Descend a whole public tree by least squares, without clipping, and sum weighted squared errors."""
    rng = np.random.default_rng(0)
    error = sigma[0] * rng.normal(size=(runs, 1))
    nodes = [np.zeros(1, np.int64) for _ in spine.attributes]
    total = weights[0] * (error**2).sum(axis=1).mean()
    for level in spine.levels:
        (part,) = level.parts
        first, parent = part.first, nodes[part.attribute]
        children = first[parent + 1] - first[parent]
        above = np.repeat(np.arange(len(parent)), children)
        start = np.cumsum(children) - children
        noise = sigma[level.index] * rng.normal(size=(runs, len(above)))
        sums = np.add.reduceat(noise, start, axis=1)
        error = noise + ((error - sums) / children)[:, above]
        nodes = [node[above] for node in nodes]
        nodes[part.attribute] = first[parent][above] + np.arange(len(above)) - start[above]
        total += weights[level.index] * (error**2).sum(axis=1).mean()
    return float(total)


def _full(spine: tt.Spine) -> Prior:
    """Return a table with a record in every leaf."""
    leaves = [(place, sex) for place in spine.trees[0].codes[-1].to_pylist() for sex in "fmx"]
    table = pa.table({"place": [place for place, _ in leaves], "sex": [sex for _, sex in leaves]})
    return Prior.from_public_table(table, spine, source="one of each")


def test_the_closed_form_is_the_error_of_a_consistent_release() -> None:
    spine = _uneven()
    sigma, weights = [3.0, 1.0, 2.0, 1.5, 0.5], [1.0, 2.0, 0.5, 0.0, 3.0]
    twin = _full(spine).twin
    assert twin is not None
    predicted = float(reached_coefficients(spine, twin, weights) @ np.square(sigma))
    assert predicted == pytest.approx(_by_noise(spine, sigma, weights, 60_000), rel=0.01)


def test_the_closed_form_split_is_the_least() -> None:
    spine = _uneven()
    prior = _full(spine)
    assert prior.twin is not None
    coefficients = reached_coefficients(spine, prior.twin, [1.0] * 5)
    split = optimal_split(tt.Plan(spine, PERSON, tt.Loss(rho=1)), prior, objective="consistent")
    # Δ² is 1 at every level of an added or removed record, so the variance is 1/(2·rho).
    best = sum(c / (2 * float(share)) for c, share in zip(coefficients, split.values(), strict=True))
    assert best == pytest.approx(math.fsum(np.sqrt(coefficients)) ** 2 / 2, rel=1e-6)
