"""The card's sentences: neighbours, bounds, method and caveats, in words that a reviewer can hold us to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from treetop._util.choices import with_article
from treetop._util.numbers import plain
from treetop.card import meaning as known
from treetop.card.meaning import epsilon_beside_others, epsilon_of, plural, say_epsilon
from treetop.card.schema import Facts
from treetop.domain.marginal import exact_margins, title_of
from treetop.io.row_batch import say_kept
from treetop.noise.gate import WARNING
from treetop.plan.graphs.degrees import DegreeCounts
from treetop.plan.groups.planned import GroupTablePlan
from treetop.plan.plan import Plan
from treetop.plan.resolution import Resolution
from treetop.privacy.accountant import law_of
from treetop.repair import ORDERS, REPAIRS

MARGINS = (
    " Beside it, tables of attributes alone (margins) are measured with noise, and made to add up to each other and to "
    "the total before all else; the counts of every level then agree with their parents and with the margins."
)
MECHANISM = (
    "Top-down: from the total to the leaves, every public child of every node above zero is measured with noise, "
    "present in the data or not, and the measurements are repaired to non-negative whole numbers that add up to "
    "their parent."
)
SAMPLER = (
    "Exact: noise is drawn from the discrete law itself, by comparing random bits with its cumulative probabilities "
    "in rigorous interval arithmetic; no floating-point approximation."
)
FRESH = "A fresh 256-bit key from the operating system for this run only, expanded by AES-256-CTR; it was not kept."
DERIVATION = (
    "The noise of a count is a function of that key, of the level, and of the count's place in the public table: the "
    "same whoever computes it, in whatever order and however often."
)
FIXED = "A testing key that is known to others: whoever has it can take the noise off again."
MARGIN = "One measurement is within its margin of the truth with this confidence: the exact quantile of its noise."
BOUND = (
    "All counts of a level are, at once, within its bound of the truth with this confidence, repairs included; most "
    "are far closer (inftda-categorical, Theorem 1, with exact quantiles)."
)
NO_BOUND = (
    "No bound is stated for all counts at once: none is proved for counts that agree with their parents and with "
    "margins."
)
INTERVAL = (
    "The bounds beside a count, lower and upper, hold the true count with this confidence, as far as the privacy noise "
    "is concerned: nine tenths of the risk are that of the count's own measurement, one tenth that of the upper bounds "
    "above it. A count that is not listed is at most what the nearest released count above it allows for. Errors of "
    "the survey and records that were left out are not covered."
)
NAMED_INTERVAL = (
    "The bounds beside a count, lower and upper, are about the privacy noise only, and account for how counts came to "
    "be named, by their own measurements: of those named at a level, the expected share whose true counts lie outside "
    "is at most 1 less this confidence (false coverage rate, Benjamini and Yekutieli 2005: a count has the interval of "
    "its measurement at that risk times R/m, for R named of m tested). The true count of a node that was chosen in "
    "advance lies within with this confidence. A count that is not listed is at most what the nearest released count "
    "above it allows for. Errors of the survey and records that were left out are not covered."
)


NOT_BOUND = (
    "All counts of the descent, before they were estimated again, are at once within their bound of the truth with "
    "this confidence (inftda-categorical, Theorem 1, with exact quantiles). The released counts are closer on average, "
    "but the bound is not proved for them."
)


OWN_INTERVAL = " The interval of a margin's count, and of any sum that is one, is that of its own measurement alone."


def mechanism(plan: Plan) -> str:
    """Say what is measured, and how it becomes a release."""
    past = plan.spine.goes_past
    sums = f" Not measured, and sums of what is measured below them: {', '.join(past)}." if past else ""
    return MECHANISM + (MARGINS if plan.margin_tables else "") + sums


def accuracy(plan: Plan) -> dict[str, str]:
    """Say what margins and bounds are, and what intervals are where there are any."""
    named = isinstance(plan.resolve, Resolution)
    bound = BOUND.replace("All counts", "All named counts", 1) if named else BOUND
    if REPAIRS[plan.repair].again:
        bound = NOT_BOUND
    if plan.margin_tables:
        bound = NO_BOUND
    interval = {} if plan.confidence is None else {"interval": NAMED_INTERVAL if named else INTERVAL}
    if plan.margin_tables and interval:
        interval["interval"] += OWN_INTERVAL
    return {"margin": MARGIN, "bound": bound, **interval}


def coverage(nominal: float, tried: Mapping[str, Any] | None, *, named: bool = False) -> str:
    """Say how often intervals should hold the truth, and how often they did on a public twin.

    Where only some counts are named, their intervals account for that.
    """
    stated = f"The interval of a count, released or not, holds the truth with a confidence of {100 * nominal:g} %"
    if named:
        stated += f", and {100 * nominal:g} % or more of those that are named at a level are expected to hold it"
    if tried is None:
        return f"{stated}, over the noise of all runs that there could have been; it was not tried on a public table."
    nodes, covered = (sum(level[name] for level in tried["twin"]) for name in ("nodes", "covered"))
    share = f"{100 * covered / nodes:.1f} % of {nodes:,}" if nodes else "none"
    return (
        f"{stated}. Tried {tried['runs']} times on a public table of the same kind, {share} counts that were measured"
        f"{held(covered)} were within theirs."
    ) + ("" if named else RAISED)


RAISED = (
    " Among counts that are released above zero it may be fewer: those that the noise raised are more often among them."
)


def held(covered: int) -> str:
    """Say of how many counts the intervals held, beside their share, which is rounded."""
    return f" ({covered:,})"


def notes(plan: Plan) -> list[str]:
    """Say what else there is to know before a release."""
    told = [f"± all: {NOT_BOUND}"] if REPAIRS[plan.repair].again and not plan.margin_tables else []
    if isinstance(plan.resolve, Resolution):
        told.append(_resolved(plan.resolve)[0].replace("was named", "will be named"))
    if plan.confidence is None:
        told.append("The release will have no noise intervals.")
    return [*told, *_beside_nothing(plan)]


WORTH = 10
"""A table of edges was nearer to the truth than an empty one where the noise of all leaves summed to less than some 10
to 15 times the edges (docs/results/graphs.md): most of them have no edge, and are repaired to zero."""


def _beside_nothing(plan: Plan) -> list[str]:
    """Say how many edges a graph must have for its table to be worth more than none, from the noise alone."""
    leaves = plan.levels[-1]
    if plan.graph is None or not plan.graph.kind.bounded or not leaves.is_measured:
        return []
    noise = leaves.nodes * leaves.deviation
    return [
        f"An empty table would be wrong by one for every edge. The noise here, for people with up to "
        f"{plan.unit.contributions:,} edges, sums to about {noise:,.0f} over the {leaves.nodes:,} possible cells of "
        f"{leaves.name}. In studies a table was nearer to the truth than an empty one only where the graph had more "
        f"than about a tenth of that, {noise / WORTH:,.0f} edges. With fewer, release less of it: coarser groups, or "
        'fewer levels; or choose the relation "edge" or "user-out", if they protect enough.'
    ]


def worse_than_none(plan: Plan, edges: float | None) -> list[str]:
    """Warn of a table of about so many edges that would be further from the truth than an empty one, by its noise."""
    leaves = plan.levels[-1]
    if edges is None or not _beside_nothing(plan) or edges >= (needed := leaves.nodes * leaves.deviation / WORTH):
        return []
    return [
        f"with about {edges:,.0f} edges this table would be worse than an empty one: it takes some {needed:,.0f}, or "
        f"{needed / max(edges, 1):,.3g} times as many, for its noise to be worth it."
    ]


def unit(plan: Plan) -> dict[str, Any]:
    """Return what else there is to state about the unit, as plain values."""
    return {}


def noise(plan: Plan) -> str:
    """Say which noise, and how its levels add up."""
    return law_of(plan.loss).words


def neighbours(plan: Plan, facts: Facts) -> str:
    """Say which tables must be hard to tell apart, in terms of the table."""
    unit = plan.unit
    rows = "rows" if facts.count is None else f"records (a row stands for as many as its {facts.count!r} says)"
    one = "row" if facts.count is None else f"record (a row stands for as many as its {facts.count!r} says)"
    values = ", ".join((facts.columns or {name: name for name in plan.spine.attributes}).values())
    if unit.neighbours == "replace":
        if unit.exactly_one:
            return (
                f"Two tables are neighbours when one becomes the other by changing the values ({values}) of one "
                f"{one}, that of one {unit.entity}.{known.agreeing(plan)}"
            )
        return (
            f"Two tables are neighbours when one becomes the other by exchanging the {rows} of one {unit.entity}, at "
            f"most {unit.contributions}, for at most {unit.contributions} others.{known.agreeing(plan)}"
        )
    many = f"the one {one}" if unit.contributions == 1 else f"all the {rows}, at most {unit.contributions},"
    added = f"Two tables are neighbours when one becomes the other by adding or removing {many} of one {unit.entity}."
    return added + known.agreeing(plan)


def kept(keep: Mapping[str, Sequence[str]]) -> str:
    """Say which rows of a table are the data set, and that the others are no part of it; a long list is cut short."""
    return (
        f"The data set is the rows with {say_kept(keep)}; the other rows of the table are no part of it. This was "
        "decided before the table was read."
    )


def dropped(drop: Mapping[str, Sequence[str]]) -> str:
    """Say which rows of a table are no part of the data set."""
    either = ", or with ".join(say_kept({name: values}) for name, values in drop.items())
    return f"Rows with {either} are no part of the data set. This was decided before the table was read."


_DISTINCT = " among distinct ones: those of one leaf counted as one."


def bound(plan: Plan) -> str:
    """Say how contributions were bounded, but never how many records that took."""
    unit = plan.unit
    most = "1 record" if unit.contributions == 1 else f"{unit.contributions} records"
    if unit.enforced:
        spelling = f" (whatever {unit.spelling} an id is written with)" if unit.id_clean else ""
        return (
            f"Enforced: of each {unit.entity}, told apart by the column {unit.id!r}{spelling}, at most {most} entered "
            f"the release, chosen at random{_DISTINCT if unit.distinct else '.'}"
        )
    return f"Declared, not enforced: whoever made the release states that no {unit.entity} has more than {most}."


def unknown(plan: Plan) -> str:
    """Say what happened to codes that are not in a hierarchy."""
    if isinstance(plan.unknown, Mapping):
        leaves = ", ".join(f"{attribute} under {code!r}" for attribute, code in plan.unknown.items())
        return f"Codes that are not in their hierarchy were counted under a leaf of their own: {leaves}."
    if plan.unknown == "drop":
        return "Records with a code that is not in its hierarchy were left out; how many is private."
    return "A code that is not in its hierarchy stops a release."


def post_processing(plan: Plan) -> list[str]:
    """Say what was done to measurements; it reads no private data, so it costs nothing."""
    repair, order = REPAIRS[plan.repair], ORDERS[plan.order]
    told = [text.format(order=order.words) for text in repair.words]
    told[1:1] = known.post_processing(plan)
    if plan.margin_tables:
        told = [_MARGINS_KEPT, told[0], _TWO_SIDED, *_nearly(plan), *([_SHARED_AGAIN] if repair.again else [])]
    if isinstance(plan.resolve, Resolution):
        return [*told, *_resolved(plan.resolve)]
    if not repair.again:
        told.append(
            "Children that were repaired to zero were not descended into: everything under them is a released zero."
        )
    return [*told, "Coarser counts are the sums of the released leaves."]


_MARGINS_KEPT = (
    "The measurements of each attribute alone were combined by least squares and made whole numbers from the top down, "
    "so that every margin adds up to its parent and to the total."
)
_SHARED_AGAIN = (
    "At the last level the counts were then shared again by how likely each unit is to be there, as far as the "
    "measurements themselves tell how true counts are spread; every parent and every cell of the margin kept its count."
)
_TWO_SIDED = (
    "Where a margin counts the same children, all nodes that have them were fitted together: to the nearest counts "
    "that add up to every parent and to every cell of the margin, and then to whole numbers that do so exactly."
)


def _nearly(plan: Plan) -> list[str]:
    """Say which margins are not kept exactly, and why."""
    every = zip(plan.margin_tables, exact_margins(plan.spine, plan.margin_tables), strict=True)
    crossing = [title_of(plan.spine, margin.depths) for margin, exact in every if not exact]
    if not crossing:
        return []
    return [
        f"Tables that cross one before them cannot be kept exactly beside it ({', '.join(crossing)}): measurements "
        "were moved towards them before each fit, and their counts are sums of the released leaves. How far the counts "
        "are off what was measured of them is stated. Their intervals are around what was measured of them: they hold "
        "the true counts as stated, and a released count may lie outside its own."
    ]


def _resolved(resolve: Resolution) -> list[str]:
    """Say which children were named, and what became of the others."""
    return [
        named(resolve),
        "What the other children would have had was left at their parent, as unresolved: it is in the count of that "
        "node and in all coarser counts, and in no finer one. What was not named was not descended into.",
        "Coarser counts are the sums of the released leaves and of what is unresolved at them or below.",
    ]


def named(resolve: Resolution) -> str:
    """Say which children were named."""
    return (
        f"A child was named only where a measurement shows that it is not empty: {resolve.words}. An only child, which "
        "is not measured, was tested with the measurement of its parent, or of the nearest node above that has one."
    )


def caveats(plan: Plan, facts: Facts) -> list[str]:
    """Say what the release does not promise."""
    unit = plan.unit
    told = [*([] if facts.private else [WARNING]), *reckless(plan)]
    if not unit.enforced:
        told.append(
            f"The limit of {unit.contributions} per {unit.entity} was declared, not enforced: "
            f"{with_article(unit.entity)} with more records is less protected, as the table of what the loss means "
            "shows."
        )
    if unit.per_node:
        told.append("The limits of records per node were declared, not enforced.")
    told += known.caveats(plan)
    if plan.reads_total:
        told.append(f"The total is exact: whether {with_article(unit.entity)} is in the data at all is not hidden.")
    if plan.accounting == "exact":
        told.append(
            f"Epsilon {say_epsilon(epsilon_of(plan.spent, plan))} is that of this release alone, by exact accounting. "
            f"Beside other releases about the same data it counts as rho {plain(plan.spent)}, which is epsilon "
            f"{say_epsilon(epsilon_beside_others(plan))} at the same delta."
        )
    chosen = {**(facts.keep or {}), **(facts.drop or {})}
    if chosen and unit.neighbours == "replace" and not unit.may_be_missing:
        told.append(
            f"The guarantee is about tables of such rows as were kept ({', '.join(chosen)}): a change that would "
            f"take {with_article(unit.entity)} out of them, or into them, is not covered."
        )
    if unit.enforced or plan.unknown == "drop":
        told.append(
            "Margins and bounds are about the table as it was counted, after records beyond the limit or with unknown "
            "codes were left out. How many those were is private."
        )
    told += [
        *_small_counts(plan),
        *([] if plan.confidence is None else [OUTSIDE]),
        f"The guarantee is about one {unit.entity}. What the data say about many {plural(unit.entity)} is what is "
        "published, and may be used to guess about one of them as about anyone like them.",
        "The guarantee is about the published files, not about the machine that made them: its memory, its logs and "
        "how long it took are the steward's to guard.",
        "Every other release about the same data adds to the loss.",
    ]
    return told


@lru_cache(maxsize=8)
def reckless(plan: Plan) -> tuple[str, ...]:
    """Say that a loss protects hardly anybody, where it does."""
    return (*plan.loss.warnings(), *large_delta(plan))


def large_delta(plan: Plan) -> list[str]:
    """Say that delta is large for so few units, where the plan says that this is meant."""
    if plan.loss.delta is None or not plan.loss.large_delta:
        return []
    return [
        f"Delta {plain(plan.loss.delta)} is one in the number of {plural(plan.unit.entity)}, or more, or may be: a "
        f"release that told all about one {plan.unit.entity}, chosen at random, could keep it. The plan says that this "
        "is meant."
    ]


OUTSIDE = (
    "A count may lie outside its interval: counts were moved so that everything adds up, while an interval stands "
    "around what was measured. Where they disagree, believe the interval."
)


def _small_counts(plan: Plan) -> list[str]:
    """Say what to make of small counts, and of those that are not there."""
    if not isinstance(plan.resolve, Resolution):
        return [
            "Small counts are uncertain: a count that is within the margin of zero may be noise, and a leaf that is "
            "not listed is a released zero, which may hide a small true count."
        ]
    told = [
        "A leaf that is not listed is not a released zero: it may have a part of what is unresolved at a coarser node "
        "above it. The sum of the listed leaves alone is too small; add what is unresolved.",
        "That a node is named says that it is very likely there, not that its count is exact: that of a small one is "
        "uncertain.",
    ]
    told += plan.resolve.cautions
    return told


# What the counts of a release are: of what, up to which limit, and with which open class.


def counted(plan: Plan) -> dict[str, Any]:
    """Return what is counted, and every rule that makes a released count smaller than the number in the table.

    `what` is "records", "edges", "groups" or "people". `limit` is the most records or edges of one unit that are
    counted, if that is enforced; `distinct` says that those of one leaf count as one; `projected` is the largest degree
    up to which edges were kept; `open` names the attribute whose largest value stands for larger ones as well;
    `dropped` says that records with unknown codes are left out. `sentences` say the same in words.
    """
    if isinstance(plan, GroupTablePlan):
        return _with_words(plan, {"what": "groups", "open": {"attribute": "size", "from": plan.sizes.largest}})
    if isinstance(plan, DegreeCounts):
        rules: dict[str, Any] = {"what": "people"}
        if plan.relation == "node":
            rules["projected"] = plan.degrees.largest
        if plan.degrees.graph.cut:
            rules["limit"] = plan.unit.contributions
        return _with_words(plan, rules | {"open": {"attribute": "degree", "from": plan.degrees.largest}})
    rules = {"what": "records" if plan.graph is None else "edges"}
    if plan.unit.enforced:
        rules |= {"limit": plan.unit.contributions} | ({"distinct": True} if plan.unit.distinct else {})
    if plan.unknown == "drop":
        rules["dropped"] = True
    return _with_words(plan, rules)


def _with_words(plan: Plan, rules: dict[str, Any]) -> dict[str, Any]:
    return rules | {"sentences": [*_limit(plan, rules), *_others(rules)]}


def _limit(plan: Plan, rules: dict[str, Any]) -> list[str]:
    """Say how much of one unit is counted, if that is limited."""
    most, entity, noun = rules.get("limit"), plan.unit.entity, "edge" if rules["what"] != "records" else "record"
    if most is None:
        return []
    those = f"1 {noun} of each {entity} is counted" if most == 1 else f"{most:,} {noun}s of each {entity} are counted"
    if rules["what"] == "people":
        return [f"At most {those}; true degrees may be higher."]
    if rules.get("distinct"):
        return [
            f"Records of one {entity} in the same leaf count as one, and at most {those}; the true number of records "
            "may be higher."
        ]
    return [f"At most {those}; the true total may be higher."]


def _others(rules: dict[str, Any]) -> list[str]:
    told = []
    if "projected" in rules:
        told.append(
            f"Edges were left out until nobody had more than {rules['projected']:,}; true degrees may be higher."
        )
    if "open" in rules:
        told.append(f"A {rules['open']['attribute']} of {rules['open']['from']:,} stands for that or more.")
    if rules.get("dropped"):
        told.append("Records with an unknown code are not counted.")
    return told
