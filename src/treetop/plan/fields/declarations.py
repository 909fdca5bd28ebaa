"""The fields of plan files: their kinds, defaults and places. Their words are in `fields.toml`."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from treetop._util.choices import nearest
from treetop.counts.group_reader import Rows
from treetop.domain.branches import Ragged
from treetop.domain.constraints import INVARIANT
from treetop.domain.marginal import DEFAULT_MARGINS
from treetop.domain.spine import RESERVED, Spine
from treetop.domain.standard_hierarchies import STANDARDS
from treetop.domain.unit import Neighbours, Policy
from treetop.io.source import OPTIONS, BlankLines
from treetop.noise import LAWS
from treetop.plan import degree_unit, group_unit
from treetop.plan.fields._field import (
    DATES,
    DEGREES,
    DELIMITER,
    ENCODING,
    FAMILIES,
    FILE,
    FLAG,
    GROUPS,
    INTEGER,
    KEEP,
    LABELS,
    NAME,
    NOUN,
    NUMBER,
    NUMBERS,
    OPEN,
    POSITIONS,
    RECORDS,
    TEXT,
    TEXTS,
    WHOLE,
    WHOLES,
    Field,
    Kind,
    PlanContext,
    Section,
    Values,
    accepting,
    choice,
    either,
    table,
)
from treetop.plan.mechanism import JointMechanism
from treetop.plan.region_histograms import Public
from treetop.plan.resolution import PREFERENCES, Resolution
from treetop.plan.workload import CONFIDENCE, SPLITS, as_confidence
from treetop.privacy.accountant import is_exact_by_default
from treetop.privacy.loss import Accounting, Loss
from treetop.privacy.relation import RELATIONS
from treetop.repair import REPAIRS, Order

ATTRIBUTE = "attributes.NAME"
"""The section of an attribute, as declared."""
FACT = "facts.TABLE"
"""The field of one table under `[facts]`, as declared."""
CLEANING = "graph.clean.COLUMN"
"""The section of a cleaning rule, as declared."""
ORDERS: Mapping[str, Callable[..., Spine]] = {
    "destination-first": Spine.destination_first,
    "origin-first": Spine.origin_first,
    "merged": Spine.merged,
    "bottom-up": lambda **trees: Spine.bottom_up(trees),
    "joint": lambda **trees: Spine.bottom_up(trees),
}
"""Named orders of a spine; all but the last two need attributes called origin and destination."""
ANY_ATTRIBUTES = ("bottom-up", JointMechanism.name)
"""Orders for attributes of any name."""
ELSEWHERE = "elsewhere"
"""Treatment of unknown codes that counts them under an added leaf of every hierarchy, and that leaf's code."""
SOURCES = ("hierarchy", "same_as", "values", "bands", "dates", "standard", "labels")
"""The fields that say what the hierarchy of an attribute is; labels do if there is no other."""

_WORDS = tomllib.loads(files("treetop.plan").joinpath("fields.toml").read_text(encoding="utf-8"))
_LISTS = {
    "<reserved>": ", ".join(f"`{name}`" for name in RESERVED),
    "<standards>": "; ".join(f'`"{name}"`: {one.words}, {" > ".join(one.levels)}' for name, one in STANDARDS.items()),
    "<splits>": "; ".join(f'`"{name}"`: {one.words}' for name, one in SPLITS.items()),
}
"""What stands for a list in the words."""


def _declare(section: str, made: str, told: str, name: str, kind: Kind, **more: Any) -> Field:
    """Declare a field with the same name in its section, in the object made from it, and in the digest."""
    key = f"{section}.{name}" if section else name
    words = dict(_WORDS.get(f"{key} of {more.get('families', FAMILIES)[0]}") or _WORDS[key])
    for mark, listed in _LISTS.items():
        words["help"] = words["help"].replace(mark, listed)
    places = {"at": made and f"{made}.{name}", "digest": told and f"{told}.{name}"}
    return Field(section, name, kind, **{**words, **places, **more})


def _either(choices: Mapping[str, object]) -> str:
    return ", ".join(f'"{one}"' for one in choices)


# Kinds: how the values of single fields are read.


def _order(section: Section, key: str) -> str | None:
    order: str | None = TEXT.read(section, key)
    if order is not None and order not in ORDERS:
        section.refuse(key, f"{_either(ORDERS)} or a list of levels{nearest(order, ORDERS)}")
    return order


