"""`treetop demo`: a release of shipped data, from the plan to the answers, with the truth beside them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop.cli.terminal import PATH, say_json, text_table

if TYPE_CHECKING:
    from treetop.plan.file import PlanFile
    from treetop.release.release import Release

ASKED: tuple[dict[str, Any], ...] = (
    {"origin": "CA"},
    {"destination": "ORD"},
    {"origin": "Northeast", "destination": "South"},
    {"origin": "CA", "destination": "TX"},
    {"origin": "SEA", "destination": "ORD"},
)


def shipped(name: str) -> Path:
    """Return a folder of the shipped examples: inside the package, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "examples" / name
    return inside if inside.exists() else package.parents[1] / "examples" / name


@click.command()
@click.option("--out", type=PATH, help="Keep the release in this folder.")
@click.option("--map", "page", type=PATH, metavar="FILE.html", help="Draw a map of it.")
@click.option("--json", "as_json", is_flag=True, help="Print for machines.")
def command(out: Path | None, page: Path | None, as_json: bool) -> None:
    """Everything on shipped data, in under a minute.

    Three million flights between 229 US airports stand in for a private table. Nothing here is secret, so the demo can
    show the truth beside what is released.
    """
    from treetop import Loss, Plan
    from treetop.plan.file import read_plan
    from treetop.publishing.publish import make_release
    from treetop.publishing.releasing import RunOptions

    file = read_plan(shipped("flights") / "plan.toml")
    # The same plan without noise: a loss so large that it hides nothing, on data that are public anyway.
    without_noise = Plan(file.plan.spine, file.plan.unit, Loss(rho=10**9), margins="none")
    options = RunOptions(columns=file.columns, count=file.count)
    with _patience():
        release, exact = (make_release(plan, file.source, options) for plan in (file.plan, without_noise))
    if out is not None:
        release.save(out)
    if page is not None:
        from treetop.exporting import export

        export(release, "map", page, coordinates=shipped("flights") / "airports.csv")
    report = _report(file, release, exact)
    if as_json:
        say_json(report)
    else:
        _show(file, report, out, page)


@contextmanager
def _patience() -> Iterator[None]:
    """Explain a long wait: only the first run on a machine compiles."""
    wait = "Compiling, which only the first run has to do: about half a minute."
    saying = threading.Timer(5.0, click.echo, (wait,), {"err": True})
    saying.daemon = True
    saying.start()
    try:
        yield
    finally:
        saying.cancel()
        saying.join()


def _report(file: PlanFile, release: Release, exact: Release) -> dict[str, Any]:
    from treetop.counts.reading import read_counts
    from treetop.release.errors import measure_errors, measure_margin_errors

    counts = read_counts(file.source, file.plan.spine, file.columns, file.count)
    return {
        "title": file.plan.title,
        "accuracy": file.plan.accuracy().to_dicts(),
        "total": release.total,
        "leaves": len(release.count),
        "levels": [row.to_dict() for row in measure_errors(release, counts)],
        "margins": [row.to_dict() for row in measure_margin_errors(release, counts)],
        "queries": [
            asked
            | {
                "released": release.query(**asked),
                "interval": release.interval(**asked)._asdict(),
                "truth": exact.query(**asked),
            }
            for asked in ASKED
        ],
    }


def _show(file: PlanFile, report: dict[str, Any], out: Path | None, page: Path | None) -> None:
    click.echo(f"{report['title']}\n{file.plan.kept_loss.sentence()}\n{file.plan.unit.sentence()}\n")
    click.echo("Before any data is read, the plan knows how accurate it will be:\n")
    click.echo(f"{file.plan.accuracy()}\n")
    click.echo(f"Released: {report['total']:,} flights in {report['leaves']:,} of {file.plan.spine.leaves:,} pairs.")
    click.echo("Beside the truth, which only a steward can see:\n")
    levels = [("counts", "public nodes", "mean error", "largest", "invented", "lost")]
    levels += [
        (
            row["counts"],
            f"{row['nodes']:,}",
            f"{row['mean']:,.1f}",
            f"{row['largest']:,}",
            f"{row['false_discoveries']:.0%}",
            f"{row['false_negatives']:.0%}",
        )
        for row in [*report["levels"], *report["margins"]]
    ]
    click.echo(text_table(levels, left=(0,)))
    click.echo("\nAny code of any level can be asked; the answers always add up, and have noise intervals:\n")
    queries = [("query", "released", "95% interval", "truth")]
    queries += [
        (
            " ".join(f"{end}={row[end]}" for end in ("origin", "destination") if end in row),
            f"{row['released']:,}",
            f"{row['interval']['lower']:,} – {row['interval']['upper']:,}",
            f"{row['truth']:,}",
        )
        for row in report["queries"]
    ]
    click.echo(text_table(queries, left=(0,)))
    if out is not None:
        click.echo(f"\nThe release is in {out}.")
    where = "treetop demo --map map.html draws a map as well" if page is None else f"Open {page} in a browser"
    click.echo(f"\n{where}.")
