"""Step 5: review. The plan as a page to read, the changes since an earlier one, and a second person's review."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from treetop._util.numbers import plain
from treetop.addons.studio.folder import LEDGERS, PLANS, free
from treetop.addons.studio.forms import Done, Form
from treetop.addons.studio.steps.accuracy import number
from treetop.addons.studio.workspace import Workspace
from treetop.advice import known_outlook
from treetop.card import in_words
from treetop.card.sentences import say_epsilon, say_odds
from treetop.card.statements import rows
from treetop.errors import LedgerError, TreetopError
from treetop.ledger import Ledger
from treetop.plan.file import differences, plan_text
from treetop.privacy import Loss
from treetop.publishing.publish import plan_summary
from treetop.release.folder import PLAN


def show(workspace: Workspace, entered: Form) -> dict[str, Any]:
    """Return the values of the page."""
    plan = workspace.plan()
    values: dict[str, Any] = {"open": None, "summary": None, "toml": plan.text, "earlier": _earlier(workspace)}
    values |= {"against": entered.get("against"), "differences": None, "reviews": [], **ledgers(workspace)}
    values |= {"entered": {name: entered.get(name) for name in ("reviewer", "note")}}
    if entered.get("against"):
        values["differences"] = differences(_text(workspace, entered.get("against")), plan.text)
    file = plan.whole
    if file is None:
        return values | {"open": plan.questions}
    summary = plan_summary(file)
    verdict = known_outlook(file)
    values |= {"summary": summary, "file": file, "guarantee": _guarantee(summary)}
    values["verdict"] = None if verdict is None else verdict.notes
    values["meaning"] = [
        {"who": row["who"], "epsilon": say_epsilon(row["epsilon"]), "odds": say_odds(row["epsilon"])}
        for row in summary["meaning"]
    ]
    rules = in_words(list(rows(file.keep, file.drop).values()))
    values["rules"] = rules + [f"{rule[0].upper()}{rule[1:]}." for rule in file.prepared]
    if values["ledger"] is not None:
        values["reviews"] = workspace_ledger(workspace).reviews(file.plan.digest)
    return values


def act(workspace: Workspace, form: Form) -> Done:
    """Record a review, or make or choose a ledger."""
    if form.get("do") == "ledger":
        return make_ledger(workspace, form, "review")
    ledger, plan = workspace_ledger(workspace), workspace.plan()
    file = plan.whole
    if file is None:
        raise LedgerError("The plan still has open questions: answer them first")
    if form.get("seen") != plan.version:
        raise LedgerError("The plan was changed since this page was shown: read it again, and then sign")
    ledger.review(file.plan.digest, form.get("reviewer"), form.get("note"), file.plan.title)
    return Done("review", "The review is recorded in the ledger.")


def ledgers(workspace: Workspace) -> dict[str, Any]:
    """Return the values of the page on ledgers and their budgets."""
    told: dict[str, Any] = {"ledgers": workspace.ledgers(), "ledger": None, "balances": [], "ledger_trouble": None}
    told["new_ledger"] = free(workspace.folder, "budget", LEDGERS[0])
    try:
        ledger = workspace.ledger()
    except TreetopError as problem:
        return told | {"ledger_trouble": str(problem)}
    if ledger is None:
        return told
    balances = [
        {
            "dataset": one.dataset,
            "unit": one.unit,
            "spent": ledger.budget.say_spent(one.spending),
            "left": ledger.budget.say_left(one.spending),
            "share": min(float(one.spent / one.budget), 1.0) if one.budget else 0.0,
            "entries": one.entries,
        }
        for one in ledger.balances()
    ]
    about = {"ledger": workspace.folder.name_of(ledger.path), "budget": ledger.budget.say(ledger.budget.amount)}
    return told | about | {"balances": balances, "head": ledger.head()[1]}


def workspace_ledger(workspace: Workspace) -> Ledger:
    """Return the ledger; refuse if there is none."""
    ledger = workspace.ledger()
    if ledger is None:
        raise LedgerError("There is no ledger yet: make one, or choose one, and then go on")
    return ledger


def make_ledger(workspace: Workspace, form: Form, to: str) -> Done:
    """Make a ledger, or choose another one."""
    if form.get("name") in workspace.ledgers():
        workspace.choose_ledger(form.get("name"))
        return Done(to, f"The ledger is now {form.get('name')}.")
    name = form.get("name") or "budget"
    name = name if name.endswith(LEDGERS) else name + LEDGERS[0]
    path = workspace.folder.new(name, LedgerError)
    delta = form.get("delta")
    loss = Loss(epsilon=number(form.get("epsilon"), "Epsilon"), delta=number(delta, "Delta") if delta else None)
    Ledger.create(path, loss=loss, datasets=(form.get("dataset"),) if form.get("dataset") else ())
    workspace.ledger_name = workspace.folder.name_of(path)
    return Done(to, f"Made the ledger {name}. Its budget is never changed.")


def _earlier(workspace: Workspace) -> list[str]:
    """List plans to compare with: other plan files, and those of releases."""
    plans = [one.name for one in workspace.folder.files(PLANS) if one.name != workspace.plan_name]
    return plans + [f"{name}/{PLAN}" for name in workspace.folder.releases()]


def _text(workspace: Workspace, name: str) -> str:
    if name not in _earlier(workspace):
        raise LedgerError(f"{name}: there is no such plan here: choose one that is listed")
    return plan_text(workspace.folder.file(name))


def _guarantee(summary: dict[str, Any]) -> str:
    loss = summary["loss"]
    if loss["definition"] == "pure":
        return f"Epsilon {say_epsilon(loss['epsilon'])}, pure differential privacy; Laplace noise."
    delta = plain_float(loss["delta"])
    return f"Epsilon {say_epsilon(loss['epsilon'])} at delta {delta}; Gaussian noise."


def plain_float(value: float) -> str:
    """Write a small number without an exponent."""
    return plain(Fraction(repr(value)))
