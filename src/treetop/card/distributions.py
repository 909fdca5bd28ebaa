"""What plans for group sizes and for degrees state: of regions and sizes, or of people by degree."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from treetop.card.run_info import RunInfo
from treetop.card.sentences import Sentence, paragraph, sentence
from treetop.card.statements import SUMS, JointStatements, Statements, graph_words
from treetop.plan.degree_unit import DegreeUnit, ThetaChoice
from treetop.plan.degrees import DegreeHistogram
from treetop.plan.group_plan import GroupSizeReader
from treetop.plan.group_unit import GroupUnit
from treetop.plan.plan import Plan
from treetop.plan.region_histograms import RegionHistograms
from treetop.privacy import Unit

_RISK = Fraction(1, 20)
"""Of the margins in notes before a release: 19 times in 20."""


class _Distribution(Statements):
    """What distributions have in common: one unit moves each level as far, and conditions bound how far."""

    def piece(self, unit: Unit) -> Sentence | None:
        return None

    def noise(self, plan: Plan) -> Sentence:
        change = plan.unit.sensitivity("")
        if plan.loss.definition == "pure":
            return sentence("noise.laplace", entity=plan.unit.entity, l1=change.l1)
        return sentence("noise.gaussian", entity=plan.unit.entity, l2_squared=change.l2_squared)

    def unit(self, plan: Plan) -> dict[str, Any]:
        return {"conditions": self.conditions(plan)}

    def conditions(self, plan: Plan) -> list[Sentence]:
        """Say what the sensitivities rest on; each identifier ends with whether it was enforced or declared."""
        raise NotImplementedError

    def _declared(self, plan: Plan) -> list[Sentence]:
        declared = [condition for condition in self.conditions(plan) if condition["id"].endswith(".declared")]
        return [sentence("caveat.declared", conditions=declared)] if declared else []

    def _intervals_note(self, plan: Plan) -> list[Sentence]:
        return [] if plan.confidence is not None else [sentence("note.no_intervals")]


class _GroupSizes(_Distribution):
    """What a plan for group sizes states."""

    def extent(self, unit: Unit) -> int | str:
        return GroupUnit.of(unit).event

    def protects(self, plan: Plan) -> Sentence:
        unit = GroupUnit.of(plan.unit)
        return sentence("protects.groups", entity=unit.entity, event=unit.event, quantity=unit.quantity)

    def exact_total(self, plan: Plan) -> Sentence:
        return sentence("exact.groups")

    def mechanism(self, plan: Plan) -> Sentence:
        mechanism = RegionHistograms.of(plan)
        id = "mechanism.groups_exact" if mechanism.repair == "exact" else "mechanism.groups"
        return sentence(id, name=mechanism.title(plan), form=GroupUnit.of(plan.unit).form, largest=plan.largest)

    def _accuracy(self, plan: Plan) -> tuple[Sentence, Sentence, Sentence]:
        form, regions = GroupUnit.of(plan.unit).form, RegionHistograms.of(plan).keeps_regions
        margin = sentence("margin.regions", what="groups", axis="size", form=form)
        return margin, sentence("bound.regions"), sentence("interval.groups", form=form, regions=regions)

    def neighbours(self, plan: Plan, info: RunInfo) -> Sentence:
        unit = GroupUnit.of(plan.unit)
        about = {} if unit.event == "group" else {"entity": unit.entity}
        return sentence(f"neighbours.{unit.event}", **about)

    def unit(self, plan: Plan) -> dict[str, Any]:
        unit = GroupUnit.of(plan.unit)
        return {"event": unit.event, "quantity": unit.quantity} | super().unit(plan)

    def conditions(self, plan: Plan) -> list[Sentence]:
        unit, reader = GroupUnit.of(plan.unit), GroupSizeReader.of(plan)
        listed = reader.list_sha256 is not None
        if listed:
            stated = [sentence("condition.groups_listed.enforced", number=reader.number, sha256=reader.list_sha256)]
        else:
            stated = [sentence("condition.groups_known.declared", number=reader.number)]
        if RegionHistograms.of(plan).keeps_regions:
            stated.append(sentence(f"condition.regions_{'listed' if listed else 'known'}.enforced"))
        stated.append(sentence("condition.largest_size.enforced", largest=plan.largest))
        if unit.event == "group":
            return stated
        if reader.rows == "people" and unit.id is not None:
            stated.append(sentence("condition.one_group.enforced", entity=unit.entity, id=unit.id))
        else:
            stated.append(sentence("condition.one_group.declared", entity=unit.entity))
        how = "enforced" if reader.rows == "people" else "declared"
        return [*stated, sentence(f"condition.quantity.{how}", entity=unit.entity, quantity=unit.quantity)]

    def unknown(self, plan: Plan) -> Sentence:
        return sentence("unknown.groups_refused")

    def post_processing(self, plan: Plan) -> list[Sentence]:
        mechanism = RegionHistograms.of(plan)
        if mechanism.repair == "joint":
            return _joint(plan.unit.cumulative, mechanism.keeps_regions, "groups", "size")
        rising = [sentence("after.rising")] if plan.unit.cumulative else []
        return [*rising, sentence("after.certified"), SUMS]

    def caveats(self, plan: Plan, info: RunInfo) -> list[Sentence]:
        one = sentence("caveat.groups_one", entity=plan.unit.entity)
        hidden = sentence("caveat.groups_exact") if GroupUnit.of(plan.unit).event == "group" else one
        return [*self._declared(plan), hidden, sentence("caveat.small.size")]

    def notes(self, plan: Plan) -> list[Sentence]:
        unit, largest, reader = GroupUnit.of(plan.unit), plan.largest, GroupSizeReader.of(plan)
        twice = unit.in_plan(unit.form or "direct", 2 * largest).sensitivity("").l1
        rising = twice > unit.sensitivity("").l1
        return [
            sentence("note.groups", name=RegionHistograms.of(plan).title(plan), rows=reader.rows, form=unit.form),
            *self.conditions(plan),
            sentence("note.largest_noise" if rising else "note.largest_counts", largest=largest),
            *self._intervals_note(plan),
        ]

    def counted(self, plan: Plan) -> dict[str, Any]:
        return {"what": "groups", "open": {"attribute": "size", "from": plan.largest}}


class _Degrees(_Distribution):
    """What a plan for degrees states, of a whole graph or by region."""

    def extent(self, unit: Unit) -> int | str:
        return DegreeUnit.of(unit).graph.relation

    def piece(self, unit: Unit) -> Sentence | None:
        return None if unit.piece is None else sentence("who.edge_of_list", entity=unit.entity)

    def protects(self, plan: Plan) -> Sentence:
        unit = plan.unit
        return sentence("protects.degrees", **_graph(plan), neighbours=unit.neighbours, entity=unit.entity)

    def exact_total(self, plan: Plan) -> Sentence:
        return sentence("exact.people_kept" if plan.unit.graph.relation == "node" else "exact.people")

    def mechanism(self, plan: Plan) -> Sentence:
        form, largest, choice = DegreeUnit.of(plan.unit).form, plan.largest, _choice(plan)
        degree = sentence("mechanism.degree", **_graph(plan))
        if RegionHistograms.runs(plan):
            return paragraph(
                sentence("mechanism.regions", name=RegionHistograms.of(plan).title(plan), form=form, largest=largest),
                degree,
            )
        if choice is None:
            return paragraph(sentence("mechanism.degrees", form=form, largest=largest), degree)
        among = {"candidates": list(choice.candidates), "share": str(choice.share)}
        if choice.measured is None:
            how = (sentence("mechanism.theta_open", **among), sentence("mechanism.degrees_open", form=form))
        else:
            chosen = sentence("mechanism.theta", largest=largest, **among)
            how = (chosen, sentence("mechanism.degrees", form=form, largest=largest))
        return paragraph(*how, degree)

    def _accuracy(self, plan: Plan) -> tuple[Sentence, Sentence, Sentence]:
        form, left_out = DegreeUnit.of(plan.unit).form, plan.unit.graph.relation == "node" or plan.unit.graph.cut
        interval = sentence("interval.degrees_left" if left_out else "interval.degrees", form=form)
        if not RegionHistograms.runs(plan):
            return sentence("margin.degrees", form=form), sentence("bound.degrees"), interval
        return sentence("margin.regions", what="people", axis="degree", form=form), sentence("bound.regions"), interval

    def neighbours(self, plan: Plan, info: RunInfo) -> Sentence:
        return sentence(f"neighbours.graph.{plan.unit.neighbours}", relation=plan.unit.graph.relation)

    def conditions(self, plan: Plan) -> list[Sentence]:
        unit, graph, largest = plan.unit, plan.unit.graph, plan.largest
        stated = [sentence("condition.largest_degree.enforced", largest=largest)]
        if plan.unit.graph.relation == "node":
            ends = "" if graph.counted == "total" else "_ends"
            choice = _choice(plan)
            if choice is not None and choice.measured is None:
                stated = [sentence(f"condition.projecting{ends}.enforced")]
            else:
                stated = [sentence(f"condition.projected{ends}.enforced", largest=largest)]
        if graph.cut:
            stated.append(sentence("condition.cut.enforced", most=unit.contributions))
        if plan.unit.graph.relation == "edge":
            row = "row" if graph.directed else "pair"
            stated.append(sentence(f"condition.one_{row}.declared", entity=unit.entity))
        if plan.unit.graph.relation != "node":
            people = "people_by_region" if RegionHistograms.runs(plan) else "people"
            stated.append(sentence(f"condition.{people}.declared"))
        return stated

    def unknown(self, plan: Plan) -> Sentence:
        people = sentence("unknown.people_dropped" if plan.unknown == "drop" else "unknown.people_refused")
        return paragraph(people, *([sentence("unknown.regions_refused")] if RegionHistograms.runs(plan) else []))

    def post_processing(self, plan: Plan) -> list[Sentence]:
        cumulative, public = plan.unit.cumulative, plan.unit.total_is_exact(False)
        if RegionHistograms.runs(plan):
            return _joint(cumulative, True, "people", "degree")
        if cumulative:
            id = "after.degrees_rising" if public else "after.degrees_rising_free"
        elif not public:
            id = "after.degrees_clipped"
        else:
            id = "after.degrees_rest" if DegreeHistogram.of(plan).rest(plan) else "after.degrees_sum"
        return [sentence(id), SUMS]

    def caveats(self, plan: Plan, info: RunInfo) -> list[Sentence]:
        stated = self._declared(plan)
        stated.append(sentence("caveat.people_exact" if plan.unit.total_is_exact(False) else "caveat.people_noisy"))
        if plan.unit.graph.relation == "node":
            stated.append(sentence("caveat.projected", largest=plan.largest))
        if plan.unit.graph.cut:
            stated.append(sentence("caveat.cut", most=plan.unit.contributions))
        return [*stated, sentence("caveat.small.degree")]

    def notes(self, plan: Plan) -> list[Sentence]:
        noisy = [] if plan.unit.total_is_exact(False) else [sentence("note.people_noisy")]
        theta = [_theta_note(plan)] if plan.unit.graph.relation == "node" else []
        return [self.mechanism(plan), *self.conditions(plan), *noisy, *theta, *self._intervals_note(plan)]

    def graph(self, plan: Plan) -> dict[str, Any]:
        return graph_words(plan, "graph.degrees", _graph(plan))

    def counted(self, plan: Plan) -> dict[str, Any]:
        rules: dict[str, Any] = {"what": "people"}
        if plan.unit.graph.relation == "node":
            rules["projected"] = plan.largest
        if plan.unit.graph.cut:
            rules["limit"] = plan.unit.contributions
        return rules | {"open": {"attribute": "degree", "from": plan.largest}}


STATEMENTS: Mapping[str, Statements] = {
    "top-down": Statements(),
    "joint": JointStatements(),
    "groups": _GroupSizes(),
    "degrees": _Degrees(),
}
"""What plans state, by the name of their mechanism if they count records, and otherwise of their reader."""


def statements_of(plan: Plan) -> Statements:
    """Return what a plan states."""
    return STATEMENTS[plan.mechanism.name if plan.reader.name == "records" else plan.reader.name]


def _graph(plan: Plan) -> dict[str, Any]:
    graph = plan.unit.graph
    return {"relation": graph.relation, "directed": graph.directed, "degree": graph.degree}


def _choice(plan: Plan) -> ThetaChoice | None:
    """Return how theta is chosen; None if it is given, as it always is by region."""
    return None if RegionHistograms.runs(plan) else DegreeHistogram.of(plan).choice


def _joint(cumulative: bool, kept: bool, what: str, axis: str) -> list[Sentence]:
    """Say how all regions and sizes were made possible at once."""
    fit = sentence("after.joint_fit", cumulative=cumulative, kept=kept, what=what, axis=axis)
    whole = sentence("after.joint_whole" if kept else "after.joint_whole_free", what=what, axis=axis)
    return [fit, whole, SUMS]


def _theta_note(plan: Plan) -> Sentence:
    """Say what the largest degree, or each candidate for it, costs, from public knowledge alone."""
    mechanism = DegreeHistogram.of(plan)
    choice = mechanism.choice
    if choice is None:
        largest, margin = plan.largest, mechanism.law(plan).margin(_RISK)
        return sentence("note.theta", largest=largest, margin=margin, people=plan.unit.population)
    pairs = zip(choice.candidates, mechanism.candidate_laws(plan), strict=True)
    least, most = (mechanism.choice_parts(plan)[at].law.margin(_RISK) for at in (0, -1))
    margins = {theta: law.margin(_RISK) for theta, law in pairs}
    return sentence("note.candidates", margins=margins, least=least, most=most)
