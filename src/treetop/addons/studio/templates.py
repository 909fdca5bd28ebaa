"""Templates: small plans to start from, whose columns are found by the words of their names."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from treetop.inspection import Column
from treetop.inspection.column_profile import words
from treetop.plan.file.edit import changed, parsed, without_section

_SECTION = "template"


def templates() -> dict[str, str]:
    """Return what every template is about, by its name."""
    found = sorted(one.name for one in files("treetop.addons.studio").joinpath("templates").iterdir())
    names = [one.removesuffix(".toml") for one in found if one.endswith(".toml")]
    return {name: parsed(_text(name))[_SECTION]["name"] for name in names}


def plan_from(name: str, columns: tuple[Column, ...], more: dict[tuple[tuple[str, ...], str], Any]) -> str:
    """Return the text of a plan from a template, with the columns of a table and some other fields."""
    text = _text(name)
    taken: list[str] = []
    changes: dict[tuple[tuple[str, ...], str], Any] = {}
    for attribute, like in parsed(text)[_SECTION].get("like", {}).items():
        fitting = {one.name: len(words(one.name) & words(like)) for one in columns if one.name not in taken}
        best = max(fitting, key=lambda column: fitting[column], default=None)
        if best is not None and fitting[best]:
            taken.append(best)
            changes[("attributes", attribute), "column"] = best
    return changed(without_section(text, (_SECTION,)), {**changes, **more})


def _text(name: str) -> str:
    return files("treetop.addons.studio").joinpath("templates", f"{name}.toml").read_text(encoding="utf-8")
