"""Which sentences hold of a plan: what every kind of plan states, and what plans from the top down state alone.

Every statement about exactness, protection or error is decided here by the plan. The English is in the catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from treetop.card.run_info import RunInfo
from treetop.card.sentences import Sentence, paragraph, sentence
from treetop.domain.constraints import INVARIANT, TableFact
from treetop.domain.marginal import exact_margins, title_of
from treetop.domain.unit import drops
from treetop.noise import DiscreteGaussian
from treetop.plan.constraints_kept import compared, kept_exactly
from treetop.plan.plan import Plan
from treetop.plan.resolution import Resolution
from treetop.privacy import Unit, epsilon_from_rho
from treetop.privacy.accountant import law_of
from treetop.privacy.loss import COMPARED_AT
from treetop.repair import REPAIRS

SUMS = sentence("after.sums")

Values: TypeAlias = Mapping[str, Sequence[str]]
"""By column, values of rows."""


class Statements:
    """What a plan from the top down states, and what other kinds replace."""

    def extent(self, unit: Unit) -> int | str:
        """Return how much one unit is: its most records, or the name of a relation or an event."""
        return int(unit.contributions)

    def piece(self, unit: Unit) -> Sentence | None:
        """Name the part of a unit whose loss is stated beside the unit's; None if there is none."""
        if unit.piece is None:
            return None
        if unit.contributions > 1:
            return sentence("who.record")
        return sentence("who.record_of_several", entity=unit.entity)

    def protects(self, plan: Plan) -> Sentence:
        """Say what is protected."""
        unit = plan.unit
        names = ("entity", "contributions", "neighbours", "id", "may_be_missing", "distinct")
        stated = {name: getattr(unit, name) for name in names if getattr(unit, name) not in (None, False)}
        lists = {"per_node": dict(unit.per_node), "id_clean": list(unit.id_clean)}
        return sentence("protects.records", unit=stated | {name: value for name, value in lists.items() if value})

    def exact_total(self, plan: Plan) -> Sentence:
        """Say what a total without noise tells."""
        return sentence("exact.records", entity=plan.unit.entity)

    def mechanism(self, plan: Plan) -> Sentence:
        """Say what is measured, and how it becomes a release."""
        margins = [sentence("mechanism.margins")] if plan.margin_tables else []
        past = [sentence("mechanism.sums", levels=list(plan.spine.goes_past))] if plan.spine.goes_past else []
        return paragraph(sentence("mechanism.top_down"), *margins, *past)

    def noise(self, plan: Plan) -> Sentence:
        """Say which noise, and how its levels add up."""
        return sentence("noise.law", law=law_of(plan.loss).name)

    def accuracy(self, plan: Plan) -> dict[str, Sentence]:
        """Say what margins, bounds and, if there are any, intervals are."""
        margin, bound, interval = self._accuracy(plan)
        stated = {"margin": margin, "bound": bound}
        return stated if plan.confidence is None else stated | {"interval": interval}

    def _accuracy(self, plan: Plan) -> tuple[Sentence, Sentence, Sentence]:
        bound = "bound.named" if is_named(plan) else "bound"
        if REPAIRS[plan.repair].again:
            bound = "bound.not_released"
        if plan.margin_tables:
            bound = "bound.margins"
        margins = [sentence("interval.margins")] if plan.margin_tables else []
        interval = sentence("interval.named" if is_named(plan) else "interval")
        return sentence("margin"), sentence(bound), paragraph(interval, *margins)

    def neighbours(self, plan: Plan, info: RunInfo) -> Sentence:
        """Say which tables must be hard to tell apart, in terms of the table."""
        unit, count = plan.unit, info.count
        about = {"count": count, "entity": unit.entity}
        if unit.neighbours == "replace" and unit.exactly_one:
            columns = list((info.columns or {name: name for name in plan.spine.attributes}).values())
            stated = sentence("neighbours.change", **about, columns=columns)
        elif unit.neighbours == "replace":
            stated = sentence("neighbours.exchange", **about, most=unit.contributions)
        elif unit.contributions == 1:
            stated = sentence("neighbours.add_one", **about)
        else:
            stated = sentence("neighbours.add_all", **about, most=unit.contributions)
        return paragraph(stated, *agreeing(plan))

    def unit(self, plan: Plan) -> dict[str, Any]:
        """Say how contributions were bounded, but never how many records that took."""
        unit = plan.unit
        if not unit.enforced:
            return {"bound": sentence("bound.declared", entity=unit.entity, most=unit.contributions)}
        id = "bound.enforced_distinct" if unit.distinct else "bound.enforced"
        enforced = sentence(id, entity=unit.entity, id=unit.id, most=unit.contributions)
        spelling = [sentence("bound.spelling", spelling=unit.spelling)] if unit.id_clean else []
        return {"bound": paragraph(enforced, *spelling)}

    def unknown(self, plan: Plan) -> Sentence:
        """Say what happened to codes that are not in a hierarchy."""
        if isinstance(plan.unknown, Mapping):
            leaves = {name: code for name, code in plan.unknown.items() if code != "drop"}
            gone = [name for name, code in plan.unknown.items() if code == "drop"]
            stated = [
                *([sentence("unknown.own_leaf", leaves=leaves)] if leaves else []),
                *([sentence("unknown.dropped_of", attributes=gone)] if gone else []),
                *([sentence("unknown.refused_else")] if len(plan.unknown) < len(plan.spine.attributes) else []),
            ]
            return paragraph(*stated)
        return sentence("unknown.dropped" if plan.unknown == "drop" else "unknown.refused")

    def post_processing(self, plan: Plan) -> list[Sentence]:
        """Say what was done to measurements; it reads no private data, so it costs nothing."""
        repair = REPAIRS[plan.repair]
        steps = range(len(repair.words))
        repaired = [sentence("after.repair", repair=plan.repair, step=step, order=plan.order) for step in steps]
        stated = [*repaired[:1], *_facts_kept(plan), *repaired[1:]]
        if plan.margin_tables:
            again = [sentence("after.shared_again")] if repair.again else []
            stated = [sentence("after.margins"), repaired[0], sentence("after.two_sided"), *_crossing(plan), *again]
        if is_named(plan):
            named = sentence("after.named", **_rule(plan.resolve))
            return [*stated, named, sentence("after.unresolved"), sentence("after.sums_unresolved")]
        return [*stated, *([] if repair.again else [sentence("after.zeros")]), SUMS]

    def caveats(self, plan: Plan, info: RunInfo) -> list[Sentence]:
        """Say what the release does not promise, beside what none does."""
        unit, stated = plan.unit, []
        if not unit.enforced:
            stated.append(sentence("caveat.declared_limit", most=unit.contributions, entity=unit.entity))
        if unit.per_node:
            stated.append(sentence("caveat.declared_caps"))
        stated += _fact_caveats(plan)
        if plan.reads_total:
            stated.append(sentence("caveat.exact_total", entity=unit.entity))
        if plan.accounting == "exact":
            alone, beside = epsilon_of(plan.spent, plan), epsilon_beside_others(plan)
            stated.append(sentence("caveat.exact_accounting", alone=alone, rho=str(plan.spent), beside=beside))
        chosen = [*{**(info.keep or {}), **(info.drop or {})}]
        if chosen and unit.neighbours == "replace" and not unit.may_be_missing:
            stated.append(sentence("caveat.kept_rows", columns=chosen, entity=unit.entity))
        if unit.enforced or drops(plan.unknown):
            stated.append(sentence("caveat.left_out"))
        return stated + self._small_counts(plan)

    def _small_counts(self, plan: Plan) -> list[Sentence]:
        """Say what to make of small counts, and of those that are not listed."""
        if not is_named(plan):
            return [sentence("caveat.small.leaf")]
        resolve: Any = plan.resolve
        cautions = [sentence("caveat.rule", **_rule(resolve))] if resolve.cautions else []
        return [sentence("caveat.unresolved"), sentence("caveat.named"), *cautions]

    def notes(self, plan: Plan) -> list[Sentence]:
        """Say what else there is to know before a release."""
        stated = []
        if REPAIRS[plan.repair].again and not plan.margin_tables:
            stated.append(sentence("note.bound", bound=[sentence("bound.not_released")]))
        if is_named(plan):
            stated.append(sentence("note.named", **_rule(plan.resolve)))
        if plan.confidence is None:
            stated.append(sentence("note.no_intervals"))
        return [*stated, *_empty_table(plan)]

    def graph(self, plan: Plan) -> dict[str, Any]:
        """Say which graphs are neighbours, and what one edge is."""
        return graph_words(plan, "graph.edges", {"graph": plan.unit.graph.describe()})

    def counted(self, plan: Plan) -> dict[str, Any]:
        """Return what is counted, and every rule that makes a released count smaller than the number in the table."""
        rules: dict[str, Any] = {"what": "records" if plan.graph is None else "edges"}
        if plan.unit.enforced:
            rules |= {"limit": plan.unit.contributions} | ({"distinct": True} if plan.unit.distinct else {})
        if drops(plan.unknown):
            rules["dropped"] = True
        return rules


