"""The paper's experiments again: what is run, what is judged, and the page that is written, on the small tables."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.inftda import page
from experiments.inftda.claims import claims, paper_bound, trials
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
    run_table,
)
from experiments.kit.cases import MADE_UP, made_up
from tests.pictures import colours_in
from treetop.compare.comparison import Comparison
from treetop.compare.mechanisms import MECHANISMS
from treetop.compare.plots import STYLES
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


def test_the_solver_is_run_where_it_can_be() -> None:
    with_solver = {table: [b for b in batches(table) if SOLVER in b.mechanisms] for table in (*MADE_UP, REAL)}
    assert [table for table, chosen in with_solver.items() if not chosen] == ["binary-complete", "binary-dense"]
    assert with_solver["random-sparse"] == [Batch((SOLVER,), EPSILONS, "paper", 2)]


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
    for claim in judged:
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
