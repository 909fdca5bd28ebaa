"""The epsilon that an error takes, and a made-up twin: both without private data."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import treetop as tt
from tests import everyday
from treetop.addons.studio.made_up import made_up, release_made_up
from treetop.advice._losses import at_epsilon, epsilon_for, margin_of
from treetop.errors import LossError, PlanError


@pytest.mark.parametrize("loss", [tt.Loss(epsilon=1, delta=1e-8), tt.Loss(epsilon=1)])
@pytest.mark.parametrize("error", [3, 30, 300])
def test_it_is_the_smallest_of_three_digits_that_is_accurate_enough(loss: tt.Loss, error: int) -> None:
    plan = everyday.plan(loss)
    found = epsilon_for(plan, "origin.town", error)
    assert margin_of(at_epsilon(plan, found), "origin.town") <= error
    assert margin_of(at_epsilon(plan, found * Fraction(98, 100)), "origin.town") > error
    assert at_epsilon(plan, found).split == plan.split


def test_what_has_no_answer_is_said() -> None:
    plan = everyday.plan()
    for table, error, said in (("total", 5, "without noise"), ("x", 5, "no table"), ("origin.town", 0, "accept 1")):
        with pytest.raises(LossError, match=said):
            epsilon_for(plan, table, error)
    with pytest.raises(LossError, match="states its loss as rho"):
        at_epsilon(everyday.plan(tt.Loss(rho=1)), 1)


def test_a_twin_is_made_of_the_hierarchies_alone_and_shows_more_noise_at_a_smaller_epsilon() -> None:
    plan = everyday.plan()
    twin = made_up(plan.spine, 20_000)
    assert twin.total == 20_000 and (twin.leaves == made_up(plan.spine, 20_000).leaves).all()
    off = {}
    for epsilon in (0.05, 5):
        rows = release_made_up(at_epsilon(plan, epsilon), twin).rows(25)
        assert [row.made_up for row in rows] == sorted((row.made_up for row in rows), reverse=True)
        off[epsilon] = sum(abs(row.released - row.made_up) for row in rows)
        assert all(row.lower <= row.upper for row in rows if row.lower is not None and row.upper is not None)
    assert off[0.05] > 10 * off[5]
    (first, *_) = release_made_up(plan, twin, "destination.region").rows()
    assert first.codes[0] in ("N", "S")
    enforced = replace(plan, unit=tt.Unit("person", 2, "replace", id="id"))
    assert len(release_made_up(enforced, twin).rows(3)) == 3
    with pytest.raises(PlanError, match="made-up table"):
        made_up(plan.spine, 0)
