"""The experiments as one command: `python -m experiments.inftda`."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pyarrow.parquet as pq

from experiments.false_discoveries.tables import DATA
from experiments.inftda import page
from experiments.inftda.measure import REPEATS, run_all

DOCS = Path(__file__).resolve().parents[2] / "docs"


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="The folder with the real tables.")
@click.option("--docs", type=click.Path(path_type=Path), default=DOCS, help="The folder of the page.")
@click.option("--out", type=click.Path(path_type=Path), help="Also write every number, a Parquet file a table, here.")
@click.option("--repeat", type=click.IntRange(min=1), default=REPEATS, show_default=True, help="Runs of each setting.")
@click.option("--jobs", type=click.IntRange(min=1), default=os.cpu_count(), help="Runs at once.")
@click.option("--quick", is_flag=True, help="Only the sparse tables, without the solver: about a minute.")
def command(data: Path, docs: Path, out: Path | None, repeat: int, jobs: int, quick: bool) -> None:
    """Run the paper's experiments, and write docs/results/inftda.md with its figures.

    What it writes is computed from the true counts. These tables are public; those of a private one would be for its
    steward only.
    """
    from experiments.inftda.figures import draw

    if not data.is_dir():
        click.echo(f"the real table is skipped: {data} is not there; name its folder with --data")
    found = run_all(data if data.is_dir() else None, repeat, jobs, quick, click.echo)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, comparison in found.items():
            pq.write_table(comparison.table(), out / f"{name}.parquet")
    images, text = docs / "images", docs / "results" / "inftda.md"
    files = draw(found, images)
    page.write(found, text, images)
    for file in (text, *files):
        click.echo(f"wrote {file}")


if __name__ == "__main__":
    command()
