"""What offices do today: every level by itself, small counts left out or all rounded, and no guarantee."""

from __future__ import annotations

import numpy as np
import pytest

from treetop.addons.lab.compare import compare, settings
from treetop.addons.lab.comparison import Case
from treetop.addons.lab.mechanisms.baselines import Rounding, Suppression
from treetop.addons.lab.mechanisms.registry import MECHANISMS, PRACTICES, named
from treetop.errors import PlanError

from . import tables
from .tables import KEY, LOSS, SPINES, TRIP


@pytest.mark.parametrize("shape", [*SPINES, "two words"])
@pytest.mark.parametrize("rows", [0, 1, 60])
def test_suppression_publishes_what_is_large_enough_at_every_level(shape: str, rows: int) -> None:
    spine = tables.two_words() if shape == "two words" else SPINES[shape]()
    counts = tables.table(spine, rows, largest=9)
    estimate = Suppression(spine, TRIP, LOSS).run(counts, KEY)
    truth = tables.truth(spine, counts)
    assert tables.leaves(estimate).tolist() == np.where(truth < 5, 0, truth).tolist()
    assert estimate.levels is not None
    everything = Suppression(spine, TRIP, LOSS, least=1).run(counts, KEY)
    assert everything.violations() == 0 and everything.total == counts.total
    for own, every in zip(estimate.levels, everything.levels or (), strict=True):
        assert own.value.tolist() == [value for value in every.value.tolist() if value >= 5]


def test_rounding_is_to_multiples_of_its_base_and_right_in_the_mean() -> None:
    spine = SPINES["od"]() if "od" in SPINES else next(iter(SPINES.values()))()
    counts = tables.table(spine, 60, largest=9)
    truth, runs = tables.truth(spine, counts), 400
    found = np.zeros(len(truth))
    for run in range(runs):
        estimate = Rounding(spine, TRIP, LOSS).run(counts, KEY.derive("run", run))
        leaves = tables.leaves(estimate)
        assert (leaves % 5 == 0).all() and (np.abs(leaves - truth) < 5).all()
        found += leaves
    # A rounding is off by 2.5 in standard deviation at most: five of the mean's.
    assert np.abs(found / runs - truth).max() < 5 * 2.5 / runs**0.5


def test_neither_is_a_mechanism_with_a_guarantee() -> None:
    assert set(PRACTICES) == {"suppression", "rounding"} and not set(PRACTICES) & set(MECHANISMS)
    for name in PRACTICES:
        practice = named(name)(next(iter(SPINES.values()))(), TRIP, LOSS)
        assert practice.definition.startswith("None") and practice.spent == 0
        assert not any(level.is_measured for level in practice.levels)
    with pytest.raises(PlanError, match="give 2 or more"):
        Rounding(next(iter(SPINES.values()))(), TRIP, LOSS, base=1)
    with pytest.raises(PlanError, match="give 1 or more"):
        Suppression(next(iter(SPINES.values()))(), TRIP, LOSS, least=0)


def test_they_stand_beside_treetop_and_the_summary_says_what_they_are() -> None:
    spine = next(iter(SPINES.values()))()
    case = Case(spine, TRIP, tables.table(spine, 60, largest=9))
    found = compare(case, settings(["inftda", "suppression", "rounding"], [1.0]), 2, key=KEY)
    assert {trial.setting.mechanism for trial in found.trials} == {"inftda", "suppression", "rounding"}
    assert "protect nobody, at any epsilon" in found.summary("Trips")
    alone = compare(case, settings(["inftda"], [1.0]), 1, key=KEY)
    assert "protect nobody" not in alone.summary("Trips")
