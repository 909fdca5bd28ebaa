"""What the command line says when something is wrong: one line that begins with its name, whoever found the mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from treetop.cli import main

PLAN = """
[attributes.place]
values = ["n", "s"]
[unit]
entity = "person"
contributions = 1
neighbours = "add-remove"
[loss]
epsilon = 1
delta = 1e-8
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "people.csv").write_text("place\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("release", "missing argument 'PLAN' (see treetop release --help)"),
        ("release plan.toml", "missing option '--out' (see treetop release --help)"),
        ("release plan.toml --out x", "name the private TABLE, or give the plan a [data] source"),
        ("query x --limit 3", "--limit is for the rows of a table: add --by LEVEL (see treetop query --help)"),
        ("ledger create x --epsilon a", "invalid value for '--epsilon': 'a' is not a positive number; write one such "
                                        "as 0.5, 1e-8 or 1/3 (see treetop ledger create --help)"),
        ("relase plan.toml", "no such command 'relase' (did you mean 'release'?) (see treetop --help)"),
        ("plan no.toml", "no.toml: no such file; `treetop inspect` drafts one from a table"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_call_is_told_like_any_other(capsys: Captured, call: str, message: str) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(call.split())
    said = capsys.readouterr()
    assert (leaving.value.code, said.out, said.err) == (2, "", f"treetop: {message}\n")


@pytest.mark.parametrize("group", [[], ["ledger"]])
def test_called_without_anything_it_shows_its_help(capsys: Captured, group: list[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(group)
    assert leaving.value.code == 2
    assert capsys.readouterr().err.startswith(" ".join(["Usage: treetop", *group]))


def test_a_table_without_rows_is_released_with_a_warning(capsys: Captured) -> None:
    main(["release", "plan.toml", "people.csv", "--out", "out", "--json"])
    said = capsys.readouterr()
    assert said.err == (
        "treetop: people.csv: there are no rows, so every true count is 0: check that it is the table that is meant\n"
    )
    assert json.loads(said.out)["out"] == "out"
