"""Step 1: the table. It is chosen or dropped, read, and its rows are prepared by rules that go into the plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from treetop.addons.studio.folder import TABLES, free
from treetop.addons.studio.forms import Done, Form
from treetop.addons.studio.plan_state import PlanText, spine_changes, with_renamed, write
from treetop.addons.studio.templates import plan_from, templates
from treetop.addons.studio.workspace import Workspace, refuse_database
from treetop.errors import DataError, PlanFileError, TreetopError
from treetop.inspection import Inspection
from treetop.inspection.detect import detect
from treetop.io.source import Source
from treetop.plan.file import draft_plan
from treetop.plan.file.edit import Changes, without_section

DATA = ("data",)
READING = ("sheet", "delimiter", "encoding")
"""Options for reading a file, if they cannot be detected."""
_LISTS = re.compile(r"[,\n]")
_HEADERS: Mapping[str, bool | None] = {"auto": None, "yes": True, "no": False}


def show(workspace: Workspace, entered: Form) -> dict[str, Any]:
    """Return the values of the page."""
    plan = workspace.plan() if workspace.has_plan else None
    chosen = entered if entered.get("do") == "choose" else Form()
    values: dict[str, Any] = {
        "files": workspace.folder.files(TABLES),
        "templates": templates(),
        "choosing": {
            "open": bool(chosen),
            "table": chosen.get("table"),
            "header": chosen.get("header", "auto"),
            "names": chosen.get("names"),
            **{name: chosen.get(name) for name in READING},
            "template": chosen.get("template"),
            "people": chosen.get("people"),
            "plan": chosen.get("plan") or free(workspace.folder, "plan", ".toml"),
        },
        "inspection": None,
        "trouble": None,
        "kind": None,
    }
    if plan is None:
        return values
    values |= {"source": plan.get("data", "source"), "kind": plan.kind, "reading": _stated_reading(plan)}
    try:
        inspection = workspace.inspect(raw(workspace, plan))
        values |= _found(inspection) | {"form": _form(plan, inspection, entered)}
    except TreetopError as problem:
        values["trouble"] = str(problem)
    return values


def act(workspace: Workspace, form: Form) -> Done:
    """Handle the page's form."""
    if form.get("do") == "choose":
        return _choose(workspace, form)
    plan = workspace.plan()
    plan.refuse_other_kinds()
    if form.get("do") == "again":  # the way the table is read, where it could not be read at all
        plan.change(_reading(form), form.get("seen"))
        return Done("table", "Saved.")
    after = plan.with_text(plan.changed(changes_of(form, plan)))
    for old, name in _renamed(form, plan).items():
        if old in plan.get("attributes", default={}):  # which is called as its column was
            after = with_renamed(after, old, name)
    plan.replace(after.text, form.get("seen"))
    return Done("table", f"Saved to {plan.path.name}.")


def _choose(workspace: Workspace, form: Form) -> Done:
    path = workspace.folder.file(form.get("table"))
    name = form.get("plan") or free(workspace.folder, "plan", ".toml")
    if not name.endswith(".toml"):
        name += ".toml"
    target = workspace.folder.new(name, PlanFileError)
    if target.exists():
        raise PlanFileError(f"{name} exists already, and stays: give the new plan another name")
    header = _HEADERS.get(form.get("header", "auto"))
    how = {name: form.get(name) or None for name in READING}
    source, found = detect(Source(str(path), header=header, names=_names(form) or None, **how))  # type: ignore[arg-type]
    inspection = workspace.inspect(source)
    text = draft_plan(replace(inspection, layout=None), target.parent)  # pages prepare tables of records
    if form.get("template") in templates():
        data = PlanText(target, text, workspace.folder).get("data", default={})
        text = plan_from(form.get("template"), inspection.columns, {(DATA, key): item for key, item in data.items()})
    draft = PlanText(target, text, workspace.folder)
    if draft.kind is not None:  # of the templates, a network
        people = form.get("people") and workspace.folder.name_of(workspace.folder.file(form.get("people")))
        if not people:
            raise DataError("“The people of a network”: choose their file; the table lists who knows whom")
        edges = {"edges_header": header, "edges_delimiter": how["delimiter"], "edges_names": _names(form) or None}
        fields = {"nodes": people, "edges": workspace.folder.name_of(path), **edges}
        text = without_section(draft.changed({(("graph",), field): item for field, item in fields.items()}), DATA)
        draft = draft.with_text(text)
    workspace.plan_name = name
    told = [f"{one[0].upper()}{one[1:]}." for one in found]
    anew = bool(draft.waiting) and draft.get("spine", "order") != "joint"
    write(target, draft.changed(spine_changes(draft.values, anew)))
    return Done("table", " ".join([f"{inspection.rows:,} rows were read. A draft of the plan is in {name}.", *told]))


def _names(form: Form) -> list[str]:
    return [one.strip() for one in form.get("names").split(",") if one.strip()] if form.get("header") == "no" else []


