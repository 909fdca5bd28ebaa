"""The study of resolution on made-up tables: it measures, judges, draws and writes what its page shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.kit.cases import DOCS
from experiments.kit.tables import percent
from experiments.resolution import page
from experiments.resolution.__main__ import command, write
from experiments.resolution.figures import SETTING_COLOURS, TABLE_COLOURS
from experiments.resolution.measure import SETTINGS, TREES, Outcome, Study, excess, sparse, study, tables
from experiments.resolution.named import among, held, villages
from tests.pictures import colours_in

FULL = SETTINGS[0]


@pytest.fixture(scope="module")
def studies() -> list[Study]:
    return [study(sparse(tree), runs=3) for tree in TREES]


@pytest.fixture(scope="module")
def written(studies: list[Study], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The page of these and its pictures."""
    return write(studies, tmp_path_factory.mktemp("docs"))


def test_every_setting_is_run_with_every_loss_and_with_fresh_noise(studies: list[Study]) -> None:
    for one in studies:
        assert {(outcome.epsilon, outcome.way) for outcome in one.outcomes} == {
            (epsilon, setting) for epsilon in (1.0, 10.0) for setting in SETTINGS
        }
        for outcome in one.outcomes:
            assert len({run[-1] for run in outcome.runs}) == 3


def test_the_study_can_be_repeated(studies: list[Study]) -> None:
    again = study(sparse("random"), epsilons=(10.0,), runs=1)
    assert [outcome.runs[0] for outcome in again.outcomes] == [
        outcome.runs[0] for outcome in studies[1].outcomes[len(SETTINGS) :]
    ]


def test_a_stricter_setting_invents_fewer_leaves_and_resolves_less(studies: list[Study]) -> None:
    for one in studies:
        for epsilon in one.epsilons:
            loose, strict = (one.outcome(epsilon, setting) for setting in (SETTINGS[1], SETTINGS[5]))
            full = one.outcome(epsilon, FULL)
            assert full.spread(-1, "resolved").low == 1
            assert full.spread(-1, "false_discoveries").low > 0.4
            for metric in ("false_discoveries", "resolved"):
                assert strict.spread(-1, metric).high < loose.spread(-1, metric).low <= full.spread(-1, metric).low


def test_the_rate_that_was_asked_for_is_held(studies: list[Study]) -> None:
    every = list(page.promises(studies))
    assert len(every) == 2 * 4 * (16 + 8)
    assert all(promise.excess < 4 for promise in every)
    above = [promise for promise in every if promise.found.mean > promise.asked]
    assert len(above) < len(every) / 10


def test_a_rate_that_is_not_held_is_told(studies: list[Study]) -> None:
    one = studies[1]
    row = one.outcomes[1].runs[0][-1]
    rates = (0.30, 0.31, 0.32)
    pairs = zip(one.outcomes[1].runs, rates, strict=True)
    runs = tuple((*run[:-1], replace(row, false_discoveries=rate)) for run, rate in pairs)
    bad = Outcome(1.0, SETTINGS[1], runs)
    assert excess(bad, -1) == pytest.approx(0.21 / (0.01 / 3**0.5))
    told = page.page([replace(one, outcomes=(one.outcomes[0], bad, *one.outcomes[2:]))])
    assert "Where the mean is above:" in told
    assert "| 0.1 | 31.0% (30.0%–32.0%) | 36.4 |" in told


TURNED = {"resolution.rate"}
"""The verdicts that runs of this module turn."""


def test_a_made_up_run_turns_the_verdict(studies: list[Study]) -> None:
    def invented(share: float) -> Study:
        def made(outcome: Outcome) -> Outcome:
            rates = (share, share + 1e-4, share + 2e-4)
            runs = tuple(
                tuple(replace(row, false_discoveries=rate) for row in run)
                for run, rate in zip(outcome.runs, rates, strict=True)
            )
            return replace(outcome, runs=runs)

        return replace(studies[1], outcomes=tuple(map(made, studies[1].outcomes)))

    assert [page.rate([invented(share)]) for share in (0.0, 0.07, 0.9)] == ["Holds", "In part", "Does not hold"]
    assert page.rate([]) == "Not run"


def test_intervals_of_the_named_hold_as_often_as_they_say_and_plain_ones_do_not() -> None:
    found = list(among(sparse("random"), epsilons=(1.0,), runs=4))
    assert [one.setting.label for one in found] == ["fdr 0.10", "fdr 0.05", "3 sigmas"]
    loose = found[0]
    assert loose.covered(-1, own=True) > 0.95 > loose.covered(-1, own=False)
    assert all(1.1 < one.wider < 2 and one.everywhere > 0.9 for one in found)


def test_the_rate_on_a_tree_with_many_only_children_is_told_by_release_and_pooled(studies: list[Study]) -> None:
    (loose, strict) = held(villages(), epsilons=(2.0,), runs=50)
    assert (loose.asked, strict.asked) == (0.1, 0.05)
    assert len(strict.proportions) == 50 and 0 < strict.empty < strict.named < loose.named
    told = page.page(studies, list(among(sparse("random"), epsilons=(1.0,), runs=1)), [loose, strict])
    assert "| 2 | 0.05 |" in told and "| Made up: random tree, sparse | 1 | fdr 0.05 |" in told


def test_the_page_and_its_pictures_are_written(studies: list[Study], written: list[Path]) -> None:
    text, *pictures = written
    told = text.read_text(encoding="utf-8")
    invented, resolved = (studies[0].outcome(1.0, FULL).spread(-1, m).mean for m in ("false_discoveries", "resolved"))
    assert f"| {percent(invented)} / {percent(resolved)} |" in told
    assert told.count("| origin.level8 (") == 2 * len(SETTINGS)
    for picture in pictures:
        assert f"](../images/{picture.name})" in told
        assert picture.stat().st_size < 150_000


@pytest.mark.parametrize(("name", "colours"), [("choice", TABLE_COLOURS[:2]), ("levels", SETTING_COLOURS)])
def test_every_line_keeps_its_colour_in_the_file(name: str, colours: tuple[str, ...], written: list[Path]) -> None:
    (picture,) = (file for file in written if file.name == f"resolution_{name}.png")
    pixels = colours_in(picture)
    for colour in colours:
        wanted = np.frombuffer(bytes.fromhex(colour[1:]), np.uint8).astype(np.int64)
        assert np.abs(pixels - wanted).max(axis=1).min() <= 25


def test_the_quick_study_needs_no_real_tables(tmp_path: Path) -> None:
    run = CliRunner().invoke(command, ["--quick", "--runs", "1", "--docs", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert "skipped" not in run.output
    assert (tmp_path / "results" / "resolution.md").is_file()


def test_without_the_real_tables_only_the_made_up_ones_are_there() -> None:
    assert [table.name for table in tables(None)] == ["binary-sparse", "random-sparse"]


def test_the_pictures_of_the_documentation_are_those_of_the_page() -> None:
    written = (DOCS / "results" / "resolution.md").read_text(encoding="utf-8")
    for name in page.PICTURES:
        assert f"](../images/{name})" in written
        assert (DOCS / "images" / name).stat().st_size < 150_000
