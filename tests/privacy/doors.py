"""The audits of the doors: what a plan says of its table, what a card says of its graph, and who pays before noise."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

import treetop as tt
from treetop import Graph, Policies
from treetop.card.html import bind, render
from treetop.errors import PlanError, TreetopError
from treetop.measure import questions
from treetop.measure.vectors import measured_groups
from treetop.noise.gate import Gate

from . import dwellings
from .audits import Audit, audit
from .engine import KEY, laws_drawn_from
from .small_graphs import PLACES, SPINE

TOWNS = tt.Spine(["place.region", "place.town"], {"place": PLACES})
NODES = pa.table({"id": ["a", "b", "c"], "town": PLACES.codes[-1].to_pylist()[:3]})
ENDS = {"origin": "source.town", "destination": "target.town"}


def _edges(*pairs: str) -> pa.Table:
    return pa.table({"source": [pair[0] for pair in pairs], "target": [pair[1] for pair in pairs]})


def _pairs_of_tables(folder: Path) -> Iterator[tuple[str, tt.Unit, tt.Spine, dict[str, str], Any, Any]]:
    """Tables that differ in one unit under `replace`, and the unit that the plan for them takes."""
    graphs: list[tuple[dict[str, Any], pa.Table, pa.Table]] = [
        ({"policies": Policies(unknown="drop")}, _edges("ab", "bc"), _edges("ab", "bx")),
        ({"policies": Policies(self_loops="drop")}, _edges("ab", "bc"), _edges("ab", "bb")),
        ({"policies": Policies(repeated="drop")}, _edges("ab", "bc"), _edges("ab", "ab")),
        ({"relation": "user-out", "contributions": 1}, _edges("ab", "bc"), _edges("bc")),
        ({"relation": "node", "degree_bound": 1}, _edges("ab"), _edges()),
    ]
    plain = Graph(NODES, _edges("ab"), "edge")
    for options, one, other in graphs:
        graph = Graph(NODES, None, **{"relation": "edge", **options})
        for own in (graph.unit("replace"), plain.unit("replace")):
            yield str(options), own, SPINE, ENDS, graph.table(one), graph.table(other)
    for name, year in (("one", "2008"), ("other", "2007")):
        (folder / f"{name}.csv").write_text(f"town,year\nA1,2008\nA1,{year}\n", encoding="utf-8")
    for what, rule in (("keep", {"keep": {"year": "2008"}}), ("drop", {"drop": {"year": "2007"}})):
        one, other = (tt.Source(folder / f"{name}.csv", **rule) for name in ("one", "other"))  # type: ignore[arg-type]
        for missing in (False, True):
            unit = tt.Unit("trip", neighbours="replace", may_be_missing=missing)
            yield what, unit, TOWNS, {"place": "town"}, one, other


@audit
def a_total_that_is_told_exactly_is_the_same_for_neighbours() -> str | None:
    """Release neighbouring tables, where the plan takes them, and compare the totals that have no noise."""
    with TemporaryDirectory() as folder:
        for what, unit, spine, columns, *tables in _pairs_of_tables(Path(folder)):
            plan = tt.Plan(spine, unit, tt.Loss(rho=1))
            try:
                made = [
                    tt.make_release(
                        plan, table, tt.RunOptions(columns=columns, allow_dropped=True, testing_key=KEY.secret)
                    )
                    for table in tables
                ]
            except PlanError:
                continue  # refused: nothing is told
            if not made[0].card["levels"][0]["measured"] and made[0].total != made[1].total:
                return f"{what}: neighbours have {made[0].total} and {made[1].total}, told without noise"
    return None


@audit
def a_card_names_the_relation_and_a_forged_one_is_found() -> str | None:
    """Release edges, read the relation on the card, change it with every hash put right, and check the folder."""
    graph = Graph(NODES, _edges("ab", "bc", "ca"), "user-out", contributions=2)
    plan = tt.Plan(SPINE, graph.unit("add-remove"), tt.Loss(rho=1))
    release = tt.make_release(plan, graph.table(), tt.RunOptions(columns=ENDS, testing_key=KEY.secret))
    if release.card.get("graph", {}).get("relation") != "user-out":
        return "the card does not name the relation"
    with TemporaryDirectory() as place:
        folder = Path(place, "out")
        release.save(folder)
        for parts in (("graph",), ("plan",), ("graph", "plan")):
            if not _forged(folder, parts):
                return f'a card that says "edge" instead of "user-out" in {" and ".join(parts)} passes'
    return None


def _forged(folder: Path, parts: tuple[str, ...]) -> list[str]:
    before = {name: (folder / name).read_bytes() for name in ("card.json", "card.html", "plan.toml")}
    card = json.loads(before["card.json"])
    for part in parts:
        (card["plan"]["graph"] if part == "plan" else card["graph"])["relation"] = "edge"
    card["plan_sha256"] = hashlib.sha256(json.dumps(card["plan"], sort_keys=True).encode()).hexdigest()
    plan = bind(before["plan.toml"].decode(), card).encode()  # this forger knows of the bond as well
    (folder / "plan.toml").write_bytes(plan)
    for file in card["files"]:
        if file["path"] == "plan.toml":
            file |= {"sha256": hashlib.sha256(plan).hexdigest(), "bytes": len(plan)}
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    (folder / "card.json").write_text(text, encoding="utf-8")
    (folder / "card.html").write_text(render(card, hashlib.sha256(text.encode()).hexdigest()), encoding="utf-8")
    found = [finding for verdict in tt.check(folder) for finding in verdict.findings]
    for name, content in before.items():
        (folder / name).write_bytes(content)
    return found


Charge = Callable[[], object]


def _doors() -> dict[str, Callable[[bytes | None, Charge], bool]]:
    """Every way to draw noise: run with a key and a charge, it tells whether what it made is marked as private."""
    unit = tt.Unit("person", neighbours="add-remove")
    plan = tt.Plan(TOWNS, unit, tt.Loss(rho=1))
    table = pa.table({"place": ["A1", "A1"]})
    graph = Graph(NODES, _edges("ab", "bc"), "edge")
    batch = questions.Batch(TOWNS, (questions.parse("place=A", TOWNS),), unit, tt.Loss(rho=1))
    regional = tt.regional_degree_plan(PLACES, 2, "edge", tt.Loss(rho=1))
    sizes = dwellings.plan("join-leave", "direct", tt.Loss(epsilon=1))
    read = dwellings.read(sizes, dwellings.TABLES[0])

    def sizes_alone(secret: bytes | None, charge: Charge) -> bool:
        gate = Gate(secret)
        with measured_groups(sizes, read, gate, charge):
            return gate.private

    return {
        "releases": lambda s, charge: tt.make_release(
            plan, table, tt.RunOptions(testing_key=s, before_measuring=charge)
        ).card["private"],
        "answers": lambda s, charge: (
            questions.measure(batch, plan, table, before_measuring=charge, testing_key=s).private
        ),
        "degrees": lambda s, charge: tt.make_release(
            tt.degree_plan("edge", "add-remove", tt.Loss(rho=1), 2),
            graph,
            tt.RunOptions(before_measuring=charge, testing_key=s),
        ).card["private"],
        "degrees by region": lambda s, charge: tt.make_release(
            regional, graph, tt.RunOptions(columns={"place": "town"}, before_measuring=charge, testing_key=s)
        ).card["private"],
        "group sizes": sizes_alone,
        "tables of group sizes": lambda s, charge: tt.make_release(
            sizes, read, tt.RunOptions(before_measuring=charge, testing_key=s)
        ).card["private"],
    }


@audit
def whatever_draws_noise_is_charged_first_and_marked() -> str | None:
    """Go through every door with a fresh key and with a known one; note when it charges and what it says."""
    for name, door in _doors().items():
        for secret in (None, KEY.secret):
            drawn_before: list[int] = []
            with laws_drawn_from() as drawn:
                private = door(secret, lambda drawn=drawn, told=drawn_before: told.append(len(drawn)))  # type: ignore[misc]
            if drawn_before != [0]:
                return f"{name}: charged {len(drawn_before)} times, after {drawn_before} streams of noise were opened"
            if not drawn:
                return f"{name}: there is no noise"
            if private != (secret is None):
                return f"{name}: a key that is known leaves no mark, or one that is not does"
    return None


PUBLIC_FILES = """
[attributes.place]
hierarchy = "places.csv"
levels = ["town"]
column = "town"
[unit]
entity = "person"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1
[data]
count = "count"
[facts]
"place.town" = { at_most = "public.csv", unchecked = true }
"""


@audit
def no_public_file_of_a_plan_is_the_private_table() -> str | None:
    """Run a plan on its own facts and on its own hierarchy, named where it runs and by other names."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "plan.toml").write_text(PUBLIC_FILES)
        for name in ("places.csv", "public.csv", "people.csv"):
            (folder / name).write_text("town,count\nA1,4\nB1,3\n" if name != "people.csv" else "town,count\nA1,1\n")
        (folder / "hard.csv").hardlink_to(folder / "public.csv")
        tt.publish(
            folder / "plan.toml", str(folder / "people.csv"), folder / "out", tt.RunOptions(testing_key=KEY.secret)
        )
        for table in ("public.csv", "places.csv", "hard.csv"):
            try:
                tt.publish(
                    folder / "plan.toml",
                    str(folder / table),
                    folder / table[:-4],
                    tt.RunOptions(testing_key=KEY.secret),
                )
            except TreetopError:
                continue
            return f"{table} was released as the private table, and is a public file of the plan as well"
    return None


def door_audits() -> dict[str, Audit]:
    """All of them."""
    return {
        "totals": a_total_that_is_told_exactly_is_the_same_for_neighbours,
        "relation": a_card_names_the_relation_and_a_forged_one_is_found,
        "gate": whatever_draws_noise_is_charged_first_and_marked,
        "public files": no_public_file_of_a_plan_is_the_private_table,
    }