class JointStatements(Statements):
    """What a plan with a joint fit states."""

    def mechanism(self, plan: Plan) -> Sentence:
        """Say what is measured, and how it becomes a release."""
        return sentence("mechanism.joint")

    def _accuracy(self, plan: Plan) -> tuple[Sentence, Sentence, Sentence]:
        how = "gaussian" if law_of(plan.loss) is DiscreteGaussian else "other"
        return sentence("margin"), sentence("bound.joint"), sentence(f"interval.joint_{how}")

    def post_processing(self, plan: Plan) -> list[Sentence]:
        """Say how measurements became counts."""
        return [sentence("after.fitted"), sentence("after.fitted_whole"), SUMS]

    def _small_counts(self, plan: Plan) -> list[Sentence]:
        return [sentence("caveat.small.joint")]

    def notes(self, plan: Plan) -> list[Sentence]:
        """Say what else there is to know before a release."""
        return [] if plan.confidence is not None else [sentence("note.no_intervals")]


def graph_words(plan: Plan, id: str, about: dict[str, Any]) -> dict[str, Any]:
    """Return what is stated of a graph, with its sentences."""
    graph = plan.unit.graph
    one_edge = sentence(f"graph.one_{'weighted_' * graph.policies.weighted}edge", directed=graph.directed)
    sentences = [sentence(id, **about, number=number) for number in range(len(graph.sentences()))]
    return {**graph.describe(), "one_edge": one_edge, "sentences": sentences}


