"""Publishing: a plan is run once on a private table, charged to a ledger, and its release written to a folder.

In this order: what cannot succeed is refused, the table is read, the loss is charged, the counts are measured, the
folder is written whole, and the ledger records it. Before the charge nothing is lost; after it, the loss stays spent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from treetop._util.lazy import changed
from treetop._util.system import Progress
from treetop.advice.coverage import twin_coverage
from treetop.advice.public import read_twin
from treetop.card import Facts
from treetop.engine.engine import AUTO, Engine, as_engine
from treetop.errors import LedgerError, PlanError
from treetop.exporting.places import Places, read_places
from treetop.io.source import as_public, reads_once
from treetop.io.table import Table, read
from treetop.ledger import Ledger, Reservation
from treetop.plan.file import PlanFile, describe_plan, read_plan
from treetop.plan.file.attributes import Lookup
from treetop.plan.plan import PurePlan
from treetop.publishing.charging import Account, Milestone, PaidRun, nothing, spending
from treetop.publishing.releasing import Run
from treetop.release.folder import claimed, drafted
from treetop.release.release import Release


@dataclass(frozen=True)
class Published:
    """A release that is in its folder, and what it took."""

    release: Release
    """The release."""
    folder: Path
    """Where it is."""
    head: str | None = None
    """The head of the ledger, to be noted elsewhere."""
    notes: tuple[str, ...] = ()
    """What was not done alike for a public twin."""

    @property
    def reservation(self) -> Reservation | None:
        """What was charged; None without a ledger."""
        return self.release.reservation


def publish(
    plan: PurePlan | PlanFile | str | Path,
    table: Table | str | None = None,
    out: str | Path = "release",
    *,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    expect_head: str | None = None,
    columns: Mapping[str, str] | None = None,
    count: str | None = None,
    description: str = "",
    period: str | None = None,
    query: str | None = None,
    force: bool = False,
    nodes: bool = False,
    part: int | None = None,
    keep_measurements: bool = False,
    twin: str | None = None,
    allow_dropped: bool = False,
    threads: int | None = None,
    engine: str | Engine = AUTO,
    progress: Progress | None = None,
    testing_key: bytes | None = None,
    before_charging: Milestone = nothing,
    before_placing: Milestone = nothing,
) -> Published:
    """Run a plan once on a private table and write the release to the folder `out`: whole, or not at all.

    A plan file says itself how its table is read: `columns`, `count`, `description` and `period` are for plans that are
    made in Python. The loss is charged to the `dataset` of a `ledger` before anything is measured. `twin` names
    a public table, or a release, on which intervals are tried first; the card says how they held. The rest is as in
    `Plan.release` and `Release.save`.
    """
    if isinstance(plan, PurePlan):
        file, facts = None, Facts(testing_key is None, description, period, columns, count)
    else:
        file = plan if isinstance(plan, PlanFile) else read_plan(plan)
        plan, facts = file.plan, Facts.of_file(file, private=testing_key is None)
        keep_measurements = keep_measurements or file.keep_measurements
        if (columns, count, description, period) != (None, None, "", None):
            raise PlanError("the plan file says columns, count, description and period: leave them out, or correct it")
    job = _Publishing(
        file=file,
        out=Path(out),
        paid=PaidRun(
            plan,
            Run(facts, None, as_engine(engine, threads), progress, keep_measurements, allow_dropped, testing_key),
            before_charging=before_charging,
        ),
        query=query,
        twin=twin,
        folder={"force": force, "nodes": nodes, "part": part},
        before_placing=before_placing,
    )
    with claimed(job.out, force) as beside:
        source = job.source(table)
        job.refuse_second_reading(table)
        job.paid.account = Account.open(ledger, dataset, expect_head, testing_key)
        return job(table, source, beside)


@dataclass
class _Publishing:
    """One run of `publish`."""

    file: PlanFile | None
    out: Path
    paid: PaidRun
    query: str | None
    twin: str | None
    folder: dict[str, Any]
    before_placing: Milestone
    notes: list[str] = field(default_factory=list)

    def __call__(self, table: Table | str | None, source: Any, beside: Path) -> Published:
        self.paid.check_budget(source)
        self._try_twin(table)
        places = {} if self.file is None else {key: one.to_table() for key, one in places_of(self.file).items()}
        account = self.paid.account
        with spending(account):
            toml = None if self.file is None else describe_plan(self.file)
            release = changed(self.paid(source), plan_toml=toml)
            options: dict[str, Any] = {**self.folder, "places": places, "beside": beside}
            with drafted(release, self.out, progress=self.paid.how.progress, **options) as draft:
                self.before_placing()
                draft.place()
                head = self._complete(draft.card_sha256)
        return Published(release, self.out, head, tuple(self.notes))

    def source(self, table: Table | str | None) -> Any:
        """Return the private table with the options to read it."""
        if self.file is None:
            if table is None:
                raise PlanError("name the private table")
            return table
        location = table or self.file.source
        if location is None:
            raise PlanError("name the private TABLE, or give the plan a [data] source")
        if not isinstance(location, str | Path):
            self.file.refuse_private(location)
            return self.paid.plan.own_table(location)
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
        self.paid.plan.refuse_unless_top_down()
        prior, self.notes = read_twin(file, self.twin, compare=False)
        private = self.paid.plan.counts(self.source(table), self.file.columns, self.file.count)
        found = twin_coverage(self.paid.plan, prior, progress=self.paid.how.progress, private=private).to_dict()
        self.paid.state(coverage={"twin": found["twin"], "runs": found["runs"]})

    def _complete(self, card_sha256: str) -> str | None:
        try:
            return None if self.paid.account is None else self.paid.account.complete(card_sha256)
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
