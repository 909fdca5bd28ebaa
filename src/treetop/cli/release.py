"""`treetop release`: run a plan once on a private table, and spend its loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from treetop.cli.progress import Bar, check_interrupt, finish
from treetop.cli.terminal import PATH, expect_head, say_json, style

RUN = ("ledger", "dataset", "expect_head", "keep_measurements", "allow_dropped", "threads", "testing_key")
"""Options of the run itself; the others are about the folder."""


def _key(text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise click.BadParameter("give 64 hexadecimal digits")
    return key


@click.command()
@click.argument("plan", type=PATH)
@click.argument("table", required=False)
@click.option("--out", type=PATH, required=True, help="The folder to write.")
@click.option("--ledger", type=PATH, help="Charge the loss to this ledger.")
@click.option("--dataset", help="The data set to charge; a ledger that keeps several must be told.")
@expect_head
@click.option("--query", help="The query, if TABLE is a database.")
@click.option("--force", is_flag=True, help="Replace the folder if there is one.")
@click.option("--nodes", is_flag=True, help="Also write every level, to nodes.parquet.")
@click.option("--part", type=click.IntRange(min=1), metavar="LEAVES", help="Write in parts of about so many leaves.")
@click.option("--keep-measurements", is_flag=True, help="Also keep all that was measured, for later estimates.")
@click.option("--twin", metavar="TABLE", help="A public table, or a release, to try intervals on; the card says how.")
@click.option("--allow-dropped", is_flag=True, help="Go on however many records have unknown codes.")
@click.option("--threads", type=click.IntRange(min=1), help="How many threads or workers; all cores by default.")
@click.option(
    "--engine", default="auto", show_default=True, help="Where it is computed: auto, local, processes, spark, dask."
)
@click.option("--staging", type=PATH, help="Private scratch space, for tables beyond memory.")
@click.option("--memory", metavar="SIZE", help='What a worker may hold, such as "2GB"; for tables beyond memory.')
@click.option("--master", metavar="URL", help="The cluster, for an engine that runs on one.")
@click.option("--testing-key", type=_key, hidden=True, help="Reproducible noise; the release is NOT private.")
@click.option("--quiet", is_flag=True, help="Print nothing on success.")
@click.option("--json", "as_json", is_flag=True, help="The summary for machines.")
def command(plan: Path, table: str | None, out: Path, quiet: bool, as_json: bool, **options: Any) -> None:
    """Run PLAN once on TABLE and write the release to a folder. Every run spends the plan's loss again.

    TABLE is a CSV or Parquet file, a database URL (with --query) or - for standard input; it may be left out where
    the plan names its source.
    """
    from treetop.advice import known_outlook
    from treetop.engine.engine import Engine
    from treetop.plan.file import read_plan
    from treetop.publishing.publish import publish, release_summary
    from treetop.publishing.releasing import RunOptions

    _check_options(options)
    where = {name: options.pop(name) for name in ("staging", "memory", "master")}
    engine = Engine(options.pop("engine"), **where)
    file = read_plan(plan)
    with Bar(shown=not (quiet or as_json)) as bar:
        chosen = {name: options.pop(name) for name in RUN}
        run = RunOptions(
            **chosen,
            engine=engine,
            progress=bar,
            before_measuring=None if chosen["ledger"] is None else check_interrupt,
        )
        if not quiet and (found := known_outlook(file)) is not None and found["verdict"] != "better than zeros":
            noise = next(one for one in found["sentences"] if one.startswith("Mostly noise"))
            click.echo(f"{found.title}:\n{noise}", err=True)
        done = publish(file, table, out, run, before_placing=finish, **options)
    summary = release_summary(file, done, tried=options["twin"] is not None)
    if as_json:
        say_json(summary)
    elif not quiet:
        click.echo(render(summary))


def _check_options(options: dict[str, Any]) -> None:
    if options["dataset"] is not None and options["ledger"] is None:
        raise click.UsageError("--dataset names a data set of a ledger: give --ledger FILE as well")
    if options["expect_head"] is not None and options["ledger"] is None:
        raise click.UsageError("--expect-head is about a ledger: give --ledger FILE as well")
    if options["testing_key"] is not None and options["ledger"] is not None:
        raise click.UsageError("a release with a testing key protects nobody and is not charged: drop --ledger")


def render(summary: dict[str, Any]) -> str:
    """Return the summary for people."""
    lines = [style(f"{summary['title']}: {summary['out']}", bold=True), _size(summary)]
    lines += summary["counted"]["sentences"]
    if not summary["private"]:
        lines.append(style("NOT PRIVATE: the noise came from a testing key. Do not publish.", fg="red", bold=True))
    else:
        lines += [summary["guarantee"], summary["protects"], *summary.get("graph", [])]
        if summary["ledger"] is None:
            lines.append("No ledger recorded this loss (use --ledger FILE): add it up by hand.")
        else:
            first = ", its first release" if summary["ledger"]["new"] else ""
            lines.append(f"Charged to the data set {summary['ledger']['dataset']!r}{first}.")
            lines.append(f"Ledger fingerprint (keep a copy elsewhere to detect rollback): {summary['ledger']['head']}")
    if (tried := summary.get("coverage")) is not None:
        lines += [tried["sentence"], *tried["notes"]]
    if (found := summary["outlook"]) is not None:
        lines += ["", style(found["title"], bold=True), *found["sentences"], ""]
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
