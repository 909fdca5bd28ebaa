"""The page about the guarantee in the reader's language, from the figures of the card; the card does not change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treetop._util.distribution import DISTRIBUTION
from treetop.addons.pages import render as render_page
from treetop.card import in_words
from treetop.exporting.language import ENGLISH, Language
from treetop.exporting.sheet import is_exact
from treetop.exporting.statements import attribute_label, counted, covered, exceptions, is_plain, plainly, protection
from treetop.plan.workload import CONFIDENCE

if TYPE_CHECKING:
    from markupsafe import Markup

_PRODUCT = " × "
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
            "noise": self._noise(),
            "rows": list(self._rows()),
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

    def _noise(self) -> Markup:
        from markupsafe import Markup

        confidence = self.card.get("accuracy", {}).get("confidence") or CONFIDENCE
        return self.language.say("guarantee.noise", confidence=Markup(self.language.percent(confidence)))

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Yield the levels and the tables beside them: title, number of counts, margin and share."""
        from markupsafe import Markup

        words = self.language.words["guarantee"]
        for table, level in ((key, level) for key in ("levels", "margins") for level in self.card.get(key) or ()):
            called = Markup("<bdi>{}</bdi>").format(self._called(level.get("counts") or level["name"]))
            yield {
                "name": called if table == "levels" else self.language.say("guarantee.alone", level=called),
                "nodes": level["nodes"],
                "margin": self._margin(level, words),
                "share": self.language.percent(round(level["share"]["value"], 3)) if level["measured"] else "",
            }

        if choice := self.card.get("choice"):
            candidates = ", ".join(self.language.number(one["theta"]) for one in choice)
            share = sum(one["share"]["value"] for one in choice)
            yield {
                "name": self.language.say("guarantee.choice", candidates=candidates),
                "nodes": len(choice),
                "margin": "",
                "share": self.language.percent(round(share, 3)),
            }

    def _margin(self, level: Mapping[str, Any], words: Mapping[str, str]) -> str:
        if level["measured"] and level["margin"] is not None:
            return "± " + self.language.number(level["margin"])
        return words["exact" if is_exact(level) else "follows"]

    def _called(self, counts: str) -> str:
        """Return the title of a level; labels of the package are in the language."""
        own = self.language.words
        if counts == "total":
            return str(own["guarantee"]["total"])
        parts = [re.sub(r"\.(?=\S)", " ", part, count=1).partition(" ") for part in counts.split(_PRODUCT)]
        said = [(attribute_label(name, self.card, self.language), level) for name, _, level in parts]
        return _PRODUCT.join(" ".join(filter(None, one)) for one in said)

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
