"""The paper's experiments again: what is run, what is judged, and the page that is written, on the small tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.inftda import claims as judges
from experiments.inftda import measure, page
from experiments.inftda.claims import PUBLISHED, PUBLISHED_SOLVER, claims, paper_bound, trials
from experiments.inftda.figures import SHOWN, draw
from experiments.inftda.measure import (
    DELTA,
    EPSILONS,
    REAL,
    SOLVER,
    Batch,
    batches,
    case_of,
    half_budget,
    run_solver,
    run_table,
    solver_losses,
)
from experiments.kit.cases import MADE_UP, made_up
from experiments.kit.runs import Kept
from tests.pictures import colours_in
from treetop.addons.lab.comparison import Comparison, Trial
from treetop.addons.lab.mechanisms.registry import MECHANISMS
from treetop.addons.lab.plots import STYLES
from treetop.privacy import rho_from_epsilon_loose

Found = dict[str, Comparison]


@pytest.fixture(scope="module")
def found() -> Found:
    """The sparse tables by every mechanism but the solver, twice each."""
    few = [replace(batch, repeats=2) for batch in batches("random-sparse") if batch.mechanisms != (SOLVER,)]
    return {name: run_table(name, case_of(made_up(name)), few, jobs=1) for name in ("binary-sparse", "random-sparse")}


@pytest.fixture(scope="module")
def drawn(found: Found, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The figures of these."""
    return draw(found, tmp_path_factory.mktemp("images"))


@pytest.mark.parametrize("table", MADE_UP)
def test_all_mechanisms_but_the_solver_are_run_ten_times_at_every_epsilon_under_both_accountings(table: str) -> None:
    chosen = [batch for batch in batches(table) if batch.repeats == 10 and len(batch.mechanisms) > 1]
    assert {batch.accounting for batch in chosen} == {"paper", "tight"}
    for batch in chosen:
        assert set(batch.mechanisms) == set(MECHANISMS) - {SOLVER, "lower-error"}  # which is not of the papers
        assert batch.epsilons == EPSILONS


def test_the_solver_is_run_five_times_where_a_run_takes_under_a_minute_and_not_beyond_one_that_takes_more(
    found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trial, *_) = trials(found, "random-sparse", "inftda", 1.0)
    ran: list[tuple[float, int]] = []

    def run(name: str, case: object, chosen: list[Batch], *_: object) -> Comparison:
        ran.append((chosen[0].epsilons[0], chosen[0].again))
        return Comparison((replace(trial, seconds=61.0 if chosen[0].epsilons[0] == 1 else 59.0),))

    monkeypatch.setattr(measure, "run_table", run)
    made_up_runs = run_solver("random-sparse", case_of(made_up("random-sparse")), 1, Kept())
    assert ran == [*((0.1, again) for again in range(5)), (1.0, 0)] and len(made_up_runs.trials) == 6
    assert solver_losses("binary-complete") == EPSILONS and solver_losses(REAL) == (0.1,)
    assert len({Batch((SOLVER,), (0.1,), "paper", 1, again).name for again in range(5)}) == 5


Change = Callable[[Trial], Trial]


def leaves(trial: Trial, **changes: Any) -> Trial:
    return replace(trial, errors=(*trial.errors[:-1], replace(trial.errors[-1], **changes)))


def top(trial: Trial, largest: float) -> Trial:
    return replace(trial, errors=(trial.errors[0], replace(trial.errors[1], largest=largest), *trial.errors[2:]))


def made(found: Found, change: Change, *more: str) -> Found:
    """A made-up run: every trial is changed; `more` mechanisms are copies of InfTDA's runs, before the change."""
    result = {}
    for table, comparison in found.items():
        every = list(comparison.trials)
        for name in more:
            every += [
                replace(trial, setting=replace(trial.setting, mechanism=name))
                for trial in comparison.trials
                if trial.setting.mechanism == "inftda" and trial.setting.accounting == "paper"
            ]
        result[table] = Comparison(tuple(map(change, every)))
    return result


def by_mechanism(what: Callable[[Trial, float], Trial], **values: float) -> Change:
    """Change the trials of mechanisms, by name with _ for -; all others are as the last value says."""
    return lambda trial: what(trial, values.get(trial.setting.mechanism.replace("-", "_"), values["others"]))


def largest(trial: Trial, value: float) -> Trial:
    return leaves(trial, largest=value)


def invented(trial: Trial, value: float) -> Trial:
    return leaves(trial, false_discoveries=value)


