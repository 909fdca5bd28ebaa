"""Every command on a plan with facts, as a steward calls it: it knows them, or refuses in one message."""

from __future__ import annotations

import csv
import runpy
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.commands import Said, said

PUPILS = Path(__file__).parents[2] / "examples" / "pupils"
EXACT = {"North": 769, "South": 777, "West": 624}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example, with a twin of another year: some pupils more, and all facts but the totals hold of it."""
    shutil.copytree(PUPILS, tmp_path, dirs_exist_ok=True)
    rows = (tmp_path / "pupils.csv").read_text().splitlines()
    (tmp_path / "twin.csv").write_text("\n".join([*rows[:-40], *["Larch,9,general"] * 10]) + "\n")
    (tmp_path / "wrong.csv").write_text("\n".join([*rows[:-40], "Larch,3,vocational"]) + "\n")
    return tmp_path


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the example that keeps all measurements."""
    folder = tmp_path_factory.mktemp("pupils") / "example"
    shutil.copytree(PUPILS, folder)
    ran = said(["release", "plan.toml", "--out", "out", "--keep-measurements", "--quiet"], folder)
    assert ran.code == 0, ran.err
    return folder / "out"


def ran(folder: Path, *words: object) -> Said:
    found = said(words, folder)
    assert found.code == 0, found.err
    return found


def refused(folder: Path, *words: object) -> str:
    """Run a command that is refused: in one message, without a traceback."""
    found = said(words, folder)
    assert found.code != 0 and "Traceback" not in found.err, found.out
    assert len(found.err.strip().splitlines()) == 1, found.err
    return found.err


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def seats_of(folder: Path) -> dict[str, int]:
    return {row["town"]: int(row["count"]) for row in rows_of(folder / "seats.csv")}


def without_facts(folder: Path) -> str:
    """Write the plan without its facts beside it, and return its name."""
    text = (folder / "plan.toml").read_text()
    (folder / "plain.toml").write_text(text[: text.index("[facts]")] + text[text.index("[unit]") :])
    return "plain.toml"


def change(folder: Path, old: str, new: str) -> Path:
    path = folder / "plan.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return path


def test_plan_says_which_levels_are_exact_and_what_is_kept(folder: Path) -> None:
    told = ran(folder, "plan", "plan.toml").out
    row = next(line for line in told.splitlines() if " place.region " in line)
    assert row.split()[-3:] == ["-", "exact", "0"]
    assert "- place region: the counts, which are public, are released as they are and not measured." in told
    assert "- place town: counts are not above what is public." in told
    assert "- grade × track: cells that are impossible" in told
    assert "before anything is charged" in told and "143 possible leaves" in told


def test_plan_tells_machines_the_same(folder: Path) -> None:
    told = ran(folder, "plan", "plan.toml", "--json").json()
    assert [level["exact"] for level in told["levels"]] == [True, True, False, False, False]
    assert [level["cost"] for level in told["levels"][:2]] == ["0", "0"] and told["levels"][1]["bound"] == 0
    assert [fact["table"] for fact in told["facts"]["tables"]] == ["place.region", "place.town", "grade * track"]
    assert len(told["facts"]["sentences"]) == 4
    assert ran(folder, "plan", without_facts(folder), "--json").json()["facts"] == {"tables": [], "sentences": []}


def test_plan_says_what_an_invariant_means_for_a_person(folder: Path) -> None:
    change(folder, '"place.region" = "enrolment.csv"', '"place.region" = { invariant = true }')
    told = ran(folder, "plan", "plan.toml").out
    assert "- What this means for one pupil: The true counts by place region are published without noise." in told
    assert "they are not protected" in told


def test_a_named_split_divides_the_loss_among_what_is_measured(folder: Path) -> None:
    for split in ("top-heavy", "bottom-heavy", "by-nodes"):
        change(folder, "epsilon = 1.0", f'epsilon = 1.0\nsplit = "{split}"')
        levels = ran(folder, "plan", "plan.toml", "--json").json()["levels"]
        assert [level["share"] > 0 for level in levels] == [False, False, True, True, True]
        change(folder, f'\nsplit = "{split}"', "")


def test_a_target_leaves_out_what_is_exact(folder: Path) -> None:
    told = ran(folder, "plan", "plan.toml", "--target", "town=20", "--json").json()
    assert next(need["name"] for need in told["answer"]["levels"]) == "place.town"
    assert "place.region" not in told["answer"]["split"]
    assert "met at any loss" in refused(folder, "plan", "plan.toml", "--target", "region=20")
    # Without facts the region would need a measurement of its own, so that the same target costs more.
    plain = ran(folder, "plan", without_facts(folder), "--target", "town=20", "--json").json()
    assert told["answer"]["loss"]["epsilon"] < plain["answer"]["loss"]["epsilon"]


