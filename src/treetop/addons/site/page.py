"""The main page of a site: a headline, totals, tables, downloads, and the accuracy of the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treetop._util.distribution import DISTRIBUTION
from treetop.addons.pages import render as render_page
from treetop.addons.site.site_tables import TOGETHER, PageRows, highest_zero
from treetop.card import in_words
from treetop.domain.constraints import INVARIANT
from treetop.exporting.any_table import attributes_of
from treetop.exporting.language import Language
from treetop.exporting.levels import ENDS, Depths, trees_of
from treetop.exporting.page_statements import (
    attribute_at,
    attribute_label,
    called,
    citation,
    counted,
    exceptions,
    guarantee,
    is_exact,
    or_more,
    plainly,
    tolerance,
)
from treetop.release.measurements import RATE
from treetop.release.selection import Selection

if TYPE_CHECKING:
    from markupsafe import Markup


Answer = tuple[str, list["Markup"]]

_SCRIPT = (
    *("count", "sort", "status", "page", "to", "at_most", "may_be_noise", "not_named", "outside", "scale", "largest"),
    "outside_note",
)

KINDS = {
    "totals.csv": "totals",
    "counts.csv": "csv",
    "counts.csv-metadata.json": "metadata",
    "counts.parquet": "parquet",
    "counts.xlsx": "xlsx",
    "counts.json": "jsonstat",
    "sdmx.csv": "sdmx",
    "sdmx-structure.json": "structure",
    "counts.gpkg": "geopackage",
    "dcat.jsonld": "dcat",
}
"""Downloads, and the words for each."""


@dataclass(frozen=True)
class MainPage:
    """The content of the main page."""

    release: Selection
    depths: Depths
    rows: PageRows
    """The table of all attributes."""
    totals: Sequence[PageRows]
    """Tables of one attribute or two."""
    language: Language

    def render(self, downloads: Sequence[str], *, has_map: bool, guarded: bool, credit: str | None) -> str:
        """Return the page; text from the release is never markup."""
        card, own = self.release.card, self.language
        values = {
            "say": own.say,
            "number": own.number,
            "language": own.code,
            "card": in_words({key: card.get(key) for key in ("private", "description", "guarantee", "protects", "id")}),
            "title": card.get("title") or own.words["page"]["untitled"],
            "version": card["software"][DISTRIBUTION],
            "conditions": ", ".join(self.release.conditions),
            "period": card.get("data", {}).get("period"),
            "day": own.day(str(card.get("time") or "")),
            "total": self.release.total,
            "total_words": self._total(),
            "what": counted(card, own)[0],
            "counted": [*counted(card, own)[1], *or_more(card, own)],
            "row_words": self._row(),
            "lead": list(self._lead()),
            "rows": self.rows,
            "has_ranges": self._has_ranges,
            "totals_outside": sum(rows.outside for rows in self.totals if len(rows.depths) == 1),
            "named": self._named,
            "answers": list(self._answers()),
            "downloads": [(file, KINDS[file]) for file in downloads],
            "citation": citation(card, own) if card["private"] and card.get("id") else None,
            "has_map": has_map,
            "guarded": guarded,
            "credit": credit,
            "content": self._content(),
        }
        return render_page("treetop.addons.site", values)

    @property
    def _named(self) -> bool:
        """Whether only counts that stand out are named, so that an unlisted combination is no zero."""
        return self.release.whole.left is not None

    @property
    def _left(self) -> int:
        """Part of the total that is in no row of this level, because it is not resolved so far."""
        return self.release.total - self.rows.total if self._named else 0

    @property
    def _has_ranges(self) -> bool:
        return self.rows.content["lower"] is not None

    @property
    def _is_exact(self) -> bool:
        """Whether the numbers of this page carry no noise."""
        return bool(self.rows.content["exact"])

    @property
    def _sure(self) -> Markup:
        """Confidence of the ranges, in words."""
        from markupsafe import Markup

        return Markup(self.language.percent(self.release.confidence or 0))

    def _content(self) -> dict[str, Any]:
        """Return the data of the page's script: the table of all attributes, and beside it all others."""
        own, table = self.language, self.language.words["table"]
        said = {key: table[key] for key in _SCRIPT}
        what = counted(self.release.card, own)[0]
        said["what"] = "" if what is None else what.striptags()
        words = {**own.words["totals"], **said, "range": str(table["range"].format(confidence=self._sure))}
        return {
            **self._table(self.rows),
            "words": words,
            "group": own.words["language"]["group"],
            "language": own.code,
            "tables": [self._table(rows) for rows in self.totals],
        }

    def _table(self, rows: PageRows) -> dict[str, Any]:
        """Return a table with headings, and whether what it does not list is no zero."""
        columns = [
            {
                "head": self._head(self._attribute(column["of"], rows.depths), column["of"]),
                "short": self._head(attribute_label(column["of"], self.release.card, self.language), column["of"]),
                **self._labelled(column),
            }
            for column in rows.content["columns"]
        ]
        named = self._named and rows.total < self.release.total
        words = self.language.words
        none = words["table"][_nothing(rows, named)]
        if rows is not self.rows and rows.shown < rows.number:  # which the downloads do not have either
            none = words["totals"]["none_largest"]
        return {**rows.content, "columns": columns, "named": named, "none": none}

    def _labelled(self, column: Mapping[str, Any]) -> dict[str, Any]:
        """Return a column with its open class in the words of the language."""
        rule, tree = self.release.card.get("counted", {}).get("open"), trees_of(self.release)[column["of"]]
        if rule is None or rule["attribute"] != column["of"] or column["level"] != tree.levels[-1]:
            return dict(column)
        last = tree.codes[-1][-1].as_py()
        more = self.language.words["table"]["or_more"].format(number=self.language.number(rule["from"]))
        names = column["name"] or [None] * len(column["code"])
        called = [more if code == last else own for code, own in zip(column["code"], names, strict=True)]
        return {**column, "name": called}

    def _head(self, called: str, name: str) -> str:
        """Return a heading: labels of the package begin with a capital, others are unchanged."""
        ours = name in ENDS or attribute_label(name, self.release.card, self.language) != name
        return called[0].upper() + called[1:] if ours else called

    def _attribute(self, name: str, depths: Depths) -> str:
        """Return the label of an attribute, with its level if that says more."""
        return attribute_at(name, trees_of(self.release)[name].levels[depths[name]], self.release.card, self.language)

    def _row(self) -> Markup:
        from markupsafe import Markup

        names = [
            Markup("<bdi>{}</bdi>").format(self._attribute(name, self.depths)) for name in attributes_of(self.release)
        ]
        if len(names) == 1:
            return self.language.say("headline.row_one", attribute=names[0])
        joined = Markup(", ").join(names[:-1]) + self.language.words["attributes"]["and"] + names[-1]
        return self.language.say("headline.row_several", attributes=joined)

    def _total(self) -> Markup:
        release, say = self.release, self.language.say
        if not release.conditions and is_exact(release.card["levels"][0]):
            return say("headline.total_exact")
        if release.confidence is None:
            return say("headline.total_noise")
        bounds = release.interval()
        told = say("headline.total_range", lower=bounds.lower, upper=bounds.upper, confidence=self._sure)
        if bounds.lower <= release.total <= bounds.upper:
            return told
        return told + "; " + say("headline.total_outside")

    def _lead(self) -> Iterator[Markup]:
        """Yield three plain sentences: the subject, its treatment, and the people whom that protects."""
        release, say, left = self.release, self.language.say, self._left
        if left > 0:
            yield say("headline.what_unresolved", number=self.rows.number, left=left, total=release.total)
        else:
            yield say("headline.what", number=self.rows.number, total=release.total)
        if not release.card["private"]:
            yield say("headline.noise_testing")
            yield say("headline.no_guarantee")
            return
        yield from self._noise()
        yield from plainly(release.card, self.language)

    def _noise(self) -> Iterator[Markup]:
        """Yield sentences on the noise of this page's numbers, and on tables without noise."""
        say, release = self.language.say, self.release
        if self._is_exact:
            yield say("headline.noise_none")
            return
        yield say("headline.noise", confidence=self._sure) if self._has_ranges else say("headline.noise_only")
        exact = [fact["table"] for fact in release.card.get("facts", ()) if {"exact", INVARIANT} & set(fact["states"])]
        if exact:
            yield say("headline.exact_tables", tables=called(exact))

    def _answers(self) -> Iterator[Answer]:
        """Yield the questions of citizens, and the answers."""
        private = bool(self.release.card["private"])
        answers = {
            "why": self._why() if private else [self.language.say("page.not_private_why")],
            "far": self._far(),
            "small": self._small(),
            "zero": self._zero(),
            "sums": [self.language.say("sure.sums"), *self._sums()],
            "else": [self.language.say("sure.else"), *counted(self.release.card, self.language)[1]],
        }
        if private:
            answers["protected"] = self._protected()
        for key, said in answers.items():
            yield self.language.words["sure"][f"{key}_title"], said

    def _why(self) -> list[Markup]:
        """Return the reason for the noise, and the tables without noise."""
        noise = list(self._noise())
        return [self.language.say("sure.why"), *(noise if self._is_exact else noise[1:])]

    def _far(self) -> list[Markup]:
        say, rows, sure = self.language.say, self.rows, self._sure
        if not self._has_ranges:
            return [say("sure.no_range")]
        means = say("sure.means_named" if self.release.whole.selective else "sure.means", confidence=sure)
        told = [means, say("sure.outside")]
        if rows.width is None:  # there is no row
            return told
        content = rows.content
        columns = [self._labelled(column) for column in content["columns"]]
        called = (_called(column, column["at"][0]) for column in columns)
        example = say(
            "sure.example",
            row=" · ".join(called),
            count=content["count"][0],
            lower=content["lower"][0],
            upper=content["upper"][0],
        )
        return [say("sure.far", width=rows.width), example, *told]

    def _small(self) -> list[Markup]:
        from markupsafe import Markup

        say, rows = self.language.say, self.rows
        if self._named:
            return [say("sure.small_named", left=self._left)]
        if rows.real is None:
            return [say("sure.small_untested")]
        rate = Markup(self.language.percent(float(RATE)))
        return [say("sure.small", number=rows.number, real=rows.real, rate=rate)]

    def _zero(self) -> list[Markup]:
        say, rows = self.language.say, self.rows
        told = [say("sure.unnamed" if self._named else "sure.zero")]
        if rows.zeros:
            told.append(say("sure.unnamed_listed" if self._named else "sure.zero_listed"))
        highest = highest_zero(self.release, self.depths)
        if highest is not None and rows.zeros != 0:
            told.append(say("sure.zero_most", most=highest, confidence=self._sure))
        return told

    def _sums(self) -> list[Markup]:
        """Return how the range of a chosen sum is made, if there is one."""
        tables = [self.rows, *self.totals]
        if not any(rows.content["sums"] or rows.content["wide"] for rows in tables):
            return []
        return [self.language.say("sure.sums_range", most=TOGETHER)]

    def _protected(self) -> list[Markup]:
        card, own = self.release.card, self.language
        told = [guarantee(card, own, "sure.protected"), *tolerance(card, own), *exceptions(card, own)]
        return [*told, own.say("sure.protected_many")]


def _nothing(rows: PageRows, named: bool) -> str:
    """Return the message key for an empty search result."""
    if rows.zeros is not None:
        return "status_none"
    if rows.shown < rows.number:
        return "status_none_largest"
    return "status_none_unnamed" if named else "status_none_zero"


def _called(column: Mapping[str, Any], entry: int) -> str:
    """Return the name of an entry; one without a name has its code."""
    name = None if column["name"] is None else column["name"][entry]
    return str(column["code"][entry] if name is None else name)
