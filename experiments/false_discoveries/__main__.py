"""The study as one command: `python -m experiments.false_discoveries`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from experiments.false_discoveries import page
from experiments.false_discoveries.measure import EPSILONS, Study, study
from experiments.kit import pages
from experiments.kit.cases import real_tables, tables
from experiments.kit.command import Call, as_command


@as_command("--out")
def command(call: Call) -> Iterator[Path]:
    """Measure what each repair invents and loses, and write docs/results/false-discoveries.md and its plots.

    Three real tables, each released 10 times in every way; with --quick two that are made up, twice.
    """
    if not call.quick and not call.data.is_dir():
        click.echo(f"skipped: the real tables are not in {call.data}; name their folder with --data")
        return
    chosen = tables(None, quick=True) if call.quick else real_tables(call.data)
    runs = call.runs or (2 if call.quick else 10)
    studies = [study(table, EPSILONS, runs, call.kept(table.name)) for table in call.timed(chosen)]
    yield from write(studies, call.docs)


def write(studies: Sequence[Study], docs: Path) -> list[Path]:
    """Write the page and its plots; return the files."""
    from experiments.false_discoveries.figures import draw

    return [pages.write(docs / "results" / "false-discoveries.md", page.page(studies)), *draw(studies, docs / "images")]


if __name__ == "__main__":
    command()
