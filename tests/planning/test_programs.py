"""The two programs: against a general solver, against each other, and the order that a tree implies."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from experiments.loss_split.laplace import LaplaceErrors
from treetop.advice._error_laws import (
    DiscreteGaussianErrors,
    DiscreteLaplaceErrors,
    ErrorLaw,
    GaussianErrors,
    Term,
    falling_root,
    least_error,
    least_loss,
    total_error,
)
from treetop.errors import LossError

KINDS = [LaplaceErrors, DiscreteLaplaceErrors, GaussianErrors, DiscreteGaussianErrors]


def an_instance(rng: np.random.Generator, kind: type[ErrorLaw]) -> tuple[list[Term], float]:
    terms = []
    for _ in range(rng.integers(2, 6)):
        counts = rng.integers(0, 10 ** rng.integers(1, 6), size=rng.integers(1, 300))
        law = kind(float(rng.choice([1, math.sqrt(2), 2])))
        terms.append(Term.of(law, counts, float(rng.choice([1.0, rng.uniform(0.1, 5)]))))
    return terms, float(rng.uniform(0.05, 4))


@pytest.mark.parametrize("kind", KINDS)
def test_no_general_solver_finds_a_smaller_error(kind: type[ErrorLaw]) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    compared = 0
    for _ in range(20):
        terms, budget = an_instance(rng, kind)
        ours = least_error(terms, budget)
        assert ours.total == pytest.approx(budget, rel=1e-12)

        def relative(budgets: Any, terms: list[Term] = terms, scale: float = ours.error) -> float:
            return total_error(terms, budgets) / scale

        found = minimize(
            relative,
            [budget / len(terms)] * len(terms),
            bounds=[(budget * 1e-6, budget)] * len(terms),
            constraints={"type": "eq", "fun": lambda budgets, budget=budget: sum(budgets) - budget},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-13},
        )
        if found.success:
            compared += 1
            assert found.fun >= 1 - 1e-9
    assert compared >= 18


@pytest.mark.parametrize("kind", KINDS)
def test_the_programs_undo_each_other(kind: type[ErrorLaw]) -> None:
    rng = np.random.default_rng(10 + KINDS.index(kind))
    for _ in range(8):
        terms, budget = an_instance(rng, kind)
        there = least_error(terms, budget)
        back = least_loss(terms, there.error)
        assert back.total == pytest.approx(budget, rel=1e-11)
        assert back.error == pytest.approx(there.error, rel=1e-12)
        assert least_error(terms, back.total).budgets == pytest.approx(there.budgets, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_no_level_would_gain_more_from_the_next_bit(kind: type[ErrorLaw]) -> None:
    terms, budget = an_instance(np.random.default_rng(7), kind)
    answer = least_error(terms, budget)
    for term, given_ in zip(terms, answer.budgets, strict=True):
        assert term.gain(given_) == pytest.approx(answer.price, rel=1e-9)


def test_large_counts_share_by_powers_of_the_number_of_nodes() -> None:
    sizes, weights = np.array([1, 40, 5_000]), np.array([3.0, 1.0, 0.5])
    for kind, power in ((LaplaceErrors, 1 / 3), (GaussianErrors, 1 / 2)):
        terms = [Term.of(kind(1.0), np.full(n, 10**9), w) for n, w in zip(sizes, weights, strict=True)]
        shares = (weights * sizes) ** power
        np.testing.assert_allclose(least_error(terms, 2.0).budgets, 2 * shares / shares.sum(), rtol=1e-9)


def test_a_state_of_blocks_gains_fourfold_over_an_even_split() -> None:
    """The shape of the paper's example: 1 state, 128 tracts, 20,975 blocks of which nearly half are empty."""
    rng = np.random.default_rng(3)
    blocks = np.where(rng.random(20_975) < 0.46, 0, rng.geometric(1 / 50, 20_975))
    tracts = np.add.reduceat(blocks, np.linspace(0, 20_975, 128, endpoint=False).astype(int))
    terms = [Term.of(LaplaceErrors(1.0), counts) for counts in ([blocks.sum()], tracts, blocks)]
    best = least_error(terms, 2.0)
    assert total_error(terms, [2 / 3] * 3) / best.error == pytest.approx(4.65, abs=0.1)
    assert best.budgets == pytest.approx((0.064, 0.323, 1.61), abs=0.01)


def test_a_level_without_weight_is_given_nothing() -> None:
    law = GaussianErrors(1.0)
    answer = least_error([Term.of(law, [5, 6]), Term.of(law, [1], 0.0), Term.of(law, [0])], 1.0)
    assert answer.budgets[1] == 0 and answer.budgets[0] > answer.budgets[2] > 0
    assert answer.total == pytest.approx(1.0)


@st.composite
def trees(draw: st.DrawFn) -> list[list[int]]:
    """The counts of every level of a tree in which every node has a child at the next level."""
    level = [draw(st.lists(st.integers(0, 500), min_size=1, max_size=30))]
    for _ in range(draw(st.integers(1, 3))):
        cuts = draw(st.lists(st.booleans(), min_size=len(level[0]) - 1, max_size=len(level[0]) - 1))
        above, run = [], 0
        for count, cut in zip(level[0], [*cuts, True], strict=True):
            run += count
            if cut:
                above.append(run)
                run = 0
        level.insert(0, above)
    return level


@settings(max_examples=100, deadline=None)
@given(tree=trees(), kind=st.sampled_from(KINDS), budget=st.floats(0.05, 5), sensitivity=st.floats(0.5, 3))
def test_finer_levels_of_a_full_tree_are_given_no_less(
    tree: list[list[int]], kind: type[ErrorLaw], budget: float, sensitivity: float
) -> None:
    """Theorem 3, which needs equal weights, equal sensitivities, and a child of every node at the next level."""
    budgets = least_error([Term.of(kind(sensitivity), counts) for counts in tree], budget).budgets
    assert all(coarse <= fine * (1 + 1e-9) for coarse, fine in pairwise(budgets))


def test_without_its_conditions_finer_levels_may_be_given_less() -> None:
    law = LaplaceErrors(1.0)

    def falls(coarse: Term, fine: Term) -> bool:
        one, other = least_error([coarse, fine], 1.0).budgets
        return one > other

    assert falls(Term.of(law, [50, 50], 9.0), Term.of(law, [25] * 4))  # unequal weights
    assert falls(Term.of(LaplaceErrors(4.0), [50, 50]), Term.of(law, [25] * 4))  # unequal sensitivities
    assert falls(Term.of(law, [50] * 4), Term.of(law, [25, 25]))  # nodes without a child at the next level


def test_a_root_is_found_from_a_bracket_that_misses_it() -> None:
    for root in (1e-8, 0.3, 1e9):
        assert falling_root(lambda x: x**-2.5, root**-2.5, 0.9, 1.1) == pytest.approx(root, rel=1e-12)
    assert falling_root(lambda x: math.exp(-x), math.exp(-700), 1.0, 2.0) == pytest.approx(700, rel=1e-12)
    with pytest.raises(ArithmeticError):
        falling_root(lambda x: 1.0, 2.0, 1.0, 2.0)


def test_programs_refuse_what_has_no_answer() -> None:
    term = Term.of(GaussianErrors(1.0), [3])
    with pytest.raises(LossError, match="positive"):
        least_error([term], 0)
    with pytest.raises(LossError, match="no level has a weight"):
        least_error([Term.of(GaussianErrors(1.0), [3], 0.0)], 1)
    with pytest.raises(LossError, match="expected counts"):
        Term.of(GaussianErrors(1.0), [])
