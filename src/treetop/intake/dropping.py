"""What may leave a record out on the way from a table to its counts, said in one place.

Under `replace` with one record each, neighbours have the same total, and it is released without noise. That is so only
where every record is counted, whatever it says: a record that may be dropped may also be exchanged for one that is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from treetop.errors import PlanError
from treetop.sources.source import BlankLines, as_source, is_database

if TYPE_CHECKING:
    from treetop.intake.tally import Tally
    from treetop.privacy import Unit
    from treetop.sources.table import Table


class MadeTable:
    """A table that is made of others when it is read, and says what that may leave out."""

    @property
    def may_drop(self) -> str | None:
        """Say what may leave records out; None where nothing does."""
        return None

    @property
    def public_units(self) -> int | None:
        """How many units there are, where that is public and the table has been read; None where it is not."""
        return None

    @property
    def one_row_each(self) -> bool:
        """Whether a unit that has two rows is refused, so that an id never repeats."""
        return False

    def opened(self, tally: Tally) -> Table:
        """Return the rows as a table; the tally is told what is left out on the way to them."""
        return self

    @property
    def keep(self) -> Mapping[str, Sequence[str]] | None:
        """The values that the rows that are counted are kept by; None where they are kept by none."""
        return None

    @property
    def facts(self) -> object:
        """What the plan that counts it must state of it; None where there is nothing to state."""
        return None


def kept(table: Table) -> Mapping[str, Sequence[str]] | None:
    """Return the values that rows of a table are kept by, for its card; None where they are kept by none."""
    if isinstance(table, MadeTable):
        return table.keep
    source = as_source(table)
    return None if source is None else source.keep


def prepared(table: Table) -> tuple[str, ...]:
    """Say what is done to columns of a table before they are read, for its card."""
    source = None if isinstance(table, MadeTable) else as_source(table)
    return () if source is None or source.prepare is None else tuple(source.prepare.words())


def may_drop(table: Table) -> str | None:
    """Say what may leave records of a table out before they are counted; None where nothing does."""
    if isinstance(table, MadeTable):
        return table.may_drop
    source = as_source(table)
    return None if source is None else selected(source.keep, source.query, source.blank_lines, is_database(source))


def selected(
    keep: Mapping[str, Any] | None, query: str | None, blank_lines: BlankLines = "record", database: bool = False
) -> str | None:
    """Say what selects the rows of a table; None where all of them are taken.

    Of a database it is never known: what looks like a table there may be a view, or show some of its rows only.

    >>> selected({"year": ["2008"]}, None), selected(None, None)
    ('only rows with certain values of year are kept', None)
    >>> selected(None, "trips")
    'a query may leave rows out'
    """
    if keep:
        return f"only rows with certain values of {', '.join(keep)} are kept"
    if query is not None:
        return "a query may leave rows out"
    if database:
        return "a table of a database may be a view that leaves rows out"
    if blank_lines == "skip":
        return "blank lines are skipped"
    return None


def refuse_exact_total(unit: Unit, total_is_exact: bool, table: Table) -> None:
    """Refuse to tell the total of a table exactly where neighbours may differ in it; nothing is read for this."""
    reason = may_drop(table) if total_is_exact else None
    if reason is not None:
        raise PlanError(
            f"the total would be released without noise, but neighbours may differ in it: {reason}, so that one "
            f"{unit.entity} may be exchanged for one that is not counted. Let the total be measured: may_be_missing = "
            'true under [unit], in Python Unit(…, may_be_missing=True); or choose neighbours = "add-remove"'
        )
