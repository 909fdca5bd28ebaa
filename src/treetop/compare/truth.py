"""A release beside its private table, for the steward only: how far off the released counts are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from treetop.basics.resolved import resolved
from treetop.card.rebuild import rebuild_plan
from treetop.compare.plots import plot_errors
from treetop.errors import DataError, ReleaseError
from treetop.intake.tally import Tally
from treetop.plan.file import PlanFile, read_plan
from treetop.release.errors import LevelErrors, measure_errors
from treetop.release.margin_errors import measure_margin_errors
from treetop.release.release import Release
from treetop.sources.source import Source

_PLAN = "Give the plan file, which says how to read the truth, with --plan PLAN"
_READING = "If the plan says how the table is read (header, names, blank_lines, encoding, fields, delimiter), give it"


@dataclass(frozen=True)
class TrueErrors:
    """The errors of a release. Private: they tell of the truth."""

    levels: tuple[LevelErrors, ...]
    """Those of the total and of every level."""
    margins: tuple[LevelErrors, ...]
    """Those of every margin."""
    tally: Tally
    """What was left out when the truth was read."""


def compare_with_truth(
    folder: str | Path,
    truth: str,
    *,
    plan: PlanFile | str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    count: str | None = None,
    query: str | None = None,
    plot: str | Path | None = None,
) -> TrueErrors:
    """Read the private table of a release folder and return the errors of what was released, for the steward only.

    How the table is read is said by the card, or by the plan file where that says more, as for a graph; `columns` and
    `count` name columns that are called otherwise here. `plot` is a file to draw the errors to, outside of the folder.
    """
    refuse_plot_inside(folder, plot)
    release = Release.load(folder)
    data = release.card["data"]
    if plan is None:
        _refuse_unless_plain(release)
        reader, named, counted = (
            rebuild_plan(release.card, release.spine, release.facts),
            data["columns"] or {},
            data["count_column"],
        )
        source = Source(truth, query, keep=data.get("keep"), drop=data.get("drop"))
    else:
        file = plan if isinstance(plan, PlanFile) else read_plan(plan)
        own = file.plan.as_released(release.spine)
        if own.spine.digest != release.spine.digest:
            raise ReleaseError(f"{file.path} refines other levels or hierarchies than the release in {folder}")
        reader, named, counted, source = own, file.columns, file.count, file.table(truth, query)
    tally = Tally()
    try:
        counts = reader.counts(source, {**named, **(columns or {})}, count or counted, tally)
    except DataError as problem:
        if plan is not None or not Path(truth).exists():
            raise
        raise DataError(f"{str(problem).rstrip('.')}. {_READING} with --plan PLAN") from problem
    levels, margins = (measure(release, counts, tally.dropped) for measure in (measure_errors, measure_margin_errors))
    errors = TrueErrors(levels, margins, tally)
    if plot is not None:
        plot_errors(errors.levels + errors.margins, Path(plot), release.card["title"])
    return errors


def refuse_plot_inside(folder: str | Path, plot: str | Path | None) -> None:
    """Refuse to draw errors into the folder that is published."""
    if plot is not None and resolved(plot).is_relative_to(resolved(folder)):
        raise ReleaseError("the plot shows private errors: never write it into the release folder")


def _refuse_unless_plain(release: Release) -> None:
    """Refuse to read a truth without the plan file where the folder tells that it takes more than a location."""
    text = release.plan_toml or ""
    if "graph" in release.card or re.search(r"^(# )?\[graph\]$", text, re.MULTILINE):
        raise ReleaseError(f"the truth of this release is made from a graph, of several tables. {_PLAN}")
    if "blank_lines" in tomllib.loads(text).get("data", {}):  # without it, other records would be counted in silence
        raise ReleaseError(f"the plan of this release says what blank lines are (blank_lines). {_PLAN}")
    if "prepared" in release.card["data"]:
        raise ReleaseError(f"columns of the table were prepared before they were read. {_PLAN}")
