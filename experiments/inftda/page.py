"""The numbers of the page of results."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from experiments.inftda.claims import claims
from experiments.inftda.measure import DELTA, OF_PAPERS, REAL, SOLVER, SOLVER_RUNS, SOLVER_SECONDS
from experiments.kit.cases import MADE_UP
from experiments.kit.pages import BELOW_ITS_CAPTION, pictures, render
from treetop.addons.lab.comparison import NOTES, Comparison, number, summary_table

FIGURES = {
    "inftda_new-york.png": "Figure 3, with New York in place of Italy",
    "inftda_error_binary.png": "Figure 4, binary trees: the largest absolute error by level",
    "inftda_error_random.png": "Figure 4, random trees",
    "inftda_false_discoveries.png": "Figure 5: invented nodes of the sparse tables, by level",
    "inftda_time.png": "Figure 6: time on the made-up tables",
}


def page(found: Mapping[str, Comparison], images: Path) -> str:
    """Return the page; its figures are in `images`."""
    most = max(len(trials) for comparison in found.values() for trials in comparison.by_setting().values())
    there = {file: caption for file, caption in FIGURES.items() if (images / file).is_file()}
    return render(
        "inftda/page.md",
        delta=f"{DELTA:g}",
        cores=os.cpu_count(),
        machine=f"{platform.machine()}, Python {platform.python_version()}",
        has_real=REAL in found,
        most=most,
        solver=SOLVER,
        solver_runs=SOLVER_RUNS,
        solver_seconds=SOLVER_SECONDS,
        fewer=list(_fewer(found, most)),
        refused=[
            f"Refused on {table}: {one.setting.mechanism}. {one.reason[:1].upper()}{one.reason[1:]}."
            for table, comparison in found.items()
            for one in comparison.refused
        ],
        claims=list(claims(found)),
        figures=pictures(there, BELOW_ITS_CAPTION),
        all=list(_everything(found)),
        notes="\n".join(NOTES),
    )


def _fewer(found: Mapping[str, Comparison], most: int) -> Iterator[str]:
    """Say where mechanisms were run less often than the others, or not at all."""
    for table, comparison in found.items():
        fewer: dict[tuple[str, int], list[str]] = {}
        for setting, trials in comparison.by_setting().items():
            if len(trials) < most and setting.accounting == "paper":
                fewer.setdefault((setting.mechanism, len(trials)), []).append(f"{setting.epsilon:g}")
        said = [f"{name} {times} at ε = {', '.join(at)}" for (name, times), at in fewer.items()]
        there = {trial.setting.mechanism for trial in comparison.trials}
        missing = [name for name in OF_PAPERS if name not in there]
        said += [f"not {', '.join(missing)}"] if missing else []
        if said:
            yield f"- {table}: {'; '.join(said)}"


def _everything(found: Mapping[str, Comparison]) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the size and all numbers at epsilon 1 of every table."""
    for table in [*MADE_UP, REAL]:
        if table in found:
            at_one = [
                one for one in found[table].trials if (one.setting.epsilon, one.setting.accounting) == (1, "paper")
            ]
            truth = at_one[0].errors
            size = f"{number(truth[-1].true_nodes)} of {number(truth[-1].nodes)} leaves, {len(truth) - 1} levels"
            (members,) = Comparison(tuple(at_one)).groups().values()
            yield table, size, "\n".join(summary_table(members))
