"""A study as one command: `python -m experiments.NAME [--quick] [--runs N]`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from experiments.kit.cases import DATA, DOCS
from experiments.kit.runs import Kept
from experiments.kit.stamp import SEEN

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
    quick: bool
    """Whether small tables and few runs will do."""
    runs: int | None
    """How often each setting is run; None for as often as the study thinks right."""
    jobs: int = 1
    """How many runs at once."""
    out: Path | None = None
    """Where runs are kept."""

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


def as_command(*more: str, least_runs: int = 1) -> Callable[[Callable[[Call], Iterable[Path]]], click.Command]:
    """Make a study into a command: it takes a call, and yields the files that it wrote; its docstring is the help.

    All have `--data`, `--docs`, `--runs` and `--quick`; a study names what `more` it has of `--out` and `--jobs`.
    """
    options = {
        "--data": click.option("--data", type=_FOLDER, default=DATA, help="The folder with the real tables."),
        "--docs": click.option("--docs", type=_FOLDER, default=DOCS, help="Where to write: results/ and images/."),
        "--out": click.option("--out", type=_FOLDER, help="Keep runs here, as lines of JSON, and take up those kept."),
        "--runs": click.option(
            *("--runs", "--repeat", "--repetitions", "runs"),
            type=click.IntRange(min=least_runs),
            help="Runs of each setting.",
        ),
        "--jobs": click.option("--jobs", type=click.IntRange(min=1), default=os.cpu_count(), help="Runs at once."),
        "--quick": click.option("--quick", is_flag=True, help="Small tables and few runs: to see that it works."),
    }

    def make(study: Callable[[Call], Iterable[Path]]) -> click.Command:
        def run(**asked: Any) -> None:
            SEEN.begin()
            for file in study(Call(**asked)):
                click.echo(f"wrote {file}")

        for name in reversed(options):
            if name in ("--data", "--docs", "--runs", "--quick", *more):
                run = options[name](run)
        return click.command(help=f"{study.__doc__}\n\n{FENCE}")(run)

    return make


_FOLDER = click.Path(path_type=Path)
