"""`treetop ledger`: make a ledger, and show the spent loss."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from treetop._util.numbers import plain
from treetop.cli.terminal import PATH, expect_head, number, say_json, style, tell, text_table
from treetop.errors import LedgerError, printable
from treetop.ledger import Balance, Entry, Ledger, warn_of_network
from treetop.ledger.budget import Budget, plain_down
from treetop.ledger.entry import alike, listed
from treetop.privacy.loss import Loss

_FILE = click.argument("file", type=PATH)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")


@click.group()
def command() -> None:
    """Make a ledger, and show what has been spent."""


@command.command()
@_FILE
@click.option("--epsilon", type=number, help="The budget as epsilon: with --delta, or alone for pure.")
@click.option("--delta", type=number, help="The chance left to exceed epsilon, such as 1e-8.")
@click.option("--rho", type=number, help="The budget as rho (zCDP); --delta then only reports epsilon.")
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    help="A data set that it is for; repeatable. Else the first that is charged.",
)
@click.option("--any-dataset", is_flag=True, help="Take any name: each new one has a whole budget.")
@_JSON
def create(
    file: Path,
    epsilon: Fraction | None,
    delta: Fraction | None,
    rho: Fraction | None,
    datasets: tuple[str, ...],
    any_dataset: bool,
    as_json: bool,
) -> None:
    """Make a ledger FILE. The budget is for each data set, by its name, and is never changed.

    It takes the data sets that --dataset names, or else the first that is charged; `treetop ledger add` declares more.
    """
    loss = Loss(epsilon=epsilon, delta=delta, rho=rho)
    ledger = Ledger.create(file, loss=loss, datasets=datasets, any_dataset=any_dataset)
    for position, name in enumerate(ledger.datasets):
        _tell_alike(name, alike(name, ledger.datasets[:position]))
    warn_of_network(ledger.path)
    if as_json:
        say_json(_about(ledger) | {"warnings": loss.warnings()})
        return
    click.echo(f"Made the ledger {file}. The budget of {_scope(ledger)}:")
    click.echo(f"  {ledger.budget.say(ledger.budget.amount)}")
    click.echo(f"Ledger fingerprint (keep a copy elsewhere to detect rollback): {ledger.head()[1]}")
    for warning in loss.warnings():
        click.echo(style(f"Warning: {warning}", fg="red"))
    click.echo(f"Next: treetop release PLAN --ledger {file} --dataset NAME --out DIR")


@command.command()
@_FILE
@click.argument("dataset", metavar="NAME")
@expect_head
@_JSON
def add(file: Path, dataset: str, expect_head: str | None, as_json: bool) -> None:
    """Declare another data set NAME of FILE, with a whole budget of its own.

    Only for data about others: whoever is in two data sets pays the budgets of both.
    """
    ledger = Ledger.open(file, head=expect_head)
    near = ledger.alike(dataset)
    head = ledger.add(dataset)
    _tell_alike(dataset, near)
    if as_json:
        say_json(_about(ledger))
        return
    click.echo(f"The ledger {file} now takes {listed(one.dataset for one in ledger.balances())}.")
    click.echo(f"Ledger fingerprint (keep a copy elsewhere to detect rollback): {head}")


@command.command()
@_FILE
@click.argument("plan", type=PATH)
@click.option("--name", required=True, help="Whoever has read the plan.")
@click.option("--note", default="", help="What they say of it.")
@expect_head
@_JSON
def review(file: Path, plan: Path, name: str, note: str, expect_head: str | None, as_json: bool) -> None:
    """Record in FILE that a second person has read PLAN. It spends nothing, and is about this very plan."""
    from treetop.plan.file import read_plan

    read = read_plan(plan).plan
    ledger = Ledger.open(file, head=expect_head)
    head = ledger.review(read.digest, name, note, read.title)
    if as_json:
        say_json({"plan_sha256": read.digest, "reviewer": name, "head": head})
        return
    click.echo(f"Recorded in {file}: {name} has read the plan {read.digest}.")
    click.echo(f"Ledger fingerprint (keep a copy elsewhere to detect rollback): {head}")


@command.command()
@_FILE
@click.option("--dataset", help="Show this data set only.")
@click.option("--head", "only_head", is_flag=True, help="Print the fingerprint alone.")
@expect_head
@_JSON
def show(file: Path, dataset: str | None, only_head: bool, expect_head: str | None, as_json: bool) -> None:
    """Show each data set's budget, what was spent and what remains, and every release charged to FILE."""
    ledger = Ledger.open(file, head=expect_head)
    records, head = ledger.head()
    if only_head:
        say_json({"records": records, "head": head}) if as_json else click.echo(head)
        return
    balances = ledger.balances(dataset)
    if dataset is not None and not balances:
        known = ", ".join(one.dataset for one in ledger.balances()) or "none yet"
        raise LedgerError(f"{file}: nothing was charged to a data set {dataset!r}; it has: {known}")
    entries = sorted((entry for one in balances for entry in one.entries), key=lambda entry: entry.number)
    if as_json:
        report = _about(ledger) | {
            "datasets": [_balance(ledger.budget, one) for one in balances],
            "entries": [_entry(entry) for entry in entries],
            "reviews": [asdict(review) for review in ledger.reviews()],
        }
        say_json(report)
        return
    click.echo(f"Ledger {file}, made {ledger.created}. The budget of {_scope(ledger)}:")
    click.echo(f"  {ledger.budget.say(ledger.budget.amount)}")
    if balances:
        click.echo()
        _print([row for one in balances for row in _rows(ledger.budget, one)], _heading(ledger.budget))
        if ledger.budget.currency == "zcdp":
            click.echo(_adding(balances))
        for balance in balances:
            if balance.unit is not None:
                click.echo(printable(f"All releases of {balance.dataset} protect: {balance.unit}"))
    click.echo()
    if not entries:
        click.echo("Nothing was charged yet.")
    else:
        shown = [[str(one.number), one.time, one.dataset, _cost(ledger, one), one.state, one.title] for one in entries]
        _print(shown, ["entry", "time", "data set", "cost", "state", "title"])
    for one in ledger.reviews():
        said = f": {one.note}" if one.note else ""
        click.echo(printable(f"{one.time}: {one.reviewer} has read the plan {one.plan_sha256[:12]}…{said}"))
    click.echo()
    click.echo(f"Ledger fingerprint (keep a copy elsewhere to detect rollback): {head}")


