"""Step 2: the hierarchy. Public files list the codes; the page shows the tree, and the unknown codes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from treetop.addons.studio.folder import TABLES
from treetop.addons.studio.forms import Done, Form
from treetop.addons.studio.state import PlanText, spine_changes
from treetop.addons.studio.steps.table import matched, raw
from treetop.addons.studio.workspace import Workspace
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import problem_with_name
from treetop.errors import PlanFileError, TreetopError
from treetop.inspection import Inspection
from treetop.plan.file import draft_plan
from treetop.plan.file.edit import Changes, without_section

_WIDE, _HIGH = 720, 34
_MOST_DRAWN = 400
UNKNOWN = {
    "error": "Stop with an error: nothing is released until every code is known.",
    "elsewhere": "Count them under a leaf called “elsewhere”, which every hierarchy then has.",
    "drop": "Leave their rows out. How many there are stays private, and the total is then noisy as well.",
}


def show(workspace: Workspace, entered: Form) -> dict[str, Any]:
    """Return the values of the page."""
    plan = workspace.plan()
    own = plan.get("data", "source")
    private = workspace.folder.name_of(plan.path.parent / own) if isinstance(own, str) else None
    chosen = entered.all("file") if entered else _files(plan)
    unknown = plan.get("data", "unknown", default="error")
    values: dict[str, Any] = {
        "kind": plan.kind,
        "files": [one for one in workspace.folder.files(TABLES) if one.name != private],
        "chosen": chosen,
        "attributes": _attributes(plan, entered),
        "trees": [],
        "matched": None if plan.kind else matched(workspace, plan, Form()),
        "unknown": entered.get("unknown") or (unknown if isinstance(unknown, str) else "leaf"),
        "choices": UNKNOWN,
        "trouble": None,
        "disordered": plan.problem is not None and "[spine]" in str(plan.problem),
    }
    try:
        file = plan.sketch
        values["trees"] = list(_trees(file.plan.spine.attributes))
    except TreetopError as problem:
        values["trouble"] = str(problem)
    return values


def act(workspace: Workspace, form: Form) -> Done:
    """Handle the page's form."""
    plan = workspace.plan()
    plan.refuse_other_kinds()
    if form.get("do") == "files":
        return _take(workspace, plan, form)
    if form.get("do") == "values":
        return _list(plan, form)
    if form.get("do") == "order":
        plan.change(spine_changes(plan.values, anew=True), form.get("seen"))
        return Done("hierarchy", f"The levels are in order again, coarse ones first. Saved to {plan.path.name}.")
    unknown = form.get("unknown")
    if unknown == "leaf" and isinstance(plan.get("data", "unknown"), Mapping):
        return Done("hierarchy", "Nothing has changed.")
    if unknown not in UNKNOWN:
        raise PlanFileError("What is to become of unknown codes? Choose one of the three")
    if unknown != plan.get("data", "unknown", default="error"):
        plan.change({(("data",), "unknown"): None if unknown == "error" else unknown}, form.get("seen"))
    return Done("hierarchy", f"Saved to {plan.path.name}.")


def _files(plan: PlanText) -> list[str]:
    found = [one.get("hierarchy") for one in plan.get("attributes", default={}).values() if isinstance(one, Mapping)]
    return [one for one in dict.fromkeys(found) if isinstance(one, str)]


def _is_answered(own: Mapping[str, Any]) -> bool:
    return any(key in own for key in ("hierarchy", "values", "same_as"))