def _named_split(example: str, known: Mapping[str, object]) -> Kind:
    def read(section: Section, key: str) -> str | None:
        name = section.get(key)
        if name in SPLITS and name not in known:
            raise section.problem(
                f"{key} is {name!r}, which weighs levels that are refined one after the other, and here all levels are "
                f"repaired at once: give weights by level, as in split = {example}"
            )
        if name is not None and not (isinstance(name, str) and name in known):
            hint = nearest(name, known) if isinstance(name, str) and len(known) > 1 else ""
            section.refuse(key, f"{_either(known)} or a table of weights, such as split = {example}{hint}")
        return name

    return either(dict, table(NUMBER), Kind(read, {"enum": list(known)}))


def _resolve(section: Section, key: str) -> Resolution | None:
    value = section.get(key)
    if isinstance(value, dict):
        limits = section.table(key).only(("fdr", "sigmas"))
        value = {name: NUMBER.read(limits, name) for name in limits.values}
    elif value is not None and value != "full":
        section.refuse(key, '"full", { fdr = 0.05 } or { sigmas = 3 }')
    with section.located():
        return Resolution.of(value)


def _confidence(section: Section, key: str) -> float | None:
    value = NUMBER.read(section, key)
    with section.located():
        return None if value is None else as_confidence(value)


def _margins(section: Section, key: str) -> str | None:
    name: str | None = TEXT.read(section, key)
    if name is not None and name not in ("each", "pairs", "none"):
        section.refuse(
            key, '"each", "pairs", "none" or a list of tables, such as ["origin.district", "place.state * sex"]'
        )
    return name


_DIRECTED = Kind(
    accepting(lambda value: isinstance(value, bool), "true or false, without quotes", may_be_open=False), FLAG.schema
)
_LISTED = Kind(lambda section, key: section.table(key).values or None, {})
_SPLIT = _named_split('{ "place.state" = 2, "place.town" = 1 }', SPLITS)
_GROUP_SPLIT = _named_split('{ size = 1, "place.state" = 2 }', {"uniform": SPLITS["uniform"]})
_DEGREE_SPLIT = _named_split('{ degree = 1, "place.state" = 2 }', {"uniform": SPLITS["uniform"]})

# Values of a finished plan, as written to a file.


def _accounting(ran: PlanContext) -> Accounting | None:
    """Return how a loss is accounted, if there is a choice; the written plan then keeps its meaning."""
    plan = ran.plan
    open_loss = Loss(epsilon=plan.loss.epsilon, delta=plan.loss.delta, rho=plan.loss.rho, noise=plan.loss.noise)
    return plan.accounting if plan.accounting == "exact" or is_exact_by_default(plan.unit, open_loss) else None


def _stated_margins(ran: PlanContext) -> Any:
    margins = ran.plan.margins
    if len(ran.plan.spine.attributes) == 1:
        return None
    return margins if isinstance(margins, str) else list(margins)


def _stated_facts(ran: PlanContext) -> Any:
    """Return the facts with their file names; facts given in memory are left open."""
    return {
        fact.name: {
            **{kind: True if kind == INVARIANT else fact.places.get(kind) or OPEN for kind in fact.kinds},
            **({"unchecked": True} if fact.unchecked else {}),
            **({"sha256": fact.sha256} if fact.sha256 else {}),
        }
        for fact in ran.plan.public_facts
    }


def _weights(ran: PlanContext) -> Any:
    measured = {part.name: part.share for part in ran.plan.workload if part.is_measured}
    if ran.plan.split == "uniform" or not measured:
        return "uniform"
    whole = math.lcm(*(share.denominator for share in measured.values()))
    return {name: int(share * whole) for name, share in measured.items()}


def _stated_confidence(ran: PlanContext) -> Fraction | None:
    confidence = ran.plan.confidence
    return None if confidence is None or confidence == CONFIDENCE else Fraction(str(confidence))


def _top_down(ran: PlanContext, value: str) -> str | None:
    """Return the value, if the plan is repaired from the top down."""
    return None if JointMechanism.runs(ran.plan) or REPAIRS[ran.plan.repair].again else value


def _above_one(value: int) -> int | None:
    return value if value > 1 else None


