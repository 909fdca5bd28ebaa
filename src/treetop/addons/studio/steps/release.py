"""Step 6: release. It runs in the background, once, charged to a ledger; the page shows its progress."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from treetop.addons.studio.folder import free
from treetop.addons.studio.forms import Done, Form
from treetop.addons.studio.job import Job
from treetop.addons.studio.steps.review import ledgers, make_ledger, workspace_ledger
from treetop.addons.studio.workspace import Workspace
from treetop.errors import PlanError, ReleaseError
from treetop.publishing.releasing import RunOptions

STAGES = {"starting": "Getting ready", "reading": "Reading the table", "measuring": "Measuring with noise"}


def show(workspace: Workspace, entered: Form) -> dict[str, Any]:
    """Return the values of the page."""
    values: dict[str, Any] = {
        "job": workspace.job,
        "open": None,
        **ledgers(workspace),
        "releases": workspace.folder.releases(),
    }
    values["form"] = {
        "out": entered.get("out") or free(workspace.folder, "release"),
        "dataset": entered.get("dataset") or (values["balances"][0]["dataset"] if len(values["balances"]) == 1 else ""),
        "keep_measurements": "keep_measurements" in entered,
        "allow_dropped": "allow_dropped" in entered,
        "charge": entered.get("charge") or ("yes" if values["ledger"] else "no"),
    }
    if workspace.job is not None:
        values["progress"] = progress(workspace.job)
    if workspace.has_plan:
        plan = workspace.plan()
        values |= {"open": plan.questions, "file": plan.whole}
    return values


def act(workspace: Workspace, form: Form) -> Done:
    """Start a release, or cancel it."""
    if form.get("do") == "ledger":
        return make_ledger(workspace, form, "release")
    if form.get("do") == "cancel":
        if workspace.job is not None:
            workspace.job.cancel()
        return Done("release")
    plan = workspace.plan()
    if form.get("seen") != plan.version:
        raise PlanError("The plan was changed since this page was shown: look at it again, and then release")
    file = plan.whole
    if file is None:
        raise PlanError("The plan still has open questions: they are listed below")
    run = RunOptions(keep_measurements="keep_measurements" in form, allow_dropped="allow_dropped" in form)
    if form.get("charge", "yes") == "yes":
        run = replace(run, ledger=workspace_ledger(workspace), dataset=form.get("dataset") or None)
    workspace.start(Job(file, workspace.folder.new(form.get("out"), ReleaseError), run))
    return Done("release")


def progress(job: Job) -> dict[str, Any]:
    """Return the progress of a release, as plain values."""
    stage = STAGES.get(job.stage, job.stage[:1].upper() + job.stage[1:])
    if job.cancelling:
        stage = "Stopping"
    return {"state": job.state, "stage": stage, "share": round(job.share, 3), "late": job.placing}
