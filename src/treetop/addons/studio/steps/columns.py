"""Step 2: the columns to publish, each with a public list of its codes, chosen and changed by clicks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from treetop.addons.studio.background import report_share
from treetop.addons.studio.folder import TABLES
from treetop.addons.studio.forms import Done, Form
from treetop.addons.studio.plan_state import PlanText, level_names, spine_changes, with_renamed
from treetop.addons.studio.steps.table import raw
from treetop.addons.studio.workspace import Workspace
from treetop.domain.coding import UNITS
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import sound_name
from treetop.domain.standard_hierarchies import STANDARDS
from treetop.errors import DataError, IncompletePlan, PlanFileError, TreetopError
from treetop.inspection import HierarchyFile, Inspection, Match
from treetop.inspection.lookup import READING
from treetop.inspection.suggest import Matched, match_codes, sound_levels
from treetop.plan.file.answers import read_bands, read_levels, read_values, written_bands, written_levels
from treetop.plan.file.edit import Changes, moved, without_section

DATA = ("data",)
_WIDE, _HIGH = 720, 34
_MOST_DRAWN = 400
_WAYS = ("standard", "values", "bands", "dates", "hierarchy", "same_as")
_SHOWN = {
    *_WAYS, "levels", "column", "blank", "labels", "unknown", *READING, "names", "name", "latitude", "longitude",
    "ragged",
}  # fmt: skip
"""Fields of an attribute that its card shows, or leaves as they are."""


def show(workspace: Workspace, entered: Form) -> dict[str, Any]:
    """Return the values of the page."""
    plan = workspace.plan()
    own = plan.get("data", "source")
    private = workspace.folder.name_of(plan.path.parent / own) if isinstance(own, str) else None
    unknown = plan.get("data", "unknown", default="error")
    values: dict[str, Any] = {
        "kind": plan.kind,
        "attributes": [],
        "columns": [],
        "names": [],
        "trouble": None,
        "files": [one for one in workspace.folder.files(TABLES) if one.name != private],
        "units": UNITS,
        "standards": STANDARDS,
        "disordered": plan.problem is not None and any(one in str(plan.problem) for one in ("[spine]", "a joint fit")),
        "unknown": entered.get("unknown") or (unknown if isinstance(unknown, str) else "leaf"),
        "form": {name: entered.get(name) if name in entered else text for name, text in _of_counts(plan).items()},
    }
    attributes = {name: one for name, one in plan.get("attributes", default={}).items() if isinstance(one, Mapping)}
    proposed: dict[str, Mapping[str, Any]] = {}
    if plan.kind is None:
        try:
            inspection = workspace.inspect(raw(workspace, plan))
            proposed = {column.name: column.proposed for column in inspection.columns}
            values["columns"] = list(_preview(inspection, plan, attributes))
            values["names"] = [column.name for column in inspection.columns]
        except TreetopError as problem:
            values["trouble"] = str(problem)
    trees: Mapping[str, Hierarchy] = {}
    matches: dict[str, Matched] = {}
    try:
        trees = plan.draft.plan.spine.attributes
        if plan.kind is None and values["trouble"] is None:
            matches = {one.attribute: one for one in matched_codes(workspace, plan)}
    except TreetopError as problem:
        if not isinstance(problem, IncompletePlan) and plan.kind is None:
            values["trouble"] = values["trouble"] or str(problem)
    opened = entered.get("attribute") or entered.get("edit") or next(iter(plan.waiting), "")
    for name, one in attributes.items():
        typed = entered if entered.get("attribute") == name and entered.get("do") == "attribute" else Form()
        waits = name in plan.waiting or one.get("same_as") in plan.waiting
        found = [] if waits or name not in matches else [matches[name]]
        listed = attributes.get(one.get("same_as", ""), one)
        hints = [hint for row in found for hint in _hints(workspace, plan, listed, row)]
        values["attributes"].append(
            _card(name, one, typed, proposed.get(one.get("column", name), {}))
            | _rules(plan, one.get("column", name), typed)
            | {"lost": bool(values["names"]) and one.get("column", name) not in values["names"], "waits": waits,
               "open": name == opened, "others": [other for other in attributes if other != name],
               "tree": None if waits or name not in trees else _drawn(trees[name]),
               "matched": {"rows": found, "hints": hints}}
        )  # fmt: skip
    return values


def matched_codes(workspace: Workspace, plan: PlanText) -> list[Matched]:
    """Count the matching codes of the attributes whose list is known, with the table prepared by the plan."""
    file = plan.draft
    own = plan.get("attributes")
    trees = {
        name: tree
        for name, tree in file.plan.spine.attributes.items()
        if not {name, own[name].get("same_as")} & set(plan.waiting)
    }
    return match_codes(workspace.source(plan), trees, file.columns, report_share)


def matched(workspace: Workspace, plan: PlanText, form: Form) -> dict[str, Any]:
    """Count the matching codes of one attribute for the values of its card, saved or not."""
    after = plan.with_text(_saved(workspace, plan, form)[0])
    name = form.get("name") or form.get("attribute")
    return {"rows": [one for one in matched_codes(workspace, after) if one.attribute == name], "hints": []}


def _preview(inspection: Inspection, plan: PlanText, attributes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every column of the table, and what it is in the plan."""
    used: dict[str, list[str]] = {}
    for name, own in attributes.items():
        used.setdefault(own.get("column", name), []).append(name)
    for column in inspection.columns:
        yield {
            "name": column.name,
            "looks": column.looks_like(),
            "reason": "" if column.reason == column.looks_like() else column.reason,
            "distinct": column.distinct,
            "missing": column.missing,
            "samples": column.samples,
            "used": used.get(column.name, []),
            "count": plan.get("data", "count") == column.name,
            "id": plan.get("unit", "id") == column.name,
            "guess": inspection.count == column.name and plan.get("data", "count") is None,
        }


