"""The numbers of the page of results, and the short table of docs/intervals.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

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
from experiments.kit.pages import pictures, render
from experiments.kit.tables import table
from treetop.choose.coverage import Coverage, LevelCoverage, SizeCoverage

SHOWN = 1.0
"""The epsilon of the tables by size and by level."""
_GROUPS: tuple[tuple[str, Callable[[SizeCoverage], Coverage]], ...] = (
    ("all", lambda row: row.every),
    ("measured", lambda row: row.measured),
    ("released", lambda row: row.positives),
    ("zero", lambda row: row.zeros),
)
_HEAD = (*(name for name, _ in _GROUPS), "width, released", "width, zero")


def page(studies: Sequence[Study]) -> str:
    """Return the page."""
    numbers = dict.fromkeys(one.runs for one in studies)
    runs = (f"{number} of {', '.join(one.title for one in studies if one.runs == number)}" for number in numbers)
    captions = {name: caption.format(epsilon=SHOWN) for name, caption in FIGURES.items()}
    return render(
        "coverage/page.md",
        epsilons=", ".join(f"{epsilon:g}" for epsilon in studies[0].found),
        delta=f"{DELTA:g}",
        confidence=f"{CONFIDENCE:.0%}",
        runs="; ".join(runs),
        promise=_judged(list(by_size(studies)), "sets of public nodes (of one table, epsilon, level and size)")
        + " "
        + _judged(list(measured(studies)), "sets of measured nodes (of one table, epsilon and level)"),
        selected=_selected(studies),
        short=short_table(studies),
        figures=pictures(captions, "**{caption}**\n\n![{name}](../images/{name})"),
        shown=f"{SHOWN:g}",
        studies=studies,
        by_size=_by_size,
        by_level=_by_level,
        about=_about,
    )


def short_table(studies: Sequence[Study]) -> str:
    """Return the coverage of the leaves, a row a table and epsilon."""
    head = ("table", "ε", "all", "measured", "released", "invented", "zero", "lost", "width, released", "width, zero")
    rows = []
    for one in studies:
        for epsilon, levels in one.found.items():
            leaves, both = levels[-1], levels[-1].all_sizes
            groups = (both.every, both.measured, both.positives, invented(leaves), both.zeros, lost(leaves))
            rows.append((one.title, f"{epsilon:g}", *map(share, groups), width(both.positives), width(both.zeros)))
    return table(head, rows, "lr")


def _selected(studies: Sequence[Study]) -> str:
    """Say what selection does, from the numbers."""
    leaves = [rows[-1] for one in studies for rows in one.found.values()]
    return (
        f"**Large counts** (100 and more) are covered in {_range(row.sizes[-1].measured for row in leaves)} of the "
        "cases: nine tenths of the risk are a node's own, which is 95.5 % and more where whole numbers round the "
        f"margin up. **Released leaves** are covered in {_range(row.all_sizes.positives for row in leaves)}, the "
        f"invented ones among them in {_range(map(invented, leaves))}. **Zeros** are covered in "
        f"{_range(row.all_sizes.zeros for row in leaves)}, and those that were lost in {_range(map(lost, leaves))}."
    )


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


def _about(one: Study) -> str:
    return f"{one.total:,} trips in {one.true_leaves:,} of {one.leaves:,} leaves; {one.runs} releases at each epsilon."


def _by_size(one: Study) -> str:
    return table(("true count", *_HEAD), [(size.size, *_cells(size)) for size in one.found[SHOWN][-1].sizes], "lr")


def _by_level(rows: Sequence[LevelCoverage]) -> str:
    return table(("level", *_HEAD), [(row.name, *_cells(row.all_sizes)) for row in rows[1:]], "lr")


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
