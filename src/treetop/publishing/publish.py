"""Publish: run a plan once on a private table, charge a ledger, and write the release to a folder.

The steps, in order: refuse a run that cannot succeed, read the table, charge the loss, measure the counts, write the
complete folder, record it in the ledger. A failure before the charge costs nothing; after it, the loss stays spent.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from treetop._util.lazy import changed
from treetop.advice import counts_groups, known_outlook, largest_sizes, margins_not_kept, read_public
from treetop.advice.coverage import twin_coverage
from treetop.card import RunInfo, in_words
from treetop.card.distributions import statements_of
from treetop.card.meaning import meaning
from treetop.card.statements import before_a_release, exact, facts, loss_summary, reckless, worse_than_none
from treetop.errors import LedgerError, PlanError
from treetop.exporting.places import Places, read_places
from treetop.io.source import as_public, reads_once
from treetop.io.table import Table, read
from treetop.ledger import Reservation
from treetop.measure.readers import read_true_counts
from treetop.plan.file import PlanFile, describe_plan, read_plan
from treetop.plan.file.attributes import Lookup
from treetop.plan.mechanism import TopDown
from treetop.plan.plan import Plan
from treetop.plan.workload import LevelAccuracy
from treetop.publishing._charging import Account, ChargedRun, report_spent_loss
from treetop.publishing.releasing import RunOptions
from treetop.release.folder import claimed, drafted
from treetop.release.release import Release
from treetop.repair import REPAIRS


@dataclass(frozen=True)
class Published:
    """A release in its folder, with the charge."""

    release: Release
    folder: Path
    head: str | None = None
    """Fingerprint of the ledger: keep a copy elsewhere to detect rollback."""
    notes: tuple[str, ...] = ()
    """Differences between the run and the trial on the public twin."""

    @property
    def reservation(self) -> Reservation | None:
        """The charge; None without a ledger."""
        return self.release.reservation


def make_release(plan: Plan, table: Table, options: RunOptions | None = None) -> Release:
    """Run a plan once on a private table, in memory, and return the public release.

    Every call draws fresh noise and spends the loss again. With a ledger, the loss is charged before anything is
    measured, and recorded as complete when the release is saved. For degrees the table is a `Graph`.
    """
    options = options or RunOptions()
    account = Account.of_run(options)
    run = ChargedRun(plan, options, _facts(options), account)
    run.check_budget(table)
    with report_spent_loss(account):
        return run(table)


def publish(
    plan: Plan | PlanFile | str | Path,
    table: Table | str | None = None,
    out: str | Path = "release",
    options: RunOptions | None = None,
    *,
    query: str | None = None,
    twin: str | None = None,
    force: bool = False,
    nodes: bool = False,
    part: int | None = None,
    before_placing: Callable[[], object] | None = None,
) -> Published:
    """Run a plan once on a private table and write the release to the folder `out`: whole, or not at all.

    Args:
        plan: A plan, or a plan file. A plan file says itself how its table is read: columns, count, description and
            period are then no options.
        table: The private table; it may be left out if the plan file names its source.
        out: The folder to write.
        options: How the plan is run, and the ledger that is charged.
        query: The query, if the table is a database.
        twin: A public table, or a release, on which intervals are tried first; the card says how they held.
        force: Replace the folder if there is one.
        nodes: Also write every level.
        part: Write in parts of about so many leaves.
        before_placing: Called when the folder is complete, before it is moved to its place.
    """
    options = options or RunOptions()
    if isinstance(plan, Plan):
        file, facts = None, _facts(options)
    else:
        file = plan if isinstance(plan, PlanFile) else read_plan(plan)
        plan, facts = file.plan, RunInfo.of_file(file, private=options.testing_key is None)
        if (options.columns, options.count, options.description, options.period) != (None, None, "", None):
            raise PlanError("the plan file says columns, count, description and period: leave them out, or correct it")
        options = replace(options, keep_measurements=options.keep_measurements or file.keep_measurements)
    if part is not None and (not TopDown.runs(plan) or plan.resolve != "full" or REPAIRS[plan.repair].again):
        raise PlanError(
            "a release of group sizes, degrees, a joint fit, with `resolve` or with the lower error is written as one "
            "part, since its intervals rest on all that was measured together: leave `part` out"
        )
    run, place = ChargedRun(plan, options, facts), Path(out)
    with claimed(place, force) as beside:
        source = _private_table(file, plan, table, query)
        if twin is not None:
            _refuse_second_reading(file, table, twin)
        run.account = Account.of_run(options)
        run.check_budget(source)
        notes = [] if twin is None or file is None else _try_twin(run, file, table, query, twin)
        places = {} if file is None else {key: one.to_table() for key, one in places_of(file).items()}
        with report_spent_loss(run.account):
            toml = None if file is None else describe_plan(file)
            release = changed(run(source), plan_toml=toml)
            folder: dict[str, Any] = {"force": force, "nodes": nodes, "part": part, "places": places, "beside": beside}
            with drafted(release, place, progress=options.progress, **folder) as draft:
                if before_placing is not None:
                    before_placing()
                draft.place()
                try:
                    head = None if run.account is None else run.account.complete(draft.card_sha256)
                except LedgerError as problem:
                    raise LedgerError(f"{place} is written, but the ledger could not record it: {problem}") from problem
    return Published(release, place, head, tuple(notes))


def _private_table(file: PlanFile | None, plan: Plan, table: Table | str | None, query: str | None) -> Any:
    """Return the private table with its read options."""
    if file is None:
        if table is None:
            raise PlanError("name the private table")
        return table
    location = table or file.source
    if location is None:
        raise PlanError("name the private TABLE, or give the plan a [data] source")
    if not isinstance(location, str | Path):
        file.refuse_private(location)
        return plan.reader.own_table(location)
    return file.table(str(location), query)


def _refuse_second_reading(file: PlanFile | None, table: Table | str | None, twin: str) -> None:
    """Refuse to compare a twin with standard input or a pipe: that can be read once, and the release needs it."""
    if file is None:
        raise PlanError("a twin is read as the plan file says: publish a plan file, or leave the twin out")
    if any(reads_once(one) for one in (table or file.source, twin) if isinstance(one, str)):
        raise PlanError(
            "a twin is compared with the private table before the release reads that, and standard input or a pipe can "
            "be read once: name files for both"
        )


def _try_twin(run: ChargedRun, file: PlanFile, table: Table | str | None, query: str | None, twin: str) -> list[str]:
    """Try the plan on its public twin, with testing keys only, before anything is measured; return notes."""
    location = str(table) if isinstance(table, str | Path) else file.source
    run.plan.refuse_unless_top_down()
    prior, notes = read_public(replace(file, source=location, query=query or file.query), twin, compare=False)
    private = read_true_counts(run.plan, _private_table(file, run.plan, table, query), file.columns, file.count)
    found = twin_coverage(run.plan, prior, progress=run.options.progress, private=private).to_dict()
    run.state(coverage={"twin": found["twin"], "runs": found["runs"]})
    return notes


def _facts(options: RunOptions) -> RunInfo:
    """Return the card fields for a plan made in Python."""
    private = options.testing_key is None
    return RunInfo(private, options.description, options.period, options.columns, options.count)


def places_of(file: PlanFile) -> dict[str, Places]:
    """Return the coordinates that a plan's public files give for its leaves, by the digest of the tree."""
    spine, found = file.plan.spine, {}
    for tree, (name, given) in zip(spine.trees, spine.attributes.items(), strict=True):
        lookup = file.lookups.get(name)
        if lookup is not None and lookup.latitude is not None and tree.levels[-1] == given.levels[-1]:
            with _as_read(lookup) as path:
                found[tree.digest] = read_places(
                    path, code=lookup.code, latitude=lookup.latitude, longitude=lookup.longitude, name=lookup.name
                )
    return found


