"""`treetop release`: run a plan once on a private table, and spend its loss."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from treetop.basics.resolved import resolved
from treetop.cli.charging import expect_head, open_ledger, raise_unfinished, tell_spent
from treetop.cli.interrupts import check_interrupt, finish
from treetop.cli.progress import Bar
from treetop.cli.terminal import style
from treetop.errors import DataError, LedgerError, Overspent

if TYPE_CHECKING:
    from fractions import Fraction

    from treetop.ledger import Ledger, Reservation
    from treetop.ledger.budget import Currency
    from treetop.plan.file import PlanFile
    from treetop.plan.file.attributes import Lookup
    from treetop.release.release import Release


def _key(text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise click.BadParameter("give 64 hexadecimal digits")
    return key


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.argument("table", required=False)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write.")
@click.option("--ledger", type=click.Path(path_type=Path), help="Charge the loss to this ledger.")
@click.option("--dataset", help="The data set to charge; a ledger that keeps several must be told.")
@expect_head
@click.option("--query", help="The query, where TABLE is a database.")
@click.option("--force", is_flag=True, help="Replace the folder if there is one.")
@click.option("--nodes", is_flag=True, help="Also write every level, to nodes.parquet.")
@click.option("--keep-measurements", is_flag=True, help="Also keep all that was measured, for later estimates.")
@click.option("--twin", metavar="TABLE", help="A public table, or a release, to try intervals on; the card says how.")
@click.option("--allow-dropped", is_flag=True, help='With unknown = "drop": go on however many records are dropped.')
@click.option("--threads", type=click.IntRange(min=1), help="How many threads; all cores by default.")
@click.option("--testing-key", type=_key, hidden=True, help="Reproducible noise; the release is NOT private.")
@click.option("--quiet", is_flag=True, help="Print nothing on success.")
@click.option("--json", "as_json", is_flag=True, help="The summary for machines.")
def command(plan: Path, table: str | None, out: Path, quiet: bool, as_json: bool, **options: Any) -> None:
    """Run PLAN once on TABLE and write the release to a folder. Every run spends the plan's loss again.

    TABLE is a CSV or Parquet file, a database URL (with --query) or - for standard input; it may be left out where
    the plan names its source.
    """
    from treetop.plan.file import read_plan

    run = Run(read_plan(plan), out, **options)
    with Bar(shown=not (quiet or as_json)) as bar:
        summary = run(table, bar)
    if as_json:
        click.echo(json.dumps(summary, indent=2))
    elif not quiet:
        click.echo(render(summary))


class Run:
    """One release from a plan file: checked, charged, measured, written, recorded."""

    def __init__(
        self,
        file: PlanFile,
        out: Path,
        ledger: Path | None,
        dataset: str | None,
        expect_head: str | None,
        query: str | None,
        force: bool,
        nodes: bool,
        keep_measurements: bool,
        twin: str | None,
        allow_dropped: bool,
        threads: int | None,
        testing_key: bytes | None,
    ) -> None:
        from treetop.card import Facts

        if dataset is not None and ledger is None:
            raise click.UsageError("--dataset names a data set of a ledger: give --ledger FILE as well")
        if expect_head is not None and ledger is None:
            raise click.UsageError("--expect-head is about a ledger: give --ledger FILE as well")
        if testing_key is not None and ledger is not None:
            raise click.UsageError("a release with a testing key protects nobody and is not charged: drop --ledger")
        self.file, self.out, self.dataset = file, out, dataset
        self.query, self.force, self.nodes, self.threads = query, force, nodes, threads
        self.testing_key, self.twin, self.allow_dropped = testing_key, twin, allow_dropped
        self.keep_measurements = keep_measurements or file.keep_measurements
        self.ledger_path, self.expect_head = ledger, expect_head
        self.head: str | None = None
        self.ledger: Ledger | None = None
        self.reservation: Reservation | None = None
        self.facts = Facts.of_file(file, private=testing_key is None)

    def __call__(self, table: str | None, bar: Bar) -> dict[str, Any]:
        """Run it, and return its summary."""
        from treetop.release.folder import claimed

        with claimed(self.out, self.force) as beside:
            return self._run(table, bar, beside)

    def _run(self, table: str | None, bar: Bar, beside: Path) -> dict[str, Any]:
        from treetop.plan.file import describe_plan
        from treetop.release.folder import drafted

        source = self._source(table)
        self._refuse_second_reading(table)
        self._check()
        notes = self._try_twin(table, bar)
        places = self._places()
        self._card()
        try:
            release = self.file.plan.release(
                source,
                columns=self.file.columns,
                count=self.file.count,
                threads=self.threads,
                progress=bar,
                before_measuring=None if self.ledger is None else self._reserve,
                keep_measurements=self.keep_measurements,
                allow_dropped=self.allow_dropped,
                testing_key=self.testing_key,
            )
            release = replace(release, card=self._card(), plan_toml=describe_plan(self.file))
            options: dict[str, Any] = {"force": self.force, "nodes": self.nodes, "places": places, "beside": beside}
            with drafted(release, self.out, progress=bar, **options) as draft:
                finish()
                draft.place()
                self._complete(draft.card_sha256)
        except BaseException as problem:  # whatever it is, also too little memory
            tell_spent(self.reservation, self.ledger_path)
            raise_unfinished(self.reservation, problem)
            raise
        summary = summarise(release, self.out, self.reservation, self.head)
        tried = None if self.twin is None else release.card["accuracy"]["coverage"] | {"notes": notes}
        return summary | {"coverage": tried, "graph": [] if self.file.graph is None else self.file.graph.sentences()}

    def _source(self, table: str | None) -> Any:
        location = table or self.file.source
        if location is None:
            raise click.UsageError("name the private TABLE, or give the plan a [data] source")
        for name, lookup in self.file.lookups.items():
            if _same_file(location, lookup.file):
                raise DataError(
                    f"{location} is the hierarchy of {name!r}, not a private table: name the table, and never "
                    "take a hierarchy from it"
                )
        return self.file.table(location, self.query)

    def _refuse_second_reading(self, table: str | None) -> None:
        """Refuse to compare a twin with standard input or a pipe: that can be read once, and the release needs it."""
        from treetop.tables.source import reads_once

        if self.twin is not None and any(map(reads_once, (table or self.file.source, self.twin))):
            raise click.UsageError(
                "--twin compares two tables before the release reads one of them, and standard input or a pipe can be "
                "read once: name files for both"
            )

    def _try_twin(self, table: str | None, bar: Bar) -> list[str]:
        """Try the plan on its public twin, with testing keys only, before anything is measured."""
        if self.twin is None:
            return []
        from treetop.choose.coverage import twin_coverage
        from treetop.cli.choosing import read_twin

        file = replace(self.file, source=table or self.file.source, query=self.query or self.file.query)
        self.file.plan.refuse_unless_top_down()
        prior, notes = read_twin(file, self.twin, compare=False)
        private = self.file.plan.counts(self._source(table), self.file.columns, self.file.count)
        found = twin_coverage(self.file.plan, prior, progress=bar, private=private).to_dict()
        self.facts = replace(self.facts, coverage={"twin": found["twin"], "runs": found["runs"]})
        return notes

    def _places(self) -> dict[str, Any]:
        """Return the coordinates that the plan's public files give for its leaves, for the folder to carry."""
        from treetop.export.places import read_places

        spine, found = self.file.plan.spine, {}
        for tree, (name, given) in zip(spine.trees, spine.attributes.items(), strict=True):
            lookup = self.file.lookups.get(name)
            if lookup is not None and lookup.latitude is not None and tree.levels[-1] == given.levels[-1]:
                with _as_read(lookup) as file:
                    found[tree.digest] = read_places(
                        file,
                        code=lookup.code,
                        latitude=lookup.latitude,
                        longitude=lookup.longitude,
                        name=lookup.name,
                    ).to_table()
        return found

    def _check(self) -> None:
        """Refuse what cannot succeed, before the table is read."""
        from treetop.card.composition import expected_composition

        if self.ledger_path is None:
            return
        self.ledger, self.dataset = open_ledger(self.ledger_path, self.dataset, self.expect_head)
        try:
            self.ledger.check(self.dataset, *self._charge())
        except Overspent as problem:
            if self.file.plan.loss.accounting != "exact":
                raise
            raise Overspent(
                f"{problem}. Exact accounting is for a release alone, and a ledger adds up rho, of which it spends "
                'more than its epsilon allows otherwise: write accounting = "zcdp", or a smaller epsilon'
            ) from problem
        self.facts = replace(self.facts, composition=expected_composition(self.ledger, self.dataset, self.file.plan))

    def _card(self) -> dict[str, Any]:
        """Draft the card; one that lacks a required field stops the release here."""
        from treetop.card import describe_release

        return describe_release(self.file.plan, facts=self.facts)

    def _charge(self) -> tuple[Fraction, Currency, str]:
        from treetop.card.composition import currency
        from treetop.ledger import unit_text

        plan = self.file.plan
        return plan.spent, currency(plan), unit_text(plan.unit)

    def _reserve(self) -> None:
        from treetop.card.composition import reserved_composition

        check_interrupt()
        if self.ledger is None or self.dataset is None:
            return
        plan = self.file.plan
        self.reservation = self.ledger.reserve(self.dataset, *self._charge(), plan.title, plan.digest)
        composition = reserved_composition(self.ledger, self.reservation)
        self.facts = replace(self.facts, composition=composition)

    def _complete(self, card_sha256: str) -> None:
        if self.reservation is None:
            return
        try:
            self.head = self.reservation.complete(card_sha256)
        except LedgerError as problem:
            raise LedgerError(f"{self.out} is written, but the ledger could not record it: {problem}") from problem