def is_named(plan: Plan) -> bool:
    """Whether only those counts are named that their measurements show not to be empty."""
    return isinstance(plan.resolve, Resolution)


def _rule(resolve: Any) -> dict[str, str]:
    ((rule, value),) = resolve.stated.items()
    return {"rule": rule, "value": str(value)}


def caveats(plan: Plan, info: RunInfo, own: list[Sentence]) -> list[Sentence]:
    """Say what a release does not promise, with what its kind of plan says of it."""
    entity = plan.unit.entity
    return [
        *([] if info.private else [sentence("warning")]),
        *reckless(plan),
        *own,
        *([] if plan.confidence is None else [sentence("caveat.outside")]),
        sentence("caveat.many", entity=entity),
        sentence("caveat.machine"),
        sentence("caveat.others"),
    ]


@lru_cache(maxsize=8)
def reckless(plan: Plan) -> tuple[Sentence, ...]:
    """Say that a loss protects hardly anybody, if it does."""
    stated = [sentence("caveat.reckless", part=part, value=str(value)) for part, value in plan.loss.reckless.items()]
    if plan.loss.delta is not None and plan.loss.large_delta:
        stated.append(sentence("caveat.large_delta", delta=str(plan.loss.delta), entity=plan.unit.entity))
    return tuple(stated)


def guarantee(plan: Plan) -> Sentence:
    """Say how well one unit is protected."""
    loss = plan.kept_loss
    stated = {name: str(value) for name in ("epsilon", "delta", "rho") if (value := getattr(loss, name)) is not None}
    accounting = {} if loss.accounting is None else {"accounting": loss.accounting}
    return sentence("guarantee", loss=stated | accounting)


def agreeing(plan: Plan) -> list[Sentence]:
    """Say which neighbours are left if counts are told as they are, or tables are compared."""
    stated = []
    if same := [_title(plan, fact) for fact in plan.public_facts if INVARIANT in fact.kinds]:
        stated.append(sentence("neighbours.same_counts", tables=same))
    if agreed := [_title(plan, fact) for fact in plan.public_facts if compared(fact)]:
        stated.append(sentence("neighbours.agree", tables=agreed))
    return stated


