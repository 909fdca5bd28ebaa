"""The sections of a plan file one by one: what each may say, checked for type, with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from treetop.basics.exact import Number
from treetop.basics.nearest import nearest
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.errors import PlanFileError
from treetop.plan.file.fields import Fields
from treetop.plan.splits import SPLITS
from treetop.tables.positions import Positions, as_positions
from treetop.tables.source import BlankLines, Source

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "spine": ("order",),
    "unit": ("entity", "contributions", "neighbours", "id", "id_clean", "per_node", "population", "may_be_missing"),
    "loss": ("epsilon", "delta", "rho", "split", "accounting", "large_delta"),
    "repair": ("method", "order"),
    "release": ("prefer", "resolve", "confidence", "intervals", "keep_measurements"),
    "data": (
        "source",
        "query",
        "count",
        "unknown",
        "period",
        "delimiter",
        "encoding",
        "fields",
        "keep",
        "header",
        "names",
        "blank_lines",
    ),
}
"""The fields of every section of an ordinary plan file."""
TOP = ("title", "description", "attributes", *SECTIONS, "graph", "groups")
"""What may stand at the top of a plan file."""
HOMES = {key: section for section, keys in SECTIONS.items() for key in keys if key != "order"}
"""The section of a field that stands at the top by mistake."""

Order = str | tuple[str, ...] | None
"""The order of the spine: the name of one, a list of `attribute.level`, or none stated."""

_ENDS = ("origin", "destination")


@dataclass(frozen=True)
class LossSection:
    """What [loss] says about the amount, apart from its split."""

    amounts: dict[str, Any]
    """The arguments of `Loss`."""
    is_open: bool
    """Whether no amount is stated, so that epsilon only stands in for one, or is missing."""


@dataclass(frozen=True)
class DataSection:
    """What [data] says about the private table."""

    source: str | None
    """Where the table is, found from the plan file's folder."""
    unknown: Any
    """What is done with codes that are not in a hierarchy."""
    kept: dict[str, Any]
    """What a `PlanFile` keeps of the section, by its fields."""


def read_order(spine: Fields, attributes: Mapping[str, object]) -> Order:
    """Read [spine]; the spine itself is made when the hierarchies are there."""
    if isinstance(spine.values.get("order"), list):
        return spine.texts("order")
    order = spine.text("order")
    if order is None:
        return None
    if order not in (choices := ("destination-first", "origin-first")):
        spine.refuse("order", f'"destination-first", "origin-first" or a list of levels{nearest(order, choices)}')
    if not set(_ENDS) <= set(attributes):
        raise PlanFileError(
            f"{spine.file}: [spine] order is {order!r}, which is for two attributes called origin and "
            f"destination, but they are {', '.join(attributes)}: rename them, or list the levels in order"
        )
    return order


def make_spine(spine: Fields, order: Order, trees: Mapping[str, Hierarchy]) -> Spine:
    """Return the spine of the order that [spine] states; one attribute needs none."""
    if isinstance(order, str):
        _refuse_third(order, trees, spine.file)
    with spine.located():
        return _spine(order, trees)


def read_unit(unit: Fields) -> dict[str, Any]:
    """Read [unit]: the arguments of `Unit`, None for what is left open."""
    caps = unit.table("per_node")
    entity = unit.text("entity")
    return {
        "entity": entity.strip() if entity else None,
        "contributions": unit.whole("contributions"),
        "neighbours": unit.choice("neighbours", ("replace", "add-remove")),
        "id": unit.name("id"),
        "per_node": {level: caps.whole(level) for level in caps.values},
        "population": unit.whole("population"),
        "id_clean": unit.texts("id_clean") if unit.has("id_clean") else (),
        "may_be_missing": unit.flag("may_be_missing") or False,
    }


def read_loss(loss: Fields, stand_in: Number | None) -> LossSection:
    """Read the amount of [loss]; where none is stated, an epsilon may stand in for it."""
    amounts: dict[str, Any] = {key: loss.number(key) for key in ("epsilon", "delta", "rho")}
    amounts["accounting"] = loss.choice("accounting", ("zcdp", "exact")) or "zcdp"
    amounts["large_delta"] = loss.flag("large_delta") or False
    is_open = not (loss.has("epsilon") or loss.has("rho"))
    if is_open:
        amounts["epsilon"] = stand_in
    return LossSection(amounts, is_open)


def read_weights(loss: Fields) -> dict[str, Number | None] | None:
    """Read the split of [loss] where it is a table of weights by level; None where it is not."""
    if not isinstance(loss.values.get("split"), dict):
        return None
    weights = loss.table("split")
    return {level: weights.number(level) for level in weights.values}


