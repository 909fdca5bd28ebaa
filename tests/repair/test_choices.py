"""Registered repairs: one from outside runs through a release, and none is without words for the card."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop import Counts, register_repair
from treetop.card import in_words
from treetop.card.distributions import statements_of
from treetop.errors import NumberError, PlanError
from treetop.noise import Key
from treetop.release.run import run_plan
from treetop.repair import ORDERS, REPAIRS, Order, chebyshev

Ints = NDArray[np.int64]
PLACE = tt.Hierarchy.from_prefixes([f"{a}{b}{c}" for a in "ABC" for b in "12" for c in "wxyz"], widths=[1, 2])
WIDE = tt.Hierarchy.flat([f"{i:06d}" for i in range(40_000)])


def in_proportion(x: Ints, count: int, order: Order = "ascending", seed: int | None = None) -> Ints:
    """Share a count in proportion to the measurements that are above zero; what is left over goes to the largest."""
    weight = np.maximum(x, 0) + (np.maximum(x, 0).sum() == 0)
    y: Ints = weight * count // weight.sum()
    y[np.argmax(weight)] += count - y.sum()
    return y


WORDS = ("Each node's count was shared in proportion to its children's measurements, {order}.",)
TOY = register_repair("toy", WORDS, in_proportion)
AGAIN = register_repair("chebyshev from outside", WORDS, chebyshev)
BROKEN = register_repair("one too many", WORDS, lambda x, count, order, seed: np.full(len(x), count))


def plan(repair: Any, spine: tt.Spine | None = None, **options: Any) -> tt.Plan:
    spine = spine or tt.Spine.destination_first(origin=PLACE, destination=PLACE)
    return tt.Plan(
        spine,
        tt.Unit("trip", neighbours="replace"),
        tt.Loss(epsilon=1, delta=1e-8),
        repair=repair,
        **options,
        margins="none",
    )


def release(planned: tt.Plan) -> tt.Release:
    rng = np.random.default_rng(5)
    counts = Counts.from_leaves(planned.spine, [rng.integers(0, 24, 2_000) for _ in planned.spine.trees])
    return run_plan(planned, counts, Key(bytes(32)), {}, keep_measurements=True)


@pytest.mark.parametrize("resolve", ["full", {"sigmas": 2}, {"fdr": 0.1}], ids=str)
def test_a_repair_from_outside_runs_through_a_release_that_adds_up_at_all_levels(resolve: Any) -> None:
    found = release(plan("toy", resolve=resolve))
    spine, tree = found.spine, found.tree
    assert tree.at(0).count.tolist() == [2_000]
    for level in spine.levels:
        above, below = tree.at(level.index - 1), tree.at(level.index)
        sums = np.zeros(len(above), np.int64)
        np.add.at(sums, tree.parents(level.index), below.count)
        if found.left is not None:
            sums[tree.rows(level.index - 1)] += found.left.count[found.left.level == level.index - 1]
        assert sums.tolist() == above.count.tolist()
        assert below.count.min() > 0
    assert not np.array_equal(found.count, release(plan("chebyshev", resolve=resolve)).count)


@pytest.mark.parametrize(
    "options", [{}, {"order": "descending"}, {"resolve": {"sigmas": 2}}, {"resolve": {"fdr": 0.2}}], ids=str
)
@pytest.mark.parametrize("spine", [None, tt.Spine(["zone"], {"zone": WIDE})], ids=["trips", "one node of very many"])
def test_the_engines_own_repair_is_the_same_from_outside(spine: tt.Spine | None, options: Any) -> None:
    one, other = release(plan("chebyshev", spine, **options)), release(plan("chebyshev from outside", spine, **options))
    assert np.array_equal(one.nodes, other.nodes) and np.array_equal(one.count, other.count)
    assert one.evidence is not None and other.evidence is not None
    for level, again in zip(one.evidence.levels, other.evidence.levels, strict=True):
        for name in ("measured", "highest", "slots"):
            assert np.array_equal(getattr(level, name), getattr(again, name))


def test_a_repair_that_does_not_add_up_is_found_out() -> None:
    with pytest.raises(NumberError, match="'one too many' does not give non-negative whole numbers that sum"):
        release(plan("one too many"))


@pytest.mark.parametrize("words", [(), ("",), ("  ",), None])
def test_a_repair_without_words_is_refused(words: Any) -> None:
    with pytest.raises(PlanError, match="'silent' has no words for the card"):
        register_repair("silent", words, in_proportion)
    assert "silent" not in REPAIRS


@pytest.mark.parametrize(("name", "message"), [("", "needs a name"), ("euclidean", "already a repair 'euclidean'")])
def test_a_repair_needs_a_name_of_its_own(name: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        register_repair(name, WORDS, in_proportion)


def test_what_is_not_registered_is_refused_with_what_is() -> None:
    with pytest.raises(PlanError, match=r"there is no repair 'chebishev' \(did you mean 'chebyshev'\?\)"):
        REPAIRS["chebishev"]
    with pytest.raises(PlanError, match="repair is 'chebishev'"):
        plan("chebishev")


def test_a_repair_travels_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(TOY)) is TOY
    assert b"in_proportion" not in pickle.dumps(TOY)


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("repair", ["chebyshev", "euclidean", "least-squares"])
def test_the_words_are_those_of_the_card(repair: str, order: str) -> None:
    said = [sentence.format(order=ORDERS[order].words) for sentence in REPAIRS[repair].words]
    made = plan(repair, order=order)
    assert in_words(statements_of(made).post_processing(made))[: len(said)] == said
