"""Publish: run a plan once on a private table, charge a ledger, and write the release to a folder.

The steps, in order: refuse a run that cannot succeed, read the table, charge the loss, measure the counts, write the
complete folder, record it in the ledger. A failure before the charge costs nothing; after it, the loss stays spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from treetop._util.lazy import changed
from treetop.advice import read_public
from treetop.advice.coverage import twin_coverage
from treetop.card import RunInfo
from treetop.errors import LedgerError, PlanError
from treetop.exporting.places import Places, read_places
from treetop.io.source import as_public, reads_once
from treetop.io.table import Table, read
from treetop.ledger import Reservation
from treetop.measure.readers import read_true_counts
from treetop.plan.file import PlanFile, describe_plan, read_plan
from treetop.plan.file.attributes import Lookup
from treetop.plan.plan import Plan
from treetop.publishing.charging import Account, ChargedRun, report_spent_loss
from treetop.publishing.releasing import RunOptions
from treetop.release.folder import claimed, drafted
from treetop.release.release import Release


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
    job = _Publication(
        file=file,
        out=Path(out),
        run=ChargedRun(plan, options, facts),
        query=query,
        twin=twin,
        folder={"force": force, "nodes": nodes, "part": part},
        before_placing=before_placing,
    )
    with claimed(job.out, force) as beside:
        source = job.source(table)
        job.refuse_second_reading(table)
        job.run.account = Account.of_run(options)
        return job(table, source, beside)


def _facts(options: RunOptions) -> RunInfo:
    """Return the card fields for a plan made in Python."""
    private = options.testing_key is None
    return RunInfo(private, options.description, options.period, options.columns, options.count)


@dataclass
class _Publication:
    """A release that is being written to its folder."""

    file: PlanFile | None
    out: Path
    run: ChargedRun
    query: str | None
    twin: str | None
    folder: dict[str, Any]
    before_placing: Callable[[], object] | None
    notes: list[str] = field(default_factory=list)

    def __call__(self, table: Table | str | None, source: Any, beside: Path) -> Published:
        self.run.check_budget(source)
        self._try_twin(table)
        places = {} if self.file is None else {key: one.to_table() for key, one in places_of(self.file).items()}
        with report_spent_loss(self.run.account):
            toml = None if self.file is None else describe_plan(self.file)
            release = changed(self.run(source), plan_toml=toml)
            options: dict[str, Any] = {**self.folder, "places": places, "beside": beside}
            with drafted(release, self.out, progress=self.run.options.progress, **options) as draft:
                if self.before_placing is not None:
                    self.before_placing()
                draft.place()
                head = self._complete(draft.card_sha256)
        return Published(release, self.out, head, tuple(self.notes))

    def source(self, table: Table | str | None) -> Any:
        """Return the private table with its read options."""
        if self.file is None:
            if table is None:
                raise PlanError("name the private table")
            return table
        location = table or self.file.source
        if location is None:
            raise PlanError("name the private TABLE, or give the plan a [data] source")
        if not isinstance(location, str | Path):
            self.file.refuse_private(location)
            return self.run.plan.reader.own_table(location)
        return self.file.table(str(location), self.query)

    def refuse_second_reading(self, table: Table | str | None) -> None:
        """Refuse to compare a twin with standard input or a pipe: that can be read once, and the release needs it."""
        if self.twin is None:
            return
        if self.file is None:
            raise PlanError("a twin is read as the plan file says: publish a plan file, or leave the twin out")
        if any(reads_once(one) for one in (table or self.file.source, self.twin) if isinstance(one, str)):
            raise PlanError(
                "a twin is compared with the private table before the release reads that, and standard input or a "
                "pipe can be read once: name files for both"
            )

    def _try_twin(self, table: Table | str | None) -> None:
        """Try the plan on its public twin, with testing keys only, before anything is measured."""
        if self.twin is None or self.file is None:
            return
        location = str(table) if isinstance(table, str | Path) else self.file.source
        file = replace(self.file, source=location, query=self.query or self.file.query)
        self.run.plan.refuse_unless_top_down()
        prior, self.notes = read_public(file, self.twin, compare=False)
        private = read_true_counts(self.run.plan, self.source(table), self.file.columns, self.file.count)
        found = twin_coverage(self.run.plan, prior, progress=self.run.options.progress, private=private).to_dict()
        self.run.state(coverage={"twin": found["twin"], "runs": found["runs"]})

    def _complete(self, card_sha256: str) -> str | None:
        try:
            return None if self.run.account is None else self.run.account.complete(card_sha256)
        except LedgerError as problem:
            raise LedgerError(f"{self.out} is written, but the ledger could not record it: {problem}") from problem


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
        pq.write_table(read(as_public(lookup.source)), copy)
        yield copy
