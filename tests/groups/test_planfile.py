"""Plan files with [groups]: what they say becomes the plan, and what they leave open or confuse is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from treetop import Plan, PlanFile, read_plan
from treetop.errors import IncompletePlan, LossError, PlanError, PlanFileError, TreetopError, UnitError
from treetop.noise import DiscreteGaussian, DiscreteLaplace
from treetop.plan.file import describe_plan
from treetop.plan.group_plan import GroupSizeReader
from treetop.plan.region_histograms import RegionHistograms

Write = Callable[..., Path]


def group_plan(file: PlanFile) -> Plan:
    assert file.plan.reader.name == "groups"
    return file.plan


def title(plan: Plan) -> str:
    return RegionHistograms.of(plan).title(plan)


def test_a_plan_file_says_what_is_measured(write: Write) -> None:
    plan = group_plan(read_plan(write()))
    assert [(level.name, level.nodes) for level in plan.levels] == [
        ("total", 1), ("size", 4), ("place.state", 8), ("place.county", 12)
    ]  # fmt: skip
    assert plan.levels[0].is_exact
    assert [level.law for level in plan.levels[1:]] == [DiscreteLaplace(Fraction(3, 2))] * 3
    assert title(plan) == "M_c^r+dp" and plan.spent == 2


def test_the_split_and_the_loss_are_those_of_any_plan_file(write: Write) -> None:
    split = 'split = { size = 1, "place.state" = 1, "place.county" = 2 }'
    plan = group_plan(read_plan(write(("epsilon = 2", f"rho = 0.5\n{split}"))))
    assert [level.law for level in plan.levels[1:]] == [
        DiscreteGaussian(Fraction(4)), DiscreteGaussian(Fraction(4)), DiscreteGaussian(Fraction(2))
    ]  # fmt: skip
    weights = RegionHistograms.of(plan).weights(plan)
    assert (weights / weights[0]).tolist() == [1, 1, 2]


def test_direct_sizes_and_whole_groups_have_their_own_noise(write: Write) -> None:
    plan = group_plan(read_plan(write(('event = "join-leave"', 'event = "group"'), ('"person"', '"household"'))))
    assert plan.levels[1].law == DiscreteLaplace(Fraction(9, 2))  # the largest size, 3, times as much
    plan = group_plan(read_plan(write(('event = "join-leave"', 'event = "move"\nform = "direct"'))))
    assert title(plan) == "M_H^dp" and plan.levels[1].law == DiscreteLaplace(Fraction(6))


def test_a_level_that_does_not_divide_is_not_measured_twice(write: Write, tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("n,state,county\nx,a,a1\nx,b,b1\n", encoding="utf-8")
    plan = group_plan(read_plan(write(('["state", "county"]', '["n", "state", "county"]'))))
    assert [not level.is_measured for level in plan.levels] == [True, False, True, False, True]
    assert plan.spent == 2
    assert [row.bound for row in plan.accuracy().levels] == [0, None, None, None, None]


def test_the_example_is_read_with_its_public_list(households: Path) -> None:
    file = read_plan(households / "plan.toml")
    plan = group_plan(file)
    reader = GroupSizeReader.of(plan)
    assert reader.number == 4000 and reader.listed is not None and plan.unit.id == "person"
    assert dict(file.columns) == {"group": "dwelling"}


def test_a_plan_as_it_was_run_is_a_plan_file_again(households: Path, write: Write) -> None:
    for path in (households / "plan.toml", write()):
        file = read_plan(path)
        again = path.with_name("again.toml")
        again.write_text(describe_plan(file), encoding="utf-8")
        assert read_plan(again).plan.digest == file.plan.digest


def test_open_questions_are_named_together(write: Write) -> None:
    path = write(("largest = 3", ""), ('event = "join-leave"', ""), ("number = 3000", ""), ('entity = "person"', ""))
    with pytest.raises(IncompletePlan) as refusal:
        read_plan(path)
    for field in ("groups.largest", "groups.event", "groups.number", "unit.entity"):
        assert field in str(refusal.value)
    with pytest.raises(IncompletePlan, match=r"groups\.list"):
        read_plan(write(('rows = "histogram"\nsize = "persons"', 'rows = "people"'), ('count = "homes"', "")))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (('rows = "histogram"', 'rows = "histogramm"'), PlanFileError, "did you mean 'histogram'"),
        (("largest = 3", "largest = 0"), PlanFileError, "whole number, 1 or more"),
        (("largest = 3", 'largest = 3\nform = "both"'), PlanFileError, "form must be"),
        (("largest = 3", "largset = 3"), PlanFileError, "did you mean 'largest'"),
        (("number = 3000", 'number = 3000\npublic = "regions"\nrepair = "exact"'), PlanError, 'needs repair="joint"'),
        (("number = 3000", 'number = 3000\ngroup = "home"'), PlanFileError, "not where rows are histogram"),
        (("number = 3000", 'number = 3000\nlist = "nowhere.csv"'), TreetopError, "nowhere.csv"),
        (("number = 3000", 'number = 3000\nlist = "sizes.csv"'), PlanFileError, "list is the private table itself"),
        (("number = 3000", 'list_group = "id"\nnumber = 3000'), PlanFileError, "list_group is about a list"),
        (('event = "join-leave"', 'event = "group-move"'), PlanFileError, "event must be"),
        (('event = "join-leave"', 'event = "group"\nmost = 2'), UnitError, "leave the unit's quantity out"),
        (('entity = "person"', 'entity = "person"\ncontributions = 1'), PlanFileError, "contributions is not a field"),
        (('entity = "person"', 'entity = "person"\nid = "p"'), PlanFileError, "a row is not a person"),
        (("epsilon = 2", 'epsilon = 2\nsplit = { size = 1, "place.stat" = 1 }'), LossError, "did you mean"),
        (("epsilon = 2", 'epsilon = 2\nsplit = "optimal"'), PlanFileError, "split must be"),
        (("epsilon = 2", 'epsilon = 2\ndelta = 1e-6\naccounting = "exact"'), PlanError, "numbers of groups by several"),
        (("epsilon = 2", 'epsilon = 2\nsplit = "top-heavy"'), PlanFileError, "all levels are repaired at once"),
        (("[loss]", "[release]\nresolve = { fdr = 0.05 }\n[loss]"), PlanFileError, "no count stays behind"),
        (("[loss]", '[release]\nprefer = "fewer-lost"\n[loss]'), PlanFileError, "as \\[groups\\] repair says"),
        (('entity = "person"', 'entity = "person"\nid_clean = ["trim"]'), PlanFileError, "trim under \\[data\\]"),
        (('count = "homes"', ""), PlanFileError, "count is missing"),
        (('count = "homes"', 'count = "homes"\nunknown = "drop"'), PlanFileError, "none is left out"),
        (("[unit]", "[repair]\nmethod = 'euclidean'\n[unit]"), PlanFileError, "repair is not a field"),
        (("[groups]", "[attributes.sex]\nvalues = ['f']\n[groups]"), PlanFileError, "group sizes have one"),
        (('column = "county"', 'hierarchy_sha256 = "00"'), PlanFileError, "made for another tree"),
    ],
)
def test_what_does_not_fit_is_refused(
    write: Write, change: tuple[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_plan(write(change))


def test_a_list_of_another_hash_is_refused(households: Path) -> None:
    path = households / "plan.toml"
    text = path.read_text(encoding="utf-8").replace('list = "', 'list_sha256 = "11"\nlist = "')
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PlanFileError, match="made for another list"):
        read_plan(path)
