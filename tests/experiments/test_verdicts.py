"""Every verdict of every study is computed from its run: a made-up run turns it, in the tests of its study."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from experiments.kit import pages, verdicts
from experiments.kit.verdicts import VERDICTS, NothingRunError, Tally, standing, tally

EXPERIMENTS = Path(verdicts.__file__).parents[1]
STUDIES = sorted(file.parent.name for file in EXPERIMENTS.glob("*/__main__.py"))


def turned() -> set[str]:
    """What the tests of all studies turn; reading them registers all verdicts."""
    tests = [import_module(f"tests.experiments.{file.stem}") for file in Path(__file__).parent.glob("test_*.py")]
    return {name for test in tests for name in getattr(test, "TURNED", ())}


def test_every_verdict_has_a_made_up_run_that_turns_it() -> None:
    for study in STUDIES:
        import_module(f"experiments.{study}.__main__")
    found = turned()
    assert found == set(VERDICTS), "name the new verdict in TURNED of its study's tests, with a run that turns it"
    assert len(found) >= 50


def test_every_claim_has_a_judge_and_every_judge_is_registered() -> None:
    turned()
    for words in EXPERIMENTS.glob("*/claims.md"):
        names = re.findall(r"^## (\w+)$", words.read_text(encoding="utf-8"), re.MULTILINE)
        assert {f"{words.parent.name}.{name}" for name in names} <= set(VERDICTS)
        assert len(names) == len(set(names))


def test_no_page_has_a_verdict_in_its_words() -> None:
    """A template may say holds, reproduces or helps only where the run puts it."""
    for file in EXPERIMENTS.glob("*/*.md"):
        text = re.sub(r"{[{%].*?[%}]}", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        said = re.findall(r"(?:\*\*|^)(?:Holds|Does not hold|In part|It is wrong|Wrong)\b", text, re.MULTILINE)
        said += re.findall(r"does not (?:reproduce|stand out)|0 of 0", text)
        assert not said, f"{file}: {said}"


def test_a_tally_of_nothing_is_no_tally() -> None:
    with pytest.raises(NothingRunError):
        tally([])
    assert [str(Tally(held, 3)) for held in (0, 2, 3)] == ["0 of 3", "2 of 3", "all 3"]
    assert standing(Tally(3, 3), Tally(1, 1)) is True
    assert standing(Tally(0, 3), Tally(1, 1)) is None
    assert standing(Tally(0, 3), Tally(0, 1)) is False


def test_two_verdicts_of_one_name_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="two verdicts"):
        verdicts.verdict("inftda.speed")(lambda: None)


def test_claims_without_words_or_without_a_judge_are_refused() -> None:
    claims = pages.Claims("inftda")
    with pytest.raises(ValueError, match="without words or a judge"):
        list(claims.all({}))