def _list(ran: PlanContext) -> str | None:
    named = None if ran.file is None or ran.file.groups is None else ran.file.groups.get("list")
    return None if named is None else Path(named).name


# When an open field is asked about.


def _always(_: Values) -> bool:
    return True


def _is_graph(read: Values) -> bool:
    return bool(read["graph"])


def _of_people(read: Values) -> bool:
    return bool(read["groups"]["rows"] == "people")


_top = partial(_declare, "", "", "", families=FAMILIES)
_attribute = partial(_declare, ATTRIBUTE, "", "", families=FAMILIES)
_fact = partial(_declare, FACT, "", "", place=None)
_spine = partial(_declare, "spine", "", "")
_unit = partial(_declare, "unit", "plan.unit", "unit")
_loss = partial(_declare, "loss", "plan.loss", "loss", families=FAMILIES)
_split = partial(_declare, "loss", "", "", "split", default="uniform", take=_weights, place=1, always=True)
_repair = partial(_declare, "repair", "", "", always=True)
_release = partial(_declare, "release", "", "")
_data = partial(_declare, "data", "file", "", families=FAMILIES)
_graph = partial(_declare, "graph", "", "", families=(RECORDS, DEGREES))
_edges = partial(_declare, "graph", "of_edges", "", families=(RECORDS, DEGREES))
_degrees = partial(_declare, "graph", "", "", families=(DEGREES,))
_clean = partial(_declare, CLEANING, "", "", families=(RECORDS, DEGREES))
_groups = partial(_declare, "groups", "", "", families=(GROUPS,))
_of_unit, _of_reader, _of_mechanism = (
    partial(_declare, "groups", f"plan.{part}", "groups", families=(GROUPS,), always=True)
    for part in ("unit", "reader", "mechanism")
)

