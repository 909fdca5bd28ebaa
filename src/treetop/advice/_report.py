"""The report that answers a question about a plan: a table, a few values, notes, and the plan with the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

from treetop.plan.plan import Plan
from treetop.plan.workload import text_table

Row: TypeAlias = Mapping[str, Any]
Cell: TypeAlias = str | Callable[[Row], str]
"""How a row is shown in one column: a format such as "{share:.1%}", or a function of the row."""

MOST_INTEGER = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Report:
    """An answer about a plan. Print it for people; `to_dict` and `table` are for programs.

    >>> import treetop as tt
    >>> town = tt.Hierarchy.flat([f"t{i}" for i in range(40)], level="town")
    >>> plan = tt.Plan(tt.Spine(["town"], {"town": town}), tt.Unit("trip", neighbours="replace"), tt.Loss(rho=0.1))
    >>> report = tt.outlook(plan, 3000)
    >>> print(report)
    counts  public nodes  average count  noise (sd)  verdict
    ──────  ────────────  ─────────────  ──────────  ────────
    town              40             75        3.12  readable
    <BLANKLINE>
    Readable: town (an average count is about 75 ± 6.24 at 95 %).
    >>> report.table.column_names
    ['name', 'counts', 'nodes', 'average', 'noise', 'state', 'mostly_noise']
    """

    plan: Plan
    """The plan with the answer filled in, or as it was given."""
    name: str
    """A short name, such as "answer", "forecast" or "trials"."""
    title: str
    rows: tuple[Row, ...]
    """A row for every level, table or choice, as plain values."""
    columns: Sequence[tuple[str, Cell]] = field(repr=False)
    """The table for people: headings, and how a row is shown under each."""
    key: str = "levels"
    """What `to_dict` calls the rows."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Plain values beside the table."""
    intro: tuple[str, ...] = ()
    """Lines before the table."""
    notes: tuple[str, ...] = ()
    """Lines after it."""
    public_notes: tuple[str, ...] = ()
    """How a public table was read otherwise than the private one will be, and whether it could be compared with it."""
    parts: Mapping[str, Report] = field(default_factory=dict)
    """Reports that belong to this one."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table; whole numbers beyond 64 bits as floats."""
        names = list(self.rows[0]) if self.rows else []
        return pa.table({name: [_arrow_value(row[name]) for row in self.rows] for name in names})

    def column(self, name: str) -> list[Any]:
        """Return the values of one column."""
        return [row[name] for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for programs."""
        own = {**self.values, self.key: [dict(row) for row in self.rows]}
        return own | {name: part.to_dict() for name, part in self.parts.items()}

    def alone(self) -> Report:
        """Return the report without its parts and without notes on public tables."""
        return replace(self, parts={}, public_notes=())

    def __str__(self) -> str:
        blocks = ["\n".join(self.intro), self._table_text(), "\n".join(self.notes)]
        blocks += [f"{part.title}\n{part}" for part in self.parts.values()]
        return "\n\n".join(block for block in [*blocks, "\n".join(self.public_notes)] if block)

    def _table_text(self) -> str:
        if not (self.rows and self.columns):
            return ""
        headings, cells = zip(*self.columns, strict=True)
        shown = [[cell.format(**row) if isinstance(cell, str) else cell(row) for cell in cells] for row in self.rows]
        texts = [index for index, cell in enumerate(cells) if isinstance(cell, str) and ":" not in cell]
        return text_table([headings, *shown], left=texts)


def _arrow_value(value: Any) -> Any:
    return float(value) if isinstance(value, int) and abs(value) > MOST_INTEGER else value
