"""Plan files with a graph: what they come to, what they leave open, and the whole way to a checked release."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from treetop import read_plan
from treetop.card import in_words
from treetop.card.html import render
from treetop.cli import main
from treetop.errors import IncompletePlan, PlanFileError, ReleaseError, TreetopError

EXAMPLE = Path(__file__).parents[2] / "examples" / "graph"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def changed(old: str, new: str, name: str = "friendships.toml") -> Path:
    text = Path(name).read_text(encoding="utf-8")
    assert old in text
    Path("changed.toml").write_text(text.replace(old, new), encoding="utf-8")
    return Path("changed.toml")


RELATION = 'relation = "user-out"'
NAMED = '[data]\nheader = false\nnames = ["source", "target"]\n'
M = "contributions = 10                   # of longer lists, ten at random\n"


def test_a_relation_fills_in_the_unit(here: Path) -> None:
    unit = read_plan("friendships.toml").plan.unit
    assert (unit.entity, unit.contributions, unit.id) == ("friend list", 10, "source")
    text = Path("friendships.toml").read_text(encoding="utf-8").replace(M, "")
    Path("edge.toml").write_text(text.replace(RELATION, 'relation = "edge"'), encoding="utf-8")
    unit = read_plan("edge.toml").plan.unit
    assert (unit.entity, unit.contributions, unit.id) == ("friendship", 1, None)
    Path("node.toml").write_text(text.replace(RELATION, 'relation = "node"\ndegree_bound = 400'), encoding="utf-8")
    unit = read_plan("node.toml").plan.unit
    assert (unit.entity, unit.contributions, unit.id) == ("person", 400, None)


def test_what_has_no_default_is_asked_for(here: Path) -> None:
    with pytest.raises(IncompletePlan, match=r"graph\.relation: Which graphs must be hard to tell apart"):
        read_plan(changed(RELATION, ""))
    with pytest.raises(IncompletePlan, match=r"graph\.degree_bound: How many edges"):
        read_plan(changed(RELATION, 'relation = "node"'))
    with pytest.raises(IncompletePlan, match=r"unit\.contributions"):
        read_plan(changed(M, ""))


@pytest.mark.parametrize(
    ("old", "new", "about"),
    [
        (RELATION, 'relation = "edge"', r"\[unit\] contributions is 10, but the relation of the graph makes it 1"),
        (RELATION, 'relation = "user"', r'must be "edge" or "user-out" or "node"'),
        ("directed = true", "directed = false", "is on two"),
        ("directed = true", 'directed = "yes"', "true or false"),
        ('neighbours = "add-remove"', 'neighbours = "add-remove"\nid_clean = ["trim"]', "by trim = true under"),
        ('"source.town"', '"town"', 'say of which end of an edge it is, as in "source.town"'),
        ("[graph.clean.town]", "[graph.clean.twon]", "did you mean 'town'"),
        ('hierarchy = "places.csv"', 'hierarchy = "nodes.csv"', "hierarchy is the private table itself"),
        ('neighbours = "add-remove"', 'neighbours = "add-remove"\nid = "person"', r"\[unit\] id is 'person'"),
        ("[unit]", '[unit]\nentity = "person"', r"\[unit\].* entity is 'person', but the relation 'user-out' protects"),
        ('missing = "missing"', "least = 3", r"\[graph.clean.town\] the plausible numbers are from 3 to None"),
        ('missing = "missing"', 'vocabulary = "nowhere.csv"', r"\[graph.clean.town\] .*nowhere.csv: no such file"),
        ("self_loops", "selfloops", "did you mean 'self_loops'"),
    ],
)
def test_a_mistake_is_named_by_section_and_field(here: Path, old: str, new: str, about: str) -> None:
    with pytest.raises(TreetopError, match=about):
        read_plan(changed(old, new))


def test_one_edge_is_not_called_a_person_and_one_person_may_be(here: Path) -> None:
    text = Path("friendships.toml").read_text(encoding="utf-8").replace(M, "")
    for entity, relation in (("person", "edge"), ("friendship", "edge"), ("member", "node")):
        stated = text.replace(RELATION, f'relation = "{relation}"' + ("\ndegree_bound = 9" * (relation == "node")))
        Path("named.toml").write_text(stated.replace("[unit]", f'[unit]\nentity = "{entity}"'), encoding="utf-8")
        if entity == "person":
            with pytest.raises(TreetopError, match='protects one edge and no more; leave the .* write "friendship"'):
                read_plan("named.toml")
        else:
            assert read_plan("named.toml").plan.unit.entity == entity


def test_tables_are_named_once(here: Path) -> None:
    for line in ('source = "edges.csv"', 'count = "n"'):
        with pytest.raises(PlanFileError, match=r"under \[graph\]"):
            read_plan(changed("[loss]", f"[data]\n{line}\n[loss]"))
    assert read_plan(changed("[loss]", '[data]\nunknown = "drop"\nperiod = "2012"\n[loss]')).period == "2012"


def test_people_are_not_counted_under_a_relation_that_makes_them_public(here: Path) -> None:
    with pytest.raises(PlanFileError, match="the people themselves are public"):
        read_plan(changed('counts = "nodes"', 'counts = "nodes"\nrelation = "edge"', "users.toml"))


@pytest.mark.parametrize("name", ["friendships", "users"])
def test_a_shipped_plan_is_released_and_checked(here: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["release", f"{name}.toml", "--out", "out", "--json"])
    told = json.loads(capsys.readouterr().out)
    card = json.loads(Path("out/card.json").read_text(encoding="utf-8"))
    said = [card["description"], *in_words(card.get("graph", {}).get("sentences", []))]
    assert told["graph"] and all(any(sentence in one for one in said) for sentence in told["graph"])
    assert 'neighbour relation is "' not in card["description"]
    main(["check", "out"])
    assert "All checks passed: out matches its card" in capsys.readouterr().out
    truth = "edges.csv" if name == "friendships" else "nodes.csv"
    main(["check", "out", "--truth", truth, "--plan", f"{name}.toml"])


def test_what_cleaning_changed_is_for_the_steward_and_stands_in_no_release(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = read_plan("users.toml")
    assert file.graph is not None
    changes = file.graph.changes()
    assert set(changes) == {"town", "hobby", "height"}
    assert changes["height"].implausible > 0 and changes["hobby"].unread > 0 and changes["town"].missing > 0
    main(["release", "users.toml", "--out", "out"])
    told = capsys.readouterr().out + Path("out/card.json").read_text("utf-8") + Path("out/plan.toml").read_text("utf-8")
    assert "implausible=" not in told and f"{changes['height'].missing} " not in told


def test_the_plan_says_which_relation_it_is_and_what_stays_public(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["plan", "friendships.toml"])
    told = capsys.readouterr().out
    assert 'The neighbour relation is "user-out"' in told
    assert "is taken as public" in told


def test_an_edge_to_nobody_stops_a_release_with_one_message(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Path("edges.csv").open("a", encoding="utf-8") as file:
        file.write("0,nobody\n")
    with pytest.raises(SystemExit) as leaving:
        main(["release", "friendships.toml", "--out", "out"])
    assert leaving.value.code == 2
    assert "'nobody' is not in the node table" in capsys.readouterr().err
    assert not Path("out").exists()


def forged(change: Callable[[dict[str, Any]], object], renames: bool) -> str:
    """Change a card and plan.toml, put every hash and the page right, and return what `check` prints."""
    folder = Path("out")
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    plan = (folder / "plan.toml").read_text(encoding="utf-8")
    plan = plan.replace("user-out", "node") if renames else plan
    change(card)
    (folder / "plan.toml").write_text(plan, encoding="utf-8")
    for file in card["files"]:
        if file["path"] == "plan.toml":
            file |= {"bytes": len(plan.encode()), "sha256": hashlib.sha256(plan.encode()).hexdigest()}
    card["plan_sha256"] = hashlib.sha256(json.dumps(card["plan"], sort_keys=True).encode()).hexdigest()
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    (folder / "card.json").write_text(text, encoding="utf-8")
    try:
        page = render(card, hashlib.sha256(text.encode()).hexdigest())
    except ReleaseError:  # no page can be made of such a card: the forger keeps the old one
        page = (folder / "card.html").read_text(encoding="utf-8")
    (folder / "card.html").write_text(page, encoding="utf-8")
    return "\n".join(finding for verdict in tt.check(folder) for finding in verdict.findings)


def _rename(card: dict[str, Any], *parts: str) -> None:
    for part in parts:
        card.update(json.loads(json.dumps({part: card[part]}).replace("user-out", "node")))


def repeated_edges_kept(card: dict[str, Any]) -> None:
    for part in (card["graph"], card["plan"]["graph"]):
        part["repeated"] = "keep"


FORGED: dict[str, tuple[Callable[[dict[str, Any]], object], bool]] = {
    "everywhere": (lambda card: _rename(card, *card), True),
    "in the plan and its file": (lambda card: _rename(card, "plan"), True),
    "in the part for readers": (lambda card: _rename(card, "graph"), False),
    "the direction": (lambda card: card["graph"].update(directed=False), False),
    "what one edge is": (lambda card: card["graph"].update(one_edge="One edge is all edges of one person."), False),
    "a bound of degrees": (lambda card: card["graph"].update(degree_bound=10), False),
    "no graph at all": (lambda card: (card.pop("graph"), card["plan"].pop("graph")), False),
    "that repeated edges were refused": (repeated_edges_kept, False),
}
"""What is changed on the card, and whether plan.toml names the other relation as well."""


@pytest.mark.parametrize("what", FORGED)
def test_a_card_that_claims_another_relation_is_found_with_every_hash_put_right(here: Path, what: str) -> None:
    main(["release", "friendships.toml", "--out", "out", "--quiet", "--testing-key", "00" * 32])
    assert forged(lambda _: None, False) == ""
    assert forged(*FORGED[what])


def test_the_published_plan_of_edges_is_a_plan_file_again_with_its_tables_named(here: Path) -> None:
    main(["release", "friendships.toml", "--out", "out", "--quiet", "--testing-key", "00" * 32])
    text = Path("out/plan.toml").read_text(encoding="utf-8")
    Path("again.toml").write_text(text.replace("[graph]", '[graph]\nnodes = "nodes.csv"\nedges = "edges.csv"'), "utf-8")
    again, card = read_plan("again.toml"), json.loads(Path("out/card.json").read_text(encoding="utf-8"))
    assert again.plan.digest == card["plan_sha256"] == read_plan("friendships.toml").plan.digest


def test_an_edge_list_without_names_is_read_with_those_of_the_plan(here: Path) -> None:
    whole = read_plan("friendships.toml")
    assert whole.source is not None
    expected = tt.read_true_counts(whole.plan, whole.table(whole.source), whole.columns).total
    _, _, rows = Path("edges.csv").read_text().partition("\n")
    Path("edges.csv").write_text(rows)
    with pytest.raises(TreetopError, match=r'header = false and names = \["origin", "destination", …\] under \[data\]'):
        tt.read_true_counts(whole.plan, whole.table(whole.source), whole.columns)
    file = read_plan(changed("[spine]", f"{NAMED}[spine]"))
    assert file.source is not None
    assert tt.read_true_counts(file.plan, file.table(file.source), file.columns).total == expected
    main(["release", "changed.toml", "--out", "out", "--testing-key", "00" * 32])
    assert "header = false" in Path("out/plan.toml").read_text()
    assert not any(verdict.findings for verdict in tt.check(Path("out")))


def test_an_edge_list_with_blanks_between_ids_is_read_by_the_delimiter_that_the_message_names(here: Path) -> None:
    whole = read_plan("friendships.toml")
    assert whole.source is not None
    expected = tt.read_true_counts(whole.plan, whole.table(whole.source), whole.columns).total
    _, _, rows = Path("edges.csv").read_text().partition("\n")
    Path("edges.csv").write_text(rows.replace(",", " "))
    file = read_plan(changed("[spine]", f"{NAMED}[spine]"))
    assert file.source is not None
    with pytest.raises(TreetopError, match=r"not ',': delimiter under \[data\] in the plan file"):
        tt.read_true_counts(file.plan, file.table(file.source), file.columns)
    file = read_plan(changed("[spine]", f'{NAMED}delimiter = " "\n[spine]'))
    assert file.source is not None
    assert tt.read_true_counts(file.plan, file.table(file.source), file.columns).total == expected


def test_names_with_blanks_between_them_are_told_the_delimiter_of_the_nodes(here: Path) -> None:
    Path("nodes.csv").write_text(Path("nodes.csv").read_text().replace(",", " "))
    file = read_plan("friendships.toml")
    assert file.source is not None
    with pytest.raises(TreetopError, match=r"nodes_delimiter under \[graph\]"):
        tt.read_true_counts(file.plan, file.table(file.source), file.columns)
