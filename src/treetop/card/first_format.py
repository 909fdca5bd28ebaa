"""What cards of the first format say otherwise, which version 0.2.0 wrote: they are held to their own words.

Whatever a later format says in other words, or says first, is put back here; only then is a card of that format
compared, word for word, with what its plan gives.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from treetop.basics.wording import with_article
from treetop.card import words
from treetop.card.bond import bound
from treetop.card.meaning import meaning, means, say_epsilon
from treetop.plan.plan import PurePlan
from treetop.privacy import Unit

VERSIONS = ("0.2.0",)
"""The versions that wrote it in these words; what others wrote, nobody can hold them to."""

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "unit": ("entity", "contributions", "neighbours", "id", "per_node"),
    "loss": ("epsilon", "delta", "rho", "split", "accounting"),
    "data": ("source", "query", "count", "unknown", "period", "delimiter", "encoding", "fields", "keep"),
    "graph": (),
}
"""The fields that those versions knew of a plan, in the sections where later ones know more."""
_RELATION = re.compile(r'The neighbour relation is "|^# relation = "', re.MULTILINE)
_ENDS = ("source.", "target.")


def as_first_format(card: Mapping[str, Any], plan: PurePlan) -> dict[str, Any]:
    """Return a card, all but its files, as the first format puts it."""
    told = {**card, "treetop": 1, "caveats": _caveats(card["caveats"], plan)}
    told["meaning"] = _meaning(card["meaning"], plan)
    told["mechanism"] = {name: said for name, said in card["mechanism"].items() if name != "derivation"}
    if "coverage" in card["accuracy"]:
        told["accuracy"] = {**card["accuracy"], "coverage": _coverage(card["accuracy"]["coverage"])}
    return told


def too_new(plan_toml: str) -> Iterator[str]:
    """Yield what a plan.toml has that no version wrote beside a card of the first format."""
    if bound(plan_toml):
        yield "a line that binds it to a card"
    stated = tomllib.loads(plan_toml)
    for section, known in _SECTIONS.items():
        found = stated.get(section, {})
        if section == "graph" and section in stated:
            yield "a section [graph]"
        elif isinstance(found, dict):
            yield from (f"the field {name!r} under [{section}]" for name in found if name not in known)


def too_small(card: Mapping[str, Any], plan: PurePlan) -> Iterator[str]:
    """Yield what a card of the first format says of one record that is less than what one record can show."""
    said = {row["who"]: row for row in card["meaning"]}
    for row in meaning(plan):
        told = said.get(row["who"])
        if row["units"] is not None or (told is not None and told["epsilon"] >= row["epsilon"]):
            continue
        entity = plan.unit.entity
        why = f"a record of one {entity} may displace another when the limit is enforced, and then moves two counts of"
        what = f"{why} a level. The true bound is {_amount(row)}"
        if told is None:
            yield f"what this card says leaves out {row['who']}: {what}"
        else:
            row_told = f'its row "{row["who"]}" has {_amount(told)}'
            yield f"what this card says of one record is too small: {row_told}, but {what}"


def words_only(card: Mapping[str, Any], plan_toml: str) -> bool:
    """Whether a card is of the edges of a graph, but says in words alone which graphs are neighbours."""
    if "graph" in card:
        return False
    columns = (card["data"]["columns"] or {}).values() if card["treetop"] == 1 else ()
    ends = all(any(str(column).startswith(end) for column in columns) for end in _ENDS)
    return ends or any(_RELATION.search(text) is not None for text in (card["description"], plan_toml))


def _amount(row: Mapping[str, Any]) -> str:
    rho = "" if row["rho"] is None else f"rho {row['rho']:.3g}, "
    return f"{rho}epsilon {say_epsilon(row['epsilon'])}"


def _caveats(told: list[str], plan: PurePlan) -> list[str]:
    """Leave out what was not said then, and say "a employee" as it did."""
    found, entity = words.reckless(plan), plan.unit.entity
    return [one.replace(f" {with_article(entity)} ", f" a {entity} ") for one in told if one not in found]


def _meaning(rows: list[dict[str, Any]], plan: PurePlan) -> list[dict[str, Any]]:
    """Say of one record what was said then: nothing where a unit has one, otherwise as if no record displaced any."""
    others = [row for row in rows if row["units"] is not None]
    if plan.unit.contributions == 1:
        return others
    record = Unit(plan.unit.entity, contributions=1, neighbours=plan.unit.neighbours)
    spent = Fraction(0)
    for level in plan.levels:
        one, all_ = record.sensitivity(level.name), plan.unit.sensitivity(level.name)
        pure = plan.loss.definition == "pure"
        spent += level.cost * (Fraction(one.l1, all_.l1) if pure else Fraction(one.l2_squared, all_.l2_squared))
    return [means("one record", 1, None, spent, plan), *others]


def _coverage(said: Mapping[str, Any]) -> dict[str, Any]:
    """Say how often intervals held without the number of those that did."""
    if "twin" not in said:
        return dict(said)
    covered = sum(level["covered"] for level in said["twin"])
    return {**said, "sentence": said["sentence"].replace(words.held(covered), "", 1)}
