"""What releases come to together, as far as a ledger knows their noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from treetop.errors import LedgerError
from treetop.privacy.composition import Cells, gaussian_rho, rho_of


@dataclass(frozen=True)
class Spending:
    """The sums of what was charged."""

    charged: Fraction
    """All of it, in the currency of the budget."""
    gaussian: Fraction
    """The rho of Gaussian noise that tells at least as much as the releases whose noise is known."""
    other: Fraction
    """What the others were charged, of which no more than that is known."""
    alone: Cells | None
    """The cells of the only release, where there is one and its noise is known."""

    @property
    def noise_is_known(self) -> bool:
        """Whether more than the cost is known of some release."""
        return self.gaussian > 0 or self.alone is not None

    @classmethod
    def of(cls, releases: Iterable[tuple[Fraction, Cells | None]]) -> Spending:
        """Add up what each release was charged, with the cells that one unit moves where they are known."""
        charged = gaussian = other = Fraction(0)
        listed = list(releases)
        for amount, cells in listed:
            known = None if cells is None else gaussian_rho(cells)
            charged += amount
            gaussian += known or 0
            other += amount if known is None else 0
        return cls(charged, gaussian, other, listed[0][1] if len(listed) == 1 else None)


def checked(cells: Cells | None, cost: Fraction, definition: str) -> Cells | None:
    """Return cells that are to be recorded, refusing those whose noise does not cost what the release does."""
    if cells is not None and not _cost(cells, cost, definition):
        raise LedgerError("The cells that one unit moves, with their noise, do not cost what the release costs")
    return cells


def written(cells: Cells | None) -> dict[str, Any]:
    """Return cells as a record has them: nothing where they are not known."""
    return {} if cells is None else {"cells": [[str(variance), number] for variance, number in cells]}


def read(record: Mapping[str, Any]) -> Cells | None:
    """Return the cells of a record; None where it has none, as in versions before 0.4."""
    if "cells" not in record:
        return None
    cells = tuple((Fraction(variance), int(number)) for variance, number in record["cells"])
    if not _cost(cells, Fraction(record["cost"]), record["definition"]):
        raise ValueError("its noise does not cost what it was charged")
    return cells


def _cost(cells: Cells, cost: Fraction, definition: str) -> bool:
    known = definition == "zcdp" and all(variance > 0 and number > 0 for variance, number in cells)
    return known and rho_of(cells) == cost
