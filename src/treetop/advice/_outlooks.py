"""The verdict before anything is spent: which tables will be readable, which mostly noise, and what would help.

It needs the number of records, roughly: from the steward, since that of the private table is not known yet. Averages
are of records that are spread evenly; where they crowd in few cells, those are readable sooner.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc

from treetop.advice._losses import say_loss
from treetop.advice._report import Report, Row
from treetop.advice.expected import Expected, expected_errors
from treetop.advice.public import (
    Planned,
    counts_groups,
    is_release,
    open_plan,
    private_tables,
    refuse_other_kinds,
    refuse_private,
)
from treetop.domain.spine import BELOW, TIMES, Spine
from treetop.errors import PlanError, TreetopError
from treetop.io.table import read
from treetop.plan.file import PlanFile
from treetop.plan.mechanism import JointMechanism, TopDown
from treetop.plan.plan import Plan
from treetop.privacy import Loss

State: TypeAlias = Literal["exact", "readable", "rough", "mostly noise"]
Leaves: TypeAlias = Literal["better than zeros", "better than zeros if crowded", "worse than zeros"]
"""A release of every leaf, compared with a table that says zero everywhere."""

READABLE = 4
"""A table is readable if its average count is so many standard deviations of its noise: within about a half."""
_NAMED = 4
"""Most tables of one state to name in a sentence."""
_MOST_LOSS = 100
"""Largest epsilon worth a word."""
_LIMITS = (1, 2, 3, 5, 10, 20, 50, 100)

HOW_TO = (
    "No verdict on which tables will be readable: it needs about how many records there are, as public knowledge "
    "(`total=10000`, or records = 10000 under [data])."
)


def outlook(
    plan: Planned, total: float | None = None, *, prior: str | Path | Mapping[int, int] | None = None
) -> Report:
    """Say which tables of a plan will be readable, which mostly noise, and what would help; reads no private data.

    Values: `total`, `verdict` (of the leaves, against zeros), `needed` (half of the records must be in leaves with at
    least so many, else zeros everywhere would be closer), `changes` (each with its `leaves`, `average` and `noise`) and
    `sentences`. If records are limited per unit, the part "limits" compares limits.

    Args:
        plan: The plan, or its file.
        total: About how many records there are; by default what the file states, or the public number of units.
        prior: A public table, read as the private one is, or by number of records how many units have so many: which
            share of records each limit would keep.
    """
    own, file = open_plan(plan)
    if counts_groups(own):
        raise PlanError("`total` is for records; a plan for group sizes states how many groups there are: leave it out")
    refuse_other_kinds(own)
    if total is None and (total := _declared(own, file)) is None:
        raise PlanError(HOW_TO)
    if not (math.isfinite(total) and total > 0):
        raise PlanError(f"the total is {total}: give about how many records there are, such as 40e6")
    rows = _rows(own, total)
    finest = rows[len(own.spine.levels) - 1] if TopDown.runs(own) else max(rows, key=lambda row: row["nodes"])
    verdict: Leaves = "better than zeros"
    if finest["mostly_noise"] and TopDown.runs(own):
        # Leaves are most crowded if each leaf of one attribute has a single partner.
        crowded = total / max(tree.sizes[-1] for tree in own.spine.trees)
        verdict = "better than zeros if crowded" if crowded >= finest["noise"] else "worse than zeros"
    changes = list(_changes(own, total)) if finest["state"] == "mostly noise" else []
    sentences = list(_sentences(rows, finest, verdict, changes))
    limits = _limits(own, None if prior is None else _records_per_unit(own, file, prior))
    title = f"Verdict, if there are about {total:,.0f} {'records' if own.graph is None else 'edges'}"
    return Report(
        own,
        "outlook",
        title,
        rows,
        (
            ("counts", "{counts}"),
            ("public nodes", "{nodes:,}"),
            ("average count", lambda row: say_count(row["average"])),
            ("noise (sd)", "{noise:,.3g}"),
            ("verdict", "{state}"),
        ),
        "tables",
        {
            "title": title,
            "total": float(total),
            "verdict": verdict,
            "needed": finest["noise"],
            "changes": changes,
            "sentences": sentences,
        },
        notes=tuple(sentences),
        parts={} if limits is None else {"limits": limits},
    )


def known_outlook(plan: Planned, total: float | None = None, prior: str | Path | None = None) -> Report | None:
    """Return the outlook; None if nobody knows how many records there are, or the plan is of another kind."""
    own, file = open_plan(plan)
    if total is None and (_declared(own, file) is None or not (TopDown.runs(own) or JointMechanism.runs(own))):
        return None
    return outlook(plan, total, prior=prior)


def _declared(plan: Plan, file: PlanFile | None) -> int | None:
    """Return about how many records there are if the file states it, or else the public number of units."""
    return plan.population if file is None or file.records is None else file.records


def say_count(count: float) -> str:
    """Write an average count.

    >>> say_count(0.1234), say_count(12345.6)
    ('0.123', '12,346')
    """
    return f"{count:,.3g}" if count < 1000 else f"{count:,.0f}"


def _rows(plan: Plan, total: float) -> tuple[Row, ...]:
    named = [(level.name, plan.spine.depths(level.index)) for level in plan.spine.levels]
    if JointMechanism.runs(plan):  # what no table tells is a guess, and no number says how good it is
        named = []
    named += [(margin.part, margin.depths) for margin in plan.margin_tables]
    expected = expected_errors(plan, [depths for _, depths in named])
    sizes = [part.nodes for part in plan.workload][-len(named) :]  # without cells that public facts make impossible
    return tuple(
        {
            "name": name,
            "counts": table.title,
            **(row := _row(size, total, table)),
            "mostly_noise": row["state"] == "mostly noise",
        }
        for (name, _), table, size in zip(named, expected, sizes, strict=True)
    )


def _row(nodes: int, total: float, table: Expected) -> Row:
    """Return the size of a table, its average count and its noise, and whether it is readable."""
    average, noise = total / nodes, table.deviation
    state: State = "mostly noise" if average < noise else "rough" if average < READABLE * noise else "readable"
    return {"nodes": nodes, "average": average, "noise": noise, "state": state if noise else "exact"}


def _sentences(rows: Sequence[Row], finest: Row, verdict: Leaves, changes: Sequence[Row]) -> Iterator[str]:
    """Yield the verdict: the tables by state, then what would help."""
    for state in get_args(State):
        own = {row["counts"]: row for row in rows if row["state"] == state}
        if own:
            names = ", ".join(list(own)[:_NAMED])
            rest = len(own) - _NAMED
            more = f" and {rest} more table{'s' * (rest > 1)}" if rest > 0 else ""
            worst = max(own.values(), key=lambda row: row["noise"] / row["average"])
            of = f" of {worst['counts']}" if len(own) > 1 else ""
            about = f" (an average count{of} is about {say_count(worst['average'])} "
            about += f"± {say_count(2 * worst['noise'])} at 95 %)"
            yield f"{state.capitalize()}: {names}{more}{'' if state == 'exact' else about}."
    needed = say_count(finest["noise"])
    if verdict == "worse than zeros":
        yield (
            "A full release would be worse than zeros: even the leaves of a single attribute have fewer records on "
            f"average than the {needed} by which a count is off."
        )
    elif verdict == "better than zeros if crowded":
        yield (
            "This is of records that are spread evenly. The finest table is better than zeros only if more than half "
            f"of them are in cells with {needed} or more."
        )
    if changes:
        yield "What would help most:"
        yield from (f"- {change['sentence']}" for change in changes)
    elif any(row["mostly_noise"] for row in rows):
        yield "- Give the loss to fewer tables, or more of it to these: a design would choose them."


# Changes of a plan, each with its effect.


def _changes(plan: Plan, total: float) -> Iterator[Row]:
    """Yield the changes that help most if the finest table is mostly noise, each with the finest table that it leaves.

    Their `fields` are those of a plan file, with what they would be; None for a section to leave out.
    """
    if (coarser := _coarser(plan, total)) is not None:
        words, changed = coarser
        gone = [name for name in plan.spine.attributes if name not in changed.spine.attributes]
        fields: dict[str, Any] = {"spine.order": list(changed.spine.splits)}
        fields |= dict.fromkeys([f"attributes.{name}" for name in gone])
        yield _change("coarser", words, fields, _finest(changed, total))
    if JointMechanism.runs(plan):
        noisy = {row["name"] for row in _rows(plan, total) if row["mostly_noise"]}
        few = [one.name for one in plan.margin_tables if len(one.attributes) == 1 or one.part not in noisy]
        if len(few) not in (0, len(plan.margin_tables)):
            words = "Leave out the tables of several attributes that are mostly noise"
            row = _finest(replace(plan, margins=few, split="uniform"), total)
            yield _change("fewer tables", words, {"spine.margins": few}, row)
    if plan.resolve == "full" and TopDown.runs(plan):
        row = _finest(plan, total)
        # The count that is named at this rate if no other is; if others are, smaller ones may be.
        high = plan.levels[-1].margin(Fraction(1, 10) / max(row["nodes"], 2), plan.terms) + 1
        effect = (
            f"cells of the finest table are named if they have about {high:,} records or more, and the rest stays at "
            "coarser levels"
        )
        words = "Name only what stands out, resolve = { fdr = 0.05 }"
        yield _change("resolve", words, {"release.resolve": {"fdr": 0.05}}, row, effect)
    if (spent := _larger_loss(plan, total)) is not None:
        amounts = {"loss.epsilon": spent.loss.epsilon, "loss.rho": spent.loss.rho}
        fields = {name: float(amount) for name, amount in amounts.items() if amount is not None}
        yield _change("loss", f"Spend more, about {say_loss(spent)}", fields, _finest(spent, total))


def _change(kind: str, words: str, fields: Mapping[str, Any], row: Row, effect: str = "") -> Row:
    still = "still " if row["state"] == "mostly noise" else ""
    about = f"about {say_count(row['average'])} ± {say_count(2 * row['noise'])}"
    size = f"{row['nodes']:,} counts of {about}, {still}{row['state']}"
    finest = {"leaves": row["nodes"], "average": row["average"], "noise": row["noise"]}
    return {"kind": kind, "words": words, "fields": fields, **finest, "sentence": f"{words}: {effect or size}."}


def _finest(plan: Plan, total: float) -> Row:
    """Return the row of the leaves alone, or of the largest table of a joint fit."""
    part, depths = plan.levels[-1], plan.spine.finest
    if JointMechanism.runs(plan):
        part, depths = max(
            ((part, margin.depths) for part, margin in zip(plan.margin_parts, plan.margin_tables, strict=True)),
            key=lambda one: one[0].nodes,
        )
    (table,) = expected_errors(plan, [depths])
    return _row(part.nodes, total, table)


def _coarser(plan: Plan, total: float) -> tuple[str, Plan] | None:
    """Return a plan whose finest table is readable, and how it differs: coarser levels first, then fewer attributes.

    None if there is none. How fine it can be depends on its noise, which is less with fewer tables.
    """
    if plan.public_facts or plan.unit.per_node or any(BELOW in split for split in plan.spine.splits):
        return None  # these are about the tables as they are
    found: tuple[tuple[int, ...], Plan] | None = None
    noise = float(_finest(plan, total)["noise"])
    for _ in range(4):
        depths = _depths(plan.spine, total / (READABLE * noise))
        if not any(depths) or depths == plan.spine.finest:
            break
        try:
            changed = _at(plan, depths)
        except TreetopError:
            break
        row = _finest(changed, total)
        if row["state"] not in ("readable", "exact"):
            break
        found = depths, changed
        if row["noise"] == 0 or row["noise"] > 0.99 * noise:
            break
        noise = row["noise"]
    if found is None:
        return None
    depths, changed = found
    about = list(zip(plan.spine.attributes, plan.spine.trees, depths, strict=True))
    words = [f"stop {name} at {tree.levels[depth - 1]}" for name, tree, depth in about if 0 < depth < len(tree.levels)]
    gone = [name for name, _, depth in about if not depth]
    words += [f"leave out {', '.join(gone)}"] if gone else []
    text = " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    return text[0].upper() + text[1:], changed


def _depths(spine: Spine, most: float) -> tuple[int, ...]:
    """Return how many levels of each attribute a table of at most so many cells has; 0 for those to leave out."""
    depths = [len(tree.levels) for tree in spine.trees]

    def size(attribute: int) -> int:
        return spine.trees[attribute].sizes[depths[attribute] - 1]

    every = range(len(depths))
    refined = {part.attribute: level.index for level in spine.levels for part in level.parts}  # the last is the finest
    while math.prod(map(size, every)) > most and max(depths) > 1:
        depths[max((one for one in every if depths[one] > 1), key=lambda one: (size(one), refined[one]))] -= 1
    for number in range(len(depths), 0, -1):  # as many attributes as possible; of these the finest table
        kept = max(
            (one for one in combinations(every, number) if math.prod(map(size, one)) <= most),
            key=lambda one: math.prod(map(size, one)),
            default=None,
        )
        if kept is not None:
            return tuple(depth if one in kept else 0 for one, depth in enumerate(depths))
    return (0,) * len(depths)


def _at(plan: Plan, depths: Sequence[int]) -> Plan:
    """Return a plan that refines each attribute to a depth only, or not at all, with an even split."""
    spine = plan.spine
    kept: set[str] = set()
    for name, tree, depth in zip(spine.attributes, spine.trees, depths, strict=True):
        kept |= {f"{name}.{level}" for level in tree.levels[:depth]}
        kept |= {name} if depth == len(tree.levels) == 1 else set()
    whole = {name: tree for (name, tree), depth in zip(spine.attributes.items(), depths, strict=True) if depth}
    steps = [[part for part in split.split(TIMES) if part in kept] for split in spine.splits]
    margins = plan.margins
    if not isinstance(margins, str):
        margins = [one for one in margins if kept.issuperset(one.split(TIMES))]
    unknown = plan.unknown
    if isinstance(unknown, Mapping):
        unknown = {name: code for name, code in unknown.items() if name in whole}
    order = Spine([TIMES.join(parts) for parts in steps if parts], whole)
    return replace(plan, spine=order, margins=margins, split="uniform", unknown=unknown)


def _larger_loss(plan: Plan, total: float) -> Plan | None:
    """Return the plan with the loss, to two digits, at which its finest table is readable; None if it is absurd."""
    loss, changed = plan.loss, plan
    for _ in range(6):
        row = _finest(changed, total)
        factor = READABLE * row["noise"] / row["average"]
        if 0.9 < factor <= 1:
            break
        # Noise falls as epsilon grows, or as the root of rho.
        amount = changed.loss.epsilon or changed.loss.rho
        assert amount is not None
        wanted = float(amount) * (factor if loss.rho is None else factor**2)
        if wanted > _MOST_LOSS:
            return None
        step = 10.0 ** (math.floor(math.log10(wanted)) - 1)
        rounded = float(f"{math.ceil(wanted / step) * step:.2g}")
        given: dict[str, Any] = {"epsilon" if loss.rho is None else "rho": rounded}
        stated = {name: getattr(loss, name) for name in ("delta", "noise", "large_delta", "accounting")}
        changed = replace(plan, loss=Loss(**given, **stated))
    return changed


# What limits of records per unit cost, and what they keep.


def limit_guide(plan: Planned, prior: str | Path | None = None) -> Report | None:
    """Compare limits of records per unit; of a public table, also which share of its records each limit keeps."""
    own, file = open_plan(plan)
    return _limits(own, None if prior is None else _records_per_unit(own, file, prior))


def _limits(plan: Plan, units: Mapping[int, int] | None) -> Report | None:
    """Compare limits of records per unit: the noise of the finest table and, of public units, the share of records."""
    own = plan.unit.contributions
    enforced = plan.unit.id is not None and plan.graph is None
    if not enforced or plan.unit.per_node:
        return None
    rows = []
    often = units or {}
    records = sum(number * units_with for number, units_with in often.items())
    for limit in sorted({*(one for one in _LIMITS if one <= max(10, 2 * own)), own}):
        with suppress(TreetopError):
            changed = replace(plan, unit=replace(plan.unit, contributions=limit))
            if TopDown.runs(changed):
                noise = expected_errors(changed, [changed.spine.finest])[0].deviation
            else:  # a joint fit measures no leaves
                noise = max((row for row in changed.accuracy().rows if row.share), key=lambda row: row.nodes).noise
            kept = sum(min(number, limit) * units_with for number, units_with in often.items())
            share = kept / records if records else None
            rows.append({"limit": limit, "noise": noise, "kept": share, "is_plan": limit == own})
    columns: list[Any] = [
        (f"records per {plan.unit.entity}", lambda row: f"{row['limit']:,}{' (plan)' if row['is_plan'] else ''}"),
        ("noise of the finest counts (sd)", "{noise:,.3g}"),
    ]
    note = (
        f"Records of a {plan.unit.entity} beyond the limit are left out, and the counts do not say so. A public "
        "table of the same kind would show which share each limit keeps."
    )
    if units is not None:
        columns.append(("records kept", "{kept:.1%}"))
        note = f"Records kept: of the public table. Those of a {plan.unit.entity} beyond the limit are left out."
    return Report(plan, "limits", "What the limit of records costs", tuple(rows), columns, "rows", notes=(note,))


def _records_per_unit(
    plan: Plan, file: PlanFile | None, prior: str | Path | Mapping[int, int]
) -> Mapping[int, int] | None:
    """Return by number of records how many public units have so many; None if the table does not tell units."""
    if isinstance(prior, Mapping):
        return prior
    if file is None:
        raise PlanError(f"only a plan file says how {prior} is read: give that as the plan, or numbers of records")
    if plan.unit.id is None or file.graph is not None or file.count is not None or is_release(str(prior)):
        return None
    for private in private_tables(file):
        refuse_private(str(prior), private, "twin")
    table = read(file.table(str(prior)), None)
    if plan.unit.id not in table.column_names:
        return None
    rows: pa.Array = pc.value_counts(table.column(plan.unit.id).drop_null()).field("counts")
    return {one["values"]: one["counts"] for one in pc.value_counts(rows).to_pylist()}