_FIELDS = (
    _top("title", TEXT, default="", at="plan.title", digest="title", always=True),
    _top("description", TEXT, default="", at="said.description"),
    _top("attributes", _LISTED, families=(RECORDS,), asked=_always, place=None),
    _top("attributes", _LISTED, families=(GROUPS,), asked=_always, place=None),
    _top("attributes", _LISTED, families=(DEGREES,), place=None),
    _top("facts", _LISTED, families=(RECORDS,), default={}, take=_stated_facts),

    _fact("exact", FILE),
    _fact("at_least", FILE),
    _fact("at_most", FILE),
    _fact("possible", FILE),
    _fact("impossible", FILE),
    _fact("invariant", FLAG, default=False),
    _fact("unchecked", FLAG, default=False),
    _fact("sha256", NAME),

    _attribute("column", NAME),
    _attribute("hierarchy", FILE, asked=lambda own: all(own[key] is None for key in SOURCES[1:])),
    _attribute("levels", either(dict, table(NAME), TEXTS),
               asked=lambda own: all(own[key] is None for key in (*SOURCES[1:], "widths", "child"))),
    _attribute("same_as", NAME),
    _attribute("values", TEXTS),
    _attribute("labels", LABELS),
    _attribute("bands", either(dict, table(NUMBERS), NUMBERS)),
    _attribute("dates", DATES),
    _attribute("standard", choice(STANDARDS)),
    _attribute("unknown", NAME, families=(RECORDS,)),
    _attribute("blank", NAME),
    _attribute("widths", WHOLES),
    _attribute("codes", NAME,
               asked=lambda own: own["widths"] is not None and own["same_as"] is None and own["values"] is None),
    _attribute("child", NAME),
    _attribute("parent", NAME),
    _attribute("ragged", choice(get_args(Ragged)), default="error"),
    _attribute("names", either(dict, table(NAME), NAME)),
    *(_attribute(name, NAME) for name in ("name", "latitude", "longitude")),
    _attribute("delimiter", DELIMITER),
    _attribute("encoding", ENCODING),
    _attribute("keep", KEEP),
    _attribute("drop", KEEP),
    _attribute("sheet", NAME),
    _attribute("hierarchy_sha256", NAME),

    _spine("order", either(list, TEXTS, Kind(_order, {"enum": list(ORDERS)})),
           asked=lambda read: len(read["attributes"]) == 2,
           take=lambda ran: "joint" if JointMechanism.runs(ran.plan) else list(ran.plan.spine.splits)),
    _spine("margins", either(list, TEXTS, Kind(_margins, {"enum": ["each", "pairs", "none"]})),
           default=DEFAULT_MARGINS, at="plan.margins", take=_stated_margins),

    _unit("entity", NOUN, families=FAMILIES, asked=_always, always=True),
    _unit("contributions", WHOLE, asked=_always, always=True),
    # Under "user-out", lists are cut if their edges are counted at other people.
    _unit("contributions", WHOLE, families=(DEGREES,), take=lambda ran: _above_one(ran.plan.unit.contributions),
          asked=lambda read: (read["graph"]["relation"] == "user-out" and read["graph"]["degree"] in ("in", "total"))),
    _unit("neighbours", choice(get_args(Neighbours)), asked=_always, always=True, families=(RECORDS, DEGREES)),
    _unit("id", NAME, always=True),
    # The id of a protected group is a column of its own.
    _unit("id", NAME, families=(GROUPS,), always=True,
          take=lambda ran: None if ran.plan.unit.event == "group" else ran.plan.unit.id),
    _unit("id_clean", TEXTS, default=()),
    _unit("per_node", table(WHOLE), default={}, always=True),
    _unit("distinct", FLAG, default=False),
    _unit("population", WHOLE, families=FAMILIES),
    _unit("may_be_missing", FLAG, default=False),

    _loss("epsilon", NUMBER, asked=lambda read: read["loss"]["rho"] is None, always=True),
    _loss("delta", NUMBER, always=True),
    _loss("rho", NUMBER, always=True),
    _split(_SPLIT, families=(RECORDS,)),
    _split(_GROUP_SPLIT, families=(GROUPS,)),
    _split(_DEGREE_SPLIT, families=(DEGREES,)),
    _loss("accounting", choice(get_args(Accounting)), settled="plan.accounting", unsaid="zcdp", take=_accounting),
    _loss("noise", choice(LAWS)),
    _loss("large_delta", FLAG, default=False),

    _repair("method", choice(REPAIRS.named(lambda repair: not repair.again)), default="chebyshev", at="plan.repair",
            digest="repair", take=lambda ran: _top_down(ran, ran.plan.repair)),
    _repair("order", choice(get_args(Order)), default="ascending", at="plan.order", digest="order",
            take=lambda ran: _top_down(ran, ran.plan.order)),

    _release("prefer", choice(PREFERENCES), at="plan.prefer",
             take=lambda ran: ran.plan.preference if REPAIRS[ran.plan.repair].again else None),
    _release("resolve", Kind(_resolve, {"anyOf": [{"const": "full"}, table(NUMBER).schema]}), default="full",
             at="plan.resolve", digest="resolve",
             take=lambda ran: None if ran.plan.resolve == "full" else ran.plan.resolve.stated),
    _release("confidence", Kind(_confidence, NUMBER.schema), default=CONFIDENCE, at="plan.confidence",
             digest="confidence", take=_stated_confidence, families=FAMILIES),
    _release("intervals", FLAG, default=True, take=lambda ran: ran.plan.confidence is not None, families=FAMILIES),
    _release("keep_measurements", FLAG, default=False, at="file.keep_measurements", place=None, families=FAMILIES),

    _data("source", FILE, place=None),
    _data("query", NAME, place=None),
    _data("count", NAME, at="said.count"),
    # An added leaf is in no hierarchy file: the word for it is written.
    _data("unknown", either(dict, table(TEXT), choice(("error", "drop", ELSEWHERE))), default="error",
          at="plan.unknown", digest="unknown", place=-1, always=True,
          take=lambda ran: ELSEWHERE if ran.file is not None and ran.file.elsewhere else ran.plan.unknown),
    _data("records", WHOLE, at="file.records", families=(RECORDS,)),
    _data("period", NAME, at="said.period"),
    _data("delimiter", DELIMITER, place=None),
    _data("encoding", ENCODING, place=None),
    _data("fields", POSITIONS, place=1),
    _data("keep", KEEP, at="said.keep"),
    _data("drop", KEEP, at="said.drop"),
    _data("sheet", NAME, place=None),
    _data("trim", either(list, TEXTS, FLAG)),
    _data("missing", TEXTS),
    _data("thousands", table(TEXT)),
    _data("replace", table(FILE)),
    _data("pad", table(WHOLE)),
    _data("header", FLAG),
    _data("comment", NAME),
    _data("names", TEXTS),
    _data("blank_lines", choice(get_args(BlankLines)), default="record"),
)  # fmt: skip
"""The fields of all plans, and those of counts of records."""

