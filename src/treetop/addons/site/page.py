"""The main page of a site: a headline, the table, downloads, and the accuracy of the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.distribution import DISTRIBUTION
from treetop.addons.pages import language as html
from treetop.addons.pages.language import Language
from treetop.addons.pages.statements import called, carries_no_noise, counted, exceptions, guarantee, tolerance
from treetop.card import in_words
from treetop.domain.constraints import INVARIANT
from treetop.exporting.any_table import attributes_of
from treetop.exporting.levels import ENDS, Depths, trees_of
from treetop.exporting.sheet import is_exact
from treetop.release.selection import Selection, outside
from treetop.release.surviving import RATE, surviving
from treetop.release.zeros import most_of_a_zero, number_of_cells, zeros

if TYPE_CHECKING:
    from markupsafe import Markup


# The rows that a page holds: the largest of a table, zeros where all fit, and which of them may be noise.

MOST = 20_000
"""Most rows of a page; the largest are kept."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PageRows:
    """The part of a table that is on the page."""

    content: dict[str, Any]
    """Data of its script: codes and names once each, and rows by number, the largest first and zeros last."""
    number: int
    """The rows above zero of the whole table."""
    total: int
    """Their sum, without remainders at coarser nodes."""
    shown: int
    """Rows above zero that are on the page."""
    zeros: int | None
    """The zeros that are on the page; None if there are too many to list."""
    highest: int | None
    """Upper bound of any combination that is not listed; None if unknown."""
    real: int | None
    """The rows that stand out from the noise; None if not tested."""
    width: int | None
    """The median width of the ranges; None if there are none."""
    outside: int = 0
    """Rows on the page with a number outside its range."""


def rows_of(release: Selection, depths: Depths, table: pa.Table) -> PageRows:
    """Choose the rows to show of a table that has a row per combination above zero."""
    names, trees = attributes_of(release), trees_of(release)
    nodes = np.stack([_nodes(table[name], trees[name].codes[depths[name]]) for name in names])
    refined = tuple(depths[name] + 1 for name in release.spine.attributes)
    real = _standing_out(release, refined, nodes[_back(release, names)])
    count = table["count"].to_numpy()
    order = np.argsort(-count, kind="stable")[:MOST]
    absent, most = _zeros(release, refined, nodes[_back(release, names)])
    shown = nodes[:, order] if absent is None else np.hstack([nodes[:, order], absent[_forth(release, names)]])
    content: dict[str, Any] = {
        "columns": [
            _column(own, trees[name].codes[depths[name]], trees[name].names.get(trees[name].levels[depths[name]]))
            for name, own in zip(names, shown, strict=True)
        ],
        "count": count[order].tolist(),
        "noise": None if real is None else (~real[order]).astype(int).tolist(),
        "absent": None if most is None else most.tolist(),
    }
    ranges = "lower" in table.column_names
    for end in ("lower", "upper"):
        content[end] = table[end].to_numpy()[order].tolist() if ranges else None
    return PageRows(
        content,
        number=len(count),
        total=int(count.sum()),
        shown=len(order),
        zeros=None if absent is None else absent.shape[1],
        highest=_highest(release, refined),
        real=None if real is None else int(np.count_nonzero(real)),
        width=int(np.median(pc.subtract(table["upper"], table["lower"]).to_numpy())) if ranges and len(count) else None,
        outside=int(np.count_nonzero(outside(table)[order])) if ranges else 0,
    )


def _standing_out(release: Selection, refined: tuple[int, ...], nodes: Ints) -> NDArray[np.bool_] | None:
    """Return which rows survive the test of their level; None if rows are sums, or measurements were not kept."""
    index, whole = release.spine.index_at(refined), release.whole
    if index is None or release.conditions or release.confidence is None or whole.evidence is None:
        return None
    if whole.selective:  # all that is named survived a test
        return np.ones(nodes.shape[1], np.bool_)
    measured = whole.measured
    tested = measured.tree.at(index).nodes
    if tested.shape != nodes.shape:  # rows of a margin, which has more of them
        return None
    here, there = np.lexsort(nodes), np.lexsort(tested)
    real = np.empty(nodes.shape[1], np.bool_)
    real[here] = surviving(measured, index)[there]
    return real if np.array_equal(nodes[:, here], tested[:, there]) else None


def _zeros(release: Selection, refined: tuple[int, ...], nodes: Ints) -> tuple[Ints | None, Ints | None]:
    """Return the unlisted combinations and the upper bound of each, if the page has room for all."""
    if number_of_cells(release, refined) > MOST:
        return None, None
    return zeros(release, refined, nodes)


def _highest(release: Selection, refined: tuple[int, ...]) -> int | None:
    index = release.spine.index_at(refined)
    return None if index is None or release.conditions else most_of_a_zero(release, index)


def _nodes(column: pa.ChunkedArray, codes: pa.StringArray) -> Ints:
    found: Ints = pc.index_in(column.combine_chunks(), value_set=codes).to_numpy().astype(np.int64)
    return found


