"""Reviews: a second person's word about a plan, in the chain of the ledger, at no cost."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

import treetop as tt
from tests import everyday
from treetop import cli
from treetop.errors import LedgerError
from treetop.ledger import Ledger

DIGEST = "ab" * 32


def test_a_review_is_kept_with_its_plan_and_spends_nothing(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", loss=tt.Loss(epsilon=1, delta=1e-8), datasets=("d",))
    head = ledger.head()[1]
    new = ledger.review(DIGEST, "  Ada  Lovelace ", " Read.\nAgreed. ", "Trips")
    assert new != head and ledger.head() == (2, new)
    ledger.review("cd" * 32, "Grace")
    (review,) = Ledger.open(tmp_path / "a.ledger").reviews(DIGEST)
    assert (review.reviewer, review.note, review.title) == ("Ada Lovelace", "Read.\nAgreed.", "Trips")
    assert review.time.endswith("Z") and len(ledger.reviews()) == 2
    assert ledger.spent("d") == 0 and ledger.entries() == ()
    for name, digest, said in ((" ", DIGEST, "Give a name"), ("Ada", "x", "64 hexadecimal")):
        with pytest.raises(LedgerError, match=said):
            ledger.review(digest, name)


def test_a_release_is_charged_and_completed_after_a_review(trips: Path) -> None:
    ledger = Ledger.create(trips / "a.ledger", loss=tt.Loss(epsilon=2, delta=1e-8))
    ledger.review(everyday.plan().digest, "Ada")
    tt.publish(trips / "plan.toml", str(trips / "trips.csv"), trips / "release", tt.RunOptions(ledger=ledger))
    (entry,) = ledger.entries()
    assert entry.state == "complete" and len(ledger.reviews()) == 1


def test_a_review_that_was_edited_is_found(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", loss=tt.Loss(epsilon=1, delta=1e-8))
    ledger.review(DIGEST, "Ada")
    connection = sqlite3.connect(tmp_path / "a.ledger")
    connection.execute("UPDATE log SET content = replace(content, 'Ada', 'Eve')")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="damaged or was edited"):
        ledger.reviews()


def test_the_command_records_a_review_and_shows_it(trips: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["ledger", "create", "a.ledger", "--epsilon", "1", "--delta", "1e-8"])
    cli.main(["ledger", "review", "a.ledger", "plan.toml", "--name", "Ada", "--note", "Fine.\x1b[2J"])
    cli.main(["ledger", "show", "a.ledger"])
    out = capsys.readouterr().out
    assert f"Ada has read the plan {everyday.plan().digest[:12]}…: Fine." in out and "\x1b[2J" not in out
    cli.main(["ledger", "show", "a.ledger", "--json"])
    assert json.loads(capsys.readouterr().out)["reviews"][0]["reviewer"] == "Ada"


def test_the_command_tells_what_changed_since_an_earlier_plan(trips: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("old.toml").write_text(Path("plan.toml").read_text().replace("epsilon = 1.0", "epsilon = 0.5"))
    cli.main(["plan", "plan.toml", "--against", "old.toml"])
    assert "loss.epsilon  0.5" in capsys.readouterr().out
    cli.main(["plan", "plan.toml", "--against", "plan.toml"])
    assert capsys.readouterr().out == "Both say the same.\n"
