"""The study as one command: `python -m experiments.margins`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.kit import pages
from experiments.kit.command import Call, as_command
from experiments.kit.tables import number, percent, table
from experiments.margins.measure import EPSILONS, RUNS, Row, study, tables

TEXT = """# What margins buy

Mean absolute errors of totals and of pairs, with and without margins: `python -m experiments.margins`. "0.2.0" is
without margins and with the accounting of then, "none" the same with exact accounting, "each" the default. {runs} runs
each, delta 1e-8. The first end is the destination, which is refined first; the second is the origin.

{tables}
"""


@as_command()
def command(call: Call) -> Iterator[Path]:
    """Measure the errors of totals and pairs with and without margins, and write docs/results/margins.md."""
    runs = call.runs or (3 if call.quick else RUNS)
    rows: list[Row] = []
    for one in call.timed(tables(None if call.quick else call.real(), call.quick)):
        rows += study(one, EPSILONS, runs)
    parts = [f"## Epsilon {epsilon:g}\n\n{summary(rows, epsilon)}" for epsilon in EPSILONS]
    yield pages.write(call.docs / "results" / "margins.md", TEXT.format(runs=runs, tables="\n\n".join(parts)))


def summary(rows: Sequence[Row], epsilon: float) -> str:
    """Return the errors of all tables at one epsilon."""
    head = [
        "table",
        "",
        "second end, coarse",
        "fine",
        "first end, coarse",
        "fine",
        "pairs, middle",
        "leaf pairs",
        "FDR",
        "FNR",
    ]
    cells = []
    for row in rows:
        if row.epsilon == epsilon:
            ends = [[value for name, value in row.totals.items() if name.startswith(end)] for end in ("origin", "dest")]
            errors = [
                ends[0][0],
                ends[0][-1],
                ends[1][0],
                ends[1][-1],
                row.pairs[len(row.pairs) // 2 - 1],
                row.pairs[-1],
            ]
            rates = [percent(row.invented), percent(row.lost)]
            cells.append([row.table, row.setting, *map(number, errors), *rates])
    return table(head, cells, "llr")


if __name__ == "__main__":
    command()
