"""The experiments as one command: `python -m experiments.group_sizes`."""

from __future__ import annotations

from pathlib import Path

import click
import pyarrow.parquet as pq

from experiments.group_sizes import page
from experiments.group_sizes.measure import LARGEST, REPEATS, as_table, run_tables, run_times
from experiments.group_sizes.tables import DATA

DOCS = Path(__file__).resolve().parents[2] / "docs"


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="The folder with the real tables.")
@click.option("--docs", type=click.Path(path_type=Path), default=DOCS, help="The folder of the page.")
@click.option("--out", type=click.Path(path_type=Path), help="Also write every run, as Parquet files, here.")
@click.option("--repeat", type=click.IntRange(min=1), default=REPEATS, show_default=True, help="Runs of each setting.")
@click.option("--quick", is_flag=True, help="Small tables and few runs: under a minute.")
def command(data: Path, docs: Path, out: Path | None, repeat: int, quick: bool) -> None:
    """Run the paper's experiments, and write docs/results/group-sizes.md with its figures.

    What it writes is computed from the true counts. These tables are public or made up; those of a private one would be
    for its steward only.
    """
    from experiments.group_sizes.figures import draw

    told: list[str] = []

    def say(line: str) -> None:
        click.echo(line)
        if "groups" in line:
            told.append(line)

    if not data.is_dir():
        click.echo(f"the real table is skipped: {data} is not there; name its folder with --data")
    runs, refused = run_tables(data if data.is_dir() else None, min(repeat, 3) if quick else repeat, quick, say)
    times = run_times(LARGEST[:2] if quick else LARGEST, 1 if quick else 5, say)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        pq.write_table(as_table(runs), out / "runs.parquet")
        pq.write_table(as_table(times), out / "times.parquet")
    images, text = docs / "images", docs / "results" / "group-sizes.md"
    files = draw(runs, times, images)
    page.write(runs, times, refused, text, told)
    for file in (text, *files):
        click.echo(f"wrote {file}")


if __name__ == "__main__":
    command()
