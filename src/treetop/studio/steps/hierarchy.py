"""Step 2: the hierarchy. Public files say which codes there are; the page shows the tree, and what it does not know."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from treetop.domain.hierarchy import Hierarchy
from treetop.errors import PlanFileError, TreetopError
from treetop.intake.inspect import Inspection
from treetop.plan.file import draft_plan
from treetop.plan.file.edit import changed, without_section
from treetop.studio.bench import Bench
from treetop.studio.folder import TABLES
from treetop.studio.forms import Form
from treetop.studio.state import PlanText
from treetop.studio.steps import Done
from treetop.studio.steps.table import matched, raw

_OF_A_FILE = (
    "column", "hierarchy", "levels", "name", "names", "latitude", "longitude", "ragged", "encoding", "same_as", "codes",
    "widths", "values", "child", "parent",
)  # fmt: skip
_WIDE, _HIGH = 720, 34
_MOST_DRAWN = 400
UNKNOWN = {
    "error": "Stop with an error: nothing is released until every code is known.",
    "elsewhere": "Count them under a leaf called “elsewhere”, which every hierarchy then has.",
    "drop": "Leave their rows out. How many there are stays private, and the total is then noisy as well.",
}


def show(bench: Bench, entered: Form) -> dict[str, Any]:
    """Return what the page shows."""
    plan = bench.plan()
    own = plan.get("data", "source")
    private = None if own is None else bench.folder.name_of(plan.path.parent / own)
    chosen = entered.all("file") if entered else _files(plan)
    unknown = plan.get("data", "unknown", default="error")
    values: dict[str, Any] = {
        "files": [one for one in bench.folder.files(TABLES) if one.name != private],
        "chosen": chosen,
        "attributes": _attributes(plan, entered),
        "trees": [],
        "matched": matched(bench, plan, Form()),
        "unknown": entered.get("unknown") or (unknown if isinstance(unknown, str) else "leaf"),
        "choices": UNKNOWN,
        "trouble": None,
    }
    try:
        file = plan.sketch
        values["trees"] = list(_trees(file.plan.spine.attributes))
    except TreetopError as problem:
        values["trouble"] = str(problem)
    return values


def act(bench: Bench, form: Form) -> Done:
    """Do what was asked for."""
    plan = bench.plan()
    if form.get("do") == "files":
        return _take(bench, plan, form)
    if form.get("do") == "values":
        return _list(plan, form)
    unknown = form.get("unknown")
    if unknown not in UNKNOWN:
        raise PlanFileError("What is to become of unknown codes? Choose one of the three")
    plan.change({(("data",), "unknown"): None if unknown == "error" else unknown}, form.get("seen"))
    return Done("hierarchy", f"Saved to {plan.path.name}.")


def _files(plan: PlanText) -> list[str]:
    found = [one.get("hierarchy") for one in plan.get("attributes", default={}).values() if isinstance(one, Mapping)]
    return [one for one in dict.fromkeys(found) if isinstance(one, str)]


def _attributes(plan: PlanText, entered: Form) -> list[dict[str, Any]]:
    """Return the attributes as the plan has them; those without a public list of codes ask for one."""
    found = []
    for name, own in plan.get("attributes", default={}).items():
        listed = "\n".join(own.get("values", ()))
        typed = entered.get(f"values.{name}") if f"values.{name}" in entered else listed
        has = any(key in own for key in ("hierarchy", "same_as"))
        found.append({"name": name, "column": own.get("column", name), "file": own.get("hierarchy"), "values": typed,
                      "same_as": own.get("same_as"), "lists": not has})  # fmt: skip
    return found


def _list(plan: PlanText, form: Form) -> Done:
    """Take lists of values, and leave attributes out that are not to be published."""
    text, gone = plan.text, form.all("without")
    for name in gone:
        text = without_section(text, ("attributes", name), plan.path.name)
    changes: dict[tuple[tuple[str, ...], str], Any] = {}
    for name, typed in form.under("values.").items():
        if name not in gone:
            listed = [one.strip() for one in typed.splitlines() if one.strip()]
            changes[("attributes", name), "values"] = listed
    changes |= _order(PlanText(plan.path, text), gone)
    plan.replace(changed(text, changes, plan.path.name), form.get("seen"))
    return Done("hierarchy", f"Saved to {plan.path.name}.")


def _order(plan: PlanText, gone: list[str]) -> dict[tuple[tuple[str, ...], str], Any]:
    """Return the order of the spine without attributes that were left out; for one attribute there is none."""
    order = plan.get("spine", "order")
    if not gone or order is None:
        return {}
    left = plan.get("attributes", default={})
    if len(left) < 2:
        return {(("spine",), "order"): None, (("spine",), "margins"): None}
    if isinstance(order, str):
        levels = [f"{name}.{level}" for name, own in left.items() for level in own.get("levels", ())]
        return {(("spine",), "order"): levels or list(left)}
    return {(("spine",), "order"): [one for one in order if one.partition(".")[0] not in gone]}


def _take(bench: Bench, plan: PlanText, form: Form) -> Done:
    """Compare the table with public files, and write the attributes that they make into the plan."""
    files = tuple(form.all("file"))
    if not files:
        raise PlanFileError("Choose at least one public file with the codes, or drop one into the folder first")
    inspection = bench.inspect(raw(bench, plan), files, plan.get("data", "count"))
    drafted = tomllib.loads(draft_plan(inspection, plan.path.parent), parse_float=Decimal)
    if not any("hierarchy" in own for own in drafted.get("attributes", {}).values()):
        told = "; ".join(inspection.notes) or "no column of the table has codes that stand there"
        raise PlanFileError(f"Nothing in {', '.join(files)} fits the table: {told}. Choose another file")
    text, changes = _merged(plan, drafted)
    plan.replace(changed(text, changes, plan.path.name), form.get("seen"))
    return Done("hierarchy", " ".join(_said(inspection)))


def _merged(plan: PlanText, drafted: Mapping[str, Any]) -> tuple[str, dict[tuple[tuple[str, ...], str], Any]]:
    """Return the plan's text without attributes that have become others, and the fields that the draft changes."""
    text, before = plan.text, plan.get("attributes", default={})
    after: Mapping[str, Any] = drafted.get("attributes", {})
    taken = {own.get("column", name) for name, own in after.items()}
    for name, own in before.items():
        if name not in after and own.get("column", name) in taken:
            text = without_section(text, ("attributes", name), plan.path.name)
    changes: dict[tuple[tuple[str, ...], str], Any] = {
        (("attributes", name), field): own.get(field)
        for name, own in after.items()
        for field in _OF_A_FILE
        if field in own or field in before.get(name, {})
    }
    order = plan.get("spine", "order")
    if "order" in drafted.get("spine", {}) and (order is None or isinstance(order, list)):
        changes[("spine",), "order"] = drafted["spine"]["order"]
    for rule in ("trim", "pad"):  # what makes more codes match, unless the plan has such a rule already
        if rule in drafted.get("data", {}) and plan.get("data", rule) is None:
            changes[("data",), rule] = drafted["data"][rule]
    return text, changes


def _said(inspection: Inspection) -> Iterator[str]:
    for match in inspection.matches:
        yield f"{match.sentence()}."
        for hint in match.hints():
            yield f"{hint.partition(':')[0]}: done, see step 1."


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
