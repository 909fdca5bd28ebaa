"""`treetop ask`: questions are charged before they are answered, and answered again for nothing."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import treetop as tt
from treetop import Graph, Ledger, Loss, read_plan
from treetop.cli import main
from treetop.errors import IncompletePlan
from treetop.measure import measure as workload
from treetop.measure import questions
from treetop.noise import NoiseStream
from treetop.publishing import ask as asking

EXAMPLES = Path(__file__).parents[2] / "examples"
Captured = pytest.CaptureFixture[str]
Ask = Callable[..., Any]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example of a graph, with a ledger for rho 0.1; we are in it."""
    shutil.copytree(EXAMPLES / "graph", tmp_path, dirs_exist_ok=True)
    Ledger.create(tmp_path / "ledger", loss=Loss(rho=0.1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ask(here: Path, capsys: Captured) -> Ask:
    def run(*arguments: str, plan: str = "users.toml") -> Any:
        main(["ask", plan, "--ledger", "ledger", "--json", *arguments])
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def refused(here: Path, capsys: Captured) -> Ask:
    def run(*arguments: str, plan: str = "users.toml") -> tuple[Any, str]:
        before = Ledger.open("ledger").spent("default")
        with pytest.raises(SystemExit) as leaving:
            main(["ask", plan, "--ledger", "ledger", *arguments])
        captured = capsys.readouterr()
        assert captured.out == "" and "Traceback" not in captured.err
        assert Ledger.open("ledger").spent("default") == before
        return leaving.value.code, captured.err

    return run


def spent() -> Fraction:
    return Ledger.open("ledger").spent("default")


def test_a_question_is_answered_within_its_margin_and_charged(ask: Ask) -> None:
    told = ask("--rho", "0.05", "--where", "region=Zilina", "--confidence", "0.999999999")
    (answer,) = told["answers"]
    truth = sum(
        ",Zilina" in line.replace('"', "") for line in Path("nodes.csv").read_text(encoding="utf-8").splitlines()
    )
    assert abs(answer["measured"] - truth) <= answer["margin"]
    assert answer["lower"] <= truth <= answer["upper"]
    assert spent() == Fraction(told["ledger"]["charged"]) == Fraction("0.05")


def test_the_same_question_is_answered_the_same_and_for_free(ask: Ask) -> None:
    first = ask("--rho", "0.04", "--where", "region=Zilina", "--where", "hobby=music")
    Path("nodes.csv").unlink()  # not even read again
    again = ask("--rho", "0.04", "--question", "hobby=music place.region=Zilina")
    assert again["answers"][0]["measured"] == first["answers"][0]["measured"]
    assert again["answers"][0]["free"] and not first["answers"][0]["free"]
    assert again["ledger"]["entry"] is None
    assert spent() == Fraction("0.04")


def test_a_less_accurate_answer_is_free_and_a_more_accurate_one_is_not(ask: Ask) -> None:
    first = ask("--rho", "0.02", "--where", "region=Zilina")
    weaker = ask("--rho", "0.01", "--where", "region=Zilina")
    assert weaker["answers"][0] == first["answers"][0] | {"free": True}
    ask("--rho", "0.03", "--where", "region=Zilina")
    assert spent() == Fraction("0.05")


def test_the_title_and_the_loss_of_a_plan_do_not_make_a_question_another_one(ask: Ask) -> None:
    ask("--rho", "0.01", "--where", "region=Zilina")
    text = Path("users.toml").read_text(encoding="utf-8").replace("People of", "Users of").replace("1.0", "0.01")
    Path("other.toml").write_text(text, encoding="utf-8")
    assert ask("--where", "region=Zilina", plan="other.toml")["answers"][0]["free"]
    Path("third.toml").write_text(text.replace("width = 30", "width = 45").replace(
        '"130-159", "160-189", "190-219"', '"130-174", "175-219"'), encoding="utf-8")  # fmt: skip
    assert not ask("--rho", "0.01", "--where", "region=Zilina", plan="third.toml")["answers"][0]["free"]


TRIPS = """title = "Trips"
[attributes.place]
column = "place"
hierarchy = "places.csv"
levels = ["town"]
[unit]
entity = "trip"
contributions = 1
neighbours = "add-remove"
[loss]
rho = 0.01
"""


def test_a_table_at_another_place_is_another_question_and_is_charged(ask: Ask, here: Path) -> None:
    Path("trips.toml").write_text(TRIPS, encoding="utf-8")
    for name, rows in (("one.csv", 5), ("two.csv", 5_000)):
        Path(name).write_text("place\n" + "Martin\n" * rows, encoding="utf-8")
    asked = "--where", "town=Martin"
    first, second = (ask(name, *asked, plan="trips.toml")["answers"][0] for name in ("one.csv", "two.csv"))
    assert not second["free"] and second["count"] > 4_000 > first["count"]
    assert ask(str(here / "one.csv"), *asked, plan="trips.toml")["answers"] == [first | {"free": True}]
    assert spent() == Fraction("0.02")


def test_another_way_to_read_a_table_is_another_question(ask: Ask) -> None:
    with sqlite3.connect("trips.db") as database:
        for name, rows in (("one", 500), ("two", 5_000)):
            database.execute(f"create table {name} (place text, year text)")
            database.executemany(f"insert into {name} values ('Martin', '2008')", [()] * rows)
    database.close()
    count = 0
    for query in ("one", "two"):
        for source in ("sqlite:///trips.db", "trips.db"):
            Path("trips.toml").write_text(TRIPS, encoding="utf-8")
            told = ask(source, "--query", query, "--where", "town=Martin", plan="trips.toml")
            assert told["answers"][0]["free"] == (source == "trips.db"), query
        Path("trips.toml").write_text(f'{TRIPS}[data]\nquery = "{query}"', encoding="utf-8")
        again = ask("trips.db", "--where", "town=Martin", plan="trips.toml")
        assert again["answers"] == told["answers"]
        assert again["answers"][0]["count"] > count
        count = 4_000
    for line in ('keep = { year = "2008" }', "delimiter = ','", 'encoding = "latin-1"'):
        Path("trips.csv").write_text("place,year\nMartin,2008\n", encoding="utf-8")
        Path("trips.toml").write_text(f"{TRIPS}[data]\n{line}", encoding="utf-8")
        assert not ask("trips.csv", "--where", "town=Martin", plan="trips.toml")["answers"][0]["free"]
    assert spent() == Fraction("0.05")


def test_other_people_behind_the_same_edges_are_another_question(ask: Ask) -> None:
    asked = "--rho", "0.02", "--where", "origin.region=Nitra"
    ask(*asked, plan="friendships.toml")
    shutil.copy("nodes.csv", "people.csv")
    text = Path("friendships.toml").read_text(encoding="utf-8").replace('"nodes.csv"', '"people.csv"')
    Path("other.toml").write_text(text, encoding="utf-8")
    assert not ask(*asked, plan="other.toml")["answers"][0]["free"]
    assert ask(*asked, plan="friendships.toml")["answers"][0]["free"]


def test_a_plan_that_names_no_table_must_be_told_which_one_is_asked_about(here: Path, refused: Ask) -> None:
    Path("trips.toml").write_text(TRIPS, encoding="utf-8")
    code, told = refused("--where", "town=Martin", plan="trips.toml")
    assert code == 2 and "name the private TABLE" in told


def test_questions_at_once_share_one_loss_and_what_does_not_overlap_costs_nothing_more(ask: Ask, here: Path) -> None:
    regions = ["Zilina", "Kosice", "Nitra", "Presov"]
    (here / "questions.txt").write_text("# regions\n" + "\n".join(f"region={name}" for name in regions), "utf-8")
    apart = ask("--rho", "0.02", "--file", "questions.txt")
    assert len(apart["answers"]) == 4
    assert {one["noise"]["variance"] for one in apart["answers"]} == {"25"}
    nested = ask("--rho", "0.02", "--question", "hobby=music", "--question", "hobby=music region=Nitra")
    assert {one["noise"]["variance"] for one in nested["answers"]} == {"50"}
    assert spent() == Fraction("0.04")


def test_a_question_that_is_asked_twice_at_once_is_asked_once(ask: Ask) -> None:
    told = ask("--rho", "0.02", "--question", "region=Nitra", "--question", "place.region=Nitra")
    assert len(told["answers"]) == 1 and told["answers"][0]["noise"]["variance"] == "25"


def test_a_negative_answer_becomes_zero_and_is_not_dropped(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "measure", lambda *_, before_measuring, **__: [before_measuring() or -7])
    (answer,) = ask("--rho", "0.02", "--where", "region=Nitra")["answers"]
    assert (answer["count"], answer["lower"], answer["measured"]) == (0, 0, -7)
    assert answer["upper"] == answer["margin"] - 7 > 0


def test_the_loss_is_on_disk_before_noise_is_drawn(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Stream(NoiseStream):
        def fill(self, out: Any, slot: int) -> None:
            seen.append(spent())
            super().fill(out, slot)

    monkeypatch.setattr(workload, "NoiseStream", Stream)
    ask("--rho", "0.02", "--where", "region=Nitra")
    assert seen == [Fraction("0.02")]


def test_what_dies_after_the_reservation_stays_spent_and_leaves_no_answer(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(NoiseStream, "fill", die)
        with pytest.raises(Died):
            ask("--rho", "0.02", "--where", "region=Nitra")
    ledger = Ledger.open("ledger")
    assert ledger.spent("default") == Fraction("0.02")
    assert ledger.answers("default") == ()
    assert ledger.entries()[0].state == "reserved, outcome unknown"
    assert not ask("--rho", "0.02", "--where", "region=Nitra")["answers"][0]["free"]


def test_a_spent_ledger_refuses_with_exit_code_3_before_the_table_is_read(ask: Ask, refused: Ask) -> None:
    ask("--rho", "0.1", "--where", "region=Nitra")
    Path("nodes.csv").unlink()
    code, told = refused("--rho", "0.001", "--where", "region=Zilina")
    assert code == 3 and "Nothing can be released" in told


def test_data_sets_have_answers_of_their_own(ask: Ask) -> None:
    Ledger.open("ledger").add("2011")
    Ledger.open("ledger").add("2012")
    ask("--rho", "0.02", "--where", "region=Nitra", "--dataset", "2011")
    assert not ask("--rho", "0.02", "--where", "region=Nitra", "--dataset", "2012")["answers"][0]["free"]


def test_the_relations_of_a_graph_have_ledgers_of_their_own(ask: Ask, refused: Ask) -> None:
    ask("--rho", "0.02", "--where", "origin.region=Nitra", plan="friendships.toml")
    code, told = refused("--rho", "0.02", "--where", "region=Nitra")
    assert code == 3 and "protect 'friend list, directed edges, at most 10 records (enforced), add-remove'" in told


def test_friendships_are_asked_for_as_well(ask: Ask) -> None:
    told = ask("--rho", "0.1", "--where", "origin.region=Nitra", "--where", "destination.region=Nitra",
               plan="friendships.toml")  # fmt: skip
    assert told["answers"][0]["noise"]["variance"] == "500"  # m² / (2 rho) with m = 10
    assert any("user-out" in sentence for sentence in told["graph"])


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (["--where", "region=Zilin"], "did you mean 'Zilina'"),
        (["--where", "hobbies=music"], "there is no attribute 'hobbies' (did you mean 'hobby'?)"),
        (["--where", "gender=1"], "there is no attribute 'gender'"),
        (["--where", "region"], "write ATTRIBUTE=CODE"),
        (["--where", "region=Nitra", "--where", "region=Zilina"], "asked for twice"),
        (["--where", "region=Nitra", "--where", "town=Martin"], "nothing is both"),
        (["--question", "hobby='music"], "the quotes do not match"),
        (["--question", "town=Dolny Kubin"], 'in quotes: town="Dolny Kubin"'),
        ([], "ask something"),
        (["--where", "hobby=music", "--delta", "1e-8"], "--delta goes with --epsilon"),
        (["--where", "hobby=music", "--confidence", "1.5"], "give a probability"),
        (["--where", "hobby=music", "--rho", "much"], "is not a positive number"),
        (["--where", "hobby=music", "--rho", "-1"], "is not a positive number"),
        (["missing.csv", "--where", "hobby=music"], "no such file"),
    ],
)
def test_a_mistake_is_named_and_spends_nothing(refused: Ask, arguments: list[str], about: str) -> None:
    code, told = refused(*arguments)
    assert code == 2
    assert about in told


def test_a_ledger_of_pure_epsilon_takes_pure_questions_only(here: Path, ask: Ask, refused: Ask) -> None:
    Path("ledger").unlink()
    Ledger.create("ledger", loss=Loss(epsilon=1))
    code, told = refused("--rho", "0.01", "--where", "hobby=music")
    assert code == 3 and "pure epsilon" in told
    (answer,) = ask("--epsilon", "0.5", "--where", "hobby=music")["answers"]
    assert answer["noise"]["scale"] == "2"


def test_any_plan_can_be_asked(here: Path, capsys: Captured) -> None:
    plan = str(EXAMPLES / "flights" / "plan.toml")
    for _ in range(2):
        main(["ask", plan, "--ledger", "ledger", "--rho", "0.05", "--where", "origin=CA", "--where", "destination=TX"])
    told = capsys.readouterr().out
    assert "origin=CA destination=TX" in told and "asked before" in told
    assert "Nothing was charged to the data set 'default'" in told


def test_the_help_loads_no_heavy_library() -> None:
    heavy = "{'numpy', 'pyarrow', 'duckdb', 'rich', 'numba', 'flint'}"
    program = f"import sys, treetop.cli.ask; print(*({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_people_see_the_answer_its_margin_and_what_is_left(here: Path, capsys: Captured) -> None:
    main(["ask", "users.toml", "--ledger", "ledger", "--rho", "0.05", "--where", "region=Zilina"])
    told = capsys.readouterr().out
    assert "place.region=Zilina" in told and "± 95%" in told
    assert "Charged rho 0.05 to the data set 'default'; rho 0.05 is left." in told


def test_the_sensitivity_comes_from_what_overlaps() -> None:
    plan = read_plan(EXAMPLES / "graph" / "users.toml").plan

    def change(*texts: str, neighbours: str = "add-remove", records: int = 1) -> tuple[int, int]:
        asked = tuple(questions.parse(text, plan.spine) for text in texts)
        from treetop import Unit

        unit = Unit("person", records, neighbours)  # type: ignore[arg-type]
        return questions.Batch(plan.spine, asked, unit, Loss(rho=1)).sensitivity

    assert change("region=Nitra") == (1, 1)
    assert change("region=Nitra", neighbours="replace") == (1, 1)
    assert change("region=Nitra", records=3) == change("region=Nitra", neighbours="replace", records=3) == (3, 9)
    assert change("region=Nitra", "region=Zilina") == (1, 1)
    assert change("region=Nitra", "region=Zilina", neighbours="replace") == (2, 2)
    assert change("region=Nitra", "region=Zilina", neighbours="replace", records=2) == (4, 8)
    assert change("region=Nitra", "hobby=music", "height=missing") == (3, 3)
    assert change("region=Nitra", "hobby=music", "height=missing", neighbours="replace") == (3, 3)
    assert change("region=Nitra", "region=Nitra town=Nitra", "region=Zilina hobby=music") == (2, 2)
    assert change("region=Nitra", "region=Nitra town=Nitra", "region=Zilina hobby=music", neighbours="replace") == (
        3,
        3,
    )


PEOPLE = """
title = "People"
[attributes.place]
values = ["a", "b"]
[unit]
entity = "person"
contributions = 1
neighbours = "add-remove"
[loss]
rho = 0.01
[data]
unknown = "drop"
"""


def test_questions_about_a_table_of_which_much_is_dropped_are_asked_again(
    ask: Ask, refused: Ask, here: Path, capsys: Captured
) -> None:
    (here / "people.toml").write_text(PEOPLE)
    (here / "people.csv").write_text("place\n" + "a\n" * 90 + "a \n" * 10)
    code, message = refused("people.csv", "--where", "place=a", plan="people.toml")
    assert code == 3
    assert "10 of 100 rows would be dropped (10.0%)." in message
    told = ask("people.csv", "--where", "place=a", "--allow-dropped", plan="people.toml")
    assert spent() == Fraction(told["ledger"]["charged"]) > 0


def test_what_a_plan_declares_of_the_total_or_the_header_does_not_make_a_question_another_one(ask: Ask) -> None:
    Path("trips.csv").write_text("place\n" + "Martin\n" * 5, encoding="utf-8")
    for free, text in (
        (False, TRIPS),
        (True, TRIPS.replace("contributions = 1", "contributions = 1\npopulation = 5")),
        (True, f"{TRIPS}[data]\nheader = true"),
    ):
        Path("trips.toml").write_text(text, encoding="utf-8")
        assert ask("trips.csv", "--where", "town=Martin", plan="trips.toml")["answers"][0]["free"] is free


def test_only_public_numbers_refuse_a_large_delta(ask: Ask, refused: Ask) -> None:
    Path("trips.csv").write_text("place\n" + "Martin\n" * 50, encoding="utf-8")
    asked = ("trips.csv", "--where", "town=Martin", "--epsilon", "0.1", "--delta", "0.05")
    exact = TRIPS.replace("add-remove", "replace")
    Path("trips.toml").write_text(exact, encoding="utf-8")
    ask(*asked, plan="trips.toml")  # the exact total of a release is not told by an answer, nor by a refusal
    known = exact.replace("contributions = 1", "contributions = 1\npopulation = 50")
    Path("trips.toml").write_text(known, encoding="utf-8")
    assert "large_delta = true" in refused(*asked[:-1], "0.04", "--epsilon", "0.2", plan="trips.toml")[1]
    meant = known.replace("rho = 0.01", "epsilon = 0.1\ndelta = 0.05\nlarge_delta = true")
    Path("trips.toml").write_text(meant, encoding="utf-8")
    ask(*asked[:-1], "0.04", "--epsilon", "0.2", plan="trips.toml")
    ask("trips.csv", "--where", "town=Martin", "--rho", "0.04", plan="trips.toml")


def test_the_public_people_of_a_graph_refuse_a_large_delta_of_questions() -> None:
    nodes = pa.table({"id": [str(k) for k in range(100)], "town": ["a"] * 100})
    edges = pa.table({"source": ["0"], "target": ["1"]})
    graph = Graph(nodes, edges, "user-out", contributions=1)
    spine = tt.Spine(["source"], {"source": tt.Hierarchy.flat(["a", "b"])})
    plan = tt.Plan(spine, graph.unit("add-remove"), Loss(rho=1))
    asked = questions.Question.of(spine, {"source": "a"})
    charged: list[str] = []
    for large in (False, True):
        loss = Loss(epsilon=1, delta=0.01, large_delta=large)
        batch = questions.Batch(spine, (asked,), plan.unit, loss)
        reading: Any = {"columns": {"source": "source.town"}, "before_measuring": lambda: charged.append("charged")}
        if large:
            questions.measure(batch, plan, graph.table(), **reading)
        else:
            with pytest.raises(IncompletePlan, match="which is public"):
                questions.measure(batch, plan, graph.table(), **reading)
            assert not charged
    assert charged == ["charged"]


def test_a_query_for_a_graph_is_refused(refused: Ask, capsys: Captured) -> None:
    code, told = refused("--query", "nodes", "--where", "hobby=music")
    assert code == 2 and "leave the query out" in told
    with pytest.raises(SystemExit):
        main(["release", "users.toml", "--query", "nodes", "--out", "out"])
    assert "leave the query out" in capsys.readouterr().err and not Path("out").exists()
