"""No card tells the time: only one day, so that nobody can read off how long a release took."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv

from tests.forging import card_of
from treetop import Ledger, Loss
from treetop.cli import main

TIME = re.compile(r"[0-9]{1,2}:[0-9]{2}|T[0-9]{2}")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
PLAN = """
title = "People"
[attributes.sex]
values = ["f", "m"]
[unit]
entity = "person"
contributions = 1
neighbours = "add-remove"
[loss]
rho = 0.1
"""


def test_cards_pages_and_plans_tell_one_day_and_no_time(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    csv.write_csv(pa.table({"sex": ["f", "m"] * 9}), tmp_path / "people.csv")
    ledger = tmp_path / "ledger"
    main(["ledger", "create", str(ledger), "--rho", "1"])
    for name in ("one", "two", "three"):
        paths = [str(tmp_path / one) for one in ("plan.toml", "people.csv")]
        main(["release", *paths, "--ledger", str(ledger), "--out", str(tmp_path / name), "--quiet"])
    card = card_of(tmp_path / "three")
    assert DAY.fullmatch(card["time"]) and len(card["composition"]["earlier"]) == 2
    for name in ("card.json", "card.html", "plan.toml"):
        text = (tmp_path / "three" / name).read_text(encoding="utf-8")
        text = text.split("</style>")[-1]
        assert not TIME.search(text), name
        assert set(DAY.findall(text)) <= {card["time"]}, name
    # The steward's own ledger keeps them.
    assert all(TIME.search(entry.time) for entry in Ledger.open(ledger).entries())


def test_the_hash_of_a_reservation_does_not_tell_when_it_was_made(tmp_path: Path) -> None:
    """Whoever knows all of a record but its time could try every second, were there nothing random in it."""
    ledger = Ledger.create(tmp_path / "ledger", loss=Loss(rho=1))
    for _ in range(2):
        ledger.reserve("people", ledger.budget.amount / 4, "zcdp", "person", "One", "a" * 64)
    salts = [record.content["salt"] for record in ledger.log.read()[1:]]
    assert len(set(salts)) == 2 and all(len(salt) == 32 for salt in salts)
