"""The languages of exports: their words, and how numbers and days are written in them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from treetop._util.choices import nearest
from treetop.errors import ReleaseError

if TYPE_CHECKING:
    from markupsafe import Markup


_WORDS = files("treetop.exporting").joinpath("words")
_ENDING = ".toml"

ENGLISH = "en"


@dataclass(frozen=True, eq=False)
class Language:
    """One language."""

    code: str
    words: Mapping[str, Mapping[str, Any]]

    def say(self, name: str, /, **values: object) -> Markup:
        """Return the words of `section.key` as safe text; a text from the release keeps its own direction."""
        from markupsafe import Markup, escape

        section, _, key = name.partition(".")
        return Markup(escape(self.words[section][key])).format(
            **{one: self._value(value) for one, value in values.items()}
        )

    @property
    def numbers(self) -> dict[str, str]:
        """How numbers are written, for a script."""
        return {key: self.words["language"][key] for key in ("group", "decimal", "percent")}

    def number(self, value: int) -> str:
        """Write a whole number with its thousands apart."""
        return f"{value:,}".replace(",", self.words["language"]["group"])

    def decimal(self, text: str) -> str:
        """Write a number that is given as English text, such as 1,234.5 or 1e-08."""
        own = self.words["language"]
        return text.translate(str.maketrans({",": own["group"], ".": own["decimal"]}))

    def percent(self, share: float) -> str:
        """Write a share of one."""
        return str(self.words["language"]["percent"].format(number=self.decimal(f"{100 * share:g}")))

    def day(self, iso: str) -> str:
        """Write a day, such as 2001-06-30; other texts stay unchanged."""
        own, parts = self.words["language"], iso[:10].split("-")
        if len(parts) != 3 or not all(part.isdigit() for part in parts) or not 1 <= int(parts[1]) <= 12:
            return iso
        year, month, day = parts
        return str(own["date"].format(day=int(day), month=own["months"][int(month) - 1], year=year))

    def _value(self, value: object) -> object:
        from markupsafe import Markup

        if isinstance(value, int):
            return self.number(value)
        return value if isinstance(value, Markup) else Markup("<bdi>{}</bdi>").format(value)


def languages() -> list[str]:
    """Return the codes of all languages that there are words for, English first."""
    found = sorted(file.name.removesuffix(_ENDING) for file in _WORDS.iterdir() if file.name.endswith(_ENDING))
    return sorted(found, key=lambda code: code != ENGLISH)


@cache
def language(code: str) -> Language:
    """Return a language by its code."""
    if code not in languages():
        raise ReleaseError(
            f"there is no language {code!r}{nearest(code, languages())}; the languages are {', '.join(languages())}. "
            "A translation is one file more beside theirs"
        )
    return Language(code, tomllib.loads(_WORDS.joinpath(code + _ENDING).read_text(encoding="utf-8")))