def coverage(nominal: float, tried: Mapping[str, Any] | None, *, named: bool = False) -> Sentence:
    """Say how often intervals should hold the truth, and how often they did on a public twin.

    If only some counts are named, their intervals account for that.
    """
    if tried is None:
        return sentence("coverage.named_untried" if named else "coverage.untried", nominal=nominal)
    nodes, covered = (sum(level[name] for level in tried["twin"]) for name in ("nodes", "covered"))
    return paragraph(
        sentence("coverage.named" if named else "coverage", nominal=nominal),
        sentence("coverage.tried", runs=tried["runs"], covered=covered, nodes=nodes),
        *([] if named else [sentence("coverage.raised")]),
    )


def rows(keep: Values | None, drop: Values | None) -> dict[str, Sentence]:
    """Say which rows are the data; nothing of a table that is taken whole."""
    kept = {} if keep is None else {"kept": sentence("rows.kept", values=_lists(keep))}
    return kept | ({} if drop is None else {"dropped": sentence("rows.dropped", values=_lists(drop))})


def _lists(values: Values) -> dict[str, list[str]]:
    return {name: list(listed) for name, listed in values.items()}


def counted(rules: Mapping[str, Any], unit: Unit) -> dict[str, Any]:
    """Return what is counted, with sentences.

    `what` is "records", "edges", "groups" or "people". `limit` is the most records or edges of one unit that are
    counted, if that is enforced; `distinct` says that those of one leaf count as one; `projected` is the largest degree
    up to which edges were kept; `open` names the attribute whose largest value stands for larger ones as well;
    `dropped` says that records with unknown codes are left out.
    """
    stated, most = [], rules.get("limit")
    if rules.get("distinct"):
        stated.append(sentence("counted.distinct", limit=most, entity=unit.entity))
    elif most is not None:
        stated.append(sentence("counted.limit", what=rules["what"], limit=most, entity=unit.entity))
    if "projected" in rules:
        stated.append(sentence("counted.projected", largest=rules["projected"]))
    if "open" in rules:
        of = rules["open"]
        stated.append(sentence("counted.open", attribute=of["attribute"], largest=of["from"]))
    if rules.get("dropped"):
        stated.append(sentence("counted.dropped"))
    return {**rules, "sentences": stated}


# Public facts: what is known of which table, and what is not protected because of it.


def facts(plan: Plan) -> list[dict[str, Any]]:
    """Return what is known of each table, with a sentence."""
    return [fact.describe() | {"sentence": _fact(plan, fact)} for fact in plan.public_facts]


def _fact(plan: Plan, fact: TableFact) -> Sentence:
    return sentence("fact", table=_title(plan, fact), states=list(fact.kinds), unchecked=bool(fact.unchecked))


def _title(plan: Plan, fact: TableFact) -> str:
    return title_of(plan.spine, fact.table.depths)


def _fact_meanings(plan: Plan) -> list[Sentence]:
    """Say what is not protected if counts are told as they are."""
    told = [_title(plan, fact) for fact in plan.public_facts if INVARIANT in fact.kinds]
    return [sentence("fact.meaning", table=table, entity=plan.unit.entity) for table in told]


def before_a_release(plan: Plan) -> list[Sentence]:
    """Say what facts will do, and what that means for a person, before private data is read."""
    stated = [_fact(plan, fact) for fact in plan.public_facts]
    meanings = _fact_meanings(plan)
    stated += [sentence("note.fact_meaning", entity=plan.unit.entity, meaning=[one]) for one in meanings]
    return [*stated, *([sentence("note.facts_compared")] if any(map(compared, plan.public_facts)) else [])]


def exact(plan: Plan, total: Sentence) -> list[Sentence]:
    """Say what a release tells without noise; `total` is what it tells if nothing but the unit makes it exact."""
    stated = []
    if plan.levels[0].is_exact and not plan.public_facts.decides((0,) * len(plan.spine.trees)):
        stated.append(total)
    for fact in plan.public_facts:
        if INVARIANT in fact.kinds:
            stated.append(sentence("exact.invariant", table=_title(plan, fact)))
        elif "exact" in fact.kinds:
            stated.append(sentence("exact.public", table=_title(plan, fact)))
    return [*stated, *EVERY_PLAN_TELLS]


EVERY_PLAN_TELLS = (sentence("exact.hierarchies"), sentence("exact.plan"))
"""What every release tells without noise."""


