"""The split of the loss over levels: exact shares, and help for those that are not."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treetop import Split
from treetop.errors import LossError
from treetop.privacy import shares

LEVELS = ["place.state", "place.county", "sex"]

weight = (
    st.integers(1, 10**6)
    | st.floats(1e-6, 1e6)
    | st.fractions(Fraction(1, 1000), 1000)
    | st.decimals(Decimal("0.001"), Decimal(1000))
)


@pytest.mark.parametrize("levels", range(1, 30))
def test_uniform_shares_are_equal_and_sum_to_one(levels: int) -> None:
    assert shares("uniform", [f"level {i}" for i in range(levels)]) == (Fraction(1, levels),) * levels


@settings(max_examples=100)
@given(weights=st.lists(weight, min_size=1, max_size=12))
def test_weights_become_shares_in_proportion_that_sum_to_exactly_one(weights: list[Any]) -> None:
    names = [f"level {i}" for i in range(len(weights))]
    parts = shares(dict(zip(names, weights, strict=True)), names)
    exact = [Fraction(repr(w)) if isinstance(w, float) else Fraction(w) for w in weights]
    assert sum(parts) == 1
    assert all(part * exact[0] == parts[0] * own for part, own in zip(parts, exact, strict=True))


def test_shares_come_in_the_order_of_the_levels_not_of_the_split() -> None:
    backwards = {"sex": 1, "place.county": 2, "place.state": 3}
    expected = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    assert shares(backwards, LEVELS) == expected
    assert shares(Split.weighted(backwards), LEVELS) == expected


def test_explicit_shares_are_read_as_they_are_written() -> None:
    split = Split({"place.state": 0.1, "place.county": Decimal("0.2"), "sex": Fraction(7, 10)})
    assert shares(split, LEVELS) == (Fraction(1, 10), Fraction(1, 5), Fraction(7, 10))


@pytest.mark.parametrize(("last", "total"), [(0.5, "11/10"), (0.3, "9/10")])
def test_shares_that_do_not_sum_to_one_are_refused_with_the_sum_and_the_remedy(last: float, total: str) -> None:
    with pytest.raises(LossError) as refusal:
        Split({"place": 0.6, "sex": last})
    message = str(refusal.value)
    assert f"sum to {total}, not 1" in message
    remedy = dict(part.split(" = ") for part in message.rstrip(".").split("exact shares: ")[1].split(", "))
    assert sum(Split({level: Fraction(share) for level, share in remedy.items()}).shares.values()) == 1


def test_a_misspelt_level_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(LossError, match=r"'place\.conty'.*did you mean 'place\.county'"):
        shares({"place.state": 1, "place.conty": 1, "sex": 1}, LEVELS)


def test_a_level_like_no_other_is_answered_with_the_levels() -> None:
    with pytest.raises(LossError, match=r"the measured levels are place\.state, place\.county, sex"):
        shares({"zzz": 1}, LEVELS)


def test_a_share_for_a_total_that_is_not_measured_is_explained() -> None:
    with pytest.raises(LossError, match="total a share, but here it is not measured"):
        shares({"total": 1, **dict.fromkeys(LEVELS, 1)}, LEVELS)
    assert shares({"total": 1, "sex": 1}, ["total", "sex"]) == (Fraction(1, 2), Fraction(1, 2))


@pytest.mark.parametrize("split", [{"sex": 1}, Split({"sex": 1})], ids=["weights", "shares"])
def test_levels_without_a_share_are_named(split: Any) -> None:
    with pytest.raises(LossError, match=r"leaves out place\.state, place\.county;"):
        shares(split, LEVELS)


@pytest.mark.parametrize("bad", [0, -1, 0.0, math.nan, math.inf, True, "1", None])
def test_a_weight_or_share_that_is_not_a_positive_number_is_refused_by_level(bad: Any) -> None:
    with pytest.raises(LossError, match="The weight of level sex is"):
        shares({"place": 1, "sex": bad}, ["place", "sex"])
    with pytest.raises(LossError, match="The share of level sex is"):
        Split({"place": 1, "sex": bad})


@pytest.mark.parametrize("split", ["unifrom", None, 3, ["sex"]])
def test_a_split_that_is_neither_word_nor_weights_is_refused(split: Any) -> None:
    with pytest.raises(LossError, match='write "uniform", or a weight for each of: sex'):
        shares(split, ["sex"])


def test_no_levels_or_repeated_levels_are_refused() -> None:
    with pytest.raises(LossError, match="names no level"):
        shares("uniform", [])
    with pytest.raises(LossError, match="repeated"):
        shares("uniform", ["sex", "sex"])


def test_equal_splits_are_interchangeable_and_survive_pickling() -> None:
    split = Split.weighted({"place": 2, "sex": 2})
    assert split == Split.uniform(["sex", "place"])
    assert hash(split) == hash(Split.uniform(["sex", "place"]))
    assert pickle.loads(pickle.dumps(split)) == split
