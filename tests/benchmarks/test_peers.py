"""Treetop beside public tools: what a tool releases is compared as it was released, and what cannot run is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.peers.__main__ import DELTA, EPSILON, PEERS, Outcome, Peer, _estimate, _truth, common_rho, page, run
from benchmarks.peers.common import Square, loose_epsilon
from benchmarks.peers.environments import Environment
from benchmarks.peers.ours import prepare
from benchmarks.synthetic import OriginDestination, two_level_square
from treetop.addons.lab.comparison import estimate_errors
from treetop.privacy import rho_from_epsilon_loose


@pytest.fixture(scope="module")
def square() -> OriginDestination:
    return two_level_square(zones=12, regions=4, trips=5_000)


def levels(square: OriginDestination) -> dict[str, NDArray[np.int64]]:
    """The true counts as a script writes them: of one run, every level by itself."""
    origin, destination = square.records()
    region = square.parents[1]
    cells = Square(origin, destination, region, 1.0, 1e-8, 0.02).cells()
    member = np.zeros((4, 12), np.int64)
    member[region, np.arange(12)] = 1
    found = {
        "leaves": cells,
        "1": member @ cells.sum(axis=0),
        "2": member @ cells.T @ member.T,
        "3": cells.T @ member.T,
    }
    return {name: value[None] for name, value in found.items()}


def test_the_truth_released_has_no_errors(square: OriginDestination) -> None:
    spine, truth = _truth(square)
    for arrays in (levels(square), {"leaves": levels(square)["leaves"]}):
        estimate = _estimate(spine, arrays, 0)
        assert estimate.violations() == 0
        assert [errors.largest for errors in estimate_errors(estimate, truth)] == [0] * 5


@pytest.mark.parametrize(("name", "level"), [("1", 1), ("2", 2), ("3", 3), ("leaves", 4)])
def test_an_error_shows_at_the_level_that_it_was_made_at(square: OriginDestination, name: str, level: int) -> None:
    spine, truth = _truth(square)
    arrays = levels(square)
    arrays[name][0].flat[-1] += 9
    estimate = _estimate(spine, arrays, 0)
    largest = [errors.largest for errors in estimate_errors(estimate, truth)]
    assert largest[level] == 9
    assert sum(error > 0 for error in largest) == (2 if level == 1 else 1)  # the total is the sum of the first level
    assert estimate.violations() > 0


def test_a_tool_that_converts_as_the_paper_does_is_given_the_common_rho() -> None:
    epsilon = loose_epsilon(0.0192, 1e-8)
    assert float(rho_from_epsilon_loose(epsilon, 1e-8)) == pytest.approx(0.0192, rel=1e-9)


def test_every_plan_of_treetop_spends_the_rho_that_the_other_tools_are_given(square: OriginDestination) -> None:
    spine, _ = _truth(square)
    rho = common_rho(spine)
    origin, destination = square.records()
    for plain in (False, True):
        prepare(Square(origin, destination, square.parents[1], EPSILON, DELTA, rho, plain))
    with pytest.raises(SystemExit, match="the others are to spend"):
        prepare(Square(origin, destination, square.parents[1], EPSILON, DELTA, 1.1 * rho))


def test_a_tool_that_cannot_be_run_is_named_with_the_reason(square: OriginDestination, tmp_path: Path) -> None:
    spine, truth = _truth(square)
    broken = Environment(tmp_path / "empty", ())
    broken.folder.mkdir()
    (broken.folder / ".ready").touch()
    (broken.folder / "bin").mkdir()
    broken.python.write_text("#!/bin/sh\necho 'no such tool' >&2\nexit 1\n")
    broken.python.chmod(0o755)
    peer, files = Peer("Broken", "nothing", broken), (tmp_path / "table.npz", tmp_path / "out.npz")
    why = run(peer, *files, spine, truth, np.zeros(12, int), 0.02)
    assert why == "it could not be run: no such tool"


def test_the_page_has_a_row_a_tool_and_says_what_is_missing(square: OriginDestination) -> None:
    spine, truth = _truth(square)
    estimate = _estimate(spine, levels(square), 0)
    errors = [estimate_errors(estimate, truth)]
    outcome = Outcome(PEERS[0], "Treetop 1", "exact", errors, [0], [5_000.0], [0.1], [0.1], 2**20, 0.02)
    lines = page([outcome], [(PEERS[-1], "it could not be installed: no network")], square)
    assert sum(line.startswith("| Treetop") for line in lines) == 3
    assert any("rho = 0.02" in line for line in lines if line.startswith("| Treetop"))
    assert lines[-1] == "- mbi is not here: it could not be installed: no network."


def test_the_page_finds_who_errs_least_and_most_at_each_level(square: OriginDestination) -> None:
    spine, truth = _truth(square)
    outcomes = []
    for at, peer in enumerate(PEERS[:3]):
        arrays = levels(square)
        arrays["leaves"][0].flat[-1] += 7 * ((at + 1) % 3)  # the third is exact, the second furthest off
        found = estimate_errors(_estimate(spine, arrays, 0), truth)
        outcomes.append(Outcome(peer, "1", "exact", [found], [0], [5_000.0], [0.1], [0.1], 2**20, 0.02))
    row = next(line for line in page(outcomes, [], square) if line.startswith("| origin.zone |"))
    third, second = PEERS[2].title, PEERS[1].title
    assert row == f"| origin.zone | {third} | {second} | {third} | {second} |"
