"""Distinct records, enforced: by enumeration of all that one unit can have, through the code that reads and bounds."""

from __future__ import annotations

import tomllib
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from treetop.addons.lab.mechanisms.registry import MECHANISMS
from treetop.card import in_words
from treetop.card.rebuild import rebuild_unit
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.reading import read_counts
from treetop.errors import PlanFileError, UnitError
from treetop.noise import Key
from treetop.privacy import Neighbours

LEAVES = ["A1", "A2", "B1", "B2"]
SPINE = tt.Spine(
    ["place.region", "place.town"], {"place": tt.Hierarchy.from_prefixes(LEAVES, widths=[1], levels=["region", "town"])}
)
KEY = Key(bytes(range(32)))
HAD = [some for number in range(5) for some in combinations_with_replacement(range(4), number)]
"""All that one person can have: up to four records, in any leaves, some in the same."""


def person(most: int, neighbours: Neighbours = "add-remove") -> tt.Unit:
    return tt.Unit("person", most, neighbours, id="who", distinct=True)


def counted(records: tuple[int, ...], most: int, others: int = 3) -> np.ndarray:
    """What is counted of a person with these records, beside others who have one in every leaf; by leaf."""
    who = ["ann"] * len(records) + [f"p{one}" for one in range(others) for _ in LEAVES]
    place = [LEAVES[at] for at in records] + LEAVES * others
    table = pa.table({"who": pa.array(who, pa.string()), "place": pa.array(place, pa.string())})
    counts = read_counts(table, SPINE, cap=ContributionCap.of(person(most), KEY))
    leaves = (counts.keys[0] >> np.uint64(62)).astype(np.int64)
    found = np.zeros(4, np.int64)
    found[leaves] = np.diff(counts.before)
    return found


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_two_persons_are_further_apart_than_the_sensitivities_say(most: int) -> None:
    """Unit: one person. Neighbours: one person's records exchanged, or left out. Every level, all persons there are."""
    nobody = counted((), most)
    own = {had: counted(had, most) - nobody for had in HAD}
    for had, leaves in own.items():
        assert leaves.max(initial=0) <= 1 and leaves.sum() == min(most, len(set(had)))
    rows = np.array(list(own.values()))
    apart = rows[:, None] - rows[None]
    largest = {}
    for neighbours, changes in (("replace", apart.reshape(-1, 4)), ("add-remove", rows)):
        unit = tt.Plan(SPINE, person(most, neighbours), tt.Loss(rho=1), margins="none").unit  # type: ignore[arg-type]
        levels = {"place.town": changes, "place.region": changes.reshape(-1, 2, 2).sum(axis=2)}
        for level, moved in levels.items():
            l1, l2 = np.abs(moved).sum(axis=1).max(), (moved**2).sum(axis=1).max()
            allowed = unit.sensitivity(level)
            assert l1 <= allowed.l1 and l2 <= allowed.l2_squared
            largest[neighbours, level] = (int(l2), allowed.l2_squared)
    # Tight at the leaves, where there are enough of them; twice as many leaves are needed for an exchange.
    assert largest["add-remove", "place.town"] == (most, most)
    if most <= 2:
        assert largest["replace", "place.town"] == (2 * most, 2 * most)
        assert largest["add-remove", "place.region"] == (most**2, most**2)


def test_without_it_a_leaf_may_hold_all_and_pays_for_all() -> None:
    plain = tt.Unit("person", 3, "replace", id="who")
    laws = [
        tt.Plan(SPINE, unit, tt.Loss(rho=1), margins="none").levels[-1].law.standard_deviation
        for unit in (plain, person(3, "replace"))
    ]
    assert laws[0] == pytest.approx(laws[1] * 3**0.5, rel=1e-6)
    coarse = [
        tt.Plan(SPINE, unit, tt.Loss(rho=1), margins="none").levels[1].law for unit in (plain, person(3, "replace"))
    ]
    assert coarse[0] == coarse[1]


