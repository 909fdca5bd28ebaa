"""The page of results, written whole from what was measured, and the short table of docs/intervals.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from experiments.coverage.figures import FEWEST, FIGURES
from experiments.coverage.measure import (
    CHANCE,
    CONFIDENCE,
    DELTA,
    Cell,
    Study,
    by_size,
    invented,
    lost,
    measured,
    too_low,
)
from experiments.false_discoveries import report
from treetop.evaluate.coverage import Coverage, LevelCoverage, SizeCoverage

SHOWN = 1.0
"""The epsilon of the tables by size and by level."""

HEAD = """\
# How often noise intervals hold the truth

Written by `python -m experiments.coverage`; [the page on intervals](../intervals.md) explains what they are. Each table
is released at epsilon {epsilons} with delta {delta:g}. A unit is one trip that is exchanged for another, and the loss
is divided evenly over the levels. Intervals are at {confidence:.0%}. All runs of a table are counted together:
{runs}.

- *All* are all public nodes, present in the data or not. The promise is about each of them: a node that is named before
  the noise is drawn will be within its interval with a probability of at least {confidence:.0%}. *Measured* are those
  that were measured themselves, that is, the children of released nodes.
- *Released* are those above zero, and of them *invented* those that are truly zero. *Zero* are those that are not
  released; the true count must be at most the bound that the nearest released node above them has for what is absent.
  *Lost* are those of them that are truly above zero.
- *Width* is the mean of upper less lower bound.
"""

WHY = """\
**Selection.** The noise decides what is released. A leaf that is truly empty, or small, is released only if its noise
pushed it up; so among the released ones those with large positive noise are over-represented, and those are the ones
whose interval lies too high. This is the winner's curse. It does not touch the promise, which is about a node before it
is known what was measured of it; but whoever looks only at the released leaves sees intervals that miss more often,
those of empty leaves most of all. The coarser a count, and the larger beside its noise, the less there is of this.