def _is_fresh(attributes: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether no attribute names its list of codes yet."""
    return not any(map(_is_answered, attributes.values()))


def _attributes(plan: PlanText, entered: Form) -> list[dict[str, Any]]:
    """Return the attributes of the plan; those without a public list of codes ask for one."""
    found = []
    for name, own in plan.get("attributes", default={}).items():
        listed = "\n".join(own.get("values", ()))
        typed = entered.get(f"values.{name}") if f"values.{name}" in entered else listed
        has = any(key in own for key in ("hierarchy", "same_as"))
        found.append({"name": name, "column": own.get("column", name), "file": own.get("hierarchy"), "values": typed,
                      "same_as": own.get("same_as"), "levels": own.get("levels", ()), "lists": not has,
                      "without": name in entered.all("without"), "forget": name in entered.all("forget")})  # fmt: skip
    return found


def _list(plan: PlanText, form: Form) -> Done:
    """Take lists of values; forget the files of attributes, or leave attributes out."""
    before: Mapping[str, Any] = plan.get("attributes", default={})
    gone = [name for name in form.all("without") if name in before]
    if len(gone) == len(before):
        raise PlanFileError("Every attribute would be left out, and nothing published: keep one at least")
    after = {name: dict(own) for name, own in before.items()}
    for name in [*gone, *(name for name in form.all("forget") if name in before and name not in gone)]:
        _hand_over(name, after)
        after[name] = {"column": after[name].get("column", name)}
    for name, typed in form.under("values.").items():
        listed = [one.strip() for one in typed.splitlines() if one.strip()]
        if name in after and name not in gone and listed != after[name].get("values"):
            after[name] = _with_values(after[name], listed)
    for name in gone:
        del after[name]
    plan.replace(_rewritten(plan, after), form.get("seen"))
    return Done("hierarchy", f"Saved to {plan.path.name}.")


def _hand_over(name: str, attributes: dict[str, dict[str, Any]]) -> None:
    """Give the hierarchy of an attribute to those that share it, before it loses it."""
    sharing = [other for other, own in attributes.items() if own.get("same_as") == name]
    for number, other in enumerate(sharing):
        if number:
            attributes[other]["same_as"] = sharing[0]
        else:
            del attributes[other]["same_as"]
            attributes[other] |= _of_hierarchy(attributes[name])


def _of_hierarchy(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hierarchy settings of an attribute: everything but its column."""
    return {key: item for key, item in own.items() if key != "column"}


def _with_values(own: Mapping[str, Any], listed: list[str]) -> dict[str, Any]:
    """Return an attribute with a list of values; levels stay only if they can be levels of this list."""
    widths, levels = own.get("widths", ()), own.get("levels", ())
    cut = bool(widths) and all(len(code) == widths[-1] for code in listed)
    kept = ("widths", "levels") if cut else ("levels",) if len(levels) == 1 and not widths else ()
    return {key: item for key, item in own.items() if key in ("column", *kept)} | {"values": listed}


def _rewritten(plan: PlanText, attributes: Mapping[str, Mapping[str, Any]], more: Changes | None = None) -> str:
    """Return the plan's text with other attributes, and with matching names in its other fields."""
    before: Mapping[str, Any] = plan.get("attributes", default={})
    for name in before:
        if name not in attributes:
            plan = plan.with_text(without_section(plan.text, ("attributes", name), plan.path.name))
    changes: dict[tuple[tuple[str, ...], str], Any] = {
        (("attributes", name), field): own.get(field)
        for name, own in attributes.items()
        for field in dict.fromkeys([*before.get(name, {}), *own])
    }
    if isinstance(unknown := plan.get("data", "unknown"), Mapping):
        changes[("data",), "unknown"] = {name: leaf for name, leaf in unknown.items() if name in attributes} or None
    plan = plan.with_text(plan.changed({**changes, **(more or {})}))
    return plan.changed(spine_changes(plan.values))


def _take(workspace: Workspace, plan: PlanText, form: Form) -> Done:
    """Compare the table with public files; attributes without a list of codes take those that fit."""
    files = tuple(form.all("file"))
    if not files:
        raise PlanFileError("Choose at least one public file with the codes, or drop one into the folder first")
    inspection = workspace.inspect(raw(workspace, plan), files, plan.get("data", "count"))
    drafted = tomllib.loads(draft_plan(inspection, plan.path.parent), parse_float=Decimal)
    found = drafted.get("attributes", {})
    fitting = {name: own for name, own in found.items() if "hierarchy" in found[own.get("same_as", name)]}
    if not fitting:
        told = "; ".join(inspection.notes) or "no column of the table has codes that stand there"
        raise PlanFileError(f"Nothing in {', '.join(files)} fits the table: {told}. Choose another file")
    before: Mapping[str, Any] = plan.get("attributes", default={})
    after = _merged(before, fitting)
    more: dict[tuple[tuple[str, ...], str], Any] = {}
    if _is_fresh(before) and after == fitting and len(after) > 1:
        more[("spine",), "order"] = drafted["spine"]["order"]
    plan.replace(_rewritten(plan, after, more), form.get("seen"))
    return Done("hierarchy", " ".join(_said(inspection, before, after)))


def _merged(before: Mapping[str, Any], fitting: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the attributes with the lists of codes that fit; one that has a list keeps it.

    A draft without any answer takes columns as the comparison names them, as origin and destination.
    """
    columns = {own.get("column", name): name for name, own in fitting.items()}
    names = {own.get("column", name): name for name, own in before.items()}
    fresh = _is_fresh(before)
    if fresh and set(names) <= set(columns):
        return {name: dict(own) for name, own in fitting.items()}
    after = {name: dict(own) for name, own in before.items()}
    for column, name in columns.items():
        mine = names.get(column) or (_free_name(column, name, after) if fresh else None)
        if mine is None or _is_answered(after.get(mine, {})):
            continue
        listed = _of_hierarchy(fitting[fitting[name].get("same_as", name)])
        twin = next((other for other, own in after.items() if _of_hierarchy(own) == listed), None)
        after[mine] = {"column": column, **(listed if twin is None else {"same_as": twin})}
        names[column] = mine
    return after


def _free_name(column: str, name: str, taken: Mapping[str, Any]) -> str:
    """Return the name of a new attribute: its column's, unless that cannot be one."""
    return column if column not in taken and problem_with_name(column, taken) is None else name


def _said(inspection: Inspection, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield the compared files, the lists taken, and the rules that would make more codes match."""
    names = {own.get("column", name): name for name, own in after.items()}
    for match in inspection.matches:
        yield f"{match.sentence()}."
        name = names.get(match.column)
        if name is not None and _is_answered(before.get(name, {})):
            yield f"{name} keeps the list of codes that the plan has: to take another, forget that one first, below."
        elif name is None:
            yield f"{match.column} is no attribute of the plan, and stays out of it."
        for hint in match.hints():
            if name is not None:
                # One record may be the reason, and the card states every rule: the steward decides.
                yield f"{hint.partition(':')[0]}: set it in step 1 (Table)."


def _trees(attributes: Mapping[str, Hierarchy]) -> Iterator[dict[str, Any]]:
    """Yield every tree once, with the attributes that have it."""
    by_tree: dict[str, tuple[Hierarchy, list[str]]] = {}
    for name, tree in attributes.items():
        by_tree.setdefault(tree.digest, (tree, []))[1].append(name)
    for tree, names in by_tree.values():
        yield {"attributes": names, "levels": _levels(tree), "width": _WIDE, "height": _HIGH * len(tree.levels)}


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
                code = tree.name(depth, node) or tree.codes[depth][node].as_py()
                room = int((wide - 8) / 7)
                label = code if len(code) <= room else f"{code[: room - 1]}…" if room > 4 else ""
                boxes.append({"x": round(at, 2), "width": round(max(wide, 0.3), 2), "code": code, "label": label})
        first_code = tree.codes[depth][0].as_py()
        found.append({"name": level, "nodes": tree.sizes[depth], "y": _HIGH * depth, "boxes": boxes,
                      "such_as": tree.name(depth, 0) or first_code})  # fmt: skip
    return found
