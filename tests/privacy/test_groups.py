"""Audits of group sizes: what one person or one group changes in a table changes the release no more than promised.

From the table on: people with their dwellings are read as a steward's table is, so that empty dwellings, sizes above
the largest and the public list are part of what is audited. Neighbours are enumerated and the change of all
measurements is compared with the noise, exactly; then releases of worst pairs are looked at from outside, with fresh
noise: each look takes two bounds, which are wrong with a chance of 2e-8.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from tests.everyday import measure_sizes
from treetop import GroupSizes
from treetop.plan.group_unit import Event, Form

from .dwellings import LARGEST, PLACES, TABLES, People, loss_between, neighbours, plan, read
from .engine import Unexplained
from .events import PROOF_RISK, epsilon_at_least


@pytest.mark.parametrize("loss", [tt.Loss(epsilon=1), tt.Loss(rho=0.5)], ids=["pure", "rho"])
@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize(
    ("event", "quantity"), [("join-leave", 1), ("join-leave", 2), ("move", 1), ("move", 3), ("group", 1)]
)
def test_no_neighbouring_tables_differ_by_more_than_the_loss(
    event: Event, quantity: int, form: Form, loss: tt.Loss
) -> None:
    made = plan(event, form, loss, quantity)
    worst = Fraction(0)
    for people in TABLES:
        before = read(made, people)
        for other in neighbours(people, event, quantity):
            worst = max(worst, loss_between(made, before, read(made, other)))
    assert worst <= loss.budget
    if quantity == 1:  # the noise is no larger than it needs to be
        assert worst == loss.budget


@pytest.mark.parametrize("event", ["join-leave", "move", "group"])
def test_neighbouring_tables_have_the_same_groups_in_every_region(event: Event) -> None:
    made = plan(event, "cumulative", tt.Loss(epsilon=1))
    for people in TABLES:
        for other in neighbours(people, event, 1):
            assert read(made, other).number.sum(axis=1).tolist() == [2, 1, 1]


def releases(made: tt.Plan, sizes: GroupSizes, runs: int) -> NDArray[np.int64]:
    """What an outsider sees of many releases: every count, and the sums of sizes of every region."""
    rows = []
    for _ in range(runs):
        counts = measure_sizes(made, sizes)
        rows.append(np.concatenate([counts.ravel(), counts @ np.arange(LARGEST + 1), counts.cumsum(axis=1)[0]]))
    return np.array(rows)


PAIRS: list[tuple[Event, Form, People, People]] = [
    ("join-leave", "cumulative", TABLES[0], TABLES[0][1:]),
    ("join-leave", "direct", TABLES[2], TABLES[2][:1]),
    ("move", "cumulative", TABLES[0], (*TABLES[0][1:], ("h4", 1))),
    ("group", "direct", TABLES[1], tuple(one for one in TABLES[1] if one[0] != "h1")),
]


@pytest.mark.fresh_noise(PROOF_RISK)
@pytest.mark.parametrize(("event", "form", "one", "other"), PAIRS)
def test_no_event_of_many_releases_tells_neighbours_apart(event: Event, form: Form, one: People, other: People) -> None:
    made = plan(event, form, tt.Loss(epsilon=1))
    samples = [releases(made, read(made, people), 1_000) for people in (one, other)]
    proven, event_found = epsilon_at_least(samples[0], samples[1], 0.0)
    assert proven <= 1, str(event_found)


def test_noise_that_is_far_too_small_is_found() -> None:
    """The same look at releases whose noise is for a sixtieth of the change."""
    made = plan("group", "direct", tt.Loss(epsilon=60))
    _, _, one, other = PAIRS[3]
    samples = [releases(made, read(made, people), 200) for people in (one, other)]
    proven, _ = epsilon_at_least(samples[0], samples[1], 0.0)
    assert proven > 1


def test_dropping_empty_groups_would_break_the_promise() -> None:
    """Without size 0, the last person to leave a dwelling changes the number of groups: the list prevents it."""
    made = plan("join-leave", "cumulative", tt.Loss(epsilon=1))
    before, after = read(made, TABLES[2]), read(made, TABLES[2][1:])

    def without_empty(sizes: GroupSizes) -> GroupSizes:
        number: Any = sizes.number.copy()
        number[:, 0] = 0
        return GroupSizes(PLACES, number)

    assert loss_between(made, before, after) == 1
    with pytest.raises(Unexplained, match="number of groups"):
        loss_between(made, without_empty(before), without_empty(after))
