"""What may leave a record out on the way from a table to its counts, said in one place.

Under `replace` with one record each, neighbours have the same total, and it is released without noise. That is so only
where every record is counted, whatever it says: a record that may be dropped may also be exchanged for one that is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from treetop.errors import PlanError
from treetop.sources.source import BlankLines, as_source, leaves_out

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
    def drop(self) -> Mapping[str, Sequence[str]] | None:
        """The values that leave rows out before they are counted; None where there are none."""
        return None

    @property
    def facts(self) -> object:
        """What the plan that counts it must state of it; None where there is nothing to state."""
        return None


class Rules(NamedTuple):
    """What is done to a table before it is counted, for its card."""

    keep: Mapping[str, Sequence[str]] | None = None
    """The values that rows are kept by; None where they are kept by none."""
    drop: Mapping[str, Sequence[str]] | None = None
    """The values that leave rows out; None where there are none."""
    prepared: tuple[str, ...] = ()
    """What is done to columns, in words."""


def rules_of(table: Table) -> Rules:
    """Return what is done to a table before it is counted."""
    if isinstance(table, MadeTable):
        return Rules(table.keep, table.drop)
    source = as_source(table)
    if source is None:
        return Rules()
    return Rules(source.keep, source.drop, () if source.prepare is None else tuple(source.prepare.words()))


def may_drop(table: Table) -> str | None:
    """Say what may leave records of a table out before they are counted; None where nothing does."""
    if isinstance(table, MadeTable):
        return table.may_drop
    source = as_source(table)
    if source is None:
        return None
    return selected(source.keep, source.query, source.blank_lines, leaves_out(source), source.drop)


def selected(
    keep: Mapping[str, Any] | None,
    query: str | None,
    blank_lines: BlankLines = "record",
    format_may: str | None = None,
    drop: Mapping[str, Any] | None = None,
) -> str | None:
    """Say what selects the rows of a table; None where all of them are taken.

    `format_may` says what its format may leave out by itself, as a view of a database does.

    >>> selected({"year": ["2008"]}, None), selected(None, None)
    ('only rows with certain values of year are kept', None)
    >>> selected(None, "trips")
    'a query may leave rows out'
    """
    if keep:
        return f"only rows with certain values of {', '.join(keep)} are kept"
    if drop:
        return f"rows with certain values of {', '.join(drop)} are dropped"
    if query is not None:
        return "a query may leave rows out"
    if format_may is not None:
        return format_may
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
