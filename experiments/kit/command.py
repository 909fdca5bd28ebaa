"""A study as one command: `python -m experiments.NAME [--quick] [--runs N]`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import click

from experiments.kit.cases import DATA, DOCS
from experiments.kit.runs import Kept

FENCE = (
    "What it writes is computed from the true counts. These tables are public or made up; those of a private one would "
    "be for its steward only."
)


class _Titled(Protocol):
    @property
    def title(self) -> str: ...


_Item = TypeVar("_Item", bound=_Titled)


@dataclass(frozen=True)
class Call:
    """What was asked for."""

    data: Path
    """The folder with the real tables, which need not be there."""
    docs: Path
    """Where pages (`results`) and pictures (`images`) go."""
    out: Path | None
    """Where runs are kept."""
    runs: int | None
    """How often each setting is run; None for as often as the study thinks right."""
    jobs: int
    """How many runs at once, where a study can."""
    quick: bool
    """Whether small tables and few runs will do."""

    def real(self, what: str = "the real tables", inside: str = "") -> Path | None:
        """Return the folder with the real tables (or one inside it); where it is not, None, and say so."""
        folder = self.data / inside
        if folder.is_dir():
            return folder
        click.echo(f"{what} are skipped: {folder} is not there; name their folder with --data")
        return None

    def kept(self, name: str) -> Kept:
        """Return the runs of one table that are kept, quick ones apart; without a folder for them, none are."""
        return Kept(None if self.out is None else self.out / f"{'quick-' if self.quick else ''}{name}.jsonl")

    def timed(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Hand on one item after the other, and say how long each took."""
        for item in items:
            start = time.perf_counter()
            yield item
            click.echo(f"{item.title}: {time.perf_counter() - start:.0f} s")


def command(study: Callable[[Call], Iterable[Path]]) -> click.Command:
    """Make a study into a command. It takes a call and yields the files that it wrote; its docstring is the help."""

    def run(**asked: object) -> None:
        for file in study(Call(**asked)):  # type: ignore[arg-type]
            click.echo(f"wrote {file}")

    for option in reversed(_OPTIONS):
        run = option(run)
    return click.command(help=f"{study.__doc__}\n\n{FENCE}")(run)


_FOLDER = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--data", type=_FOLDER, default=DATA, help="The folder with the real tables."),
    click.option("--docs", type=_FOLDER, default=DOCS, help="The folder to write to: results/ and images/ in it."),
    click.option("--out", type=_FOLDER, help="Keep every run here, a line of JSON each; the next call takes it up."),
    click.option(
        "--runs", "--repeat", "--repetitions", "runs", type=click.IntRange(min=1), help="Runs of each setting."
    ),
    click.option("--jobs", type=click.IntRange(min=1), default=os.cpu_count(), help="Runs at once, where it can."),
    click.option("--quick", is_flag=True, help="Small tables and few runs: to see that it works."),
)