def _of_counts(plan: PlanText) -> dict[str, str]:
    count = plan.get("data", "count", default="")
    return {"count": count, "thousands": str(plan.get("data", "thousands", default={}).get(count, ""))}


def _card(name: str, own: Mapping[str, Any], typed: Form, proposed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an attribute's card: those typed, those of the plan, or a proposal that is not saved."""
    labels = own.get("labels", {})
    how = saved = next((one for one in _WAYS if one in own), "values" if labels else "")
    if how and (any(isinstance(item, Mapping) for item in labels.values()) or own.keys() - _SHOWN):
        how = saved = "other"
    if not how and (how := next((one for one in _WAYS if one in proposed), "")):
        own = {**own, **proposed}
        own |= {"dates": {**own["dates"], "first": "", "last": ""}} if how == "dates" else {}
    dates = own.get("dates", {})
    listed = [f"{code} = {labels[code]}" if code in labels else code for code in own.get("values", labels)]
    stated = {
        "how": how,
        "name": name,
        "column": own.get("column", name),
        "values": "\n".join(listed) if how == "values" else "",
        "bands": written_bands(own.get("bands", ())) if how == "bands" else "",
        "standard": own.get("standard", ""),
        "codes": "\n".join(listed) if how == "standard" else "",
        "of": written_levels(own.get("levels", ())) if how == "standard" else "",
        "first": str(dates.get("first", "")),
        "last": str(dates.get("last", "")),
        "format": dates.get("format", ""),
        "file": own.get("hierarchy", ""),
        "levels": written_levels(own.get("levels", ())) if how in ("hierarchy", "other") else "",
        "unknown": own.get("unknown", ""),
        "same_as": own.get("same_as", ""),
        "blank": own.get("blank", ""),
        **{option: str(own.get(option, "")) for option in READING},
    }
    card = {field: typed.get(field) if field in typed else text for field, text in stated.items()}
    units = typed.all("unit") if typed else own.get("levels", ["month"]) if how == "dates" else ["month"]
    return card | {"attribute": name, "saved_how": saved, "units": units}


def _rules(plan: PlanText, column: str, typed: Form) -> dict[str, Any]:
    trim = plan.get("data", "trim", default=())
    stated = trim is True or column in (trim or ())
    pad = str(plan.get("data", "pad", default={}).get(column, ""))
    return {"trim": "trim" in typed if typed else stated, "pad": typed.get("pad") if typed else pad}


def act(workspace: Workspace, form: Form) -> Done:
    """Handle the page's forms."""
    plan = workspace.plan()
    plan.refuse_other_kinds()
    seen, do = form.get("seen"), form.get("do")
    if form.get("add"):
        return _add(workspace, plan, form)
    if do == "attribute":
        text, name = _saved(workspace, plan, form)
        plan.replace(text, seen)
        return Done("columns", f"{name} is saved.")
    if do == "place":
        return _place(plan, form)
    if do == "order":
        plan.change(spine_changes(plan.values, anew=True), seen)
        return Done("columns", "The levels are in order again, coarse ones first.")
    if do == "count":
        if (count := form.get("count")) and count not in _names(workspace, plan):
            raise PlanFileError(f"There is no column {count!r} in the table: choose one that is listed")
        thousands = dict(plan.get("data", "thousands", default={}))
        thousands.pop(plan.get("data", "count", default=""), None)
        if count and form.get("thousands"):
            thousands[count] = form.get("thousands")
        plan.change({(DATA, "count"): count or None, (DATA, "thousands"): thousands or None}, seen)
        return Done("columns", f"A row stands for as many records as {count} says." if count else "A row is a record.")
    unknown = form.get("unknown")
    if unknown == "leaf" and isinstance(plan.get("data", "unknown"), Mapping):
        return Done("columns", "Nothing has changed.")
    if unknown not in ("error", "elsewhere", "drop"):
        raise PlanFileError("What is to become of codes that are not listed? Choose one of the three")
    plan.change({(DATA, "unknown"): None if unknown == "error" else unknown}, seen)
    return Done("columns", "Saved.")


def _add(workspace: Workspace, plan: PlanText, form: Form) -> Done:
    column = form.get("add")
    if column not in _names(workspace, plan):
        raise PlanFileError(f"There is no column {column!r} in the table: choose one that is listed")
    attributes = plan.get("attributes", default={})
    name = sound_name(column, attributes)
    plan.replace(_in_order(plan, {(("attributes", name), "column"): column}), form.get("seen"))
    return Done(f"columns?edit={name}", f"{name} is published. Which values can it have?")


def _names(workspace: Workspace, plan: PlanText) -> list[str]:
    return [column.name for column in workspace.inspect(raw(workspace, plan)).columns]


def _place(plan: PlanText, form: Form) -> Done:
    """Move an attribute, or leave it out."""
    attributes, name, way = list(plan.get("attributes", default={})), form.get("attribute"), form.get("way")
    if name not in attributes:
        raise PlanFileError(f"{name!r} is not published any more: look at the page again")
    at = attributes.index(name)
    if way == "remove":
        if len(attributes) == 1:
            raise PlanFileError("Nothing would be left to publish: add another column first")
        plan.replace(_without(plan, name), form.get("seen"))
        return Done("columns", f"{name} is not published.")
    to = at - 1 if way == "up" else at + 1
    if not 0 <= to < len(attributes):
        return Done("columns")
    late, early = (name, attributes[to]) if way == "up" else (attributes[to], name)
    text = moved(plan.text, ("attributes", late), ("attributes", early), plan.path.name)
    after = plan.with_text(text)
    if isinstance(order := plan.get("spine", "order"), list) or set(attributes) != {"origin", "destination"}:
        text = after.changed(spine_changes(after.values, anew=isinstance(order, list)))
    plan.replace(text, form.get("seen"))
    return Done("columns", f"{name} is number {to + 1} now.")


def _without(plan: PlanText, name: str) -> str:
    """Return the plan's text without an attribute; who shares its list gets it."""
    attributes = {other: dict(own) for other, own in plan.get("attributes").items()}
    sharing = [other for other, own in attributes.items() if own.get("same_as") == name]
    changes: dict[tuple[tuple[str, ...], str], Any] = {}
    for number, other in enumerate(sharing):
        changes[("attributes", other), "same_as"] = sharing[0] if number else None
        if not number:
            changes |= {(("attributes", other), key): item for key, item in attributes[name].items() if key != "column"}
    if isinstance(unknown := plan.get("data", "unknown"), Mapping):
        changes[DATA, "unknown"] = {other: leaf for other, leaf in unknown.items() if other != name} or None
    plan = plan.with_text(without_section(plan.text, ("attributes", name), plan.path.name))
    return _in_order(plan, changes)


def _in_order(plan: PlanText, changes: Changes, fresh: str | None = None) -> str:
    """Return the plan's text with some fields changed, and the levels in step with its attributes."""
    plan = plan.with_text(plan.changed(changes))
    return plan.changed(spine_changes(plan.values, fresh=fresh))


def _saved(workspace: Workspace, plan: PlanText, form: Form) -> tuple[str, str]:
    """Return the plan's text with one attribute as its card says, and the attribute's name."""
    old, name = form.get("attribute"), form.get("name") or form.get("attribute")
    before: Mapping[str, Any] = plan.get("attributes", default={})
    if old not in before:
        raise PlanFileError(f"{old!r} is not published any more: look at the page again")
    column = form.get("column") or before[old].get("column", old)
    if column not in _names(workspace, plan):
        raise PlanFileError(f"“Column of the table” is {column!r}, which the table has not: choose one that it has")
    if name != old:
        plan = with_renamed(plan, old, name)
    own = dict(before[old])
    after = own if form.get("how") in ("", "other") else _listed(workspace, plan, own, column, form)
    after = {**after, "column": column}
    after |= {field: form.get(field) or None for field in ("blank", "unknown") if field in form}
    changes: dict[tuple[tuple[str, ...], str], Any] = {
        (("attributes", name), field): after.get(field) for field in dict.fromkeys([*own, *after])
    }
    if column == name and "column" not in own:
        changes.pop((("attributes", name), "column"))
    trim, pad = plan.get("data", "trim", default=()), dict(plan.get("data", "pad", default={}))
    pad.pop(column, None)
    if width := form.get("pad"):
        if not width.isdecimal():
            raise DataError(f"“Zeros in front, up to” is {width!r}: give how long the codes are, such as 5")
        pad[column] = int(width)
    changes[DATA, "pad"] = pad or None
    if trim is not True and ("trim" in form) != (column in (trim or ())):
        kept = [one for one in trim or () if one != column] + ([column] if "trim" in form else [])
        changes[DATA, "trim"] = kept or None
    others = {**before, old: after}
    return _in_order(plan, changes, name if level_names(old, before) != level_names(old, others) else None), name


def _listed(workspace: Workspace, plan: PlanText, own: Mapping[str, Any], column: str, form: Form) -> dict[str, Any]:
    """Return an attribute with its list of codes as its card says."""
    how = form.get("how")
    rest = {key: item for key, item in own.items() if key in ("column", "blank", "unknown")}
    if how == "values":
        found = read_values(form.get("values").splitlines(), "“These values”")
        return rest | _kept_levels(own, found["values"]) | found
    if how == "bands":
        return rest | {"bands": read_bands(form.get("bands"), "“Bands of a number”")}
    if how == "standard":
        if form.get("standard") not in STANDARDS:
            raise PlanFileError("“A standard list”: choose which one")
        codes = read_values(form.get("codes").splitlines()) if form.get("codes") else {}
        levels = {"levels": read_levels(form.get("of"))} if form.get("of") else {}
        return rest | {"standard": form.get("standard"), **codes, **levels}
    if how == "dates":
        units = [one for one in UNITS if one in form.all("unit")]
        first, last = form.get("first"), form.get("last")
        if not (units and first and last):
            raise PlanFileError("“Dates” need the first and the last day that are counted, and a level such as month")
        written = {"format": form.get("format")} if form.get("format") else {}
        return rest | {"dates": {"first": first, "last": last, **written}, "levels": units}
    if how == "same_as":
        if form.get("same_as") not in plan.get("attributes", default={}):
            raise PlanFileError("“The same list as another column”: choose the column")
        return rest | {"same_as": form.get("same_as")}
    return rest | _of_file(workspace, plan, own, column, form)


def _kept_levels(own: Mapping[str, Any], listed: list[str]) -> dict[str, Any]:
    """Return levels that a list of values can still have: one alone, or prefixes of codes of one length."""
    widths, levels = own.get("widths", ()), own.get("levels", ())
    if widths and all(len(code) == widths[-1] for code in listed):
        return {"widths": widths, "levels": levels}
    return {"levels": levels} if "values" in own and len(levels) == 1 and not widths else {}


def _of_file(workspace: Workspace, plan: PlanText, own: Mapping[str, Any], column: str, form: Form) -> dict[str, Any]:
    """Return the hierarchy of a file: with the levels that were typed, or those that fit the column."""
    if not form.get("file"):
        raise PlanFileError("“A public file”: choose the file that lists the codes")
    file = workspace.folder.file(form.get("file"))
    name = Path(os.path.relpath(file, plan.path.parent)).as_posix()
    reading = {option: form.get(option) for option in READING if form.get(option)}
    typed = form.get("levels")
    if own.get("hierarchy") == name and typed in ("", written_levels(own.get("levels", ()))):
        return {key: item for key, item in own.items() if key not in READING} | reading
    match, lookup = _match(workspace, plan, column, form.get("file"), reading)
    if typed and (match is None or typed != ", ".join(match.levels)):
        return {"hierarchy": name, "levels": read_levels(typed), **lookup.reading}
    if match is None:
        raise PlanFileError(
            f"No column of {form.get('file')} clearly has the codes of {column}. If one has, write it under “Its "
            f"columns, coarse to fine”: the columns are {', '.join(lookup.columns)}. If none has, choose another file"
        )
    labels = dict(match.labels)
    sound = sound_levels(match.levels)
    levels = list(sound) if sound == match.levels else dict(zip(sound, match.levels, strict=True))
    found: dict[str, Any] = {"hierarchy": name, "levels": levels, **match.lookup.reading}
    if match.ragged:
        found["ragged"] = "repeat"
    if match.coordinates is not None:
        found |= dict(zip(("latitude", "longitude"), match.coordinates, strict=True))
        if match.leaf in labels:
            found["name"] = labels.pop(match.leaf)
    return found | ({"names": labels} if labels else {})


def _match(
    workspace: Workspace, plan: PlanText, column: str, file: str, reading: Mapping[str, str]
) -> tuple[Match | None, HierarchyFile]:
    """Return how a column fits a file, and the file."""
    inspection = workspace.inspect(raw(workspace, plan), {file: reading}, plan.get("data", "count"))
    return next((one for one in inspection.matches if one.column == column), None), inspection.lookups[0]


def _hints(workspace: Workspace, plan: PlanText, own: Mapping[str, Any], found: Matched) -> list[str]:
    """Return the rules that would make more codes of an attribute match."""
    if found.known_rows == found.rows or "hierarchy" not in own:
        return []
    file = workspace.folder.name_of(plan.path.parent / own["hierarchy"])
    reading = {option: own[option] for option in READING if option in own}
    match, _ = _match(workspace, plan, found.column, file, reading)
    return [] if match is None else match.hints()


def _drawn(tree: Hierarchy) -> dict[str, Any]:
    return {"levels": _levels(tree), "width": _WIDE, "height": _HIGH * len(tree.levels)}


def _levels(tree: Hierarchy) -> list[dict[str, Any]]:
    """Return the levels of a tree with their boxes: as wide as there are leaves below."""
    found = []
    leaves = tree.sizes[-1]
    for depth, level in enumerate(tree.levels):
        boxes = []
        if tree.sizes[depth] <= _MOST_DRAWN:
            for node in range(tree.sizes[depth]):
                first, last = tree.below(depth, node) if depth < len(tree.levels) - 1 else (node, node + 1)
                at, wide = _WIDE * first / leaves, _WIDE * (last - first) / leaves
                key = tree.codes[depth][node].as_py()
                code = tree.name(depth, node) or key
                room = int((wide - 8) / 7)
                label = code if len(code) <= room else f"{code[: room - 1]}…" if room > 4 else ""
                boxes.append(
                    {"x": round(at, 2), "width": round(max(wide, 0.3), 2), "code": code, "key": key, "label": label}
                )
        first_code = tree.codes[depth][0].as_py()
        found.append({"name": level, "nodes": tree.sizes[depth], "y": _HIGH * depth, "boxes": boxes,
                      "such_as": tree.name(depth, 0) or first_code})  # fmt: skip
    return found
