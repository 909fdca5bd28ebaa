"""A map of a release that opens anywhere: places, flows and levels in one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from treetop.addons.map.atlas import Atlas, opening
from treetop.addons.map.boundaries import Boundaries, read_boundaries
from treetop.addons.map.ground import ground
from treetop.addons.map.layers import layer, traffic_of, weights_of
from treetop.addons.pages import render as render_page
from treetop.card import in_words
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import ReleaseError
from treetop.exporting.formats import Content, Format, Request
from treetop.exporting.language import Language
from treetop.exporting.levels import ENDS, Depths, are_dates, trees_of
from treetop.exporting.page_statements import attribute_label, counted, or_more, plainly
from treetop.exporting.places import Places
from treetop.exporting.sheet import Page
from treetop.plan.workload import CONFIDENCE
from treetop.release.selection import Selection

if TYPE_CHECKING:
    from markupsafe import Markup


# In the order of their dependencies.
_SCRIPTS = (
    "words unpack outlines state filters view groups scene ribbons colours paint picture marks "
    "sentences legend panel hits tip choices gestures link print start"
)

ENTRIES = 80
"""Most entries of an attribute that a map can be narrowed to one of."""
ROWS, WORK = 60_000, 30_000_000
"""Most counts of all filters, and most leaves that are summed for one."""
NO_FILTER = "the map cannot be narrowed by {names}: too many numbers for one page"

_STATED = ("private", "data", "time", "id")


def render(
    card: Mapping[str, Any], content: Mapping[str, Any], credit: str | None, own: Language, home: str | None
) -> str:
    """Return the page, with a link back to another if it is named; text from the release is never markup."""
    title = card.get("title") or own.words["page"]["untitled"]
    values = {
        "say": own.say,
        "language": own.code,
        "title": title,
        "title_of_map": own.words["map"]["title"].format(title=title),
        "card": in_words({key: card.get(key) for key in _STATED}),
        "day": own.day(str(card.get("time") or "")),
        "credit": credit,
        "home": home,
        "noise": _noise(card, content, own),
        "plainly": list(plainly(card, own)) if card.get("private") and "meaning" in card else [],
        "counted": [*counted(card, own)[1], *or_more(card, own)] if "unit" in card else [],
        "kind": content["kind"],
        "content": {**content, "words": own.words["map_script"], "format": own.numbers},
    }
    return render_page("treetop.addons.map", values, [f"script/{name}.js" for name in _SCRIPTS.split()])


def _noise(card: Mapping[str, Any], content: Mapping[str, Any], own: Language) -> Markup:
    """Return the sentence on the noise of a map's numbers."""
    if all(level["exact"] for level in content["levels"]):
        return own.say("map.noise_none")
    return own.say("map.noise" if card["private"] else "map.noise_testing")


def make_map(request: Request, home: str | None = None) -> Content:
    """Make the page, with a link back to the page that it belongs to, if there is one."""
    release, depths, places, given = request.release, request.depths, request.places or {}, request.options
    boundaries = None
    if file := given.get("boundaries"):
        boundaries = read_boundaries(file, release.spine.trees, given.get("boundaries_code"), given.get("encoding"))
    attributes = mapped(release, places, boundaries)
    trees = {name: tree for name, tree in trees_of(release).items() if name in attributes}
    located = {name: places[name] for name in attributes if name in places}
    traffic = traffic_of(release, depths, attributes, located, boundaries)
    weights = weights_of(release, depths, attributes, boundaries, list(located))
    atlas = Atlas.of(trees, located, boundaries, traffic, weights)
    layers = [layer(release, atlas, step, attributes) for step in _steps(trees, depths, atlas)]
    if not layers:
        raise ReleaseError(
            "none of the levels up to the one asked for has coordinates or boundaries: ask for a coarser"
        )
    missing = tuple(sorted({code for one in layers for code in one.missing}))
    if missing and not given.get("skip_missing"):
        _refuse(missing)
    own = request.language
    filters, left_out = _filters(release, atlas, trees, depths, attributes, own)
    content = {
        "confidence": None if release.confidence is None else 100 * release.confidence,
        "stated": 100 * (release.confidence or CONFIDENCE),
        "whole": _whole(release),
        "filters": filters,
        "unfiltered": [attribute_label(name, release.card, own) for name in left_out],
        "home": home,
        "ends": {name: attribute_label(name, release.card, own) for name in attributes},
        "kind": "flows" if len(attributes) == 2 else "counts",
        "summed": [
            attribute_label(name, release.card, own) for name in release.spine.attributes if name not in attributes
        ],
        "size": [atlas.frame.width, atlas.frame.height],
        "frame": {"west": atlas.frame.west, "north": atlas.frame.north, "scale": atlas.frame.scale},
        "view": opening(atlas.frame, layers[-1].extent, layers[-1].weight),
        "graticule": atlas.frame.graticule(),
        "ground": [] if boundaries is not None else ground(atlas.frame),
        "arcs": atlas.mesh.packed(),
        "levels": [one.content for one in layers],
    }
    finest = layers[-1]
    text = render(release.card, content, given.get("credit"), own, home)
    page = Page("map.html", text, finest.rows, finest.content["total"] - finest.content["unplaced"])
    return Content([page], missing, (NO_FILTER.format(names=", ".join(left_out)),) if left_out else ())


