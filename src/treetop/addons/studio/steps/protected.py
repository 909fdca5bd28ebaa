"""Step 3: the protected unit. The questions that have no safe default, in plain words and with their effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from treetop.addons.studio.folder import TABLES
from treetop.addons.studio.forms import Done, Form
from treetop.addons.studio.steps.table import raw
from treetop.addons.studio.workspace import Workspace
from treetop.advice import limit_guide
from treetop.card.sentences import plural
from treetop.domain.unit import Unit
from treetop.errors import PlanFileError, TreetopError

UNIT = ("unit",)
ENTITIES = ("person", "household", "trip", "flight", "patient", "pupil", "record")
TEN = 10


def show(workspace: Workspace, entered: Form) -> dict[str, Any]:
    """Return the values of the page."""
    plan = workspace.plan()
    if plan.kind is not None:
        file = plan.whole
        sentence = None if file is None else file.plan.unit.sentence()
        return {"kind": plan.kind, "sentence": sentence, "open": plan.open}
    unit = plan.get("unit", default={})
    form = {
        "entity": unit.get("entity", ""),
        "contributions": unit.get("contributions", ""),
        "neighbours": unit.get("neighbours", ""),
        "id": unit.get("id", ""),
        "population": unit.get("population", ""),
    }
    if entered:
        form |= {name: entered.get(name) for name in form}
    columns: list[str] = []
    told: list[str] = []
    try:
        inspection = workspace.inspect(raw(workspace, plan))
        columns = [column.name for column in inspection.columns]
        told = [line for one in inspection.identifiers for line in one.sentences()]
    except TreetopError as problem:
        told = [str(problem)]
    columns += [form["id"]] if form["id"] and form["id"] not in columns else []
    private = workspace.folder.name_of(plan.path.parent / str(plan.get("data", "source", default="")))
    files = [one.name for one in workspace.folder.files(TABLES) if one.name != private]
    values = {"form": form, "columns": columns, "told": told, "entities": ENTITIES, "files": files}
    return {"kind": None, **values, **shown(workspace, Form([(name, str(text)) for name, text in form.items()]))}


def shown(workspace: Workspace, form: Form) -> dict[str, Any]:
    """Return the effect of the answers: somebody with ten records, and what each limit costs."""
    fields = {name: form.get(name) for name in ("entity", "contributions", "neighbours", "id")}
    values: dict[str, Any] = {"example": example(fields), "limits": None, "why_not": ""}
    plan = workspace.plan()
    if not (fields["id"] and fields["contributions"].isdecimal() and plan.kind is None):
        return values
    if plan.waiting:
        return values | {"why_not": "What each limit costs is shown here once the columns have their values."}
    try:
        file = plan.sketch
        unit = replace(file.plan.unit, contributions=int(fields["contributions"]), id=fields["id"], may_be_missing=True)
        prior = workspace.folder.file(form.get("prior")) if form.get("prior") else None
        guide = limit_guide(replace(file, plan=replace(file.plan, unit=unit)), prior)
    except TreetopError as problem:
        return values | {"why_not": str(problem)}
    return values | {"limits": guide}


def act(workspace: Workspace, form: Form) -> Done:
    """Write the answers."""
    plan = workspace.plan()
    plan.refuse_other_kinds()
    entity = form.get("entity")
    if not entity:
        raise PlanFileError("Who or what is protected? Name one of them, such as person, household or trip")
    if form.get("neighbours") not in ("replace", "add-remove"):
        raise PlanFileError("What must stay hidden? Choose one of the two")
    most = form.whole("contributions", f"The number of records of one {entity}")
    population = form.whole("population", "The number of units") if form.get("population") else None
    Unit(entity, most, form.get("neighbours"), id=form.get("id") or None)  # type: ignore[arg-type]
    changes: dict[tuple[tuple[str, ...], str], Any] = {
        (UNIT, "entity"): entity,
        (UNIT, "contributions"): most,
        (UNIT, "neighbours"): form.get("neighbours"),
        (UNIT, "id"): form.get("id") or None,
        (UNIT, "population"): population,
    }
    if not form.get("id") and plan.get("unit", "id_clean") is not None:
        changes[UNIT, "id_clean"] = None
    plan.change(changes, form.get("seen"))
    return Done("protected", f"Saved to {plan.path.name}.")


def example(form: dict[str, Any]) -> list[str]:
    """Return the sentences on somebody with ten records."""
    entity, text = str(form["entity"] or "person").strip(), str(form["contributions"])
    most = int(text) if text.isdecimal() and int(text) else 1
    records = "1 record" if most == 1 else f"{most:,} records"
    kept = f"of ten records that one {entity} has, {min(most, TEN)} {'is' if most == 1 else 'are'} counted"
    if form["id"]:
        chosen = " chosen at random" if most < TEN else ""
        first = (
            f"With the column {form['id']}, {kept},{chosen or ' all of them'}. The guarantee then covers all of them."
        )
    elif most >= TEN:
        first = f"All ten records of one {entity} are counted, and the guarantee covers them together."
    else:
        first = (
            f"Nothing enforces the limit of {records}: all ten records of one {entity} are counted, and the guarantee "
            f"covers {most} of them at a time. For all ten together it is at least {-(-TEN // most)} times weaker. "
            "An id column, or a higher limit, would cover them."
        )
    more = (
        f"The more records of one {entity} count, the more noise has to hide them: a limit of {most} needs about "
        f"{most} times the noise of a limit of 1."
        if most > 1
        else f"One record each needs the least noise. It is the right answer where each of the {plural(entity)} stands "
        "in the table once."
    )
    return [first, more]
