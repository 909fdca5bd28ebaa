"""The page about the guarantee in the reader's language, from the figures of the card; the card does not change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treetop._util.distribution import DISTRIBUTION
from treetop.addons.pages import render as render_page
from treetop.card import in_words
from treetop.exporting.language import ENGLISH, Language
from treetop.exporting.page_statements import (
    counted,
    covered,
    exceptions,
    is_exact,
    is_plain,
    noise_of,
    noise_rows,
    plainly,
    protection,
)

if TYPE_CHECKING:
    from markupsafe import Markup

_COMMAND = "treetop check"
_EXACT_WORDS = ("guarantee", "protects")


@dataclass(frozen=True)
class GuaranteePage:
    """The content of the page."""

    card: Mapping[str, Any]
    language: Language

    def render(self, home: str, card: str) -> str:
        """Return the page; text from the release is never markup."""
        own = self.language
        values = {
            "say": own.say,
            "number": own.number,
            "language": own.code,
            "title": self.card.get("title") or own.words["page"]["untitled"],
            "private": self.card["private"],
            "exact_words": " ".join(in_words([self.card[name] for name in _EXACT_WORDS if self.card.get(name)])),
            "about": own.say("guarantee.about", entity=self.card["unit"]["entity"]),
            "short": list(self._short()) if self.card["private"] else [],
            "who": list(self._who()),
            "in_card": None if is_plain(self.card) else in_words(self.card["unit"].get("neighbouring_tables")),
            "well": list(self._well()),
            "noise": noise_of(self.card, own),
            "rows": list(noise_rows(self.card, own)),
            "open": list(self._open()),
            "check": own.say("guarantee.check", command=_COMMAND),
            "version": self.card["software"][DISTRIBUTION],
            "id": self.card.get("id"),
            "home": home,
            "card": card,
        }
        return render_page("treetop.addons.site", values, scripts=(), page="guarantee.html")

    @property
    def _total_is_exact(self) -> bool:
        return is_exact(self.card["levels"][0])

    def _short(self) -> Iterator[Markup]:
        """Yield one paragraph: the factor, what it covers, its exceptions, and what nothing hides."""
        yield from plainly(self.card, self.language)
        if self._total_is_exact:
            yield self.language.say("guarantee.exact_total")
        yield self.language.say("sure.protected_many")

    def _who(self) -> Iterator[Markup]:
        say, unit = self.language.say, self.card["unit"]
        if not is_plain(self.card):
            yield from list(covered(self.card, self.language)) or exceptions(self.card, self.language)
            if self.language.code == ENGLISH:
                yield say("guarantee.others")
            return
        yield say("guarantee.who", entity=unit["entity"], number=unit["contributions"])
        yield say("guarantee.enforced" if unit["enforced"] else "guarantee.declared")
        if unit["neighbours"] == "add-remove":
            yield say("guarantee.add_remove")
        elif self._total_is_exact:
            yield say("guarantee.replace")
        else:
            yield say("guarantee.replace_noisy", entity=unit["entity"])

    def _well(self) -> Iterator[Markup]:
        yield from protection(self.card, self.language)

    def _open(self) -> Iterator[Markup]:
        """Yield the exceptions: unprotected values, and uncounted records."""
        say = self.language.say
        yield from exceptions(self.card, self.language)
        if self._total_is_exact:
            yield say("guarantee.exact_total")
        yield say("sure.protected_many")
        yield say("guarantee.public")
        yield say("guarantee.beside", entity=self.card["unit"]["entity"])
        yield from counted(self.card, self.language)[1]
        yield say("sure.else")
