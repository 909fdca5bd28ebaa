"""The experiments on dividing a loss, on small trees: releases follow the formulas, and consistency adds up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.kit.cases import DOCS
from experiments.loss_split import claims as judges
from experiments.loss_split import page
from experiments.loss_split.__main__ import command
from experiments.loss_split.claims import number
from experiments.loss_split.measure import (
    best,
    bottom_up,
    closed_form,
    draw,
    least_loss,
    leaves_only,
    measure,
    project,
    terms,
    top_down,
    uniform,
)
from experiments.loss_split.page import claims
from experiments.loss_split.study import FIXED, WAYS, Size, Study, study
from experiments.loss_split.trees import SHAPE, Tree, made_up

SMALL = Size(runs=30, weight_runs=10, engine_runs=2, tracts=3)


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
    whole = made_up()
    flat, good = (closed_form(whole.truth, budgets).total for budgets in (uniform(FIXED), best(whole, FIXED)))
    assert flat > judges.ASKED * good


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
    judged = list(claims([small]))
    assert len(judged) == 16
    assert all(len(claim.table) > 2 for claim in judged)
    assert judged[2].holds and judged[5].holds and judged[13].holds  # Theorem 3, program 7, Theorem 4
    assert judged[14].holds is False  # the truth must not divide the loss
    assert small.neighbour > 0 and small.by_prior >= small.by_truth


def test_a_claim_that_fails_is_reported_as_failing(small: Study) -> None:
    swapped = {(epsilon, way): small.outcomes[epsilon, WAYS[way == WAYS[0]]] for epsilon, way in small.outcomes}
    other = Study(**{**vars(small), "outcomes": swapped})
    assert judges.threefold([other]).holds is False
    assert judges.consistent_too([other]).holds is False
    assert "| Does not hold |" in page.judged([other])


def test_the_study_can_be_repeated(tree: Tree) -> None:
    budgets = best(tree, 1.0)
    assert measure(tree, budgets, 5, 3, (0,)) == measure(tree, budgets, 5, 3, (0,))


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
