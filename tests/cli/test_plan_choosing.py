"""`treetop plan` with targets, grids, twins and priors: what accuracy costs, before private data is read."""

from __future__ import annotations

import gzip
import sqlite3
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import treetop as tt
from tests.commands import Command
from treetop import cli, read_plan
from treetop.advice._losses import PROMISE
from treetop.advice.public import read_public
from treetop.errors import IncompletePlan

PLAN = """
title = "Trips"   # of one week
[attributes.origin]
hierarchy = "places.csv"
levels = ["region", "town"]
[attributes.destination]
same_as = "origin"
[spine]
order = "destination-first"
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
# decided by the board
epsilon = 1.0
delta = 1e-8
split = "uniform"
[data]
source = "private.csv"
count = "n"
"""
NAMES = ["destination.region", "origin.region", "destination.town", "origin.town"]
TOWNS = [f"{region}{number}" for region in "NSW" for number in range(6)]

run = Command.of("plan")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    rows = [f"{town[0]},{town}" for town in TOWNS]
    (tmp_path / "places.csv").write_text("\n".join(["region,town", *rows]) + "\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    for seed, name in enumerate(("private.csv", "twin.csv")):
        rng = np.random.default_rng(seed)
        pairs = [(one, other) for one in TOWNS for other in TOWNS if rng.random() < 0.3]
        origin, destination = zip(*pairs, strict=True)
        counts = rng.integers(1, 900, len(pairs))
        table = pa.table({"origin": origin, "destination": destination, "n": counts})
        pyarrow.csv.write_csv(table, tmp_path / name)
    return tmp_path / "plan.toml"


def change(plan: Path, old: str, new: str) -> None:
    assert old in plan.read_text()
    plan.write_text(plan.read_text().replace(old, new))


def margins(plan: tt.Plan, confidence: str = "0.95") -> dict[str, int]:
    risk = 1 - Fraction(confidence)
    return {part.name: part.law.margin(risk) for part in plan.workload if part.is_measured}


def test_a_target_gives_a_loss_that_meets_it_and_none_that_is_smaller_does(plan: Path) -> None:
    told = run.json(plan, "--target", "origin.town=20")
    assert told["targets"] == ["95% of origin.town within ±20"]
    loss, split = told["answer"]["loss"], told["answer"]["split"]
    file = read_plan(plan).plan
    found = tt.Plan(file.spine, file.unit, tt.Loss(**loss), split=split)
    assert margins(found)["origin.town"] == 20
    less = tt.Plan(file.spine, file.unit, tt.Loss(epsilon=0.999 * loss["epsilon"], delta=1e-8), split=split)
    assert margins(less)["origin.town"] > 20


def test_the_answer_can_be_pasted_into_the_plan(plan: Path) -> None:
    told = run.json(plan, "--target", "town within 20 at 99%")
    pasted = tomllib.loads(told["toml"])["loss"]
    assert pasted["epsilon"] == told["answer"]["loss"]["epsilon"] and pasted["delta"] == 1e-8
    assert pasted["split"] == told["answer"]["split"]
    shown = run(plan, "--target", "town within 20 at 99%")
    assert told["toml"] in shown and PROMISE in shown
    assert f"The smallest loss that meets them: epsilon {pasted['epsilon']:.6g} at delta 1e-08" in shown


def test_the_answer_can_be_written_as_a_plan_that_keeps_all_else(plan: Path) -> None:
    change(plan, 'split = "uniform"\n', '[loss.split]\n"origin.town" = 2\n')  # a split that is left out of others
    change(plan, '"origin.town" = 2\n', "".join(f'"{name}" = 2\n' for name in NAMES))
    before = tomllib.loads(plan.read_text())
    out = plan.parent / "answer.toml"
    told = run.json(plan, "--target", "origin.town=20", "--write", out)
    assert told["files"] == [str(out)]
    after = tomllib.loads(out.read_text())
    assert {**before, "loss": after["loss"]} == after
    assert "# of one week" in out.read_text() and "# decided by the board" in out.read_text()
    assert margins(read_plan(out).plan)["origin.town"] == 20


def test_a_plan_is_not_written_over_another_nor_where_its_paths_lead_elsewhere(plan: Path) -> None:
    text = plan.read_text()
    assert "exists already" in run.fails(plan, "--target", "town=20", "--write", plan) and plan.read_text() == text
    (plan.parent / "other").mkdir()
    assert "relative to its folder" in run.fails(
        plan, "--target", "town=20", "--write", plan.parent / "other" / "a.toml"
    )
    inline = plan.read_text().replace(
        '[loss]\n# decided by the board\nepsilon = 1.0\ndelta = 1e-8\nsplit = "uniform"\n', ""
    )
    plan.write_text(f"loss = {{ epsilon = 1.0, delta = 1e-8 }}\n{inline}")
    assert "change it in an editor" in run.fails(plan, "--target", "town=20", "--write", plan.parent / "a.toml")
    assert not (plan.parent / "a.toml").exists()


def test_the_kind_of_a_target_is_told(plan: Path) -> None:
    shown = run(plan, "--target", "origin.town mean 8", "--target", "origin.region within 5 at 99%")
    assert "- origin.town off by at most 8 on average\n" in shown
    assert "- 99% of origin.region within ±5\n" in shown


def test_a_short_name_is_for_every_level_of_that_name_and_costs_no_more(plan: Path) -> None:
    short, long = (run.json(plan, "--target", f"{name}=20") for name in ("town", "origin.town"))
    assert short["targets"] == [f"95% of {name}.town within ±20" for name in ("destination", "origin")]
    assert short["answer"]["loss"] == long["answer"]["loss"]


def test_a_target_answers_a_loss_that_is_left_open(plan: Path) -> None:
    stated = run.json(plan, "--target", "town=20")["answer"]
    change(plan, "epsilon = 1.0", "# epsilon = 1.0")
    assert "loss.epsilon" in run.fails(plan, code=3)
    assert run.json(plan, "--target", "town=20")["answer"] == stated
    change(plan, "delta = 1e-8", 'delta = "?"')
    message = run.fails(plan, "--target", "town=20", code=3)
    assert "states no delta" in message and "--delta" in message and "--pure" in message
    assert run.json(plan, "--target", "town=20", "--delta", "1e-8")["answer"] == stated
    with pytest.raises(IncompletePlan):
        read_plan(plan)


def test_other_questions_stay_open(plan: Path) -> None:
    change(plan, 'entity = "trip"', "")
    change(plan, "epsilon = 1.0", "")
    message = run.fails(plan, "--target", "town=20", code=3)
    assert "unit.entity" in message and "loss.epsilon" not in message


@pytest.mark.parametrize(
    ("loss", "options", "keys"),
    [
        ("epsilon = 1", [], {"epsilon"}),
        ("epsilon = 1\ndelta = 1e-8", ["--pure"], {"epsilon"}),
        ("rho = 0.1", [], {"rho"}),
        ("rho = 0.1\ndelta = 1e-6", [], {"rho", "delta"}),
        ("rho = 0.1", ["--delta", "1e-6"], {"epsilon", "delta"}),
    ],
)
def test_the_loss_is_of_the_kind_that_the_plan_or_the_call_states(
    plan: Path, loss: str, options: list[str], keys: set[str]
) -> None:
    change(plan, "epsilon = 1.0\ndelta = 1e-8", loss)
    told = run.json(plan, "--target", "town=20", *options)
    assert set(told["answer"]["loss"]) == keys
    file = read_plan(plan).plan
    found = tt.Plan(file.spine, file.unit, tt.Loss(**told["answer"]["loss"]), split=told["answer"]["split"])
    assert margins(found)["origin.town"] == 20


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--target", "twon=20"], 2, "there is no level 'twon' (did you mean 'destination.town'?)"),
        (["--target", "town"], 2, "cannot be read; write 'LEVEL=20'"),
        (["--target", "town=2.5"], 2, "cannot be read"),
        (["--target", "town within 20 at 100%"], 2, "between 0 and 1"),
        (["--target", "town mean 0"], 2, "give a positive number"),
        (["--target", "total=5"], 2, "released exactly"),
        (["--target", "town=99999999999999999"], 2, "ask for more accuracy"),
        (["--target", "town=99999999999999999", "--pure"], 2, "too wide"),
        (["--target", "town=20", "--delta", "2"], 2, "delta is 2"),
        (["--target", "town=20", "--delta", "1e-8", "--pure"], 2, "--pure or --delta"),
        (["--target", "town=20", "--prior", "twin.csv"], 2, "--target or --prior"),
        (["--epsilon-grid", "1,two"], 2, "with commas between them"),
        (["--epsilon-grid", "0,1"], 2, "positive numbers"),
        (["--epsilon-grid", "1", "--confidence", "95"], 2, "between 0 and 1"),
        (["--delta", "1e-9"], 2, "--delta needs --target or --squared-error or --epsilon-grid or --plot"),
        (["--write", "x.toml"], 2, "--write needs --target or --prior or --advise"),
        (["--twin-source", "x"], 2, "--twin-source needs --twin"),
        (["--prior", "twin.csv"], 2, "say where twin.csv is from"),
        (["--weight", "town=2"], 2, "--weight needs --prior"),
        (["--squared-error", "9", "--target", "town=20"], 2, "--squared-error needs --prior"),
        (["--refine", "--twin", "twin.csv"], 2, "--refine needs --prior"),
        (["--prior", "twin.csv", "--shares", "town"], 2, "--shares needs --refine"),
        (["--prior", "twin.csv", "--refine", "--shares-weight", "log"], 2, "--shares-weight needs --shares"),
        (["--prior", "twin.csv", "--refine", "--weight", "town=2", "--shares", "town"], 2, "--shares or --weight"),
        (["--prior", "twin.csv", "--prior-source", "x", "--refine", "--shares", "town"], 2, "each by its full name"),
        (["--prior", "twin.csv", "--objective", "consistent", "--squared-error", "9"], 2, "--objective consistent"),
        (["--prior", "twin.csv", "--prior-source", "x", "--squared-error", "0"], 2, "give a positive number"),
        (["--prior", "twin.csv", "--prior-source", "x", "--weight", "town"], 2, "as in --weight state=2"),
        (["--prior", "twin.csv", "--prior-source", "x", "--weight", "towm=2"], 2, "there is no level 'towm'"),
        (["--twin", "private.csv"], 3, "the twin is the private table itself"),
        (["--prior", "private.csv", "--prior-source", "x"], 3, "the prior is the private table itself"),
        (["--twin", "absent.csv"], 2, "absent.csv"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_mistake_is_told_in_one_message(
    plan: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, message: str
) -> None:
    monkeypatch.chdir(plan.parent)
    assert message in " ".join(run.fails(plan, *arguments, code=code).split())


def test_a_copy_of_the_private_table_is_refused_as_a_twin(plan: Path) -> None:
    (plan.parent / "copy.csv").write_bytes((plan.parent / "private.csv").read_bytes())
    assert "has the content of" in run.fails(plan, "--twin", plan.parent / "copy.csv", code=3)


def test_a_grid_has_the_margins_of_the_plan_at_every_epsilon(plan: Path) -> None:
    told = run.json(plan, "--epsilon-grid", "2,0.5")
    file = read_plan(plan).plan
    assert [row["epsilon"] for row in told["grid"]] == [0.5] * 8 + [2.0] * 8
    for epsilon in (0.5, 2.0):
        plans = tt.Plan(file.spine, file.unit, tt.Loss(epsilon=epsilon, delta=1e-8))
        expected = margins(plans)
        rows = {row["name"]: row["margin"] for row in told["grid"] if row["epsilon"] == epsilon and row["level"]}
        assert rows == expected
    shown = run(plan, "--epsilon-grid", "2,0.5")
    assert "epsilon 0.5  epsilon 2" in shown and "within ± this, 95% of the time (delta 1e-08)" in shown
    assert "of the time (pure)" in run(plan, "--epsilon-grid", "1", "--pure")


def test_a_grid_needs_no_loss_but_the_delta_of_one(plan: Path) -> None:
    stated = run.json(plan, "--epsilon-grid", "1")["grid"]
    change(plan, "epsilon = 1.0", "")
    assert run.json(plan, "--epsilon-grid", "1")["grid"] == stated
    change(plan, "delta = 1e-8", "rho = 1")
    assert "give --delta" in run.fails(plan, "--epsilon-grid", "1")
    assert run.json(plan, "--epsilon-grid", "1", "--delta", "1e-8")["grid"] == stated


def test_a_plot_is_drawn_with_and_without_a_twin(plan: Path) -> None:
    for more in ([], ["--twin", str(plan.parent / "twin.csv"), "--runs", "2"]):
        file = plan.parent / f"grid{len(more)}.png"
        told = run.json(plan, "--plot", file, "--epsilon-grid", "1,10", *more)
        assert told["files"] == [str(file)]
        assert file.read_bytes().startswith(b"\x89PNG")
    assert "cannot be written" in run.fails(plan, "--plot", plan.parent / "absent" / "grid.png")


def test_trials_on_a_twin_stand_beside_what_is_predicted(plan: Path) -> None:
    twin = plan.parent / "twin.csv"
    told = run.json(plan, "--twin", twin, "--runs", "3", "--twin-source", "made up", "--epsilon-grid", "1,10")
    assert told["trials"]["runs"] == 3 and told["trials"]["twin"] == "public table: made up"
    expected = margins(read_plan(plan).plan)
    for row in told["trials"]["levels"][1:]:
        assert row["predicted_margin"] == expected[row["name"]]
        assert 0 < row["mean"] < 3 * row["predicted_mean"]
    first, last = told["grid_trials"]
    assert first["levels"] == told["trials"]["levels"]
    assert last["epsilon"] == 10 and last["levels"][-1]["mean"] < first["levels"][-1]["mean"]
    shown = run(plan, "--twin", twin, "--runs", "2", "--epsilon-grid", "1,10")
    assert "measured: mean" in shown and "released: mean" in shown and "2 trials each" in shown


def test_the_twin_tries_the_answer(plan: Path) -> None:
    told = run.json(plan, "--target", "origin.town=7", "--twin", plan.parent / "twin.csv", "--runs", "2")
    assert told["trials"]["levels"][-1]["predicted_margin"] == 7


def test_a_prior_gives_the_split_with_the_least_error(plan: Path) -> None:
    options = ["--prior", str(plan.parent / "twin.csv"), "--prior-source", "the census"]
    told = run.json(plan, *options)
    forecast = told["forecast"]
    assert forecast["prior"] == "public table: the census"
    assert forecast["squared_error"] < forecast["squared_error_before"]
    shares = [row["share"] for row in forecast["levels"]]
    assert shares == sorted(shares) and sum(shares) == pytest.approx(0.7)  # the margins have the rest
    assert tomllib.loads(told["toml"])["loss"]["epsilon"] == 1
    heavy = run.json(plan, *options, "--weight", "region=100")["forecast"]
    assert heavy["levels"][0]["share"] > shares[0]
    out = plan.parent / "best.toml"
    run(plan, *options, "--write", out)
    assert [float(level.share) for level in read_plan(out).plan.levels[1:]] == pytest.approx(shares)


def test_a_squared_error_gives_the_smallest_loss_that_reaches_it(plan: Path) -> None:
    """Program (7) undoes program (6): the error that an epsilon of 1 has at its best takes an epsilon of 1."""
    plan.write_text(PLAN.replace('order = "destination-first"', 'order = "destination-first"\nmargins = "none"'))
    options = ["--prior", str(plan.parent / "twin.csv"), "--prior-source", "the census"]
    forecast = run.json(plan, *options)["forecast"]
    told = run.json(plan, *options, "--squared-error", str(forecast["squared_error"]))
    assert told["answer"]["loss"]["epsilon"] == pytest.approx(1, rel=2e-3)
    shares = [row["share"] for row in told["forecast"]["levels"]]
    assert shares == pytest.approx([row["share"] for row in forecast["levels"]], rel=1e-4)
    assert told["forecast"]["squared_error"] == pytest.approx(forecast["squared_error"], rel=2e-3)
    half = run.json(plan, *options, "--squared-error", str(4 * forecast["squared_error"]))
    assert half["answer"]["loss"]["epsilon"] == pytest.approx(0.5, rel=0.1)
    shown = run(plan, *options, "--squared-error", "50000", "--write", plan.parent / "seven.toml")
    assert "- a total squared error of 50,000, expected of the prior" in shown
    assert read_plan(plan.parent / "seven.toml").plan.loss.epsilon is not None


def test_a_squared_error_leaves_margins_a_small_share(plan: Path) -> None:
    options = ["--prior", str(plan.parent / "twin.csv"), "--prior-source", "the census", "--squared-error", "50000"]
    told = run.json(plan, *options)
    margins = [row for row in told["answer"]["levels"] if row["why"].endswith("a margin")]
    assert margins and all(row["share"] == pytest.approx(0.01, rel=1e-3) for row in margins)
    assert told["forecast"]["squared_error"] <= 50000


def test_a_split_is_found_for_consistent_counts_and_refined_by_trials(plan: Path) -> None:
    plan.write_text(PLAN.replace('order = "destination-first"', 'order = "destination-first"\nmargins = "none"'))
    options = ["--prior", str(plan.parent / "twin.csv"), "--prior-source", "the census"]
    separate, consistent = (
        [row["share"] for row in run.json(plan, *options, *more)["forecast"]["levels"]]
        for more in ((), ("--objective", "consistent"))
    )
    assert sum(consistent) == pytest.approx(1) and consistent != pytest.approx(separate, rel=0.01)
    told = run.json(plan, *options, "--refine", "--threads", "1")
    refined = told["refined"]
    assert refined["tried"] > 1 and set(refined["split"]) == set(NAMES)
    if not refined["better"]:
        assert [row["share"] for row in told["forecast"]["levels"]] == pytest.approx(separate, rel=1e-3)
    assert "Splits near it, tried on the prior" in run(plan, *options, "--refine", "--threads", "1")


def test_a_split_is_refined_for_the_shares_that_counts_are_used_for(plan: Path) -> None:
    plan.write_text(PLAN.replace('order = "destination-first"', 'order = "destination-first"\nmargins = "none"'))
    options = ["--prior", str(plan.parent / "twin.csv"), "--prior-source", "the census", "--refine", "--threads", "1"]
    task = ["--shares", "origin.town in destination.town", "--shares-weight", "quadratic"]
    refined = run.json(plan, *options, *task)["refined"]
    assert refined["what"] == "squared error of shares of origin.town in destination.town (quadratic weights)"
    assert 0 < refined["found_error"] < 18 * 2  # 18 towns, whose shares are off by at most 2 in all
    assert refined["what"] in run(plan, *options, *task)
    assert run.json(plan, *options)["refined"]["what"] == "total squared error"


def test_an_earlier_release_is_a_prior_without_words(plan: Path) -> None:
    out = plan.parent / "earlier"
    cli.main(["release", str(plan), "--out", str(out), "--quiet"])
    told = run.json(plan, "--prior", out, "--twin", out, "--runs", "2")
    assert told["forecast"]["prior"] == told["trials"]["twin"] == "release: Trips"


def test_without_a_named_private_table_nothing_can_be_compared_and_that_is_told(plan: Path) -> None:
    twin = ["--twin", str(plan.parent / "twin.csv"), "--runs", "1"]
    assert "be sure that this one is public" not in run(plan, *twin)
    change(plan, 'source = "private.csv"', "")
    assert "be sure that this one is public" in run(plan, *twin)


def test_the_shipped_example_is_answered() -> None:
    example = Path(__file__).parents[2] / "examples" / "flights" / "plan.toml"
    told = run.json(example, "--target", "state=20")
    assert 1.7 < told["answer"]["loss"]["epsilon"] < 1.9


def test_a_loss_is_chosen_by_the_accounting_that_the_plan_keeps_it_with(plan: Path) -> None:
    by_default = run.json(plan, "--target", "town=20")["answer"]
    found = {}
    for accounting in ("exact", "zcdp"):
        text = plan.read_text()
        change(plan, "delta = 1e-8", f'delta = 1e-8\naccounting = "{accounting}"')
        found[accounting] = run.json(plan, "--target", "town=20")["answer"]
        plan.write_text(text)
    assert by_default == found["exact"]
    smaller, larger = (found[name]["loss"]["epsilon"] for name in ("exact", "zcdp"))
    assert 0.9 * larger < smaller < 0.97 * larger


def with_persons(plan: Path, twin: str) -> Path:
    """Make the plan one with a limit of 2 records a person, and write a twin, both in text of another kind."""
    for old, new in (("contributions = 1", 'contributions = 2\nid = "who"'), ('count = "n"', "")):
        change(plan, old, new)
    plan.write_text(plan.read_text() + 'delimiter = ";"\nencoding = "latin-1"\nkeep = { year = "2008" }\n')
    places = plan.parent / "places.csv"
    places.write_text(places.read_text() + "N,Nîmes\n")
    path = plan.parent / "persons.csv"
    path.write_text(twin, encoding="latin-1")
    return path


def total_of_twin(plan: Path, location: Path) -> int:
    found, _ = read_public(read_plan(plan), str(location), None)
    assert found.twin is not None
    return found.twin.total


@pytest.mark.parametrize("role", ["--twin", "--prior"])
def test_the_records_of_the_private_table_are_refused_whatever_their_file_is(plan: Path, role: str) -> None:
    change(plan, "contributions = 1", 'contributions = 2\nid = "who"')
    change(plan, 'count = "n"', "")
    rows = [("a", "N1", "S1")] * 5 + [("b", "N2", "S1"), ("c", "N1", "W1")]
    table = pa.table(dict(zip(("who", "origin", "destination"), zip(*rows, strict=True), strict=True)))
    pyarrow.csv.write_csv(table, plan.parent / "private.csv")
    again = table.take(list(reversed(range(len(rows)))))
    pyarrow.parquet.write_table(again, plan.parent / "again.parquet", compression="zstd")
    pyarrow.parquet.write_table(again.drop_columns(["who"]), plan.parent / "without.parquet")
    pyarrow.parquet.write_table(table.slice(1), plan.parent / "other.parquet")
    source = ["--prior-source", "made up"] if role == "--prior" else ["--runs", "1"]
    for same in ("again.parquet", "without.parquet"):
        assert "has the same records as the private table" in run.fails(plan, role, plan.parent / same, *source, code=3)
    told = run(plan, role, plan.parent / "other.parquet", *source)
    assert "Of private data, only this was asked: whether the public table is the private one." in told


def test_a_twin_is_read_as_the_private_table_is(plan: Path) -> None:
    rows = ["a;Nîmes;N1;2008"] * 5 + ["b;S1;N1;2008"] + ["c;S1;N1;2007"] * 4
    twin = with_persons(plan, "\n".join(["who;origin;destination;year", *rows]) + "\n")
    assert total_of_twin(plan, twin) == 2 + 1  # two of a's five, b's one, and none of c, of another year
    told = run.json(plan, "--twin", twin, "--runs", "1")
    assert told["notes"] == [
        "The limit of 2 records is in the trial: of the twin only the records that it keeps are counted.",
        "The twin could not be compared with the private table, which cannot be read as the plan says: be sure that "
        "the twin is public.",
    ]
    prior = run(plan, "--prior", twin, "--prior-source", "made up")
    assert "The limit of 2 records is in the forecast" in prior


def test_what_a_twin_lacks_is_said_and_not_applied(plan: Path) -> None:
    twin = with_persons(plan, "origin;destination\n" + "Nîmes;N1\n" * 5)
    assert total_of_twin(plan, twin) == 5
    shown = run(plan, "--twin", twin, "--runs", "1")
    assert "The limit of 2 records is not in the trial: the twin has no column 'who'." in shown
    assert "by 'year'; the twin has no such column, so all its rows count." in shown


def test_a_twin_of_fixed_width_is_read_by_the_positions_of_the_plan(plan: Path) -> None:
    change(plan, 'count = "n"', "[data.fields]\norigin = [1, 2]\ndestination = [4, 5]")
    (plan.parent / "fixed.txt").write_text("N1 S2\nN1 S3\nW1 N2\n")
    assert total_of_twin(plan, plan.parent / "fixed.txt") == 3
    table = pa.table({"origin": ["N1"], "destination": ["S1"]})
    pyarrow.parquet.write_table(table, plan.parent / "twin.parquet")
    assert total_of_twin(plan, plan.parent / "twin.parquet") == 1


def test_the_query_of_the_plan_is_for_databases_only(plan: Path) -> None:
    change(plan, 'source = "private.csv"', 'source = "sqlite:///private.db"\nquery = "trips"')
    assert total_of_twin(plan, plan.parent / "twin.csv") > 0
    database = sqlite3.connect(plan.parent / "twin.db")
    database.execute("create table trips (origin text, destination text, n integer)")
    database.execute("create table others (origin text)")
    database.execute("insert into trips values ('N1', 'S1', 7)")
    database.commit()
    database.close()
    assert total_of_twin(plan, plan.parent / "twin.db") == 7


def test_a_compressed_copy_of_the_private_table_is_refused(plan: Path) -> None:
    (plan.parent / "copy.csv.gz").write_bytes(gzip.compress((plan.parent / "private.csv").read_bytes()))
    assert "copy.csv.gz has the content of" in run.fails(plan, "--twin", plan.parent / "copy.csv.gz", code=3)


def test_a_plot_is_replaced_by_force_only(plan: Path) -> None:
    pytest.importorskip("matplotlib")
    out = plan.parent / "grid.svg"
    out.write_text("kept")
    message = run.fails(plan, "--plot", out, "--epsilon-grid", "1,2")
    assert "exists already: choose another name, or replace it (--force)" in message and out.read_text() == "kept"
    run(plan, "--plot", out, "--epsilon-grid", "1,2", "--force")
    assert "svg" in out.read_text()
    run.fails(plan, "--target", "town=20", "--force")