def test_a_grid_and_a_prior_know_what_is_exact(folder: Path) -> None:
    grid = ran(folder, "plan", "plan.toml", "--epsilon-grid", "0.1,1", "--json").json()["grid"]
    assert all((row["noise"] == 0) == (row["name"] in ("total", "place.region")) for row in grid)
    assert {row["nodes"] for row in grid if row["name"] == "track"} == {143}
    told = ran(folder, "plan", "plan.toml", "--prior", "twin.csv", "--prior-source", "last year", "--json").json()
    assert list(told["forecast"]["split"]) == ["place.town", "grade", "track"]


def test_what_a_release_is_worth_knows_facts(folder: Path) -> None:
    outlook = ran(folder, "plan", "plan.toml", "--total", "2170", "--json").json()["outlook"]
    by_name = {one["name"]: one for one in outlook["tables"]}
    assert by_name["place.region"]["noise"] == 0 and by_name["track"]["nodes"] == 143


def test_trials_on_a_twin_take_its_own_totals_and_say_so(folder: Path) -> None:
    told = ran(folder, "plan", "plan.toml", "--twin", "twin.csv", "--runs", "2")
    region = next(line for line in told.out.splitlines() if " place.region " in line).split()
    assert region[-3:] == ["0", "0", "100.0%"]
    assert "facts that are exact counts have those of the twin" in told.out


def test_a_twin_that_contradicts_what_is_impossible_is_refused(folder: Path) -> None:
    message = refused(folder, "plan", "plan.toml", "--twin", "wrong.csv", "--runs", "2")
    assert "the twin contradicts grade * track (impossible = 'too_young.csv'): 1 records are in cells" in message


def test_a_release_that_is_refused_for_its_twin_spends_nothing(folder: Path) -> None:
    ledger = tt.Ledger.create(folder / "ledger", loss=tt.Loss(epsilon=5, delta=1e-5))
    words = ("release", "plan.toml", "--out", "out", "--ledger", "ledger", "--twin")
    assert "the twin contradicts" in refused(folder, *words, "wrong.csv")
    assert not ledger.entries() and not (folder / "out").exists()
    assert "within theirs" in ran(folder, *words, "twin.csv").out
    assert len(ledger.entries()) == 1
    assert "matches its card" in ran(folder, "check", "out").out


def test_advice_keeps_facts_and_says_what_it_left_out(folder: Path) -> None:
    told = ran(folder, "plan", "plan.toml", "--advise", "--total", "2170", "--write", "advised.toml")
    assert "Other spines were left out, since they cannot keep the facts. The first of them:" in told.out
    advised = tomllib.loads((folder / "advised.toml").read_text())
    assert "place.region" not in advised["loss"]["split"] and "place.town" in advised["loss"]["split"]
    released = tt.make_release(
        tt.read_plan(folder / "advised.toml").plan, folder / "pupils.csv", tt.RunOptions(columns={"place": "town"})
    )
    assert {row["place.region"]: row["count"] for row in released.table("place.region").to_pylist()} == EXACT


def test_advice_is_tried_on_a_twin(folder: Path) -> None:
    told = ran(folder, "plan", "plan.toml", "--advise", "--twin", "twin.csv", "--runs", "2", "--json").json()
    assert all(row["tried"] is not None for row in told["design"]["tables"])
    assert told["design"]["refused"] and any("those of the twin" in note for note in told["notes"])


def test_query_tells_exact_numbers_without_doubt(released: Path) -> None:
    rows = ran(released.parent, "query", "out", "--by", "place.region", "--json").json()["rows"]
    assert {row["place.region"]: (row["count"], row["lower"], row["upper"]) for row in rows} == {
        region: (count, count, count) for region, count in EXACT.items()
    }
    none = ran(released.parent, "query", "out", "grade=3", "track=vocational", "--json").json()
    assert (none["count"], none["interval"]["lower"], none["interval"]["upper"]) == (0, 0, 0)
    seats = seats_of(released.parent)
    for row in ran(released.parent, "query", "out", "--by", "place.town", "--json").json()["rows"]:
        assert row["count"] <= seats[row["place.town"]] >= row["upper"]


def test_check_verifies_facts_and_tells_errors(released: Path) -> None:
    told = ran(released.parent, "check", "out", "--truth", "pupils.csv").out
    assert "✓ every public fact is kept, node by node: place.region, place.town, grade * track" in told
    region = next(line for line in told.splitlines() if line.startswith("place region"))
    assert region.split()[4:6] == ["0", "0"]