def _filters(
    release: Selection,
    atlas: Atlas,
    trees: Mapping[str, Hierarchy],
    depths: Depths,
    attributes: Sequence[str],
    own: Language,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the other attributes that the map can be narrowed to an entry of, and the names of those it cannot."""
    filters: list[dict[str, Any]] = []
    left_out: list[str] = []
    steps = _steps(trees, depths, atlas)
    room = ROWS
    for at, (name, tree) in enumerate(trees_of(release).items()):
        if name in attributes or at in release.ranges:
            continue
        depth = max((at for at in range(depths[name] + 1) if tree.sizes[at] <= ENTRIES), default=None)
        rows = 0 if depth is None else _rows(release, tree.sizes[depth], depths, attributes)
        if depth is None or rows > room or release.leaves * tree.sizes[depth] > WORK:
            left_out.append(name)
            continue
        room -= rows
        filters.append(
            {"label": attribute_label(name, release.card, own)}
            | _filter(release, atlas, steps, attributes, name, depth)
        )
    return filters, left_out


def _rows(release: Selection, entries: int, depths: Depths, attributes: Sequence[str]) -> int:
    """Return at most how many counts a filter has."""
    trees = trees_of(release)
    cells = prod(int(trees[name].sizes[depths[name]]) for name in attributes)
    return min(cells * entries, release.leaves)


def _filter(
    release: Selection, atlas: Atlas, steps: Sequence[Depths], attributes: Sequence[str], name: str, depth: int
) -> dict[str, Any]:
    tree = trees_of(release)[name]
    codes, called = tree.codes[depth], tree.names.get(tree.levels[depth])
    names = codes if called is None else pc.coalesce(called, codes)
    entries = []
    for at in np.argsort(tree.listing(depth), kind="stable").tolist():
        code = codes[at].as_py()
        part = release.where(**{f"{name}.{tree.levels[depth]}": code})
        layers = [layer(part, atlas, step, attributes, {name: depth}).content for step in steps]
        levels = [{key: value for key, value in own.items() if key != "places"} for own in layers]
        entries.append({"code": code, "name": names[at].as_py(), "whole": _whole(part), "levels": levels})
    dates = are_dates(tree.levels[depth], codes.to_pylist())
    return {"of": name, "level": tree.levels[depth], "dates": dates, "entries": entries}


def _whole(release: Selection) -> dict[str, int | None]:
    """Return the total, with its interval if the release has intervals."""
    bounds = None if release.confidence is None else release.interval()
    return {
        "count": release.total,
        "lower": None if bounds is None else bounds.lower,
        "upper": None if bounds is None else bounds.upper,
    }


def mapped(release: Selection, places: Mapping[str, Places], boundaries: Boundaries | None) -> tuple[str, ...]:
    """Return the attributes on the map: both ends of flows, or the one with known places."""
    known = [
        name
        for name, tree in trees_of(release).items()
        if name in places or (boundaries is not None and boundaries.depth(tree) is not None)
    ]
    if not (shown := _shown(release, known)):
        raise ReleaseError(
            "a map needs to know where the places are: give a public file with a row per place and columns for code, "
            "latitude and longitude (`coordinates`), or their outlines (`boundaries`)"
        )
    return shown


def is_mapped(request: Request) -> bool:
    """Whether a map can be made: places have coordinates, or the request names boundaries."""
    return bool(request.options.get("boundaries") or _shown(request.release, list(request.places or ())))


def _shown(release: Selection, known: Sequence[str]) -> tuple[str, ...]:
    if all(end in known for end in ENDS):
        return ENDS
    return () if all(end in trees_of(release) for end in ENDS) else tuple(known[:1])


def _steps(trees: Mapping[str, Hierarchy], depths: Depths, atlas: Atlas) -> Sequence[Depths]:
    """Return the levels of the map, coarse to fine: same names together, otherwise step by step."""
    deepest = {name: depths[name] for name in trees}
    lists = {name: tree.levels[: deepest[name] + 1] for name, tree in trees.items()}
    if len(set(lists.values())) == 1:
        steps = [dict.fromkeys(trees, depth) for depth in range(len(next(iter(lists.values()))))]
    else:
        most = max(deepest.values())
        steps = [{name: min(depth, deep) for name, deep in deepest.items()} for depth in range(most + 1)]
    return [depths | step for step in steps if all(atlas.knows(name, depth) for name, depth in step.items())]


def _refuse(missing: Sequence[str]) -> None:
    shown = ", ".join(map(repr, missing[:10])) + (f" and {len(missing) - 10:,} more" if len(missing) > 10 else "")
    raise ReleaseError(
        f"{len(missing):,} code{'s' * (len(missing) > 1)} with counts lack coordinates and boundaries: {shown}. Add "
        "them to the file, or leave their counts out (`skip_missing=True`)"
    )


MAP = Format(
    "map",
    "a map in one .html file that opens anywhere, of any release that has places",
    ("map.html",),
    make_map,
    coordinates="any",
    outlines=True,
    suffixes=(".html",),
    told="counts at its finest level, {total:,} in all; open it in a browser",
    translated=True,
)