def summarise(release: Release, out: Path, reservation: Reservation | None, head: str | None = None) -> dict[str, Any]:
    """Return where the release is and what it guarantees, as plain values."""
    card = release.card
    charged = None if reservation is None else {"entry": reservation.number, "sha256": reservation.sha256}
    left = None if release.left is None else {"total": release.unresolved_total, "nodes": len(release.left)}
    return {
        "out": str(out),
        "id": card["id"],
        "title": card["title"],
        "private": card["private"],
        "guarantee": card["guarantee"],
        "protects": card["protects"],
        "leaves": len(release.count),
        "total": release.total,
        "unresolved": left,
        "ledger": charged
        and {
            **charged,
            "dataset": reservation.dataset,  # type: ignore[union-attr]
            "new": reservation.new,  # type: ignore[union-attr]
            "head": head,
        },
        "next": f"treetop check {shlex.quote(str(out))}",
    }


def render(summary: dict[str, Any]) -> str:
    """Return the summary for people."""
    lines = [style(f"{summary['title']}: {summary['out']}", bold=True), _size(summary)]
    if not summary["private"]:
        lines.append(style("NOT PRIVATE: the noise came from a testing key. Do not publish.", fg="red", bold=True))
    else:
        lines += [summary["guarantee"], summary["protects"], *summary.get("graph", [])]
        if summary["ledger"] is None:
            lines.append("No ledger records what this spent (--ledger FILE would): add it up by hand.")
        else:
            first = ", its first release" if summary["ledger"]["new"] else ""
            lines.append(f"Charged to the data set {summary['ledger']['dataset']!r}{first}.")
            lines.append(f"Ledger head, to be noted elsewhere: {summary['ledger']['head']}")
    if (tried := summary.get("coverage")) is not None:
        lines += [tried["sentence"], *tried["notes"]]
    return "\n".join([*lines, f"Next: {summary['next']}"])