def test_what_counts_of_a_person_is_uniform_among_distinct_leaves() -> None:
    """Somebody who went to one place a hundred times, and to another once, counts in either as often."""
    times = 0
    for seed in range(400):
        table = pa.table({"who": ["ann"] * 101, "place": ["A1"] * 100 + ["B2"]})
        counts = read_counts(
            table, SPINE, cap=ContributionCap("who", 1, Key(bytes([seed % 256, seed // 256] * 16)), (), True)
        )
        assert counts.total == 1
        times += int(counts.keys[0][0] >> np.uint64(62)) == 3
    assert 150 < times < 250


def test_rows_with_counts_count_once_and_rows_of_none_do_not() -> None:
    table = pa.table({"who": ["ann", "ann", "bob"], "place": ["A1", "A1", "B2"], "n": [7, 5, 0]})
    counts = read_counts(table, SPINE, count="n", cap=ContributionCap.of(person(2), KEY))
    assert counts.total == 1 and len(counts) == 1


def test_who_cannot_be_told_apart_cannot_be_distinct() -> None:
    with pytest.raises(UnitError, match="enforced by an id, and there is none"):
        tt.Unit("person", 3, "replace", distinct=True)


PLAN = """
[attributes.place]
hierarchy = "places.csv"
levels = ["region", "town"]
[unit]
entity = "person"
contributions = 3
neighbours = "replace"
id = "who"
distinct = true
[loss]
rho = 1000000
[data]
source = "table.csv"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "places.csv").write_text("region,town\n" + "".join(f"{leaf[0]},{leaf}\n" for leaf in LEAVES))
    rows = ["ann,A1"] * 20 + ["ann,B1", "ann,B2", "bob,A1", "cy,A2"]
    (tmp_path / "table.csv").write_text("who,place\n" + "\n".join(rows) + "\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_a_plan_file_its_card_and_check_say_so(folder: Path) -> None:
    file = tt.read_plan(folder / "plan.toml")
    assert file.plan.unit.distinct and file.plan.unit.caps == {"place.town": 1}
    tt.publish(folder / "plan.toml", options=tt.RunOptions(ledger=None), out=folder / "out")
    card = tt.Release.load(folder / "out").card
    assert "among distinct ones: those of one leaf counted as one." in in_words(card["unit"]["bound"])
    assert "Records of one leaf count as one (enforced)." in in_words(card["protects"])
    assert not [one for one in in_words(card["caveats"]) if "declared" in one]
    assert rebuild_unit(card).sensitivity("place.town").l2_squared == 6
    assert not [verdict for verdict in tt.check(folder / "out") if verdict.findings]
    assert tomllib.loads((folder / "out" / "plan.toml").read_text())["unit"]["distinct"] is True
    found = tt.Release.load(folder / "out").level("place.town")
    assert dict(zip(found["place"].to_pylist(), found["count"].to_pylist(), strict=True)) == {
        "A1": 2, "A2": 1, "B1": 1, "B2": 1,
    }  # fmt: skip


def test_a_plan_without_it_has_the_digest_that_it_had(folder: Path) -> None:
    with_it, without = (
        tt.Plan(SPINE, tt.Unit("person", 3, "replace", id="who", distinct=distinct), tt.Loss(rho=1)).digest
        for distinct in (True, False)
    )
    assert with_it != without


def test_a_graph_has_policies_of_its_own(folder: Path) -> None:
    text = PLAN + '[graph]\nnodes = "n.csv"\nedges = "e.csv"\nrelation = "edge"\n'
    (folder / "graph.toml").write_text(text)
    with pytest.raises(PlanFileError):
        tt.read_plan(folder / "graph.toml")


def test_a_stability_histogram_has_a_lower_threshold_for_distinct_records() -> None:
    loss = tt.Loss(epsilon=20, delta=1e-6)
    plain, distinct = (
        MECHANISMS["sh"](SPINE, tt.Plan(SPINE, unit, loss, margins="none").unit, loss)
        for unit in (tt.Unit("person", 4, "add-remove", id="who"), person(4))
    )
    assert distinct.least < plain.least  # type: ignore[attr-defined]
