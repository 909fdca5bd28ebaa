"""The experiments on dividing a loss, on small trees: releases follow the formulas, and consistency adds up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import ArrayLike

from experiments.kit.cases import DOCS
from experiments.kit.runs import Kept
from experiments.loss_split import claims as judges
from experiments.loss_split import page
from experiments.loss_split.__main__ import command
from experiments.loss_split.claims import number
from experiments.loss_split.figures import figure_6
from experiments.loss_split.measure import (
    Errors,
    Outcome,
    best,
    bottom_up,
    closed_form,
    draw,
    leaves_only,
    measure,
    project,
    terms,
    top_down,
    uniform,
)
from experiments.loss_split.shares import Misallocation, SkewedBias
from experiments.loss_split.study import EPSILONS, FIXED, WEIGHTS, Size, Study, study
from experiments.loss_split.trees import SHAPE, Tree, made_up
from treetop.advice._error_laws import Allocation, least_loss

SMALL = Size(runs=30, weight_runs=10, engine_runs=2, tracts=3)


@cache
def whole() -> Tree:
    return made_up()


@cache
def predicted() -> Allocation:
    return least_loss(terms(whole().prior), 20_000)


@pytest.fixture(scope="module")
def tree() -> Tree:
    return made_up(shape=(12, 700), people=(19_000, 20_000))


@pytest.fixture(scope="module")
def small(tree: Tree) -> Study:
    return study(tree, SMALL)


def test_the_tree_has_wyomings_shape_and_half_of_its_blocks_are_empty() -> None:
    whole = made_up()
    for population, people in ((whole.truth, 576_851), (whole.prior, 563_626)):
        state, tracts, blocks = population.levels
        assert (int(state[0]), len(tracts), len(blocks)) == (people, *SHAPE)
        assert 0.4 < (blocks == 0).mean() < 0.55 and (tracts > 0).all()
    assert not np.array_equal(whole.truth.blocks, whole.prior.blocks)


def test_the_optimal_split_of_the_whole_tree_cuts_the_error_more_than_threefold() -> None:
    flat, good = (closed_form(whole().truth, budgets).total for budgets in (uniform(FIXED), best(whole(), FIXED)))
    assert flat > 3 * good


def test_releases_have_the_errors_of_the_formulas(tree: Tree) -> None:
    for budgets in (uniform(1.0), best(tree, 1.0)):
        seen, said = measure(tree, budgets, 300, 1).separate, closed_form(tree.truth, budgets)
        assert seen.variance == pytest.approx(said.variance, rel=0.25)
        assert seen.variance[2] == pytest.approx(said.variance[2], rel=0.03)
        assert seen.bias[2] == pytest.approx(said.bias[2], rel=0.1)


def test_a_projection_is_the_nearest_point_that_adds_up() -> None:
    rng = np.random.default_rng(0)
    values, first = rng.laplace(2, 3, 40), np.array([0, 1, 9, 30])
    totals = np.array([4.0, 0.0, 25.0, 7.5])
    found = project(values, first, totals)
    assert (found >= 0).all()
    assert np.add.reduceat(found, first) == pytest.approx(totals)
    ends = [*first, len(values)]
    for one, other, total in zip(ends[:-1], ends[1:], totals, strict=True):
        inside = slice(one, other)
        for _ in range(200):
            point = rng.dirichlet(np.ones(other - one)) * total
            closer = ((point - values[inside]) ** 2).sum() - ((found[inside] - values[inside]) ** 2).sum()
            assert closer > -1e-9


def test_both_ways_to_be_consistent_add_up(tree: Tree) -> None:
    noisy = draw(tree.truth, uniform(1.0), np.random.default_rng(2))
    for way in (top_down, bottom_up):
        state, tracts, blocks = way(tree.truth, noisy)
        assert np.add.reduceat(blocks, tree.truth.first) == pytest.approx(tracts)
        assert tracts.sum() == pytest.approx(state[0])
        assert blocks.min() >= 0
    assert top_down(tree.truth, noisy)[0][0] == max(noisy[0][0], 0)


def test_sums_of_blocks_have_the_errors_of_the_formulas(tree: Tree) -> None:
    seen = measure(tree, (0.01, 0.01, 1.0), 300, 4)
    for errors, clipped in ((seen.bottom_up, True), (seen.raw_sums, False)):
        said = leaves_only(tree.truth, 1.0, clipped)
        assert errors.total == pytest.approx(said.total, rel=0.15)
    assert seen.bottom_up.bias[0] > 5 * seen.raw_sums.total


def test_the_least_loss_gives_the_error_that_was_asked_for(tree: Tree) -> None:
    answer = least_loss(terms(tree.prior), 3_000)
    assert answer.error == pytest.approx(3_000)
    assert closed_form(tree.prior, answer.budgets).total == pytest.approx(3_000)


def test_every_claim_is_judged_and_has_a_table(small: Study) -> None:
    judged = list(judges.claims([small]))
    assert len(judged) == 17
    assert all(len(claim.table) > 2 for claim in judged)
    assert judged[2].holds and judged[5].holds and judged[13].holds  # Theorem 3, program 7, Theorem 4
    assert judged[14].holds is False  # the truth must not divide the loss
    assert small.neighbour > 0 and small.by_prior >= small.by_truth


def _scaled(errors: Errors, bias: float = 1.0, variance: float = 1.0) -> Errors:
    return Errors(tuple(bias * one for one in errors.bias), tuple(variance * one for one in errors.variance))


def _outcomes(small: Study, change: Callable[[str, Outcome], Outcome]) -> Study:
    """A made-up run: every outcome is changed, by its split."""
    return replace(small, outcomes={(at, way): change(way, one) for (at, way), one in small.outcomes.items()})


def _errors(small: Study, bias: float, variance: float, consistent: float = 1.0) -> Study:
    """A made-up run: the uniform split has so many times the errors of the optimal one, before and after program 8."""
    base = small.outcomes[FIXED, "optimal"].separate

    def change(way: str, one: Outcome) -> Outcome:
        own = base if way == "optimal" else _scaled(base, bias, variance)
        return replace(one, separate=own, consistent=_scaled(own, *(2 * [1 if way == "optimal" else consistent])))

    return _outcomes(small, change)


def _after(small: Study, bias: float, variance: float) -> Study:
    return _outcomes(small, lambda _, one: replace(one, consistent=_scaled(one.separate, bias, variance)))


def _budgets(small: Study, *budgets: float) -> Study:
    return _outcomes(small, lambda _, one: replace(one, budgets=budgets))


def _least(small: Study, epsilon: float, rising: bool) -> Study:
    """A made-up run: the least loss for an error falls, most of it for the blocks, or rises, and least for them."""
    made = {}
    for at, tau in enumerate(sorted(small.least)):
        total = epsilon * (1 + (0.01 if rising else -0.01) * at)
        parts = (0.1, 0.2, 0.7) if not rising else (0.7, 0.2, 0.1)
        made[tau] = replace(small.least[tau], budgets=tuple(total * part for part in parts))
    return replace(small, least=made)


def _weights(small: Study, right: bool) -> Study:
    """A made-up run: with their weight the error of blocks falls and the others rise, least in all at equal weights."""
    sign = 1 if right else -1
    made = {
        weight: Errors(
            (0.0,) * 3, (100 + sign * (weight + (weight - 1 / 3) ** 2), 100 + sign * weight, 100 - 2 * sign * weight)
        )
        for weight in WEIGHTS
    }
    return replace(small, weighted_formulas=made)


def _upward(small: Study, better: bool) -> Study:
    own, other = Errors((0.0,) * 3, (1.0,) * 3), Errors((0.0,) * 3, (9e9,) * 3)
    down, up = (other, own) if better else (own, other)
    made = {at: replace(one, consistent=down, bottom_up=up, raw_sums=up) for at, one in small.weighted.items()}
    return replace(small, weighted=made)


def _dealt(small: Study, found: Callable[[str, str], Misallocation]) -> Study:
    """A made-up run: what shares are off by, by split and weighting, the same in all tracts."""
    return _outcomes(
        small, lambda way, one: replace(one, shares={(tract, kind): found(way, kind) for tract, kind in one.shares})
    )


def _split_shares(bias: tuple[float, float], variance: tuple[float, float]) -> Callable[[str, str], Misallocation]:
    return lambda way, _: Misallocation(bias[way == "optimal"], variance[way == "optimal"])


def _by_weighting(log: float, linear: float, square: float) -> Callable[[str, str], Misallocation]:
    """Made-up shares: so much bias and variance by weighting; the uniform split has more by the square of it."""
    found = {"log": log, "linear": linear, "quadratic": square}
    return lambda way, kind: Misallocation(found[kind] ** (1 + (way == "uniform")), found[kind])


Turn = Callable[[Study], Study]
TURNS: dict[str, tuple[Turn, Turn]] = {
    "lower_error": (lambda small: _errors(small, 2, 2), lambda small: _errors(small, 0.5, 0.5)),
    "bias_and_variance": (lambda small: _errors(small, 10, 4), lambda small: _errors(small, 0.5, 0.5)),
    "finer_levels_get_more": (
        lambda small: _budgets(small, 0.1, 0.2, 0.3),
        lambda small: _budgets(small, 0.3, 0.2, 0.1),
    ),
    "consistent_too": (lambda small: _errors(small, 3, 3, 1), lambda small: _errors(small, 3, 3, 0.1)),
    "consistency_helps": (lambda small: _after(small, 0.9, 0.9), lambda small: _after(small, 1.1, 1.1)),
    "least_loss": (lambda small: _least(small, 2, rising=False), lambda small: _least(small, 2, rising=True)),
    "prediction": (
        lambda small: replace(small, tree=whole(), least=dict.fromkeys(small.least, predicted())),
        lambda small: _least(small, 20, rising=False),
    ),
    "weights": (lambda small: _weights(small, right=True), lambda small: _weights(small, right=False)),
    "bottom_up": (lambda small: _upward(small, better=True), lambda small: _upward(small, better=False)),
    "shares_better": (
        lambda small: _dealt(small, _split_shares((2, 1), (2, 1))),
        lambda small: _dealt(small, _split_shares((1, 2), (1, 2))),
    ),
    "log_gap": (
        lambda small: _dealt(small, _by_weighting(1.1, 2, 3)),
        lambda small: _dealt(small, _by_weighting(3, 2, 1.1)),
    ),
    "shares_bias": (
        lambda small: _dealt(small, _by_weighting(3, 2, 3)),
        lambda small: _dealt(small, _by_weighting(1, 2, 1)),
    ),
    "shares_variance": (
        lambda small: _dealt(small, _by_weighting(1, 2, 3)),
        lambda small: _dealt(small, _by_weighting(3, 2, 1)),
    ),
    "truth_for_the_split": (lambda small: replace(small, neighbour=0.0), lambda small: small),
    "engine": (
        lambda small: replace(small, engine={at: 2.0 if at[1] == "uniform" else 1.0 for at in small.engine}),
        lambda small: replace(small, engine={at: 1.0 if at[1] == "uniform" else 2.0 for at in small.engine}),
    ),
}
TURNS["tuned_splits"] = (
    lambda small: replace(small, tuned={"separate": 2.0, "consistent": 1.0, "refined": 1.5}),
    lambda small: replace(small, tuned={"separate": 1.0, "consistent": 1.0, "refined": 0.995}),
)
TURNED = {*(f"loss_split.{name}" for name in TURNS), "loss_split.skewness"}
"""The verdicts that runs of this module turn."""


@pytest.mark.parametrize("name", TURNS)
def test_a_made_up_run_turns_the_verdict(name: str, small: Study) -> None:
    holds, fails = (getattr(judges, name)([turn(small)]) for turn in TURNS[name])
    assert (holds.word, fails.word) == ("Holds", "Does not hold")
    assert holds.verdict != fails.verdict


def test_biases_that_fall_with_skewness_turn_the_theorem(small: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    assert judges.skewness([small]).word == "Holds"

    def falling(law: object, budget: float, counts: ArrayLike) -> SkewedBias:
        return SkewedBias(0.0, 1 / (1 + float(np.square(counts).sum())), 10.0)

    monkeypatch.setattr(judges, "skewed_bias", falling)
    assert judges.skewness([small]).word == "Does not hold"


def test_biases_that_chance_alone_explains_are_no_proof(small: Study) -> None:
    within = _dealt(small, _split_shares((2.56e-6, 1.56e-5), (0.178, 0.0337)))
    claim = judges.shares_better([within, _dealt(small, _split_shares((2, 1), (2, 1)))])
    assert claim.word == "In part" and "nothing can be told of them" in claim.verdict
    assert "2.56e-06 → 1.56e-05 (chance alone leaves 0.006)" in "".join(claim.table)


def test_those_that_share_a_prior_are_one_case_where_only_the_prior_matters(small: Study) -> None:
    again = replace(small, tree=replace(small.tree, title="Another state"))
    alone, both = (judges.finer_levels_get_more(some) for some in ([small], [small, again]))
    assert "In all 5 distinct cases" in alone.verdict and "In all 5 distinct cases" in both.verdict
    assert "Wyoming's shape and Another state share a prior" in both.verdict and "share" not in alone.verdict
    assert len(judges.least_loss([small, again]).table) == len(judges.least_loss([small]).table)


def test_a_bias_of_zero_is_shown_at_the_edge_of_a_logarithmic_axis(small: Study) -> None:
    none = _dealt(small, lambda way, kind: Misallocation(0.0 if kind == "log" else 1e-3, 1.0))
    above, below = figure_6([none]).axes
    hollow, others = (
        [np.asarray(line.get_xdata()).tolist() for line in axes.get_lines() if line.get_markerfacecolor() == "none"]
        for axes in (above, below)
    )
    assert hollow == 2 * [list(EPSILONS)] and not others


def test_the_study_can_be_repeated(tree: Tree) -> None:
    budgets = best(tree, 1.0)
    assert measure(tree, budgets, 5, 3, (0,)) == measure(tree, budgets, 5, 3, (0,))


def test_releases_are_kept_and_not_made_again(tree: Tree, small: Study, tmp_path: Path) -> None:
    few = Size(runs=2, weight_runs=2, engine_runs=2, tracts=1)
    first = study(tree, few, Kept(tmp_path / "runs.jsonl"))
    again = Kept(tmp_path / "runs.jsonl")
    assert study(tree, few, again).outcomes == first.outcomes
    assert study(tree, few, again).engine == first.engine and len(again.found) == len(first.outcomes) + len(WEIGHTS) + 2


def test_treetops_own_releases_gain_from_the_split(small: Study) -> None:
    for repair in ("chebyshev", "euclidean"):
        assert small.engine[repair, "optimal"] < small.engine[repair, "uniform"]


def test_page_and_figures_are_written(small: Study, tmp_path: Path) -> None:
    from experiments.loss_split.figures import CAPTIONS
    from experiments.loss_split.figures import draw as draw_figures

    files = draw_figures([small], tmp_path / "images")
    assert len(files) == 6
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
    text = page.page([small], CAPTIONS)
    assert text.count("](../images/loss_split_") == 6
    assert f"| {number(small.outcomes[FIXED, 'optimal'].separate.total)} |" in text


def test_the_quick_run_prints_and_writes_nothing(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.loss_split.__main__.trees", lambda _: [tree])
    monkeypatch.setattr("experiments.loss_split.__main__.QUICK", SMALL)
    run = CliRunner().invoke(command, ["--quick", "--data", str(tmp_path / "absent"), "--docs", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert run.output.startswith("the real blocks are skipped:")
    assert "### 16." in run.output
    assert list(tmp_path.iterdir()) == []


def test_the_plots_of_the_page_are_small() -> None:
    pictures = list((DOCS / "images").glob("loss_split_*.png"))
    assert len(pictures) == 6
    assert all(picture.stat().st_size < 80_000 for picture in pictures)