def read_split(loss: Fields) -> Any:
    """Read the split of [loss]: weights by level, or the name of a split."""
    weights = read_weights(loss)
    if weights is not None:
        return weights
    given = loss.values["split"] if loss.has("split") else "uniform"
    if given == "uniform":
        return given
    if given not in SPLITS:
        hint = nearest(given, SPLITS) if isinstance(given, str) else ""
        named = ", ".join(f'"{name}"' for name in SPLITS)
        loss.refuse(
            "split",
            f'{named} or a table of weights, such as split = {{ "place.state" = 2, "place.town" = 1 }}{hint}',
        )
    return given


def read_repair(repair: Fields) -> dict[str, Any]:
    """Read [repair]: the arguments of `Plan`."""
    return {
        "repair": repair.choice("method", ("chebyshev", "euclidean")) or "chebyshev",
        "order": repair.choice("order", ("ascending", "descending")) or "ascending",
    }


def read_release(release: Fields, repair: Fields) -> dict[str, Any]:
    """Read [release]: the arguments of `Plan` that say what a release favours and carries."""
    from treetop.plan.plan import CONFIDENCE, PREFERENCES, as_confidence
    from treetop.plan.resolution import Resolution

    stated: dict[str, Any] = {"prefer": release.choice("prefer", tuple(PREFERENCES)), "resolve": "full"}
    if isinstance(release.values.get("resolve"), dict):
        limits = release.table("resolve").only(("fdr", "sigmas"))
        stated["resolve"] = {name: limits.number(name) for name in limits.values}
    elif release.has("resolve") and release.values["resolve"] != "full":
        release.refuse("resolve", '"full", { fdr = 0.05 } or { sigmas = 3 }')
    if stated["prefer"] == "lower-error" and stated["resolve"] != "full":
        raise PlanFileError(
            f"{release.file}: [release] resolve leaves counts unnamed, which have no place where "
            'prefer = "lower-error" estimates all of them again: keep one of them'
        )
    if stated["prefer"] is not None and repair.values:
        raise PlanFileError(f"{release.file}: [release] prefer decides what [repair] does: keep one of them")
    confidence = release.number("confidence")
    with release.located():
        stated["resolve"] = Resolution.of(stated["resolve"]) or "full"
        stated["confidence"] = CONFIDENCE if confidence is None else as_confidence(confidence)
    if release.flag("intervals") is False:
        if confidence is not None:
            raise PlanFileError(f"{release.file}: [release] intervals are off, but have a confidence: keep one")
        stated["confidence"] = None
    return stated


def read_data(data: Fields, folder: Path) -> DataSection:
    """Read [data]; the table itself is not touched."""
    source = data.name("source")
    if source is not None and "://" not in source and source != "-":
        source = str(folder / source)
    kept: dict[str, Any] = {key: data.name(key) for key in ("query", "count", "period")}
    kept |= {"delimiter": data.delimiter(), "encoding": data.encoding(), "keep": data.keep()}
    kept["fields"] = _positions(data) if data.has("fields") else None
    if kept["fields"] is not None and kept["delimiter"] is not None:
        raise PlanFileError(f"{data.file}: [data] fields are of fixed-width text, which has no delimiter: keep one")
    kept |= {"header": data.flag("header"), "names": data.texts("names")}
    kept["blank_lines"] = data.choice("blank_lines", get_args(BlankLines)) or "record"
    with data.located():
        Source("-", fields=kept["fields"], header=kept["header"], names=kept["names"], blank_lines=kept["blank_lines"])
    unknown: Any
    if isinstance(data.values.get("unknown"), dict):
        table = data.table("unknown")
        unknown = {attribute: table.text(attribute) for attribute in table.values}
    else:
        unknown = data.choice("unknown", ("error", "drop")) or "error"
    return DataSection(source, unknown, {"source": source, **kept})


def _refuse_third(order: str, trees: Mapping[str, Hierarchy], file: str) -> None:
    """Refuse an order of two ends for more attributes, with the list to write instead."""
    others = {name: tree for name, tree in trees.items() if name not in _ENDS}
    if not others:
        return
    ends = _spine(order, {name: tree for name, tree in trees.items() if name in _ENDS})
    listed = [*ends.splits, *(f"{name}.{level}" for name, tree in others.items() for level in tree.levels)]
    shown = ", ".join(f'"{split}"' for split in listed)
    raise PlanFileError(
        f"{file}: [spine] order is {order!r}, which is for origin and destination, and there is "
        f"{', '.join(others)} as well. Where it comes is yours to say: what comes first is more accurate. For example, "
        f"at the end:\n  order = [{shown}]"
    )


def _spine(order: Order, trees: Mapping[str, Hierarchy]) -> Spine:
    if order == "destination-first":
        return Spine.destination_first(**trees)
    if order == "origin-first":
        return Spine.origin_first(**trees)
    if order is None:  # one attribute: there is only one order
        ((name, tree),) = trees.items()
        order = tuple(f"{name}.{level}" for level in tree.levels)
    return Spine(order, trees)


def _positions(data: Fields) -> Positions:
    table = data.table("fields")
    with table.located():
        return as_positions(table.values)