def raw(workspace: Workspace, plan: PlanText) -> Source:
    """Return the private table before any preparation."""
    data = plan.get("data", default={})
    if plan.kind is not None and not isinstance(data.get("source"), str):
        raise DataError(f"This plan counts {plan.kind}: its tables are read when it is released")
    if not isinstance(data.get("source"), str):
        raise DataError("The plan names no table: choose one in step 1 (Table)")
    plan.refuse_outside("data.source")
    refuse_database(data["source"])
    path = plan.location(data["source"])
    taken = ("query", "delimiter", "encoding", "fields", "keep", "drop", "header", "names", "sheet", "blank_lines")
    return Source(str(path), **{name: data[name] for name in taken if name in data})


def _found(inspection: Inspection) -> dict[str, Any]:
    """Return the findings of an inspection, in words."""
    told = [f"Columns that nest: {' > '.join(chain)}." for chain in inspection.chains]
    told += [f"{name} names the codes of {code}." for name, code in inspection.names.items()]
    told += [f"{column.name}: {column.note}" for column in inspection.columns if column.note]
    return {"inspection": inspection, "told": told + list(inspection.notes)}


def _form(plan: PlanText, inspection: Inspection, entered: Form) -> dict[str, Any]:
    """Return the values of the preparation form: those entered, or those of the plan."""
    names = [column.name for column in inspection.columns]
    stated = _stated_reading(plan) | _stated_texts(plan)
    stated["names"] = stated["names"] or ", ".join(names)
    if entered.get("do") == "prepare":
        stated |= {name: entered.get(name) for name in stated}
    return {**stated, "columns": names}


def _stated_texts(plan: PlanText) -> dict[str, str]:
    """Return the plan's preparation as values of the form."""
    data = plan.get("data", default={})
    return {
        "missing": ", ".join(data.get("missing", ())),
        "keep": _pairs(data.get("keep", {})),
        "drop": _pairs(data.get("drop", {})),
        "period": data.get("period", ""),
        "title": plan.get("title", default=""),
    }


def _pairs(values: Mapping[str, Any]) -> str:
    """Write values by column, one column per line."""
    return "\n".join(
        f"{column} = {', '.join([given] if isinstance(given, str) else list(given))}"
        for column, given in values.items()
    )


def _read_pairs(text: str, what: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        column, equals, values = line.partition("=")
        if not equals or not column.strip() or not values.strip():
            raise DataError(f"{what}: {line!r} is not understood: write a column, = and values, as in status = test")
        found[column.strip()] = [one.strip() for one in values.split(",") if one.strip()]
    return found


def _stated_reading(plan: PlanText) -> dict[str, str]:
    data = plan.get("data", default={})
    named = data.get("names", ())
    header = next((key for key, value in _HEADERS.items() if data.get("header") is value), "auto")
    return {
        "header": header,
        "names": ", ".join(named) if isinstance(named, list) else "",
        **{name: str(data.get(name, "")) for name in READING},
    }


def _reading(form: Form) -> dict[tuple[tuple[str, ...], str], Any]:
    header = form.get("header", "auto")
    return {
        (DATA, "header"): _HEADERS.get(header),
        (DATA, "names"): _names(form) or None,
        **{(DATA, name): form.get(name) or None for name in READING if name in form},
    }


def changes_of(form: Form, plan: PlanText) -> Changes:
    """Return the changes of the preparation form to a plan; renamed columns are renamed everywhere."""
    renamed = _renamed(form, plan)

    def new(column: str) -> str:
        return renamed.get(column, column)

    missing = [one.strip() for one in _LISTS.split(form.get("missing")) if one.strip()]
    keep, drop = ({new(c): v for c, v in _read_pairs(form.get(n), n.title()).items()} for n in ("keep", "drop"))
    changes: dict[tuple[tuple[str, ...], str], Any] = {
        **(_reading(form) if "header" in form else {}),
        (DATA, "missing"): missing or None,
        (DATA, "keep"): keep or None,
        (DATA, "drop"): drop or None,
        (DATA, "period"): form.get("period") or None,
        ((), "title"): form.get("title") or None,
    }
    reading = _stated_reading(plan)
    if form.get("header") == reading["header"] and form.get("names") in (
        reading["names"],
        ", ".join(form.all("column")),
    ):
        changes.pop((DATA, "names"), None)
    for field, text in {} if renamed else _stated_texts(plan).items():
        if field in form and form.get(field).splitlines() == text.strip().splitlines():  # as it was shown
            changes.pop(((), field) if field == "title" else (DATA, field), None)
    for name, attribute in plan.get("attributes", default={}).items():
        column = attribute.get("column", name)
        if column in renamed:
            changes[("attributes", name), "column"] = renamed[column]
    if (own := plan.get("unit", "id")) in renamed:
        changes[("unit",), "id"] = renamed[own]
    if (own := plan.get("data", "count")) in renamed:
        changes[DATA, "count"] = renamed[own]
    for field in ("pad", "thousands", "trim"):
        if renamed and isinstance(rules := plan.get("data", field), Mapping):
            changes[DATA, field] = {new(column): rule for column, rule in rules.items()}
        elif renamed and isinstance(rules, list):
            changes[DATA, field] = [new(column) for column in rules]
    return changes


def _renamed(form: Form, plan: PlanText) -> dict[str, str]:
    """Return the columns with new names: those of a file without a line of names can be named freely."""
    before, after = plan.get("data", "names", default=form.all("column")), _names(form)
    if not after or len(before) != len(after):
        return {}
    return {old: new for old, new in zip(before, after, strict=True) if old != new}
