"""The page of results: written whole from what was measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from experiments.inftda.claims import claims
from experiments.inftda.measure import DELTA, OF_PAPERS, SOLVER
from experiments.inftda.tables import MADE_UP, REAL
from treetop.evaluate.comparison import NOTES, Comparison, number

FIGURES = {
    "inftda_new-york.png": "Figure 3, with New York in place of Italy",
    "inftda_error_binary.png": "Figure 4, binary trees: the largest absolute error by level",
    "inftda_error_random.png": "Figure 4, random trees",
    "inftda_false_discoveries.png": "Figure 5: invented nodes of the sparse tables, by level",
    "inftda_time.png": "Figure 6: time on the made-up tables",
}

HEAD = """\
# InfTDA's experiments again

Written by `python -m experiments.inftda`. The paper is Boninsegna and Silvestri on origin/destination data (PETS 2025),
section 5, figures 3 to 6. ε is 0.1, 1 and 10, δ is {delta:g}, a unit is one trip that is exchanged for another, and the
loss is divided evenly over the levels. Noise is found by the paper's accounting unless said otherwise. Everything was
run on {cores} cores ({machine}), each run on one thread. Times are processor seconds of the run alone; other work was
going on at the same time, so they are good for ratios and not to the digit.

The paper's six tables are made again by its recipe: trees of two children and 8 levels, or 2 to 10 children and 4
levels (435 leaves); Pareto flows, rounded, between all, half or one in a hundred of the pairs. The paper does not say
which shape its flows have: ours have 1, and a least flow such that the number of users is the paper's.

{real}
"""

REAL_TEXT = """\
In place of Italy, whose matrix by municipality is not at hand, there are the flows between the census tracts of New
York State: 62 counties, 4,905 tracts, 616,991 pairs of 24.1 million (2.6 %), 41.3 million trips. It is the largest real
table here in which trips cross all borders, and near to Italy's in pairs and sparsity; but it has 4 levels where Italy
has 6. A larger one (US commuters, 5.4 million pairs) has trips within counties only, and 4.2 billion leaves, too many
for two of the mechanisms. No list of tracts comes with the table, so those that occur stand in for one; its flows are
scaled estimates from phones, seldom below 10."""


def write(found: Mapping[str, Comparison], page: Path, images: Path) -> None:
    """Write the page; its figures are in `images`."""
    beside = Path(os.path.relpath(images, page.parent))
    real = REAL_TEXT if REAL in found else "The real table was not at hand."
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    lines = [HEAD.format(delta=DELTA, cores=os.cpu_count(), machine=machine, real=real), "## How often", ""]
    lines += _runs(found)
    lines += ["## Claim by claim", ""]
    for place, claim in enumerate(claims(found), start=1):
        lines += [f"### {place}. {claim.title}", "", claim.verdict, "", *claim.table, ""]
    lines += ["## Figures", "", "Points are means over the runs, bars reach from the least to the largest.", ""]
    for file, caption in FIGURES.items():
        if (images / file).is_file():
            lines += [f"**{caption}**", "", f"![{caption}]({(beside / file).as_posix()})", ""]
    lines += ["## All mechanisms at ε = 1", "", *_everything(found)]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _runs(found: Mapping[str, Comparison]) -> list[str]:
    """Say how often each mechanism was run, and where it was run less often than the others, or not at all."""
    most = max(len(trials) for comparison in found.values() for trials in comparison.by_setting().values())
    lines = [
        f"{most} runs of each, with the exceptions below. `{SOLVER}` calls a solver that takes milliseconds a node; "
        "on New York the mechanisms that write out every leaf or every child take gigabytes.",
        "",
    ]
    for table, comparison in found.items():
        fewer: dict[tuple[str, int], list[str]] = {}
        for setting, trials in comparison.by_setting().items():
            if len(trials) < most and setting.accounting == "paper":
                fewer.setdefault((setting.mechanism, len(trials)), []).append(f"{setting.epsilon:g}")
        said = [f"{name} {times} at ε = {', '.join(at)}" for (name, times), at in fewer.items()]
        there = {trial.setting.mechanism for trial in comparison.trials}
        missing = [name for name in OF_PAPERS if name not in there]
        said += [f"not {', '.join(missing)}"] if missing else []
        lines += [f"- {table}: {'; '.join(said)}"] if said else []
    lines.append("")
    for table, comparison in found.items():
        for one in comparison.refused:
            lines += [f"Refused on {table}: {one.setting.mechanism}. {one.reason[:1].upper()}{one.reason[1:]}.", ""]
    return lines


def _everything(found: Mapping[str, Comparison]) -> list[str]:
    lines = []
    for table in [*MADE_UP, REAL]:
        if table not in found:
            continue
        at_one = [
            trial for trial in found[table].trials if trial.setting.epsilon == 1 and trial.setting.accounting == "paper"
        ]
        truth = at_one[0].errors
        size = f"{number(truth[-1].true_nodes)} of {number(truth[-1].nodes)} leaves, {len(truth) - 1} levels"
        (section,) = Comparison(tuple(at_one)).summary_tables()
        lines += [f"### {table}", "", f"{size}.", "", *section, ""]
    return [*lines, *NOTES]
