"""The study of graphs, on a small network: it measures, draws and writes what its page shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.graphs.__main__ import command
from experiments.graphs.measure import METHODS, Study, noise_of_questions, study
from experiments.graphs.networks import networks
from experiments.kit.cases import DATA


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Study:
    nowhere = tmp_path_factory.mktemp("no-data")
    return study(networks(nowhere, quick=True), epsilons=(0.5, 5.0), runs=2)


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


def test_sharing_rho_costs_the_root_of_what_sharing_epsilon_costs() -> None:
    pure, zcdp = noise_of_questions((1.0,)).values()
    assert pure[-1, 0] / pure[0, 0] == pytest.approx(200, rel=0.06)
    assert zcdp[-1, 0] / zcdp[0, 0] == pytest.approx(200**0.5, rel=0.01)


def test_rebalancing_by_even_shares_lowers_large_groups_and_raises_small_ones(small: Study) -> None:
    (row,) = small.balanced.values()
    assert set(row.errors) == set(METHODS)
    bias = row.bias["rebalanced, even shares"]
    assert bias[0] > 0 > bias[-1]


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


def test_the_command_writes_a_page_and_four_plots(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--quick", "--docs", str(tmp_path), "--data", str(tmp_path)])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "results" / "graphs.md").read_text(encoding="utf-8")
    for name in ("errors", "degrees", "questions", "rebalancing"):
        assert (tmp_path / "images" / f"graphs_{name}.png").stat().st_size > 5_000
        assert f"graphs_{name}.png" in page
