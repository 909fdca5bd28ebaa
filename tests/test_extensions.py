"""Five things from one outside file: a repair, a law of noise, a format of tables, an export and a relation of graphs.

Each is registered once, and then runs through plan file or plan, release, card and check like those that ship.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pytest
from flint import arb
from numpy.typing import NDArray

import treetop as tt
from treetop.card import in_words
from treetop.exporting import FORMATS, Content, Format, Request, Sheet, counts_at
from treetop.io import source as sources
from treetop.io.row_batch import require
from treetop.noise import LAWS, DiscreteLaplace, Law
from treetop.privacy.relation import RELATIONS, Relation
from treetop.repair import REPAIRS

KEY = bytes(32)
TOWNS = tt.Hierarchy.flat(["north", "east", "south"], level="town")
PEOPLE = ["north"] * 400 + ["east"] * 90 + ["south"] * 7


def in_proportion(
    measurements: NDArray[np.int64], count: int, order: str = "ascending", seed: int | None = None
) -> NDArray[np.int64]:
    weight = np.maximum(measurements, 0) + (np.maximum(measurements, 0).sum() == 0)
    shared: NDArray[np.int64] = weight * count // weight.sum()
    shared[np.argmax(weight)] += count - shared.sum()
    return shared


@dataclass(frozen=True)
class Geometric(Law):
    """The two-sided geometric law by its rate."""

    name: ClassVar[str] = "geometric by rate"
    parameter: ClassVar[str] = "decay"
    words: ClassVar[str] = "Geometric noise; a level costs its L1 sensitivity times the rate, and levels add up."
    power: ClassVar[int] = 1
    currency: ClassVar[Literal["pure", "zcdp"]] = "pure"

    decay: Fraction

    @property
    def rate(self) -> Fraction:
        return self.decay

    @classmethod
    def costing(cls, l1: int, l2_squared: int, cost: Fraction) -> Self:
        return cls(cost / l1)

    def cost(self, l1: int, l2_squared: int) -> Fraction:
        return l1 * self.decay

    def coarsened(self, width: int) -> Self:
        return type(self)(self.decay * width)

    def enclose_total(self, bits: int) -> arb:
        return DiscreteLaplace(1 / self.decay).enclose_total(bits)

    def enclose_upper(self, first: int, bits: int) -> arb:
        return DiscreteLaplace(1 / self.decay).enclose_upper(first, bits)

    def enclose_variance(self, bits: int) -> arb:
        return DiscreteLaplace(1 / self.decay).enclose_variance(bits)


def read_lines(part: sources.ReadRequest) -> sources.Shared:
    assert part.stream is not None
    rows = pa.Table.from_pylist([json.loads(line) for line in part.stream])
    require(part.columns, rows.column_names, part.where)
    for batch in rows.select(part.wanted(rows.column_names)).to_batches():
        yield batch, 1.0


def starts_an_object(head: bytes, source: sources.Source) -> bool:
    return head.startswith(b'{"')


def largest_first(request: Request) -> Content:
    table = counts_at(request.release, request.depths, list(request.release.spine.attributes))
    return Content([Sheet.of("ranking.csv", table.sort_by([("count", "descending")]), "count")])


REPAIR_WORDS = ("Each node's count was shared in proportion to its children's measurements, {order}.",)
LINES = sources.SourceFormat("JSON lines", "a file of JSON lines", read_lines, starts_an_object, endings=(".jsonl",))
RANKING = Format("ranking", "a ranking for newspapers: the largest count first", ("ranking.csv",), largest_first)
TWO_EDGES = Relation(
    "two-edges",
    entity="pair of friendships",
    hides="hides two friendships",
    protects="two edges",
    words='The neighbour relation is "two-edges": graphs that differ in two edges.',
    edges=lambda contributions, degree_bound: 2,
)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    registries: list[Any] = [REPAIRS, LAWS, sources.FORMATS, FORMATS, RELATIONS]
    before = [dict(getattr(one, "_by_name", one)) for one in registries]
    tt.register_repair("in proportion", REPAIR_WORDS, in_proportion)
    tt.register_law(Geometric)
    tt.register_format(LINES)
    tt.register_export(RANKING)
    tt.register_relation(TWO_EDGES)
    yield
    for one, names in zip(registries, before, strict=True):
        held = getattr(one, "_by_name", one)
        held.clear()
        held.update(names)


PLAN = """
title = "People by town"
[attributes.town]
values = ["north", "east", "south"]
[unit]
entity = "person"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 2
noise = "geometric by rate"
[repair]
method = "in proportion"
"""


def test_a_plan_file_takes_a_repair_a_law_and_a_format_through_release_card_and_check_to_an_export(
    tmp_path: Path,
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    table = tmp_path / "people.jsonl"
    table.write_text("".join(json.dumps({"town": town}) + "\n" for town in PEOPLE))
    done = tt.publish(tmp_path / "plan.toml", str(table), tmp_path / "out", tt.RunOptions(testing_key=KEY))
    card = done.release.card
    assert in_words(card["mechanism"]["noise"]) == Geometric.words
    assert in_words(card["post_processing"])[0] == REPAIR_WORDS[0].format(order="small entries being lowered first")
    assert card["levels"][1]["noise"]["law"] == "geometric by rate"
    assert done.release.total == len(PEOPLE) == int(done.release.count.sum())
    assert done.release.interval(town="north").upper > 380
    assert [one.findings for one in tt.check(tmp_path / "out") if one.findings] == []
    tt.export(tmp_path / "out", "ranking", tmp_path / "ranking.csv")
    assert (tmp_path / "ranking.csv").read_text().splitlines()[1].startswith('"north"')


def test_a_forged_scale_of_an_outside_law_is_found(tmp_path: Path) -> None:
    plan = tt.Plan(
        tt.Spine(["town"], {"town": TOWNS}),
        tt.Unit("person", neighbours="replace"),
        tt.Loss(epsilon=2, noise="geometric by rate"),
    )
    tt.make_release(plan, pa.table({"town": PEOPLE}), tt.RunOptions(testing_key=KEY)).save(tmp_path / "out")
    assert not any(one.findings for one in tt.check(tmp_path / "out"))
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    card["levels"][1]["noise"]["decay"] = {"exact": "2", "value": 2.0}
    (tmp_path / "out" / "card.json").write_text(json.dumps(card))
    assert any("loss" in one.subject and one.findings for one in tt.check(tmp_path / "out"))


def test_a_graph_takes_a_relation_through_release_card_and_check(tmp_path: Path) -> None:
    nodes = pa.table({"id": ["a", "b", "c"], "town": ["north", "east", "south"]})
    edges = pa.table({"source": ["a", "a", "b", "c"], "target": ["b", "c", "a", "b"]})
    graph = tt.Graph(nodes, edges, "two-edges")
    plan = tt.Plan(tt.Spine.origin_first(origin=TOWNS, destination=TOWNS), graph.unit("add-remove"), tt.Loss(rho=1))
    assert plan.spent == 1 and plan.levels[1].cost == plan.levels[1].share
    columns = {"origin": "source.town", "destination": "target.town"}
    release = tt.make_release(plan, graph.table(), tt.RunOptions(columns=columns, testing_key=KEY))
    release.save(tmp_path / "out")
    assert release.card["graph"]["relation"] == "two-edges"
    assert in_words(release.card["graph"]["sentences"])[0] == TWO_EDGES.words
    assert not any(one.findings for one in tt.check(tmp_path / "out"))


def test_a_loss_is_kept_only_by_a_law_whose_cost_is_stated_in_it() -> None:
    with pytest.raises(tt.TreetopError, match="does not keep such a loss"):
        tt.Plan(
            tt.Spine(["town"], {"town": TOWNS}),
            tt.Unit("person", neighbours="replace"),
            tt.Loss(rho=1, noise="geometric by rate"),
        )