def _size(summary: dict[str, Any]) -> str:
    leaves = f"{summary['leaves']:,} {'leaf' if summary['leaves'] == 1 else 'leaves'}"
    left = summary["unresolved"]
    if left is None:
        return f"{summary['total']:,} in {leaves}."
    share = 1 - left["total"] / max(summary["total"], 1)
    nodes = f"{left['nodes']:,} coarser {'node' if left['nodes'] == 1 else 'nodes'}"
    return (
        f"{summary['total']:,}: {share:.1%} of it is resolved to {leaves}; the other {left['total']:,} stand at "
        f"{nodes}, in unresolved.parquet."
    )


@contextmanager
def _as_read(lookup: Lookup) -> Iterator[Path]:
    """Yield a public file that needs no options to be read: itself, or a copy of what its options select."""
    if not (lookup.source.encoding or lookup.source.delimiter or lookup.source.keep):
        yield lookup.file
        return
    import pyarrow.parquet as pq

    from treetop.tables.source import as_public
    from treetop.tables.table import read

    with TemporaryDirectory() as folder:
        copy = Path(folder, f"{lookup.file.stem}.parquet")
        pq.write_table(read(as_public(lookup.source)), copy)
        yield copy


def _same_file(location: str, other: Path) -> bool:
    try:
        return resolved(location) == resolved(other)
    except (OSError, ValueError):  # a path that cannot be, or a URL
        return False
