"""Cards of group sizes: they state the mechanism and its conditions, and `check` recomputes all of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import treetop as tt
from tests.forging import findings
from treetop import GroupUnit, read_plan
from treetop.card import RunInfo, describe_release, in_words
from treetop.card.rebuild import rebuild_plan
from treetop.checking.check import check_folder
from treetop.plan.group_unit import Event, Form, group_sensitivity

PLACES = tt.Hierarchy.from_prefixes(["a1", "a2", "b1"], [1], ["state", "county"])
Write = Callable[..., Path]


def plan(event: Event = "join-leave", form: Form = "cumulative", **changes: Any) -> tt.Plan:
    options = {"rows": "histogram", "number": 30, "loss": tt.Loss(epsilon=1), **changes}
    return tt.group_plan(PLACES, 4, GroupUnit("person", event), form=form, **options)


@pytest.fixture
def folder(write: Write, tmp_path: Path) -> Path:
    file = read_plan(write())
    release = tt.make_release(
        file.plan, file.table(str(file.source)), tt.RunOptions(columns=file.columns, count=file.count)
    )
    release.save(tmp_path / "release", nodes=True)
    return tmp_path / "release"


@pytest.mark.parametrize("event", ["join-leave", "move", "group"])
@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize("loss", [tt.Loss(epsilon=1), tt.Loss(rho=0.1), tt.Loss(epsilon=1, delta=1e-6)])
def test_every_card_states_its_sensitivity_and_can_be_checked(event: Event, form: Form, loss: tt.Loss) -> None:
    made = plan(event, form, loss=loss)
    card = describe_release(made, RunInfo())
    change = group_sensitivity(event, 1, form, 4)
    for level in card["levels"][1:]:
        assert level["sensitivity"] == {"l1": change.l1, "l2_squared": change.l2_squared}
    assert card["unit"]["event"] == event and card["plan"]["groups"]["form"] == form
    assert in_words(card["mechanism"]["name"]).startswith("M_H^dp" if form == "direct" else "M_c^r+dp")
    again = rebuild_plan(card, made.spine)
    assert again.digest == made.digest and again.spent == made.spent


def test_a_card_prints_what_is_enforced_and_what_is_declared(households: Path) -> None:
    enforced = describe_release(read_plan(households / "plan.toml").plan, RunInfo())
    assert all("(enforced)" in condition for condition in in_words(enforced["unit"]["conditions"]))
    declared = describe_release(plan(), RunInfo())
    assert [("(declared" in one) for one in in_words(declared["unit"]["conditions"])] == [True, False, True, True]
    assert any("declared, not enforced" in caveat for caveat in in_words(declared["caveats"]))
    assert in_words(declared["exact"])[0].startswith("the number of groups")


def test_a_saved_release_is_what_its_card_says(folder: Path) -> None:
    verdicts = list(check_folder(folder))
    assert findings(folder) == []
    told = [verdict.subject for verdict in verdicts]
    assert "as many groups as there are publicly, 3,000, at every level, of sizes 0 to 3" in told
    page = (folder / "card.html").read_text(encoding="utf-8")
    assert "M_c^r+dp" in page and "those of size 0 as well" in page


def change_card(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    change(card)
    card["plan_sha256"] = sha256(json.dumps(card["plan"], sort_keys=True).encode()).hexdigest()
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda card: card["unit"].update(event="move"), "but a unit can move it by"),
        (lambda card: card["plan"]["groups"].update(number=3001), "the release has 3,000 groups, but there are 3,001"),
        (lambda card: card["plan"]["groups"].update(largest=2), "the sizes are 0 to 3, but the plan has 0 to 2"),
        (lambda card: card["levels"][2]["noise"]["scale"].update(exact="3"), "its noise and sensitivity cost 1/3"),
        (lambda card: card["plan"]["groups"].update(form="direct"), "but a unit can move it by"),
        (lambda card: card["unit"]["conditions"].pop(), "conditions"),
    ],
)
def test_a_card_that_was_changed_is_found_out(
    folder: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    change_card(folder, change)
    assert any(message in finding for finding in findings(folder))


def test_counts_that_were_changed_are_found_out(folder: Path) -> None:
    table = pq.read_table(folder / "counts.parquet")
    counts = table["count"].to_pylist()
    counts[0] += 1
    pq.write_table(table.set_column(2, "count", [counts]), folder / "counts.parquet")
    assert any("the release has 3,001 groups" in finding for finding in findings(folder))


@pytest.fixture
def listed(households: Path, tmp_path: Path) -> Path:
    file = read_plan(households / "plan.toml")
    release = tt.make_release(
        file.plan, file.table(str(households / "people.csv")), tt.RunOptions(columns=file.columns, count=file.count)
    )
    release.save(tmp_path / "listed")
    return tmp_path / "listed"


def test_every_region_has_as_many_groups_as_the_public_list(listed: Path, households: Path) -> None:
    dwellings = csv.read_csv(households / "dwellings.csv")
    expected = dict(Counter(dwellings["municipality"].to_pylist()))
    release = tt.Release.load(listed)
    for level in ("place.region", "place.district", "place.municipality"):
        found = release.table(level, intervals=False)
        places = dict(zip(found[level].to_pylist(), found["count"].to_pylist(), strict=True))
        under = Counter[str]()
        tree = release.spine.attributes["place"]
        rows = tree.to_table()
        for row in rows.to_pylist():
            under[row[level.removeprefix("place.")]] += expected.get(row["municipality"], 0)
        assert places == {code: number for code, number in under.items() if number}
    assert findings(listed) == []
    told = [verdict.subject for verdict in check_folder(listed)]
    assert "as many groups as there are publicly, 4,000, in every region and at every level, of sizes 0 to 8" in told
    assert any(
        "as many groups in the release as on the list" in one for one in in_words(release.card["unit"]["conditions"])
    )


def test_a_region_that_contradicts_the_list_is_found_out(listed: Path) -> None:
    table = pq.read_table(listed / "public.parquet")
    number = table["number"].to_pylist()
    number[3] += 1
    pq.write_table(table.set_column(1, "number", [number]), listed / "public.parquet")
    assert any("groups, but there are" in finding and "which is public" in finding for finding in findings(listed))
    (listed / "public.parquet").unlink()
    assert any("public.parquet" in finding for finding in findings(listed))


def test_numbers_of_regions_may_be_declared_public_without_a_list(write: Write) -> None:
    file = read_plan(write(("event = ", 'public = "regions"\nevent = ')))
    release = tt.make_release(
        file.plan, file.table(str(file.source)), tt.RunOptions(columns=file.columns, count=file.count)
    )
    assert release.table("place.county", intervals=False)["count"].to_pylist() == [1000, 1000, 1000]
    assert any("declared to be public" in one for one in in_words(release.card["unit"]["conditions"]))


def test_a_testing_key_repeats_the_release_and_is_said_to(write: Write) -> None:
    file = read_plan(write())
    source = file.table(str(file.source))
    one, two = (
        tt.make_release(
            file.plan,
            source,
            tt.RunOptions(columns=file.columns, count=file.count, testing_key=bytes(32), threads=threads),
        )
        for threads in (1, 2)
    )
    assert (one.count == two.count).all() and not one.card["private"] and in_words(one.card["guarantee"]) == "None."


@pytest.mark.parametrize("form", ["direct", "cumulative"])
def test_only_the_total_has_a_bound(form: Form) -> None:
    made = plan(form=form, number=30_000, split={"size": 1, "place.state": 2, "place.county": 1}, repair="exact")
    assert [row.bound for row in made.accuracy(0.9).levels] == [0, None, None, None]