@contextmanager
def _as_read(lookup: Lookup) -> Iterator[Path]:
    """Yield a public file that needs no options to be read: itself, or a copy of what its options select."""
    source = lookup.source
    if not (source.encoding or source.delimiter or source.keep or source.drop or source.sheet):
        yield lookup.file
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, f"{lookup.file.stem}.parquet")
        columns = [lookup.code, lookup.name, lookup.latitude, lookup.longitude]
        pq.write_table(read(as_public(lookup.source), list(dict.fromkeys(filter(None, columns)))), copy)
        yield copy


# Summaries of plans and releases as plain values: cost, expected accuracy, results.


def plan_summary(plan: PlanFile | str | Path, confidence: float = 0.95, total: float | None = None) -> dict[str, Any]:
    """Return accuracy, noise and cost of a plan file by level, with explanations: the content of `treetop plan`.

    If `total` (the approximate number of records) is given, also return the expected quality of a release.
    """
    file = plan if isinstance(plan, PlanFile) else read_plan(plan)
    told = file.plan
    described = told.describe()
    accuracy = told.accuracy(confidence)
    not_kept, statements = margins_not_kept(told, confidence), statements_of(told)
    warnings = [*reckless(told), *worse_than_none(told, total)]
    return {
        "title": told.title,
        "plan": str(file.path),
        "plan_sha256": told.digest,
        "leaves": told.spine.leaves,
        "confidence": confidence,
        "levels": _rows(accuracy.levels, described["levels"]),
        "margins": _rows(accuracy.margins, described.get("margins", [])),
        "unit": {**described["unit"], "enforced": told.unit.enforced, "sentence": told.unit.sentence()},
        "loss": loss_summary(told),
        "not_kept": [asdict(one) for one in not_kept],
        "warnings": [*in_words(warnings), *map(str, not_kept)],
        "meaning": in_words(meaning(told)),
        "exact": in_words(exact(told, statements.exact_total(told))),
        "facts": in_words({"tables": facts(told), "sentences": before_a_release(told)}),
        "keep": file.keep and {column: list(values) for column, values in file.keep.items()},
        "drop": file.drop and {column: list(values) for column, values in file.drop.items()},
        "prepared": list(file.prepared),
        "graph": None if file.graph is None else file.graph.sentences(),
        "notes": [*file.notes, *in_words(statements.notes(told))],
        "largest": largest_sizes(told, confidence).to_dict() if counts_groups(told) else None,
        "outlook": None if (found := known_outlook(file, total)) is None else found.to_dict(),
    }


