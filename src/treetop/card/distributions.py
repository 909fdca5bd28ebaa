"""What plans for group sizes and for degrees state: of regions and sizes, or of people by degree."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from treetop.card.run_info import RunInfo
from treetop.card.sentences import Sentence, paragraph, sentence
from treetop.card.statements import SUMS, Statements, graph_words

_RISK = Fraction(1, 20)
"""Of the margins in notes before a release: 19 times in 20."""


class _Distribution(Statements):
    """What distributions have in common: one unit moves each level as far, and conditions bound how far."""

    def piece(self, unit: Any) -> Sentence | None:
        return None

    def noise(self, plan: Any) -> Sentence:
        change = plan.unit.sensitivity("")
        if plan.loss.definition == "pure":
            return sentence("noise.laplace", entity=plan.unit.entity, l1=change.l1)
        return sentence("noise.gaussian", entity=plan.unit.entity, l2_squared=change.l2_squared)

    def unit(self, plan: Any) -> dict[str, Any]:
        return {"conditions": self.conditions(plan)}

    def conditions(self, plan: Any) -> list[Sentence]:
        """Say what the sensitivities rest on; each identifier ends with whether it was enforced or declared."""
        raise NotImplementedError

    def _declared(self, plan: Any) -> list[Sentence]:
        declared = [condition for condition in self.conditions(plan) if condition["id"].endswith(".declared")]
        return [sentence("caveat.declared", conditions=declared)] if declared else []

    def _intervals_note(self, plan: Any) -> list[Sentence]:
        return [] if plan.confidence is not None else [sentence("note.no_intervals")]


class _GroupSizes(_Distribution):
    """What a plan for group sizes states."""

    def extent(self, unit: Any) -> int | str:
        return str(unit.group.event)

    def protects(self, plan: Any) -> Sentence:
        group = plan.sizes.group
        return sentence("protects.groups", entity=group.entity, event=group.event, quantity=group.quantity)

    def exact_total(self, plan: Any) -> Sentence:
        return sentence("exact.groups")

    def mechanism(self, plan: Any) -> Sentence:
        id = "mechanism.groups_exact" if plan.method == "exact" else "mechanism.groups"
        return sentence(id, name=plan.core.name, form=plan.sizes.form, largest=plan.sizes.largest)

    def accuracy(self, plan: Any) -> dict[str, Sentence]:
        stated = {
            "margin": sentence("margin.regions", what="groups", axis="size", form=plan.sizes.form),
            "bound": sentence("bound.regions"),
        }
        if not plan.has_intervals:
            return stated
        return stated | {"interval": sentence("interval.groups", form=plan.sizes.form, regions=plan.keeps_regions)}

    def neighbours(self, plan: Any, info: RunInfo) -> Sentence:
        group = plan.sizes.group
        about = {} if group.event == "group" else {"entity": group.entity}
        return sentence(f"neighbours.{group.event}", **about)

    def unit(self, plan: Any) -> dict[str, Any]:
        group = plan.sizes.group
        return {"event": group.event, "quantity": group.quantity} | super().unit(plan)

    def conditions(self, plan: Any) -> list[Sentence]:
        group, listed = plan.sizes.group, plan.list_sha256 is not None
        if listed:
            stated = [sentence("condition.groups_listed.enforced", number=plan.number, sha256=plan.list_sha256)]
        else:
            stated = [sentence("condition.groups_known.declared", number=plan.number)]
        if plan.keeps_regions:
            stated.append(sentence(f"condition.regions_{'listed' if listed else 'known'}.enforced"))
        stated.append(sentence("condition.largest_size.enforced", largest=plan.sizes.largest))
        if group.event == "group":
            return stated
        if plan.rows == "people" and plan.unit.id is not None:
            stated.append(sentence("condition.one_group.enforced", entity=group.entity, id=plan.unit.id))
        else:
            stated.append(sentence("condition.one_group.declared", entity=group.entity))
        how = "enforced" if plan.rows == "people" else "declared"
        return [*stated, sentence(f"condition.quantity.{how}", entity=group.entity, quantity=group.quantity)]

    def unknown(self, plan: Any) -> Sentence:
        return sentence("unknown.groups_refused")

    def post_processing(self, plan: Any) -> list[Sentence]:
        if plan.method == "joint":
            return _joint(plan.sizes.form == "cumulative", plan.keeps_regions, "groups", "size")
        rising = [sentence("after.rising")] if plan.sizes.form == "cumulative" else []
        return [*rising, sentence("after.certified"), SUMS]

    def caveats(self, plan: Any, info: RunInfo) -> list[Sentence]:
        one = sentence("caveat.groups_one", entity=plan.unit.entity)
        hidden = sentence("caveat.groups_exact") if plan.sizes.group.event == "group" else one
        return [*self._declared(plan), hidden, sentence("caveat.small.size")]

    def notes(self, plan: Any) -> list[Sentence]:
        form, largest = plan.sizes.form, plan.sizes.largest
        here, twice = (plan.sizes.group.sensitivity(form, size).l1 for size in (largest, 2 * largest))
        return [
            sentence("note.groups", name=plan.core.name, rows=plan.rows, form=form),
            *self.conditions(plan),
            sentence("note.largest_noise" if twice > here else "note.largest_counts", largest=largest),
            *self._intervals_note(plan),
        ]

    def counted(self, plan: Any) -> dict[str, Any]:
        return {"what": "groups", "open": {"attribute": "size", "from": plan.sizes.largest}}


class _Degrees(_Distribution):
    """What a plan for degrees states, of a whole graph or by region."""

    def extent(self, unit: Any) -> int | str:
        return str(unit.graph.relation)

    def piece(self, unit: Any) -> Sentence | None:
        return None if unit.piece is None else sentence("who.edge_of_list", entity=unit.entity)

    def protects(self, plan: Any) -> Sentence:
        unit = plan.unit
        return sentence("protects.degrees", **_graph(plan), neighbours=unit.neighbours, entity=unit.entity)

    def exact_total(self, plan: Any) -> Sentence:
        return sentence("exact.people_kept" if plan.relation == "node" else "exact.people")

    def mechanism(self, plan: Any) -> Sentence:
        form, largest, choice = plan.degrees.form, plan.degrees.largest, _choice(plan)
        degree = sentence("mechanism.degree", **_graph(plan))
        if _by_region(plan):
            return paragraph(sentence("mechanism.regions", name=plan.core.name, form=form, largest=largest), degree)
        if choice is None:
            return paragraph(sentence("mechanism.degrees", form=form, largest=largest), degree)
        among = {"candidates": list(choice.candidates), "share": str(choice.share)}
        if choice.measured is None:
            how = (sentence("mechanism.theta_open", **among), sentence("mechanism.degrees_open", form=form))
        else:
            chosen = sentence("mechanism.theta", largest=largest, **among)
            how = (chosen, sentence("mechanism.degrees", form=form, largest=largest))
        return paragraph(*how, degree)

    def accuracy(self, plan: Any) -> dict[str, Sentence]:
        form = plan.degrees.form
        stated = {"margin": sentence("margin.degrees", form=form), "bound": sentence("bound.degrees")}
        if _by_region(plan):
            margin = sentence("margin.regions", what="people", axis="degree", form=form)
            stated = {"margin": margin, "bound": sentence("bound.regions")}
        if plan.confidence is None:
            return stated
        left_out = plan.relation == "node" or plan.degrees.graph.cut
        return stated | {"interval": sentence("interval.degrees_left" if left_out else "interval.degrees", form=form)}

    def neighbours(self, plan: Any, info: RunInfo) -> Sentence:
        return sentence(f"neighbours.graph.{plan.unit.neighbours}", relation=plan.relation)

    def conditions(self, plan: Any) -> list[Sentence]:
        unit, graph, largest = plan.unit, plan.degrees.graph, plan.degrees.largest
        stated = [sentence("condition.largest_degree.enforced", largest=largest)]
        if plan.relation == "node":
            ends = "" if graph.counted == "total" else "_ends"
            choice = _choice(plan)
            if choice is not None and choice.measured is None:
                stated = [sentence(f"condition.projecting{ends}.enforced")]
            else:
                stated = [sentence(f"condition.projected{ends}.enforced", largest=largest)]
        if graph.cut:
            stated.append(sentence("condition.cut.enforced", most=unit.contributions))
        if plan.relation == "edge":
            row = "row" if graph.directed else "pair"
            stated.append(sentence(f"condition.one_{row}.declared", entity=unit.entity))
        if plan.relation != "node":
            people = "people_by_region" if _by_region(plan) else "people"
            stated.append(sentence(f"condition.{people}.declared"))
        return stated

    def unknown(self, plan: Any) -> Sentence:
        people = sentence("unknown.people_dropped" if plan.unknown == "drop" else "unknown.people_refused")
        return paragraph(people, *([sentence("unknown.regions_refused")] if _by_region(plan) else []))

    def post_processing(self, plan: Any) -> list[Sentence]:
        cumulative, public = plan.degrees.form == "cumulative", plan.people_are_public
        if _by_region(plan):
            return _joint(cumulative, True, "people", "degree")
        if cumulative:
            id = "after.degrees_rising" if public else "after.degrees_rising_free"
        elif not public:
            id = "after.degrees_clipped"
        else:
            id = "after.degrees_rest" if plan.rest else "after.degrees_sum"
        return [sentence(id), SUMS]

    def caveats(self, plan: Any, info: RunInfo) -> list[Sentence]:
        stated = self._declared(plan)
        stated.append(sentence("caveat.people_exact" if plan.people_are_public else "caveat.people_noisy"))
        if plan.relation == "node":
            stated.append(sentence("caveat.projected", largest=plan.degrees.largest))
        if plan.degrees.graph.cut:
            stated.append(sentence("caveat.cut", most=plan.unit.contributions))
        return [*stated, sentence("caveat.small.degree")]

    def notes(self, plan: Any) -> list[Sentence]:
        noisy = [] if plan.people_are_public else [sentence("note.people_noisy")]
        theta = [_theta_note(plan)] if plan.relation == "node" else []
        return [self.mechanism(plan), *self.conditions(plan), *noisy, *theta, *self._intervals_note(plan)]

    def graph(self, plan: Any) -> dict[str, Any]:
        return graph_words(plan, "graph.degrees", _graph(plan))

    def counted(self, plan: Any) -> dict[str, Any]:
        rules: dict[str, Any] = {"what": "people"}
        if plan.relation == "node":
            rules["projected"] = plan.degrees.largest
        if plan.degrees.graph.cut:
            rules["limit"] = plan.unit.contributions
        return rules | {"open": {"attribute": "degree", "from": plan.degrees.largest}}


GROUP_SIZES: Statements = _GroupSizes()
DEGREES: Statements = _Degrees()


def _graph(plan: Any) -> dict[str, Any]:
    graph = plan.degrees.graph
    return {"relation": graph.relation, "directed": graph.directed, "degree": graph.degree}


def _choice(plan: Any) -> Any:
    """Return how theta is chosen; None if it is given, as it always is by region."""
    return getattr(plan, "choice", None)


def _by_region(plan: Any) -> bool:
    return len(plan.spine.attributes) > 1


def _joint(cumulative: bool, kept: bool, what: str, axis: str) -> list[Sentence]:
    """Say how all regions and sizes were made possible at once."""
    fit = sentence("after.joint_fit", cumulative=cumulative, kept=kept, what=what, axis=axis)
    whole = sentence("after.joint_whole" if kept else "after.joint_whole_free", what=what, axis=axis)
    return [fit, whole, SUMS]


def _theta_note(plan: Any) -> Sentence:
    """Say what the largest degree, or each candidate for it, costs, from public knowledge alone."""
    choice = _choice(plan)
    if choice is None:
        largest, margin = plan.degrees.largest, plan.law.margin(_RISK)
        return sentence("note.theta", largest=largest, margin=margin, people=plan.unit.population)
    pairs = zip(choice.candidates, plan.candidate_laws, strict=True)
    least, most = (plan.choice_parts[at].law.margin(_RISK) for at in (0, -1))
    margins = {theta: law.margin(_RISK) for theta, law in pairs}
    return sentence("note.candidates", margins=margins, least=least, most=most)
