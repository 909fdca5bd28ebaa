"""The noise of each level: exact scales whose costs add up to the loss again."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treetop import Loss, Unit, privacy
from treetop.errors import LossError
from treetop.noise import DiscreteGaussian, DiscreteLaplace
from treetop.privacy import Neighbours, shares
from treetop.privacy.accountant import cost, level_noise

LEVELS = ["total", "place.state", "place.county", "place.town", "sex", "age", "job"]


def test_the_gaussian_variance_is_the_squared_sensitivity_over_twice_rho() -> None:
    trip = Unit("trip", neighbours="replace")
    sixth = level_noise(trip, Loss(rho=0.5), "place", Fraction(1, 6))
    assert sixth == DiscreteGaussian(Fraction(2, 1) / (2 * Fraction(1, 12)))
    person = Unit("person", 4, "add-remove", per_node={"place": 2})
    assert level_noise(person, Loss(rho=0.5), "place", 1) == DiscreteGaussian(Fraction(8))
    assert level_noise(person, Loss(rho=0.5), "total", 1) == DiscreteGaussian(Fraction(16))


def test_the_laplace_scale_is_the_sensitivity_over_epsilon() -> None:
    exchanged, added = Unit("trip", neighbours="replace"), Unit("trip", neighbours="add-remove")
    assert level_noise(exchanged, Loss(epsilon=0.1), "place", 0.5) == DiscreteLaplace(Fraction(40))
    assert level_noise(added, Loss(epsilon=0.1), "place", 0.5) == DiscreteLaplace(Fraction(20))


def test_the_standard_deviation_at_six_even_levels_is_the_known_one() -> None:
    trip = Unit("trip", neighbours="replace")
    for epsilon, sigma in [(0.1, "169.51"), (1, "18.674"), (10, "2.2283")]:
        law = level_noise(trip, Loss(epsilon=epsilon, delta=1e-8), "place", Fraction(1, 6))
        assert isinstance(law, DiscreteGaussian)
        assert f"{math.sqrt(law.variance):.{len(sigma.split('.')[1])}f}" == sigma


def test_a_pure_loss_gets_laplace_noise_and_any_other_gaussian() -> None:
    trip = Unit("trip", neighbours="replace")
    assert isinstance(level_noise(trip, Loss(epsilon=1), "place", 1), DiscreteLaplace)
    assert isinstance(level_noise(trip, Loss(rho=1), "place", 1), DiscreteGaussian)
    assert isinstance(level_noise(trip, Loss(epsilon=1, delta=1e-8), "place", 1), DiscreteGaussian)


@settings(max_examples=50, deadline=None)
@given(
    loss=st.sampled_from([Loss(epsilon=0.7), Loss(rho=0.3), Loss(epsilon=1, delta=1e-8)]),
    contributions=st.integers(1, 5),
    neighbours=st.sampled_from(["replace", "add-remove"]),
    weights=st.lists(st.integers(1, 100), min_size=len(LEVELS), max_size=len(LEVELS)),
)
def test_the_costs_of_the_levels_add_up_to_exactly_the_loss(
    loss: Loss, contributions: int, neighbours: Neighbours, weights: list[int]
) -> None:
    unit = Unit("person", contributions, neighbours, per_node={"place.town": 1})
    parts = shares(dict(zip(LEVELS, weights, strict=True)), LEVELS)
    laws = [level_noise(unit, loss, level, part) for level, part in zip(LEVELS, parts, strict=True)]
    costs = [cost(unit, level, law) for level, law in zip(LEVELS, laws, strict=True)]
    assert costs == [loss.budget * part for part in parts]
    assert sum(costs) == loss.budget


@pytest.mark.parametrize("share", [0, -0.5, 1.5, math.nan, True, "1"])
def test_a_share_outside_zero_to_one_is_refused(share: Any) -> None:
    with pytest.raises(LossError, match="share of level place"):
        level_noise(Unit("trip", neighbours="replace"), Loss(rho=1), "place", share)


def test_stating_a_loss_loads_no_numerical_library() -> None:
    # A bare parent package, so that only what this package itself imports is seen.
    code = """if True:
        import sys, types
        parent = sys.modules["treetop"] = types.ModuleType("treetop")
        parent.__path__ = [sys.argv[1]]
        import treetop.privacy
        sys.exit(", ".join({"numpy", "scipy", "numba", "flint"} & set(sys.modules)) or 0)
    """
    command = [sys.executable, "-c", code, str(Path(privacy.__file__).parents[1])]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
