"""Black-box audits: an outsider who sees releases of two tables cannot tell them apart better than was promised.

Events are chosen on one half of the runs and tested on the other. The runs of the engine come from a fixed key, so
that they never change. Those of the public interface draw fresh keys: the five audits there take two bounds each, and
are wrong with a chance of 1e-7 in all. So few runs find gross faults only; but a release is the descent of its table
word for word, and what holds of many descents holds of releases.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import treetop as tt
from treetop.measure.descent import descent_of

from .audits import DEEP, events_in_many_descents, events_in_many_releases, events_when_a_busy_person_leaves
from .cases import BLACK_BOX, FRONT_DOOR
from .engine import KEY, descents
from .events import PROOF_RISK, epsilon_at_least, proven_epsilon
from .neighbours import Pair, counts_of, table_of


@pytest.mark.parametrize("pair", BLACK_BOX, ids=str)
def test_no_event_of_many_descents_tells_neighbours_apart(pair: Pair) -> None:
    assert events_in_many_descents(pair, 4_000_000 if DEEP else 300_000) is None


@pytest.mark.fresh_noise(PROOF_RISK)
@pytest.mark.parametrize("pair", FRONT_DOOR, ids=str)
def test_no_event_of_many_releases_tells_neighbours_apart(pair: Pair) -> None:
    assert events_in_many_releases(pair, 1_500 if DEEP else 150) is None


@pytest.mark.parametrize("pair", BLACK_BOX, ids=str)
def test_a_release_is_the_descent_of_its_table(pair: Pair) -> None:
    plan = pair.plan()
    counts = counts_of(plan, pair.other)
    release = tt.make_release(
        plan, table_of(plan, pair.other), tt.RunOptions(allow_dropped=True, testing_key=KEY.secret)
    )
    decided = bytes.fromhex(plan.digest)
    key = KEY.derive("run", decided, counts.digest_under(KEY.derive("counts", decided)))
    leaves = descents.run_descent(descent_of(plan), counts, key).leaves
    assert np.array_equal(release.nodes, leaves.nodes)
    assert np.array_equal(release.count, leaves.count)


@pytest.mark.fresh_noise(PROOF_RISK)
def test_no_event_tells_that_a_person_with_far_too_many_records_has_left() -> None:
    assert events_when_a_busy_person_leaves(1_500 if DEEP else 150) is None


def test_an_exact_release_is_told_apart_at_once() -> None:
    one, other = np.full((300, 1), 5), np.full((300, 1), 6)
    proven, event = epsilon_at_least(one, other, 0.0)
    assert proven > 1
    assert str(event) == "statistic 0 below 6"


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_randomised_answers_prove_nearly_their_epsilon_and_never_more(epsilon: float) -> None:
    honest = 1 / (1 + math.exp(-epsilon))
    rng = np.random.default_rng(7)
    one = (rng.random((400_000, 1)) < honest).astype(np.int64)
    other = (rng.random((400_000, 1)) >= honest).astype(np.int64)
    proven, _ = epsilon_at_least(one, other, 0.0)
    assert 0.93 * epsilon < proven < epsilon


def test_a_proof_is_as_rarely_wrong_as_it_says() -> None:
    # Clopper and Pearson: too low a bound for p has at most the given chance, whatever p is.
    runs, risk = 200, 0.01
    for p in (0.05, 0.3, 0.9):
        counts = np.arange(runs + 1)
        wrong = [proven_epsilon(int(k), runs, runs, 0.0, risk) > math.log(p) for k in counts]
        assert float(binom.pmf(counts, runs, p)[wrong].sum()) <= risk
