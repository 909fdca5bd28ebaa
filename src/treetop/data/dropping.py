"""What may leave a record out on the way from a table to its counts, said in one place.

Under `replace` with one record each, neighbours have the same total, and it is released without noise. That is so only
where every record is counted, whatever it says: a record that may be dropped may also be exchanged for one that is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from treetop.data.source import BlankLines, as_source
from treetop.errors import PlanError

if TYPE_CHECKING:
    from treetop.data.table import Table
    from treetop.data.tally import Tally
    from treetop.privacy import Unit

_NAME = r'[\w$."`]+'
_COLUMNS = r'(?:(?!\b(?:from|distinct|top|first|skip|limit)\b)[\w$."`,*\s])+'
_WHOLE_TABLE = re.compile(rf"\s*(?:select\s+{_COLUMNS}\bfrom\s+)?{_NAME}\s*;?\s*", re.IGNORECASE)


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

    def tell(self, tally: Tally) -> None:
        """Tell what was left out when the table was last read."""

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


def may_drop(table: Table) -> str | None:
    """Say what may leave records of a table out before they are counted; None where nothing does."""
    if isinstance(table, MadeTable):
        return table.may_drop
    source = as_source(table)
    return None if source is None else selected(source.keep, source.query, source.blank_lines)


def selected(keep: Mapping[str, Any] | None, query: str | None, blank_lines: BlankLines = "record") -> str | None:
    """Say what selects the rows of a table; None where all of them are taken.

    A query that only names columns of one table takes all of its rows; of any other it is not known.

    >>> selected({"year": ["2008"]}, None), selected(None, "select home, work from trips")
    ('only rows with certain values of year are kept', None)
    >>> selected(None, "select home from trips where year = 2008")
    'a query may leave rows out'
    """
    if keep:
        return f"only rows with certain values of {', '.join(keep)} are kept"
    if query is not None and not _WHOLE_TABLE.fullmatch(query):
        return "a query may leave rows out"
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
