"""What may be shown: no passwords, nothing that drives a terminal, nothing without end."""

from __future__ import annotations

import json
import sys
import unicodedata
from importlib import import_module

import pytest

from treetop import Source, read_plan
from treetop.cli.terminal import in_flags
from treetop.errors import DataError, PlanFileError, brief, discreet, printable, translate_arguments, visible


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:hunter2@db/census",
        "postgresql:/ann:hunter2@db/census: no such file",
        " 'postgres://:hunter2@db' is not",
        "x postgresql://ann:hun@ter2/hunter2@db y",
        "host=db password=hunter2 user=ann",
        "host=db password = 'hunter2 hunter2' user=ann",
        "postgresql://db/census?sslpassword=hunter2&x=hunter2",
        "PGPASSWORD=hunter2",
        "postgresql://ann:hunter2@db: no such file; see `postgresql://ann:hunter2@db` and https://bob:hunter2@host",
        "https://host:8080/x postgresql://ann:hunter2@db",
        "postgresql://ann:hunter2 hunter2'sqlite://x:hunter2@db",
        "one line\nhttps://ann:hunter2@host\nanother",
    ],
)
def test_a_password_is_blotted_out_wherever_it_stands(text: str) -> None:
    assert "hunter2" not in discreet(text)
    assert "***" in discreet(text)
    assert "hunter2" not in str(DataError(text))


def test_what_stands_between_two_passwords_is_kept() -> None:
    url, shown = "postgresql://ann:hun@ter2@db/census", "postgresql://ann:***@db/census"
    assert discreet(f"{url}: no such file; `inspect {url}` drafts one") == (
        f"{shown}: no such file; `inspect {shown}` drafts one"
    )
    assert discreet(discreet(f"{url} and '{url}'")) == f"{shown} and '{shown}'"


def test_a_url_that_is_taken_for_a_plan_file_is_said_not_to_be_there() -> None:
    with pytest.raises(PlanFileError, match=r"^postgresql:/ann:\*\*\*@db/census: no such file") as told:
        read_plan("postgresql://ann:hunter2@db/census")
    assert "treetop inspect" in str(told.value)


@pytest.mark.parametrize("text", ["a@b.c: see https://example.org", "plan.toml: [unit] x = 3", "C:/x: a@b", ""])
def test_what_holds_no_password_is_left_alone(text: str) -> None:
    assert discreet(text) == text
    assert str(DataError(text)) == text


def test_json_stays_json_when_a_password_is_taken_out() -> None:
    assert json.loads(discreet(json.dumps({"a": "password=hunter2", "b": 1}))) == {"a": "password=***", "b": 1}


def test_a_source_with_a_blank_before_its_url_is_that_url() -> None:
    source = Source(" postgresql://ann:hunter2@db/census", "trips")
    assert source.scheme == "postgresql"
    for shown in (str(source), repr(source), str(Source(["host=db password=hunter2", "x.csv"]))):
        assert "hunter2" not in shown


def test_every_character_that_is_not_seen_is_written_out() -> None:
    kept = {"\n", "\t", "\N{ZERO WIDTH JOINER}", "\N{ZERO WIDTH NON-JOINER}"}
    signs = (chr(code) for code in range(sys.maxunicode + 1))
    unseen = {sign for sign in signs if unicodedata.category(sign) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} - kept
    left = [sign for sign in unseen if visible(sign) == sign]
    assert left == []
    assert visible("Città\u00a0di “Milano” 東京 🏳\n\t") == "Città\u00a0di “Milano” 東京 🏳\n\t"
    assert all(json.loads(f'"{visible(sign)}"') == sign for sign in unseen)
    assert printable("a\nb\x1b") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("code", ["x" * 3_000_000, "x y" * 1_000_000, "'\"" * 1_000_000])
def test_a_code_of_megabytes_is_quoted_in_part_and_the_rest_of_the_message_whole(code: str) -> None:
    message = str(DataError(f"trips.csv, row 7: {code!r} is not a code. Correct the table"))
    assert len(message) < 7000
    assert message.startswith("trips.csv, row 7: ")
    assert message.endswith("Correct the table")
    assert "characters …]" in message
    assert brief("short") == "short"


def test_a_front_end_says_arguments_in_its_own_words() -> None:
    words = {"staging": "the field Folder", "header": "the box Names"}
    text = "name `staging`, say `header=False` or `sheet`; see `treetop plan` and `no end"
    assert translate_arguments(text, lambda name, value: words.get(name) and f"{words[name]} ({value})") == (
        "name the field Folder (None), say the box Names (False) or `sheet`; see `treetop plan` and `no end"
    )


@pytest.mark.parametrize(
    ("command", "text", "shown"),
    [
        (
            "inspect",
            'say `header=False`, `header=True` or `encoding="latin-1"`',
            "--no-header, --header or --encoding latin-1",
        ),
        ("release", 'say `allow_dropped=True` or `encoding="latin-1"`', '--allow-dropped or `encoding="latin-1"`'),
        ("plan", "say `targets`, `target` or `advise`", "--target, --target or --advise"),
        ("ledger", "say `dataset`", "--dataset"),
        ("compare", "say `plots=False`", "--no-plots"),
    ],
)
def test_the_command_line_says_arguments_as_its_flags(command: str, text: str, shown: str) -> None:
    assert in_flags(text, import_module(f"treetop.cli.{command}").command) == f"say {shown}"