What is lost has been pushed down in the same way. Its upper bound allows for that: it starts from the highest of the
measurements that were not retained, and its margin is one that holds at all levels together. So it seldom fails, and
is wide.
"""


def page(studies: Sequence[Study]) -> str:
    """Return the page."""
    numbers = dict.fromkeys(one.runs for one in studies)
    runs = "; ".join(
        f"{number} of {', '.join(one.title for one in studies if one.runs == number)}" for number in numbers
    )
    epsilons = ", ".join(f"{epsilon:g}" for epsilon in studies[0].found)
    head = HEAD.format(epsilons=epsilons, delta=DELTA, confidence=CONFIDENCE, runs=runs)
    parts = [head, "## What came out", *_findings(studies), WHY, "## The leaves", short_table(studies)]
    parts += ["## Figures", *_figures()]
    parts += [f"## By true count, epsilon {SHOWN:g}", "The leaves."]
    parts += [f"**{one.title}**\n\n{_by_size(one)}" for one in studies]
    parts += ["## By level", "Levels at which nothing is measured have the intervals of the level above."]
    for one in studies:
        parts += [f"### {one.title}", _about(one)]
        parts += [f"**Epsilon {epsilon:g}**\n\n{_by_level(rows)}" for epsilon, rows in one.found.items()]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def short_table(studies: Sequence[Study]) -> str:
    """Return the coverage of the leaves, a row a table and epsilon."""
    head = ("table", "ε", "all", "measured", "released", "invented", "zero", "lost", "width, released", "width, zero")
    rows = []
    for one in studies:
        for epsilon, levels in one.found.items():
            leaves = levels[-1]
            both = leaves.all_sizes
            groups = (both.every, both.measured, both.positives, invented(leaves), both.zeros, lost(leaves))
            rows.append((one.title, f"{epsilon:g}", *map(share, groups), width(both.positives), width(both.zeros)))
    return table(head, rows, left=1)


def insert(studies: Sequence[Study], about: Path) -> None:
    """Put the table of the leaves between the marks of the page on intervals."""
    report.insert(about, short_table(studies))


def _findings(studies: Sequence[Study]) -> list[str]:
    """Say what came out, from the numbers."""
    promise = "**The promise.** "
    promise += _judged(list(by_size(studies)), "sets of public nodes (of one table, epsilon, level and size)")
    promise += " " + _judged(list(measured(studies)), "sets of measured nodes (of one table, epsilon and level)")
    leaves = [(one, epsilon, rows[-1]) for one in studies for epsilon, rows in one.found.items()]
    large = [row.sizes[-1].measured for _, _, row in leaves]
    selected = (
        f"**Large counts** (100 and more) are covered in {_range(large)} of the cases: nine tenths of the risk are a "
        "node's own, which is 95.5 % and more where whole numbers round the margin up. **Released leaves** are "
        f"covered in {_range(row.all_sizes.positives for *_, row in leaves)}, the invented ones among them in "
        f"{_range(invented(row) for *_, row in leaves)}. **Zeros** are covered in "
        f"{_range(row.all_sizes.zeros for *_, row in leaves)}, and those that were lost in "
        f"{_range(lost(row) for *_, row in leaves)}."
    )
    return [promise, selected]


def _judged(cells: Sequence[Cell], what: str) -> str:
    """Say how many sets of nodes are covered too seldom, and which is covered least among those that are large."""
    low = [cell for cell in cells if too_low(cell)]
    large = [cell for cell in cells if cell.nodes.nodes >= FEWEST]
    worst = min(large or cells, key=lambda cell: cell.nodes.share or 0)
    text = (
        f"Of {len(cells):,} {what}, {len(low) or 'none'} {'have' if len(low) > 1 else 'has'} fewer than "
        f"{CONFIDENCE:.0%} within their intervals by more than chance explains (1 in {1 / CHANCE:,.0f}). Of those with "
        f"{FEWEST} nodes or more, the lowest is {share(worst.nodes)} of {worst.nodes.nodes:,}: {_where(worst)}."
    )
    return text + (f" Too low: {'; '.join(f'{_where(cell)}, {share(cell.nodes)}' for cell in low)}." if low else "")


def _where(cell: Cell) -> str:
    return f"{cell.level.name} of {cell.study.title} at ε = {cell.epsilon:g}"


def _range(groups: Iterable[Coverage]) -> str:
    """Say from where to where the shares of groups reach that have enough nodes to have one."""
    enough = sorted((group for group in groups if group.nodes >= FEWEST), key=lambda group: group.share or 0.0)
    return f"{share(enough[0])} to {share(enough[-1])}" if enough else "–"


def _figures() -> list[str]:
    return [f"**{caption.format(epsilon=SHOWN)}**\n\n![{name}](../images/{name})" for name, caption in FIGURES.items()]


def _about(one: Study) -> str:
    return f"{one.total:,} trips in {one.true_leaves:,} of {one.leaves:,} leaves; {one.runs} releases at each epsilon."


_GROUPS: tuple[tuple[str, Callable[[SizeCoverage], Coverage]], ...] = (
    ("all", lambda row: row.every),
    ("measured", lambda row: row.measured),
    ("released", lambda row: row.positives),
    ("zero", lambda row: row.zeros),
)


def _by_size(one: Study) -> str:
    leaves = one.found[SHOWN][-1]
    return table(("true count", *_head()), [(size.size, *_cells(size)) for size in leaves.sizes])


def _by_level(rows: Sequence[LevelCoverage]) -> str:
    return table(("level", *_head()), [(row.name, *_cells(row.all_sizes)) for row in rows[1:]])


def _head() -> list[str]:
    return [*(name for name, _ in _GROUPS), "width, released", "width, zero"]


def _cells(row: SizeCoverage) -> list[str]:
    groups = [group(row) for _, group in _GROUPS]
    return [*(f"{share(one)} of {one.nodes:,}" if one.nodes else "–" for one in groups), *map(width, groups[2:])]


def share(group: Coverage) -> str:
    """Say a share of covered nodes; never 100 % where one is not."""
    if group.share is None:
        return "–"
    text = f"{100 * group.share:.1f} %"
    return "> 99.9 %" if text == "100.0 %" and group.covered < group.nodes else text


def width(group: Coverage) -> str:
    """Say a mean width."""
    return "–" if group.width is None else f"{group.width:,.1f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table in Markdown, its first columns to the left."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    rule = "|" + "|".join(["---"] * left + ["---:"] * (len(head) - left)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