def timed(trial: Trial, value: float) -> Trial:
    return replace(trial, seconds=value)


def both(trial: Trial, value: float) -> Trial:
    """The larger the error at the leaves, the smaller that at the first level."""
    return top(largest(trial, value), 100 / value)


def sparse_or_not(wrong: bool) -> Change:
    """VanillaGauss above SH at the first level in every table, which are all sparse; or below."""
    return by_mechanism(top, gauss=1.0 if wrong else 9.0, sh=5.0, others=5.0)


def agreeing(off: float) -> Change:
    """InfTDA invents what the authors published, or so much more."""

    def change(trial: Trial) -> Trial:
        name = next(table for table, of in (("binary-sparse", 16), ("random-sparse", 8)) if len(trial.errors) == of + 1)
        near = [share for (table, epsilon), share in PUBLISHED.items() if table == name and
                math.isclose(trial.setting.epsilon, half_budget(epsilon))]  # fmt: skip
        return invented(trial, (near or [0.5])[0] + off)

    return change


def as_published(change: Change, off: float = 0.0) -> Change:
    """The same, and at the authors' noise the solver invents what they published, or so much more."""

    def changed(trial: Trial) -> Trial:
        near = [share for epsilon, share in PUBLISHED_SOLVER.items() if trial.setting.mechanism == SOLVER and
                math.isclose(trial.setting.epsilon, half_budget(epsilon))]  # fmt: skip
        return invented(change(trial), near[0] + off) if near else change(trial)

    return changed


Runs = Callable[[Found], Found]
TURNS: dict[str, tuple[Runs, Runs]] = {
    "hierarchical_accuracy": (
        lambda found: made(found, lambda trial: top(trial, 0.0)),
        lambda found: made(found, lambda trial: top(trial, 1e9)),
    ),
    "stability_histogram": (
        lambda found: made(found, by_mechanism(both, sh=1.0, inftda=5.0, others=9.0)),
        lambda found: made(found, by_mechanism(both, sh=9.0, inftda=5.0, others=1.0)),
    ),
    "beside_euclidean": (
        lambda found: made(found, by_mechanism(largest, inftda=1.0, others=1.0)),
        lambda found: made(found, by_mechanism(largest, inftda=9.0, others=1.0)),
    ),
    "beside_solver": (
        lambda found: made(found, as_published(by_mechanism(largest, tda_linf=1.2, others=1.0)), SOLVER),
        lambda found: made(found, as_published(by_mechanism(largest, tda_linf=0.8, others=1.0), 0.05), SOLVER),
    ),
    "false_discoveries": (
        lambda found: made(found, as_published(by_mechanism(invented, inftda=0.50, others=0.51)), SOLVER),
        lambda found: made(found, as_published(by_mechanism(invented, inftda=0.60, others=0.51), 0.05), SOLVER),
    ),
    "speed": (
        lambda found: made(found, by_mechanism(timed, inftda=2.0, sh=1.0, others=3.0)),
        lambda found: made(found, by_mechanism(timed, inftda=4.0, sh=5.0, others=3.0)),
    ),
    "flat_beside_stability": (
        lambda found: made(found, sparse_or_not(wrong=False)),
        lambda found: made(found, sparse_or_not(wrong=True)),
    ),
    "bound": (
        lambda found: found,
        lambda found: made(found, by_mechanism(largest, inftda=1e9, tda_l2=1e9, others=1.0)),
    ),
    "published": (lambda found: made(found, agreeing(0.0)), lambda found: made(found, agreeing(0.05))),
    "accounting": (
        lambda found: found,
        lambda found: made(
            found, lambda trial: replace(trial, noise=(2.0 if trial.setting.accounting == "tight" else 1.0,))
        ),
    ),
}
TURNED = {f"inftda.{name}" for name in TURNS}
"""The verdicts that runs of this module turn."""


@pytest.mark.parametrize("name", TURNS)
def test_a_made_up_run_turns_the_verdict(name: str, found: Found) -> None:
    holds, fails = (getattr(judges, name)(turn(found)) for turn in TURNS[name])
    assert (holds.word, fails.word) == ("Holds", "Does not hold")
    assert holds.verdict != fails.verdict


@pytest.mark.parametrize("name", TURNS)
def test_of_nothing_there_is_no_verdict(name: str) -> None:
    claim = getattr(judges, name)({})
    assert claim.word == "Not run" and " 0 of 0 " not in claim.verdict and not claim.table


