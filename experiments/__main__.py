"""All studies, one after the other: `python -m experiments`, or `make experiments`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from experiments.kit.cases import DATA, DOCS, ROOT
from experiments.kit.stamp import stamped
from treetop._util.distribution import VERSION

STUDIES = (
    *("false_discoveries", "inftda", "loss_split", "group_sizes", "graphs", "coverage", "resolution", "estimates"),
    *("plan_design", "margins", "facts", "joint_fit", "large_counts"),
)
"""In this order; each writes the page of its name."""
_FOLDER = click.Path(path_type=Path)


def page_of(study: str, docs: Path) -> Path:
    """Return where the page of a study is."""
    return docs / "results" / f"{study.replace('_', '-')}.md"


def is_finished(study: str, docs: Path) -> bool:
    """Whether this version has written the page: it is the last that a study does, but for pictures."""
    page = page_of(study, docs)
    return page.is_file() and stamped(page.read_text(encoding="utf-8")) == VERSION


@click.command()
@click.argument("studies", nargs=-1, type=click.Choice(STUDIES))
@click.option("--data", type=_FOLDER, default=DATA, help="The folder with the real tables.")
@click.option("--docs", type=_FOLDER, default=DOCS, help="Where to write: results/ and images/.")
@click.option("--out", type=_FOLDER, default=ROOT / ".experiments", help="Where runs are kept, by study.")
@click.option("--again", is_flag=True, help="Also those whose pages this version has written already.")
@click.option("--quick", is_flag=True, help="Small tables and few runs: to see that it works.")
def command(studies: tuple[str, ...], data: Path, docs: Path, out: Path, again: bool, quick: bool) -> None:
    """Run all STUDIES, or those that are named, and write their pages.

    A study whose page this version has written is skipped. One that was stopped goes on with the runs that it has kept.
    """
    for study in studies or STUDIES:
        if not again and is_finished(study, docs):
            click.echo(f"{study}: finished with this version already")
            continue
        click.echo(f"{study}:")
        own = import_module(f"experiments.{study}.__main__").command
        asked = ["--data", str(data), "--docs", str(docs), *(["--quick"] if quick else [])]
        if any(option.name == "out" for option in own.params):
            asked += ["--out", str(out / study)]
        own.main(asked, standalone_mode=False)


if __name__ == "__main__":
    command()
