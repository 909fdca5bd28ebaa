"""The study of graphs, on a small network: it measures, draws, judges, and writes what its page shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.graphs import claims, page
from experiments.graphs.__main__ import command
from experiments.graphs.figures import LINES, WAYS, draw
from experiments.graphs.measure import AS_PUBLISHED, PURE, SHARED, Study, noise_of_questions, study
from experiments.graphs.networks import networks
from experiments.graphs.rebalanced import AVERAGE, BESIDE, EVEN, FIRST, HALF, METHODS, PUBLIC, REPAIRED, second_mean
from experiments.graphs.theta import distance
from experiments.graphs.tradeoff import PAPER_DELTA, RANGES, knee
from experiments.kit.cases import DATA
from tests.pictures import colours_in

EPSILONS = (0.5, 5.0)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Study:
    nowhere = tmp_path_factory.mktemp("no-data")
    return study(networks(nowhere, quick=True), EPSILONS, runs=2, thetas=(5, 10, 20, 40))


def test_more_loss_and_weaker_protection_leave_fewer_edges_in_the_wrong_cell(small: Study) -> None:
    (rows,) = small.errors.values()
    assert [row.relation for row in rows] == ["edge", "user-out", "node"]
    for row in rows[:2]:  # the promise of "node" is far too wide for so few edges: nothing but noise
        assert row.misplaced[1].mean() < row.misplaced[0].mean()
    edge, out, node = (row.misplaced[1].mean() for row in rows)
    assert edge < out < node
    assert rows[0].truncated == rows[2].truncated == 0 < rows[1].truncated < 1


def test_degrees_are_shown_with_truncation_apart_from_noise(small: Study) -> None:
    (row,) = small.degrees.values()
    assert (np.diff(row.edge) >= 0).all() and row.edge[-1] == row.truth[-1]
    assert len(row.projected) == len(row.node) == row.theta + 1
    assert row.errors["edge, noise"] < row.errors["node, noise"]
    assert row.absolute.shape == row.relative.shape == (3, 2)


def test_a_small_theta_cuts_and_the_best_is_between(small: Study) -> None:
    (row,) = small.sweeps.values()
    assert (np.diff(row.cut) < 0).all()
    assert row.fixed.shape == (2, 4, 2) and row.thetas[row.best(1)] in (20, 40)
    assert set(row.chosen.ravel().tolist()) <= set(row.thetas)
    # Five has nine of ten people above it, whatever the noise.
    assert row.fixed[1, 0].mean() > 0.8 > row.private[1].mean()


def test_a_distance_counts_people_above_the_last_degree_as_told_apart_from_it() -> None:
    assert distance(np.array([0, 10]), np.array([0, 5, 10])) == 0.5
    assert distance(np.array([0, 5, 10]), np.array([0, 5, 10])) == 0


def test_the_knee_of_one_over_epsilon_is_the_root_of_its_ends() -> None:
    x = np.linspace(0.1, 10, 5_000)
    assert knee(x, 1 / x) == pytest.approx(1.0, rel=0.01)


def test_sharing_rho_costs_the_root_of_what_sharing_epsilon_costs() -> None:
    found = noise_of_questions((1.0,))
    assert found[PURE][-1, 0] / found[PURE][0, 0] == pytest.approx(200, rel=0.06)
    assert found[SHARED][-1, 0] / found[SHARED][0, 0] == pytest.approx(200**0.5, rel=0.01)
    assert found[AS_PUBLISHED][-1, 0] / found[AS_PUBLISHED][0, 0] == pytest.approx(200, rel=0.1)


def test_rebalancing_by_even_shares_lowers_large_groups_and_raises_small_ones(small: Study) -> None:
    (row,) = small.balanced.values()
    assert set(row.errors) == set(row.bias) == set(METHODS)
    mean, _ = row.shift(EVEN)
    assert mean[0, 0] > 0 > mean[0, -1]


def test_the_published_mean_is_zero_where_each_reading_says_and_as_wide_as_the_noise_for_a_whole_region() -> None:
    for method, even in ((HALF, 0.5), (AVERAGE, 0.1)):
        mean = second_mean(method, np.array([even, 1.0, 0.0]), 10, 7.0)
        assert mean[0] == 0 and mean[1] == pytest.approx(7) and mean[2] < 0


def test_the_real_networks_are_read_where_they_lie() -> None:
    if not DATA.is_dir():
        pytest.skip(f"the real networks are not here: {DATA} does not exist")
    found = {network.name: network for network in networks(DATA, quick=True)}
    assert found["lastfm"].nodes.num_rows == 7_624 and found["lastfm"].edges.num_rows == 27_806
    assert found["twitch"].nodes.num_rows == 34_118 and found["twitch"].edges.num_rows == 429_113
    for network in (found["lastfm"], found["twitch"]):
        graph = network.graph("edge")
        nodes = graph.read_nodes()
        assert graph.read_edges(nodes).degrees(len(nodes)).max() <= network.bound


def _balanced(small: Study, **bias: float) -> Study:
    """A run in which every method has the bias that is stated, from small groups to large ones, and nearly no noise."""
    ((network, row),) = small.balanced.items()
    wiggle = np.random.default_rng(1).normal(0, 0.01, next(iter(row.bias.values())).shape)
    slope = np.array([-1, -0.3, 0.3, 1])[None, :, None]
    made = {method: bias.get(_NAMES[method], 0.0) * slope + wiggle * (1 + i) for i, method in enumerate(METHODS)}
    return replace(small, balanced={network: replace(row, bias=made)})


_NAMES = dict(zip(METHODS, ("first", "half", "average", "repaired", "even", "public"), strict=True))


def _errors(small: Study, **factor: float) -> Study:
    """A run in which errors of rebalancing are so many times those without."""
    ((network, row),) = small.balanced.items()
    made = {method: np.full_like(runs, factor.get(_NAMES[method], 1.0)) for method, runs in row.errors.items()}
    return replace(small, balanced={network: replace(row, errors=made)})


def _noise(small: Study, **tables: np.ndarray) -> Study:
    names = {"published": AS_PUBLISHED, "pure": PURE, "shared": SHARED}
    return replace(small, noise={**small.noise, **{names[name]: table for name, table in tables.items()}})


def _knees(small: Study, *found: float) -> Study:
    knees = {**small.tradeoff.knees, PAPER_DELTA: found}
    return replace(small, tradeoff=replace(small.tradeoff, knees=knees))


def _kept(small: Study, times: float) -> Study:
    made = tuple(replace(one, kept=times * one.epsilon) for one in small.tradeoff.conversions)
    return replace(small, tradeoff=replace(small.tradeoff, conversions=made))


def _thirds(small: Study, *errors: float) -> Study:
    ((network, row),) = small.degrees.items()
    made = np.array(errors)[:, None] + np.random.default_rng(2).normal(0, 0.01, (3, 6))
    return replace(small, degrees={network: replace(row, absolute=made, relative=made)})


def _table(small: Study, rising: bool) -> np.ndarray:
    return small.noise[AS_PUBLISHED] if rising else small.noise[AS_PUBLISHED][::-1]


INSIDE = (0.4,) * len(RANGES)
FLIPPED: dict[str, tuple[Callable[[Study], Study], Callable[[Study], Study]]] = {
    "conversion": (lambda small: _kept(small, 0.9), lambda small: _kept(small, 1.1)),
    "best_epsilon": (lambda small: _knees(small, *INSIDE), lambda small: _knees(small, 0.8, *INSIDE[1:])),
    "degree_noise": (lambda small: _thirds(small, 1, 2, 3), lambda small: _thirds(small, 3, 3, 3)),
    "more_questions": (
        lambda small: _noise(small, published=_table(small, True)),
        lambda small: _noise(small, published=_table(small, False)),
    ),
    "shares_of_epsilon": (
        lambda small: _noise(small, shared=2 * small.noise[PURE]),
        lambda small: _noise(small, shared=small.noise[PURE] / 2),
    ),
    "first_noise": (_balanced, lambda small: _balanced(small, first=-1)),
    "second_noise": (
        lambda small: _errors(small, half=1.5, average=1.5),
        lambda small: _errors(small, half=1.5, average=0.9),
    ),
    "big_bigger": (
        lambda small: _balanced(small, half=1, average=1),
        lambda small: _balanced(small, half=-1, average=-1),
    ),
    "no_migration": (_balanced, lambda small: _balanced(small, repaired=-1)),
    "private_variant": (
        lambda small: _errors(small, even=0.9, public=0.9),
        lambda small: _errors(small, even=1.1, public=1.1),
    ),
}


TURNED = {*(f"graphs.{name}" for name in FLIPPED), "graphs.agreement", "graphs.prices"}
"""The verdicts that runs of this module turn."""


@pytest.mark.parametrize("name", FLIPPED)
def test_a_verdict_follows_from_the_run_that_it_stands_under(name: str, small: Study) -> None:
    judge = getattr(claims, name)
    holds, fails = (judge(make(small)) for make in FLIPPED[name])
    assert holds.holds is True and fails.holds is False
    assert holds.verdict != fails.verdict


def test_every_claim_that_is_judged_has_a_run_that_turns_it(small: Study) -> None:
    assert claims.big_bigger(_balanced(small, half=1, average=-1)).holds is None  # the readings differ
    for claim in claims.claims(small):
        assert claim.title and claim.verdict and len({line.count("|") for line in claim.table}) == 1


def test_what_is_said_of_private_rebalancing_follows_from_the_run(small: Study) -> None:
    better = claims.private_variant(_errors(small, even=0.5, public=1.5)).verdict
    assert "even shares the error is lower in 2 of 2" in better and "public survey it is lower in 0 of 2" in better
    raised = claims.private_variant(_balanced(small, even=-1)).verdict
    assert "smallest in 1 of 1 networks" in raised
    assert "smallest in 0 of 1 networks" in claims.private_variant(_balanced(small)).verdict
    back = claims.no_migration(_balanced(small, repaired=1))
    assert back.holds is True and "In 2 settings it is the other way round" in back.verdict
    assert FIRST not in BESIDE and REPAIRED not in BESIDE and BESIDE[PUBLIC] == REPAIRED


def test_the_price_of_choosing_and_the_agreement_with_the_arithmetic_follow_from_the_run(small: Study) -> None:
    ((network, row),) = small.sweeps.items()
    twice = replace(row, private=np.stack([2 * row.fixed[i, row.best(i)] for i in range(2)]))
    found = page.prices(replace(small, sweeps={network: twice}))
    assert found["least"] == pytest.approx(2) and found["most"] == pytest.approx(2)
    ((own, rows),) = small.errors.items()
    right = page.agreement(small)
    wrong = [replace(one, misplaced=np.full_like(one.misplaced, 0.01)) for one in rows]
    assert right == (2, 2) and page.agreement(replace(small, errors={own: wrong})) == (0, 2)


def test_the_page_says_of_each_claim_whether_it_holds(small: Study) -> None:
    told = page.page(_knees(small, *INSIDE))
    section = told.split("Figure 5: with delta")[1].split("### ")[0]
    assert "**Holds.**" in section and "Near, A. Tamene and D. Wu" in told
    section = page.page(_knees(small, 0.8, *INSIDE[1:])).split("Figure 5: with delta")[1].split("### ")[0]
    assert "**Does not hold.**" in section


def test_every_line_has_a_colour_of_its_own_in_the_file(small: Study, tmp_path: Path) -> None:
    files = {file.name: file for file in draw(small, tmp_path)}
    wanted = {
        "graphs_rebalancing.png": list(WAYS.values()),
        "graphs_theta.png": [colour for colour, _ in LINES[: len(EPSILONS)]],
    }
    for name, colours in wanted.items():
        assert len(set(colours)) == len(colours)
        pixels = colours_in(files[name])
        for colour in colours:
            rgb = np.frombuffer(bytes.fromhex(colour[1:]), np.uint8).astype(np.int64)
            assert np.abs(pixels - rgb).max(axis=1).min() <= 25


def test_the_command_writes_a_page_and_its_plots(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--quick", "--docs", str(tmp_path), "--data", str(tmp_path)])
    assert done.exit_code == 0, done.output
    written = (tmp_path / "results" / "graphs.md").read_text(encoding="utf-8")
    for name in ("errors", "theta", "degrees", "tradeoff", "questions", "rebalancing"):
        assert (tmp_path / "images" / f"graphs_{name}.png").stat().st_size > 5_000
        assert f"graphs_{name}.png" in written