def _fact_caveats(plan: Plan) -> list[Sentence]:
    """Say what facts leave unprotected, and what rests on their being true."""
    stated = _fact_meanings(plan)
    if any(INVARIANT not in fact.kinds for fact in plan.public_facts):
        stated.append(sentence("caveat.facts_true"))
    if any(map(compared, plan.public_facts)):
        stated.append(sentence("caveat.facts_agreed"))
    return stated


def _facts_kept(plan: Plan) -> list[Sentence]:
    """Say how facts were kept."""
    if not plan.public_facts:
        return []
    every = zip(plan.margin_tables, kept_exactly(plan.spine, plan.public_facts, plan.margin_tables), strict=True)
    nearly = [title_of(plan.spine, margin.depths) for margin, kept in every if not kept]
    return [sentence("after.facts"), *([sentence("after.facts_nearly", tables=nearly)] if nearly else [])]


def _crossing(plan: Plan) -> list[Sentence]:
    """Say which margins are not kept exactly, and why."""
    every = zip(plan.margin_tables, exact_margins(plan.spine, plan.margin_tables), strict=True)
    crossing = [title_of(plan.spine, margin.depths) for margin, kept in every if not kept]
    return [sentence("after.crossing", tables=crossing)] if crossing else []


# Graphs: how many edges a table of edges needs to be worth more than none.

WORTH = 10
"""A table of edges was nearer to the truth than an empty one where the noise of all leaves summed to less than some 10
to 15 times the edges (docs/results/graphs.md): most of them have no edge, and are repaired to zero."""


def _empty_table(plan: Plan) -> list[Sentence]:
    """Say how many edges a graph must have for its table to be worth more than none, from the noise alone."""
    leaves = plan.levels[-1]
    if plan.graph is None or not plan.graph.kind.bounded or not leaves.is_measured:
        return []
    noise, most = leaves.nodes * leaves.deviation, plan.unit.contributions
    about = {"noise": noise, "nodes": leaves.nodes, "level": leaves.name, "needed": noise / WORTH}
    return [sentence("note.empty_table", most=most, **about)]


def worse_than_none(plan: Plan, edges: float | None) -> list[Sentence]:
    """Warn of a table of about so many edges that would be further from the truth than an empty one, by its noise."""
    leaves = plan.levels[-1]
    if edges is None or not _empty_table(plan) or edges >= (needed := leaves.nodes * leaves.deviation / WORTH):
        return []
    return [sentence("note.worse_than_none", edges=edges, needed=needed, times=needed / max(edges, 1))]


def loss_summary(plan: Plan) -> dict[str, Any]:
    """Return what a release costs, as rho and as epsilon at a delta.

    With exact accounting, `epsilon`, which is also `epsilon_alone`, is that of the release by itself, and
    `epsilon_by_rho` what its rho comes to where no more is known of it.
    """
    loss = plan.loss
    pure = loss.definition == "pure"
    delta = None if pure else loss.delta or COMPARED_AT
    summary = {
        "definition": loss.definition,
        "rho": None if pure else float(plan.spent),
        "epsilon": epsilon_of(plan.spent, plan),
        "delta": None if delta is None else float(delta),
        "delta_is_stated": loss.delta is not None,
        "spent": str(plan.spent),
    }
    if plan.accounting == "exact":
        beside = epsilon_beside_others(plan)
        summary |= {"epsilon_alone": summary["epsilon"], "epsilon_by_rho": beside, "accounting": "exact"}
    return summary


def epsilon_of(amount: Fraction, plan: Plan) -> float:
    """Return the epsilon of a cost, at the plan's delta or, where it has none, at the one for comparison."""
    loss = plan.loss
    if amount == 0 or loss.definition == "pure":
        return float(amount)
    if amount == plan.budget and loss.epsilon is not None:
        return float(loss.epsilon)
    return epsilon_from_rho(amount, loss.delta or COMPARED_AT)


def epsilon_beside_others(plan: Plan) -> float:
    """Return the epsilon of the plan's rho, which is what adds up with other releases."""
    return epsilon_of_rho(plan.spent, plan)


def epsilon_of_rho(rho: Fraction, plan: Plan) -> float:
    """Return the epsilon of a rho, at the plan's delta or the one for comparison."""
    return 0.0 if rho == 0 else epsilon_from_rho(rho, plan.loss.delta or COMPARED_AT)
