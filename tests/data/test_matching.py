"""How many codes match, as a table is prepared: what is not known is counted and named, for the steward."""

from __future__ import annotations

from pathlib import Path

import treetop as tt
from treetop.inspection.suggest import match_codes

TOWNS = tt.Hierarchy.flat(["001", "002", "003"], "town")


def matched(path: Path, **rules: object) -> dict[str, object]:
    prepare = tt.Prepare(**rules) if rules else None  # type: ignore[arg-type]
    (found,) = match_codes(tt.Source(path, prepare=prepare), {"place": TOWNS}, {"place": "town"})
    return found.to_dict()


def test_rows_and_codes_are_counted_before_and_after_preparing(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("town,n\n1,a\n1,b\n002,c\n 3,d\n9,e\nNA,f\n,g\n")
    found = matched(path)
    assert (found["codes"], found["known"], found["rows"], found["known_rows"]) == (6, 1, 7, 1)
    assert found["unknown"] == [["1", 2], [None, 1], [" 3", 1], ["9", 1], ["NA", 1]]
    found = matched(path, trim=["town"], pad={"town": 3}, missing=["NA"])
    assert (found["codes"], found["known"], found["rows"], found["known_rows"]) == (5, 3, 7, 4)
    assert found["unknown"] == [[None, 2], ["009", 1]]