def test_without_the_solver_nothing_is_said_of_it(found: Found) -> None:
    assert judges.beside_solver(found).word == "Not run"
    assert "TDA ℓ∞ in" not in judges.false_discoveries(found).verdict
    assert "stands out" in judges.beside_solver(TURNS["beside_solver"][0](found)).verdict
    for claim in claims(found):
        assert "0 of 0" not in claim.verdict


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_half_of_the_budget_is_half_of_the_rho(epsilon: float) -> None:
    whole, half = (rho_from_epsilon_loose(one, DELTA) for one in (epsilon, half_budget(epsilon)))
    assert float(half / whole) == pytest.approx(0.5, rel=1e-9)


def test_the_papers_bound_is_its_formula(found: Found) -> None:
    (trial, *_) = trials(found, "random-sparse", "inftda", 1.0)
    # One measured level, of 4 nodes: 2σ√(2 ln(4/0.05)).
    assert paper_bound(trial, 1) == pytest.approx(2 * trial.noise[1] * math.sqrt(2 * math.log(4 / 0.05)))
    assert paper_bound(trial, 0) == 0
    assert all(paper_bound(trial, level) >= (trial.bounds[level] or 0) for level in range(len(trial.bounds)))


def test_what_the_paper_says_of_the_sparse_tables_is_found_again(found: Found) -> None:
    for epsilon in EPSILONS[1:]:
        ours, other = (trials(found, "random-sparse", name, epsilon) for name in ("inftda", "tda-l2"))
        assert max(t.errors[-1].false_discoveries for t in ours) < min(t.errors[-1].false_discoveries for t in other)
    # A histogram of what is there loses small flows, and larger areas with them.
    flat, histogram = (trials(found, "random-sparse", name, 10.0) for name in ("gauss", "sh"))
    assert (
        max(t.errors[-1].false_discoveries for t in histogram) == 0 < min(t.errors[-1].false_discoveries for t in flat)
    )


def test_every_claim_has_numbers(found: Found) -> None:
    judged = list(claims(found))
    assert len(judged) == 10
    assert [claim.title for claim in judged if not claim.was_run] == [judged[3].title]  # the solver was not run
    for claim in judged[:3] + judged[4:]:
        assert claim.title and claim.verdict
        assert claim.table[0].startswith("| ")
        assert len({line.count("|") for line in claim.table}) == 1


def test_the_page_and_its_figures_are_written(found: Found, drawn: list[Path]) -> None:
    written = page.page(found, drawn[0].parent)
    assert [file.name for file in drawn] == [
        "inftda_error_binary.png",
        "inftda_error_random.png",
        "inftda_false_discoveries.png",
        "inftda_time.png",
    ]
    for file in drawn:
        assert file.stat().st_size < 150_000
        assert f"](../images/{file.name})" in written
    assert "The real table was not at hand" in written
    assert "### random-sparse" in written
    assert "2 runs of each" in written
    assert "- random-sparse: not tda-linf" in written


def test_every_line_keeps_its_colour_in_the_file(drawn: list[Path]) -> None:
    for file in drawn:
        pixels = colours_in(file)
        for mechanism in set(SHOWN) - {SOLVER}:
            wanted = np.frombuffer(bytes.fromhex(STYLES[mechanism].colour[1:]), np.uint8).astype(np.int64)
            # Two of these colours are at least 63 apart.
            assert np.abs(pixels - wanted).max(axis=1).min() <= 25


def test_a_mechanism_that_was_refused_is_on_the_page(found: Found, tmp_path: Path) -> None:
    case = case_of(made_up("binary-sparse"))
    refused = run_table("binary-sparse", case, [Batch(("sh",), (1.0,), "paper", 1)], jobs=1)
    assert refused.refused == ()
    small = replace(case, unit=replace(case.unit, contributions=2))
    refused = run_table("binary-sparse", small, [Batch(("sh",), (1.0,), "paper", 1)], jobs=1)
    both = {**found, "binary-sparse": Comparison(found["binary-sparse"].trials, refused.refused)}
    assert "Refused on binary-sparse: sh." in page.page(both, tmp_path)


def test_the_figures_of_the_documentation_are_small() -> None:
    images = Path(__file__).parents[2] / "docs" / "images"
    files = list(images.glob("inftda_*.png"))
    assert len(files) == len(page.FIGURES)
    assert all(file.stat().st_size < 150_000 for file in files)
