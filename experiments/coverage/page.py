"""The numbers of the page of results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.coverage import measure
from experiments.coverage.figures import FEWEST, FIGURES
from experiments.coverage.measure import CONFIDENCE, Cell, Study, invented, lost
from experiments.kit.pages import pictures, render
from experiments.kit.tables import table
from experiments.kit.verdicts import NOT_RUN, WORDS, verdict
from treetop.advice.coverage import Coverage, SizeCoverage

SHOWN = 1.0
"""The epsilon of the tables by size and by level."""


def page(studies: Sequence[Study]) -> str:
    """Return the page."""
    leaves = [rows[-1] for one in studies for rows in one.found.values()]
    titles: dict[int, list[str]] = {}
    for one in studies:
        titles.setdefault(one.runs, []).append(one.title)
    captions = {name: caption.format(epsilon=SHOWN) for name, caption in FIGURES.items()}
    return render(
        "coverage/page.md",
        delta=measure.DELTA,
        confidence=f"{CONFIDENCE:.0%}",
        chance=f"{1 / measure.CHANCE:,.0f}",
        fewest=FEWEST,
        runs="; ".join(f"{number} of {', '.join(some)}" for number, some in titles.items()),
        judged={
            "public nodes (of one table, epsilon, level and size)": promise(list(measure.by_size(studies))),
            "measured nodes (of one table, epsilon and level)": promise(list(measure.measured(studies))),
        },
        large=_range(row.sizes[-1].measured for row in leaves),
        released=_range(row.all_sizes.positives for row in leaves),
        invented=_range(map(invented, leaves)),
        zeros=_range(row.all_sizes.zeros for row in leaves),
        lost=_range(map(lost, leaves)),
        short=short_table(studies),
        figures=pictures(captions, "**{caption}**\n\n![{name}](../images/{name})"),
        shown=SHOWN,
        studies=studies,
        cells=_cells,
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


@verdict("coverage.promise")
def promise(cells: Sequence[Cell]) -> dict[str, object]:
    """Return which sets of nodes are covered too seldom, and which is covered least among those that are large."""
    if not cells:
        return {"word": NOT_RUN, "all": 0, "low": [], "lowest": "–"}
    large = [cell for cell in cells if cell.nodes.nodes >= FEWEST]
    worst = min(large or cells, key=lambda cell: cell.nodes.share or 0)
    low = [f"{_where(cell)}, {share(cell.nodes)}" for cell in cells if measure.too_low(cell)]
    lowest = f"{share(worst.nodes)} of {worst.nodes.nodes:,}: {_where(worst)}"
    word = WORDS[True if not low else None if len(low) < len(cells) else False]
    return {"word": word, "all": len(cells), "low": low, "lowest": lowest}


def _where(cell: Cell) -> str:
    return f"{cell.level.name} of {cell.study.title} at ε = {cell.epsilon:g}"


def _range(groups: Iterable[Coverage]) -> str:
    """Say from where to where the shares of groups reach that have enough nodes to have one."""
    enough = sorted((group for group in groups if group.nodes >= FEWEST), key=lambda group: group.share or 0.0)
    return f"{share(enough[0])} to {share(enough[-1])}" if enough else "–"


def _cells(row: SizeCoverage) -> str:
    groups = (row.every, row.measured, row.positives, row.zeros)
    shares = (f"{share(one)} of {one.nodes:,}" if one.nodes else "–" for one in groups)
    return " | ".join([*shares, *map(width, groups[2:])])


def share(group: Coverage) -> str:
    """Say a share of covered nodes; never 100 % where one is not."""
    if group.share is None:
        return "–"
    text = f"{100 * group.share:.1f} %"
    return "> 99.9 %" if text == "100.0 %" and group.covered < group.nodes else text


def width(group: Coverage) -> str:
    """Say a mean width."""
    return "–" if group.width is None else f"{group.width:,.1f}"