def test_records_keep_the_facts(released: Path, tmp_path: Path) -> None:
    ran(released.parent, "export", "out", "--to", "records", "--out", tmp_path / "records.parquet")
    rows = pq.read_table(tmp_path / "records.parquet").to_pylist()
    assert len(rows) == sum(EXACT.values())
    assert not [row for row in rows if row["track"] == "vocational" and int(row["grade"]) < 8]
    ran(released.parent, "export", "out", "--to", "qgis", "--out", tmp_path / "qgis")
    table = rows_of(tmp_path / "qgis" / "table.csv")
    assert sum(int(row["count"]) for row in table) == sum(EXACT.values())


FLOWS = ("flowmap", "skmob", "kepler", "od", "qgis", "records", "map")


def test_every_format_takes_flows_with_facts(tmp_path: Path) -> None:
    places = "region,town,lat,lon\nA,a1,45,7\nA,a2,45.5,7.5\nB,b1,46,8\nB,b2,46.5,8.5\n"
    (tmp_path / "places.csv").write_text(places)
    rows = ["a1,a2"] * 60 + ["a2,a2"] * 40 + ["b1,b2"] * 50 + ["b2,b1"] * 30
    (tmp_path / "trips.csv").write_text("\n".join(["origin,destination", *rows]) + "\n")
    attribute = '[attributes.{}]\nhierarchy = "places.csv"\nlevels = ["region", "town"]\nlatitude = "lat"\n'
    ends = "".join(attribute.format(end) + 'longitude = "lon"\n' for end in ("origin", "destination"))
    facts = '[facts]\n"origin.region * destination.region" = { possible = "same" }\n'
    unit = '[unit]\nentity = "trip"\ncontributions = 1\nneighbours = "replace"\n[loss]\nepsilon = 1\ndelta = 1e-6\n'
    (tmp_path / "plan.toml").write_text(f'{ends}[spine]\norder = "destination-first"\n{facts}{unit}')
    ran(tmp_path, "release", "plan.toml", "trips.csv", "--out", "out", "--quiet")
    assert "matches its card" in ran(tmp_path, "check", "out").out
    for name in FLOWS:
        ran(tmp_path, "export", "out", "--to", name, "--out", f"{name}.html" if name == "map" else name)
    flows = rows_of(tmp_path / "od" / "flows.csv")
    assert flows and all(row["origin"][0] == row["destination"][0] for row in flows)


def test_compare_runs_others_without_facts_and_says_so(folder: Path) -> None:
    words = ("compare", "plan.toml", "--repeat", "1", "--jobs", "1", "--no-plots")
    told = ran(folder, *words, "--out", "one", "--mechanisms", "facts,margins,inftda,sh")
    assert "Only the mechanism called facts keeps them" in told.out and "Not run" not in told.out
    found = ran(folder, *words, "--out", "two", "--json").json()
    errors = {
        one["mechanism"]: {level["name"]: level["largest"] for level in one["levels"]} for one in found["settings"]
    }
    assert list(errors) == ["facts", "margins", "inftda", "tda-l2", "gauss", "sh"]
    assert errors["facts"]["place.region"] == 0 < errors["gauss"]["place.region"]
    assert "may contradict them" in found["facts"] and "may contradict them" in (folder / "two/summary.md").read_text()


def test_compare_of_a_plan_without_facts_says_nothing_of_them(folder: Path) -> None:
    words = ("--repeat", "1", "--jobs", "1", "--no-plots", "--out", "out", "--json")
    found = ran(folder, "compare", without_facts(folder), *words).json()
    assert [one["mechanism"] for one in found["settings"]] == ["margins", "inftda", "tda-l2", "gauss", "sh"]
    assert found["facts"] is None


def test_a_split_that_is_stated_for_facts_is_not_that_of_others(folder: Path) -> None:
    change(folder, "epsilon = 1.0", 'epsilon = 1.0\nsplit = { "place.town" = 2, grade = 1, track = 1, margins = 1 }')
    words = ("compare", "plan.toml", "--repeat", "1", "--jobs", "1", "--no-plots", "--mechanisms", "facts,inftda")
    assert ran(folder, *words, "--out", "out", "--json").json()["refused"] == []


def test_estimates_respect_what_is_known(released: Path) -> None:
    release = tt.Release.load(released)
    region = release.estimates("place.region")
    assert dict(zip(region["place"].to_pylist(), region["estimate"].to_pylist(), strict=True)) == EXACT
    assert not np.any(region["sd"].to_numpy())
    seats = seats_of(released.parent)
    for row in release.estimates("place.town").to_pylist():
        assert 0 <= row["estimate"] <= seats[row["place"]]
    told = ran(released.parent, "estimate", "out", "--json").json()
    assert [level["sd"] for level in told["levels"]][:2] == [0, 0]
    assert not [step for step in told["next"] if "--out" in step]