READING = tuple(
    one for one in _FIELDS if one.section == "data" and one.name in (*OPTIONS, "trim", "missing", "pad")
)  # fmt: skip
"""The fields of `[data]` that say how a table is read, which the second table of a graph has too."""


def _as_under_data(one: Field) -> Field:
    words = (
        f"As `{one.name}` under `[data]`, of the people's table if edges are counted; `[data]` itself is about the "
        "table that is counted"
    )
    more: dict[str, Any] = {
        "at": f"people.{one.name}",
        "since": "0.4",
        "place": one.place,
        "families": (RECORDS, DEGREES),
    }
    return Field("graph", f"nodes_{one.name}", one.kind, words, **more)


_GRAPH_FIELDS = (
    _graph("counts", choice(("edges", "nodes", "degrees")), at="counts", default="edges", always=True),
    _graph("nodes", FILE, asked=_is_graph, place=None),
    _graph("edges", FILE, place=None),
    _graph("id", NAME, at="graph.id", default="id", always=True),
    _edges("source", NAME, default="source", always=True),
    _edges("target", NAME, default="target", always=True),
    _edges("relation", choice(RELATIONS),
           asked=lambda read: _is_graph(read) and read["graph"]["counts"] in ("edges", "degrees")),
    _edges("degree_bound", WHOLE, families=(RECORDS,),
           asked=lambda read: _is_graph(read) and read["graph"]["relation"] == "node"),
    _edges("directed", _DIRECTED, default=True, always=True),
    _graph("self_loops", choice(("error", "drop")), at="of_edges.policies.self_loops", default="error", always=True),
    _graph("repeated", choice(get_args(Policy)), at="of_edges.policies.repeated", default="error", always=True),
    _degrees("largest", either(list, WHOLES, WHOLE), asked=_always),
    _degrees("choosing", NUMBER),
    _degrees("degree", choice(get_args(degree_unit.Degree)), at="plan.unit.graph.degree", digest="degrees.degree"),
    _degrees("form", choice(get_args(degree_unit.Form)), at="plan.unit.form", default="cumulative",
             digest="degrees.form", always=True),
    _graph("clean", _LISTED, place=None),
    _edges("weight", NAME),
    *map(_as_under_data, READING),

    _clean("vocabulary", FILE),
    _clean("keyword", NAME, default="keyword"),
    _clean("code", NAME, default="code"),
    *(_clean(name, INTEGER) for name in ("least", "most", "width")),
    *(_clean(name, NAME) for name in ("missing", "other")),
)  # fmt: skip

_GROUP_FIELDS = (
    _of_reader("rows", choice(get_args(Rows)), asked=_always),
    _of_unit("largest", WHOLE, asked=_always),
    _of_unit("event", choice(get_args(group_unit.Event)), asked=_always),
    _groups("group", NAME, at="said.columns.group", place=2),
    _groups("size", NAME, at="said.columns.size", place=2),
    _groups("quantity", NAME, at="said.columns.quantity", place=2),
    _of_unit("most", WHOLE, at="plan.unit.quantity", digest="groups.quantity", default=1, place=1,
             take=lambda ran: _above_one(ran.plan.unit.quantity)),
    _of_unit("form", choice(get_args(group_unit.Form)), default="cumulative"),
    _of_reader("number", WHOLE, asked=lambda read: not _of_people(read) and read["groups"]["list"] is None),
    _of_mechanism("public", choice(get_args(Public))),
    _of_mechanism("repair", choice(("joint", "exact")), digest=""),
    _groups("list", FILE, asked=_of_people, take=_list, place=4),
    _groups("list_group", NAME, at="file.groups.list_group", place=3),
    _groups("list_region", NAME, at="file.groups.list_region", place=3),
    _of_reader("list_sha256", NAME, place=5),
)  # fmt: skip

ALL_FIELDS = (*_FIELDS, *_GRAPH_FIELDS, *_GROUP_FIELDS)
"""Every field, in the order in which they are listed."""