def _scope(ledger: Ledger) -> str:
    if ledger.any_dataset:
        return "each data set, by its name"
    known = [balance.dataset for balance in ledger.balances()]
    return (
        f"each data set ({listed(known)}; no others)" if known else "the data set that is charged first, and no other"
    )


def _tell_alike(name: str, near: list[str]) -> None:
    if near:
        tell(
            f"the data set {name!r} looks like {listed(near)}, and each has a whole budget: the same data under two "
            "names pays only half of what it costs"
        )


def _adding(balances: tuple[Balance, ...]) -> str:
    added = "Costs add up as rho; as epsilon they do not."
    if not any(balance.epsilon is not None and balance.spending.gaussian for balance in balances):
        return added
    return (
        f"{added} Epsilon is computed from the noise of all releases together if it is known, so more rho may fit "
        "than the budget's."
    )


def _heading(budget: Budget) -> list[str]:
    if budget.currency == "pure":
        return ["data set", "", "epsilon"]
    delta = budget.loss.delta
    return ["data set", "", "rho"] + ([] if delta is None else [f"epsilon at delta {plain(delta)}"])


def _rows(budget: Budget, balance: Balance) -> list[list[str]]:
    rows = []
    for what in ("budget", "spent", "remaining"):
        amount: Fraction = getattr(balance, what)
        figures = plain_down if what == "remaining" else plain
        row = [balance.dataset if what == "budget" else "", what, figures(amount)]
        if budget.currency == "zcdp" and budget.loss.delta is not None:
            epsilon = _epsilons(budget, balance)[what]
            row.append("" if epsilon is None else figures(epsilon))
        rows.append(row)
    return rows


def _epsilons(budget: Budget, balance: Balance) -> dict[str, float | None]:
    spent = balance.spending
    whole, left = budget.epsilon(budget.amount), budget.epsilon_left(spent)
    return {"budget": whole, "spent": budget.epsilon_of(spent), "remaining": left}


def _cost(ledger: Ledger, entry: Entry) -> str:
    if entry.definition == ledger.budget.currency:
        return f"{'epsilon' if entry.definition == 'pure' else 'rho'} {plain(entry.charged)}"
    return f"rho {plain(entry.charged)} (pure epsilon {plain(entry.cost)})"


def _print(rows: list[list[str]], heading: list[str]) -> None:
    # A title may hold anything, even codes that drive a terminal.
    table = [[printable(cell) for cell in row] for row in [heading, *rows]]
    click.echo(text_table(table, left=range(len(heading)), rule=False))


def _about(ledger: Ledger) -> dict[str, Any]:
    loss = ledger.budget.loss
    stated = {"epsilon": loss.epsilon, "delta": loss.delta, "rho": loss.rho}
    return {
        "ledger": str(ledger.path),
        "created": ledger.created,
        "definition": ledger.budget.currency,
        "loss": {name: None if value is None else str(value) for name, value in stated.items()},
        "budget": _amount(ledger.budget, ledger.budget.amount),
        "only": [] if ledger.any_dataset else [balance.dataset for balance in ledger.balances()],
        "any_dataset": ledger.any_dataset,
        "head": ledger.head()[1],
    }


def _balance(budget: Budget, balance: Balance) -> dict[str, Any]:
    amounts = {what: _amount(budget, getattr(balance, what)) for what in ("budget", "spent", "remaining")}
    for what, epsilon in _epsilons(budget, balance).items():
        amounts[what]["epsilon"] = epsilon
    return {"dataset": balance.dataset, "unit": balance.unit, **amounts}


def _amount(budget: Budget, amount: Fraction) -> dict[str, Any]:
    rho = {} if budget.currency == "pure" else {"rho": float(amount)}
    return {"exact": str(amount), **rho, "epsilon": budget.epsilon(amount)}


def _entry(entry: Entry) -> dict[str, Any]:
    told = {"entry": entry.number, **asdict(entry), "state": entry.state}
    del told["number"]
    cells = None if entry.cells is None else [[str(variance), number] for variance, number in entry.cells]
    return told | {"cost": str(entry.cost), "charged": str(entry.charged), "cells": cells}
