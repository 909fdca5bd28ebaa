"""A guard: planning takes public tables only, and refuses the private one when it is handed over by mistake.

A split that depends on the private counts makes the noise depend on them. Then no finite epsilon holds, whether or not
the split is published: with scales 1/e and 1/e′ on neighbouring tables the ratio of two Laplace densities,
(e/e′)·exp(−(e − e′)·|z|), has no bound.

The guard finds the same object, file, content (also inside gzip) or database query, without reading a row. Then it
compares records: both tables are read as the plan reads its own, all records of every unit, and are the same where
every leaf has as many. So a copy in another format, order, compression or database is found, with other ids or none,
and whether or not contributions are bounded. It is against accidents: a table from which one record was taken, or in
which one was changed, is not recognised, nor is one with its attributes under other names or codes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from treetop.errors import PrivatePrior
from treetop.intake.counts import Counts
from treetop.sources.same import same_table
from treetop.sources.table import Table

Role: TypeAlias = Literal["prior", "twin"]
"""What a public table is for: to choose a split by, or to try a plan on."""

_WHY = (
    "noise whose size depends on the private counts has no guarantee, even if the sizes are kept secret; "
    "plan from an earlier release, a public table, a synthetic one, or from no table at all"
)
_WHY_TWIN = (
    "trials draw noise that anybody can compute, and print the errors of what they are given; try the plan on an "
    "earlier release, a public table, or a synthetic one"
)


def refuse_counts(table: object) -> None:
    """Refuse private counts where a public table is expected."""
    if isinstance(table, Counts):
        raise PrivatePrior(f"a prior cannot be made from Counts, which are private: {_WHY}")


def refuse_private(prior_source: Table, plan_source: Table | None, role: Role = "prior") -> None:
    """Refuse a prior or twin whose table is the plan's own; None where the plan does not say what it will read."""
    refuse_counts(prior_source)
    if plan_source is None:
        return
    if (what := same_table(prior_source, plan_source)) is not None:
        raise PrivatePrior(f"the {role} is the private table itself ({what}): {_WHY if role == 'prior' else _WHY_TWIN}")


def refuse_same_records(public: bytes | None, private: Counts, role: Role = "prior") -> None:
    """Refuse a prior or twin with the same records as the private table, before contributions are bounded.

    `public` is the digest of its counts (`Prior.records`); None where there is no table.
    """
    if public is not None and public == private.digest:
        raise PrivatePrior(
            f"the {role} has the same records as the private table, whatever its file is: "
            f"{_WHY if role == 'prior' else _WHY_TWIN}"
        )