def _column(nodes: Ints, codes: pa.StringArray, names: pa.StringArray | None) -> dict[str, Any]:
    """Return the codes and names of nodes, each once, and the node of every row."""
    used, at = np.unique(nodes, return_inverse=True)
    code = codes.take(pa.array(used)).to_pylist()
    called = [None] * len(code) if names is None else names.take(pa.array(used)).to_pylist()
    # A name that is the code is not said twice.
    name = [None if said == own else said for said, own in zip(called, code, strict=True)]
    return {"code": code, "name": name if any(name) else None, "at": at.ravel().tolist()}


def _back(release: Selection, names: list[str]) -> list[int]:
    """Return the positions of the spine's attributes among columns."""
    return [names.index(name) for name in release.spine.attributes]


def _forth(release: Selection, names: list[str]) -> list[int]:
    """Return the positions of columns among the spine's attributes."""
    return [list(release.spine.attributes).index(name) for name in names]


Answer = tuple[str, list["Markup"]]

_SCRIPT = ("count", "sort", "status", "page", "to", "at_most", "may_be_noise", "not_named", "outside", "scale")


@dataclass(frozen=True)
class MainPage:
    """The content of the main page."""

    release: Selection
    depths: Depths
    rows: PageRows
    language: Language

    def render(self, downloads: Sequence[tuple[str, str]], *, has_map: bool, guarded: bool, credit: str | None) -> str:
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
            "counted": counted(card, own)[1],
            "row_words": self._row(),
            "lead": list(self._lead()),
            "rows": self.rows,
            "named": self._named,
            "answers": list(self._answers()),
            "downloads": downloads,
            "has_map": has_map,
            "guarded": guarded,
            "credit": credit,
            "content": self._content(),
        }
        return html.render("treetop.addons.site", values)

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
        return carries_no_noise(self.release, [self.depths[name] + 1 for name in self.release.spine.attributes])

    @property
    def _sure(self) -> Markup:
        """Confidence of the ranges, in words."""
        from markupsafe import Markup

        return Markup(self.language.percent(self.release.confidence or 0))

    def _content(self) -> dict[str, Any]:
        """Return the data of the page's script."""
        own, table = self.language, self.language.words["table"]
        words = {key: table[key] for key in _SCRIPT} | {
            "none": table[self._nothing()],
            "range": str(table["range"].format(confidence=self._sure)),
        }
        content = self.rows.content
        columns = [
            {
                "head": _head(self._attribute(name), name),
                "short": _head(self._short(name), name),
                **self._labelled(name, column),
            }
            for name, column in zip(attributes_of(self.release), content["columns"], strict=True)
        ]
        group = own.words["language"]["group"]
        return {
            **content,
            "columns": columns,
            "words": words,
            "group": group,
            "language": own.code,
            "named": self._named,
        }

    def _labelled(self, name: str, column: Mapping[str, Any]) -> dict[str, Any]:
        """Return a column with its open class in the words of the language."""
        rule = self.release.card.get("counted", {}).get("open")
        if rule is None or rule["attribute"] != name:
            return dict(column)
        last = trees_of(self.release)[name].codes[-1][-1].as_py()
        more = self.language.words["table"]["or_more"].format(number=self.language.number(rule["from"]))
        names = column["name"] or [None] * len(column["code"])
        called = [more if code == last else own for code, own in zip(column["code"], names, strict=True)]
        return {**column, "name": called}

    def _nothing(self) -> str:
        """Return the message key for an empty search result."""
        if self.rows.zeros is not None:
            return "status_none"
        if self.rows.shown < self.rows.number:
            return "status_none_largest"
        return "status_none_unnamed" if self._named else "status_none_zero"

    def _short(self, name: str) -> str:
        return str(self.language.words["attributes"][name]) if name in ENDS else name

    def _attribute(self, name: str) -> str:
        """Return the label of an attribute, with its level if that says more."""
        level, by = trees_of(self.release)[name].levels[self.depths[name]], str(self.language.words["attributes"]["by"])
        return self._short(name) if level in (name, "value") else by.format(attribute=self._short(name), level=level)

    def _row(self) -> Markup:
        from markupsafe import Markup

        names = [Markup("<bdi>{}</bdi>").format(self._attribute(name)) for name in attributes_of(self.release)]
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
        yield guarantee(release.card, self.language, "headline.guarantee")
        yield from exceptions(release.card, self.language)

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
            "sums": [self.language.say("sure.sums")],
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
        names = attributes_of(self.release)
        columns = [self._labelled(*pair) for pair in zip(names, content["columns"], strict=True)]
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
        if rows.highest is not None and rows.zeros != 0:
            told.append(say("sure.zero_most", most=rows.highest, confidence=self._sure))
        return told

    def _protected(self) -> list[Markup]:
        card, own = self.release.card, self.language
        told = [guarantee(card, own, "sure.protected"), *tolerance(card, own), *exceptions(card, own)]
        return [*told, own.say("sure.protected_many")]


def _head(called: str, name: str) -> str:
    """Return a heading: labels of the package begin with a capital, others are unchanged."""
    return called[0].upper() + called[1:] if name in ENDS else called


def _called(column: Mapping[str, Any], entry: int) -> str:
    """Return the name of an entry; one without a name has its code."""
    name = None if column["name"] is None else column["name"][entry]
    return str(column["code"][entry] if name is None else name)
