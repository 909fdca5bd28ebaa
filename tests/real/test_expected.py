"""Errors that are expected from public sizes, on real tables: within a fifth where counts are not small."""

from __future__ import annotations

from pathlib import Path

from experiments.kit.cases import flights, slovenia
from experiments.plan_design.measure import study


def test_expected_errors_are_those_of_releases_where_counts_are_not_small(data: Path) -> None:
    for read, claims in ((slovenia, 9), (flights, 20)):
        found = study(read(data), runs=40)
        claimed = [one for one in found.outcomes if one.is_claimed]
        assert len(claimed) >= claims
        for one in claimed:
            assert one.is_close, f"{found.title}, {one.way}, {one.counts}: {one.measured} for {one.expected}"
        assert all(one.is_true for one in found.worths)
