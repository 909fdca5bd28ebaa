"""A plan file whose section [graph] counts degrees, of the whole graph or, with one attribute, by place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treetop.domain.hierarchy import Hierarchy
from treetop.errors import LossError, PlanError, PlanFileError
from treetop.plan.fields.kinds import NAME
from treetop.plan.fields.section import Section
from treetop.plan.file.graph import DEGREES, read_graph, refuse_data
from treetop.plan.file.planfile import PlanFile
from treetop.plan.file.stated import Stated
from treetop.plan.graphs.degrees import DEGREE, DegreeCounts, PureDegreePlan
from treetop.plan.graphs.regional import NEIGHBOURS, PureRegionalPlan
from treetop.privacy.relation import check_entity


def counts_degrees(values: Mapping[str, Any]) -> bool:
    """Whether a plan file is about degrees."""
    graph = values.get("graph")
    return isinstance(graph, Mapping) and graph.get("counts") == DEGREES


def with_source(values: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    """Return a plan file's values with the entity of the relation, and with the edges as the private table."""
    top = Section(file, "", values)
    unit, data, graph = (top.table(name) for name in ("unit", "data", "graph"))
    refuse_data(data)
    relation, edges = (NAME.read(graph, name) for name in ("relation", "edges"))
    named = {}
    if relation is not None:
        with unit.located():
            named = {"entity": check_entity(relation, NAME.read(unit, "entity"))}
    source = {} if edges is None else {"source": edges}
    return {**values, "unit": {**unit.values, **named}, "data": {**data.values, **source}}


def read_degrees(stated: Stated) -> PlanFile:
    """Make a plan of a file that counts degrees; private data is not touched."""
    section, folder, told = stated.sections, stated.path.parent, stated.values["graph"]
    unknown = stated.values["data"]["unknown"]
    _refuse_others(stated)
    stated.refuse_open()
    stated.refuse_private_files()
    columns = {name: attribute.column for name, attribute in stated.attributes.items()}
    trees = {name: attribute.read(folder) for name, attribute in stated.attributes.items()}
    for name, tree in trees.items():
        stated.check_digest(name, tree)
    graph = read_graph(section["graph"], told, folder, columns, None, unknown)
    assert graph is not None
    loss = stated.loss()
    with section["loss"].located(LossError), section["graph"].located(PlanError):
        plan = _plan(stated, trees, loss=loss, policies=graph.graph.policies)
    described = graph.described(stated.values[""]["description"])
    return stated.plan_file(plan, columns, graph=graph, description=described)


def _plan(stated: Stated, trees: Mapping[str, Hierarchy], **more: Any) -> DegreeCounts:
    told, unit, release = (stated.values[name] for name in ("graph", "unit", "release"))
    both: dict[str, Any] = {
        **{name: told[name] for name in ("relation", "largest", "form", "directed", "degree")},
        "contributions": unit["contributions"],
        "title": stated.values[""]["title"],
        "population": unit["population"],
        "confidence": release["confidence"] if release["intervals"] else None,
        **more,
    }
    if not trees:
        choosing = told["choosing"]
        return PureDegreePlan.make(neighbours=unit["neighbours"], entity=unit["entity"], choosing=choosing, **both)
    ((place, regions),) = trees.items()
    only = NEIGHBOURS.get(told["relation"], unit["neighbours"])
    if unit["neighbours"] != only:
        raise stated.sections["unit"].problem(
            f'neighbours is {unit["neighbours"]!r}: degrees by place under "{told["relation"]}" are for {only!r}'
        )
    return PureRegionalPlan.make(regions, place=place, split=stated.values["loss"]["split"], **both)


def _refuse_others(stated: Stated) -> None:
    """Refuse what plans for other counts may have."""
    attributes, section, release = stated.attributes, stated.sections, stated.values["release"]
    if len(attributes) > 1:
        raise PlanFileError(
            f"{stated.path}: [attributes] degrees have at most one, the place of the people, but there are "
            f"{', '.join(attributes)}: the degree is counted by itself"
        )
    for name, attribute in attributes.items():
        if name.casefold() == DEGREE:
            raise attribute.section.problem("is called as the degrees are: call the place another")
    if stated.values["data"]["unknown"] not in ("error", "drop"):
        raise section["data"].problem('unknown: write "error", or "drop" for edges to people who are not in the table')
    if not release["intervals"] and section["release"].has("confidence"):
        raise section["release"].problem("intervals are off, but have a confidence: keep one")
