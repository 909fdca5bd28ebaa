"""Checking a release: whatever is changed, one byte or one number, is found and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import treetop as tt
from tests.forging import at, card_of, edit_table, findings, places, put, restate
from treetop.card import schema
from treetop.checking import _arithmetic as arithmetic
from treetop.checking.check import _Check, _verdict, check_folder
from treetop.errors import ReleaseError


def check_card(card: dict[str, Any], folder: Path) -> list[str]:
    """Return what is wrong with a card by itself; the folder gives the hierarchies that it names."""
    if misfits := list(schema.findings(card)):
        return misfits
    names = ("plan_hash", "amounts", "loss", "conversion", "composition")
    checks = (_Check(folder, card).content, *(partial(getattr(arithmetic, name), card) for name in names))
    return [finding for check in checks for finding in _verdict("", check).findings]  # type: ignore[arg-type]


def forge(folder: Path, change: Callable[[Any], None]) -> None:
    """Change the card as a forger would, who also puts sizes, hashes and the page right."""
    card = card_of(folder)
    change(card)
    restate(folder, card)


def test_an_untouched_release_of_every_kind_is_verified(plan: tt.Plan, tmp_path: Path) -> None:
    table = pa.table({"place": ["n1", "s1", "s2"] * 40, "sex": ["f", "m", "m"] * 40})
    tt.make_release(plan, table).save(tmp_path / "out", nodes=True)
    assert findings(tmp_path / "out") == []


def test_everything_is_verified_and_said(pristine: Path) -> None:
    verdicts = list(check_folder(pristine))
    assert all(verdict.verified for verdict in verdicts)
    text = "\n".join(verdict.subject for verdict in verdicts)
    for part in ("schema", "SHA-256", "plan", "hierarchies", "rho = 172053180393/10000000000000", "epsilon", "400"):
        assert part in text


@pytest.mark.parametrize("plan", ["exact accounting"], indirect=True)
def test_exact_accounting_is_computed_again(plan: tt.Plan, tmp_path: Path) -> None:
    tt.make_release(plan, pa.table({"place": ["n1", "s1"], "sex": ["f", "m"]})).save(tmp_path / "out")
    lines = [verdict.subject for verdict in check_folder(tmp_path / "out")]
    assert "exact accounting of all levels together, by the law of their noise: epsilon 1.0 at delta 1e-08" in lines

    def promise_more(card: Any) -> None:
        card["loss"]["epsilon"] = {"exact": "99/100", "value": 0.99}
        card["plan"]["loss"]["epsilon"] = "99/100"

    forge(tmp_path / "out", promise_more)
    found = findings(tmp_path / "out")
    assert any("loss.delta is 1e-08, but the noise of all levels has delta 1." in finding for finding in found)


def test_added_or_missing_bytes_and_files_are_found(folder: Path) -> None:
    with (folder / "plan.toml").open("a") as file:
        file.write("\n")
    assert any("plan.toml has" in finding and "bytes" in finding for finding in findings(folder))
    (folder / "plan.toml").unlink()
    assert "plan.toml is missing" in findings(folder)
    (folder / "errors.png").write_bytes(b"private")
    assert "errors.png is in the folder, but not in the card" in findings(folder)


def set_to(*path: Any) -> Callable[[Any], None]:
    *names, last, value = path

    def change(card: Any) -> None:
        for name in names:
            card = card[name]
        assert card[last] != value
        card[last] = value

    return change


NUMBERS = [  # one for each way of finding out; that every other field is found as well, test_forged.py sees
    (set_to("loss", "rho", "exact", "1/100"), "loss.rho is 1/100, but the levels together cost 172053180393/1"),
    (set_to("loss", "rho", "value", 0.01), "loss.rho.value is 0.01"),
    (set_to("loss", "epsilon", "value", 0.9), "loss.epsilon is 0.9, but rho"),
    (set_to("loss", "epsilon", "exact", "1/2"), "loss.epsilon is 1/2, but its value is 1.0"),
    (set_to("levels", 1, "noise", "sigma", 1.5), "levels[1].noise.sigma is 1.5, but the plan gives"),
    (set_to("levels", 1, "noise", "variance", "exact", "9"), "levels.place.region.cost is"),
    (set_to("levels", 1, "cost", "exact", "1/9"), "levels.place.region.cost is 1/9, but its noise"),
    (set_to("levels", 1, "sensitivity", "l2_squared", 1), "levels.place.region.sensitivity is"),
    (set_to("hierarchies", 0, "sha256", "a" * 64), "hierarchies[0].sha256"),
    (set_to("composition", "spent_before", "exact", "0"), "composition.spent_before is 0"),
    (set_to("composition", "charged", "exact", "1/5"), "composition.charged is 1/5, but this release costs"),
    (set_to("composition", "budget", "exact", "1/500"), "more than the budget 1/500"),
    (set_to("composition", "earlier", 0, "charged", "exact", "1/7"), "earlier releases sum to 1/7"),
    (set_to("released", "total", 401), "counts.parquet sums to 400, but the card says 401"),
    (set_to("released", "leaves", 1), "leaves, but the card says 1"),
    (set_to("files", 0, "rows", 1), "counts.parquet has"),
    (set_to("plan_sha256", "b" * 64), "plan_sha256 is bbbb"),
    (set_to("plan", "repair", "euclidean"), "but the plan that it describes has"),
    (set_to("private", False), "warning is None, but the plan gives {'id': 'warning'}"),
]


@pytest.mark.parametrize(("change", "message"), NUMBERS, ids=[message for _, message in NUMBERS])
def test_a_changed_number_is_named_even_if_the_forger_puts_the_hashes_right(
    change: Callable[[Any], None], message: str, folder: Path
) -> None:
    forge(folder, change)
    found = findings(folder)
    assert any(message in finding for finding in found), found


def change_count(table: pa.Table, by: int = 1, row: int = 0) -> pa.Table:
    step = pa.array([by if i == row else 0 for i in range(table.num_rows)])
    at = table.column_names.index("count")
    return table.set_column(at, "count", pc.add(table["count"], step))


TABLES: list[tuple[str, Callable[[pa.Table], pa.Table], str]] = [
    ("counts.parquet", change_count, "counts.parquet sums to 401"),
    ("counts.parquet", lambda table: change_count(table, -10**6), "whole numbers above zero"),
    ("counts.parquet", lambda table: pa.concat_tables([table, table.slice(table.num_rows - 1)]), "leaf stands twice"),
    ("counts.parquet", lambda table: table.take(list(range(table.num_rows))[::-1]), "the leaf is out of order"),
    (
        "counts.parquet",
        lambda table: table.set_column(0, "place", pa.array(["?"] * table.num_rows)),
        "code that is not in its hierarchy",
    ),
    (
        "counts.parquet",
        lambda table: table.set_column(2, "count", table["count"].cast(pa.float64())),
        "whole numbers above zero",
    ),
    ("nodes.parquet", lambda table: change_count(table, 1, 2), "nodes.parquet, row 3: {'level': 1,"),
    ("nodes.parquet", lambda table: table.slice(0, table.num_rows - 1), ": nothing stands where the leaves give {"),
    ("nodes.parquet", lambda table: pa.concat_tables([table, table.slice(0, 1)]), "where the leaves give nothing"),
    ("nodes.parquet", lambda table: table.drop_columns("level"), "nodes.parquet has the columns"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "message"), TABLES, ids=[message for *_, message in TABLES])
def test_tables_that_do_not_add_up_are_found_even_if_the_hashes_are_right(
    name: str, change: Callable[[pa.Table], pa.Table], message: str, folder: Path
) -> None:
    found = findings(edit_table(folder, name, change))
    assert any(message in finding for finding in found), found


def without_evidence(folder: Path, card: Any) -> None:
    gone = ("evidence.parquet", "measurements.parquet")
    card["files"] = [file for file in card["files"] if file["path"] not in gone]
    for name in gone:
        (folder / name).unlink()


def test_intervals_without_the_measurements_that_they_come_from_are_found(folder: Path) -> None:
    forge(folder, lambda card: without_evidence(folder, card))
    found = findings(folder)
    assert "card.json does not list evidence.parquet" in found
    assert "card.json does not list measurements.parquet" in found


def test_a_plan_file_of_another_plan_is_found(folder: Path) -> None:
    path = folder / "plan.toml"
    path.write_text(path.read_text().replace("epsilon = 1\n", "epsilon = 2\n"))
    restate(folder, card_of(folder))
    assert "plan.toml: loss.epsilon is 2, but the card's plan has 1" in findings(folder)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"plan": 1, "plan": 2}', '{"plan": NaN}', "[" * 100_000, "\udcff"])
def test_a_card_that_is_none_is_a_finding(text: str, folder: Path) -> None:
    (folder / "card.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert findings(folder)


def test_a_folder_without_a_card_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="not a release folder"):
        list(check_folder(tmp_path))


def leaves(card: Any) -> list[tuple[Any, ...]]:
    return [path for path in places(card) if not isinstance(at(card, path), dict | list)]


# What a card states and nothing in the folder can confirm.
FACTS = {"id", "time", "description", "data", "software", "composition", "files", "released"}
odd = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["1/3", "0", "0/1", "7" * 900, "discrete Laplace", "a" * 64, 10**400, 1e300])
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.text(max_size=3), st.none(), max_size=2)
)


CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=250, deadline=None, suppress_health_check=CHECKS)
@given(data=st.data())
def test_no_change_of_a_checked_value_passes_and_none_breaks_the_checker(pristine: Path, data: st.DataObject) -> None:
    card = card_of(pristine)
    path = data.draw(st.sampled_from([path for path in leaves(card) if path[0] not in FACTS]))
    old, new = at(card, path), data.draw(odd)
    same = old == new and isinstance(new, bool) == isinstance(old, bool)
    assert same or check_card(put(card, path, new), pristine)


@settings(max_examples=60, deadline=None, suppress_health_check=CHECKS)
@given(data=st.data())
def test_whatever_stands_in_the_card_the_checker_answers(pristine: Path, folder: Path, data: st.DataObject) -> None:
    card = card_of(pristine)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(leaves(card_of(pristine))))
        with suppress(TypeError, KeyError, IndexError):
            card = put(card, path, data.draw(odd))
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")
    assert findings(folder)