def release_summary(file: PlanFile, done: Published, tried: bool = False) -> dict[str, Any]:
    """Return the folder of a release and its guarantee, as plain values."""
    release, reservation = done.release, done.reservation
    card, out = in_words(release.card), done.folder
    outlook = None if file.plan.mechanism.name != "top-down" else known_outlook(file, release.total or None)
    charged: dict[str, Any] | None = None
    if reservation is not None:
        charged = {"entry": reservation.number, "sha256": reservation.sha256, "dataset": reservation.dataset}
        charged |= {"new": reservation.new, "head": done.head}
    left = None if release.left is None else {"total": release.unresolved_total, "nodes": len(release.left)}
    return {
        "out": str(out),
        "id": card["id"],
        "title": card["title"],
        "private": card["private"],
        "guarantee": card["guarantee"],
        "protects": card["protects"],
        "counted": card["counted"],
        "leaves": release.leaves,
        "total": release.total,
        "unresolved": left,
        "outlook": None if outlook is None else outlook.to_dict(),
        "ledger": charged,
        "next": f"treetop check {shlex.quote(str(out))}",
        "coverage": card["accuracy"]["coverage"] | {"notes": list(done.notes)} if tried else None,
        "graph": [] if file.graph is None else file.graph.sentences(),
    }


def _rows(rows: Sequence[LevelAccuracy], parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the expected accuracy of tables with their costs and noise."""
    pairs = zip(rows, parts, strict=True)
    return [{**asdict(row), "cost": part["cost"], "law": part["noise"]} for row, part in pairs]