def test_estimates_are_clipped_at_bounds_that_the_noise_passes() -> None:
    plan = tt.Plan(
        tt.Spine(["place"], {"place": tt.Hierarchy.flat(["a", "b", "c"])}),
        tt.Unit("person", 1, "replace"),
        tt.Loss(epsilon=0.1, delta=1e-6),
        facts={"place": tt.Fact(at_least={"a": 9}, at_most={"a": 11, "b": 20})},
    )
    table = pa.table({"place": ["a"] * 10 + ["b"] * 15 + ["c"] * 5})
    passed = 0
    for number in range(8):
        release = tt.make_release(plan, table, tt.RunOptions(testing_key=bytes([number]) * 32, keep_measurements=True))
        found = {row["place"]: row["estimate"] for row in release.estimates("place").to_pylist()}
        assert 9 <= found["a"] <= 11 and 0 <= found["b"] <= 20
        passed += found["a"] in (9, 11)
    assert passed > 4  # the noise is far wider than the bounds


REFUSALS: dict[str, tuple[Callable[[Path], object], tuple[object, ...], str]] = {
    "lower-error": (
        lambda folder: change(folder, "[data]", '[release]\nprefer = "lower-error"\n[data]'),
        ("release", "plan.toml", "--out", "new"),
        'plan.toml: [facts] prefer = "lower-error" estimates every count again',
    ),
    "invariant under add-remove": (
        lambda folder: [
            change(folder, '"place.region" = "enrolment.csv"', '"place.region" = { invariant = true }'),
            change(folder, '"replace"', '"add-remove"'),
        ],
        ("release", "plan.toml", "--out", "new"),
        "plan.toml: [facts] an invariant is the same for all neighbours",
    ),
    "a merged step": (
        lambda folder: change(folder, '"grade", "track"]', '"grade * track"]'),
        ("release", "plan.toml", "--out", "new"),
        "plan.toml: [facts] grade * track says what is possible, and the merged step",
    ),
    "a contradiction": (
        lambda folder: (folder / "seats.csv").write_text("town,count\nMaple,300\nOak,200\nPine,60\nRowan,30\n"),
        ("release", "plan.toml", "--out", "new"),
        "these cannot all be true: place.region (exact = 'enrolment.csv'); place.town (at_most = 'seats.csv')",
    ),
    "a private table that disagrees": (
        lambda folder: (folder / "pupils.csv").write_text((folder / "pupils.csv").read_text() + "Elm,1,general\n"),
        ("release", "plan.toml", "--out", "new"),
        "the private table contradicts place.region",
    ),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refusal_is_one_message_and_spends_nothing(why: str, folder: Path) -> None:
    spoil, words, message = REFUSALS[why]
    ledger = tt.Ledger.create(folder / "ledger", loss=tt.Loss(epsilon=5, delta=1e-5))
    spoil(folder)
    assert message in refused(folder, *words, "--ledger", "ledger")
    assert not ledger.entries() and not (folder / "new").exists()


def test_estimating_again_is_refused_with_what_to_do_instead(released: Path) -> None:
    message = refused(released.parent, "estimate", "out", "--out", "again")
    assert "keeps public facts" in message and "--level" in message
    assert not (released.parent / "again").exists()


def test_plans_for_group_sizes_point_to_their_list(tmp_path: Path) -> None:
    shutil.copytree(PUPILS.parent / "households", tmp_path, dirs_exist_ok=True)
    text = (tmp_path / "plan.toml").read_text()
    (tmp_path / "plan.toml").write_text(text + '\n[facts]\n"place.region" = "dwellings.csv"\n')
    message = refused(tmp_path, "plan", "plan.toml")
    assert "What is public of groups is their list: name it with [groups] list" in message


def test_a_draft_shows_how_facts_are_stated(folder: Path) -> None:
    ran(folder, "inspect", "pupils.csv", "--hierarchy", "places.csv", "--out", "draft.toml")
    draft = (folder / "draft.toml").read_text()
    assert '# [facts]\n# "town.region" = "published_totals.csv"\n' in draft
    assert "facts" not in tomllib.loads(draft)


def test_the_example_is_what_its_script_makes(tmp_path: Path) -> None:
    shutil.copy(PUPILS / "make.py", tmp_path)
    runpy.run_path(str(tmp_path / "make.py"), run_name="__main__")
    for file in sorted(tmp_path.glob("*.csv")):
        assert file.read_text() == (PUPILS / file.name).read_text(), file.name
