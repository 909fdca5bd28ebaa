"""Checking a release folder: everything that its card states is recomputed, and every difference is a finding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from treetop._util.distribution import DISTRIBUTION, VERSION
from treetop._util.numbers import plain
from treetop.card import schema
from treetop.card.content import draft_card
from treetop.card.html import render
from treetop.card.rebuild import rebuild_plan
from treetop.card.run_info import RunInfo, misfit
from treetop.checking import _arithmetic as arithmetic
from treetop.checking import _counting as counting
from treetop.checking import _shard_checks as shards
from treetop.checking._counting import differences, keeps_regions
from treetop.checking._shard_checks import ShardsCheck
from treetop.domain.spine import Spine
from treetop.errors import ReleaseError, TreetopError
from treetop.measure.vectors import repaired
from treetop.plan.degrees import DegreeHistogram
from treetop.plan.plan import Plan
from treetop.release import folder as files
from treetop.release.release import Release

# What only one kind of plan promises: of group sizes the number of groups, of degrees how they were repaired.


def _groups(card: Mapping[str, Any], release: Release) -> Iterator[str]:
    """Compare the number of groups, to which every level adds up, and the sizes with what is public about them."""
    groups = card["plan"]["groups"]
    yield from _axis(release, "size", groups["largest"])
    if release.total != groups["number"]:
        yield f"the release has {release.total:,} groups, but there are {groups['number']:,}, which is public"
    yield from _regions(card, release, "groups")


def _regions(card: Mapping[str, Any], release: Release, what: str) -> Iterator[str]:
    """Compare the number of every region with the one that is public; coarser regions are sums of both."""
    if not keeps_regions(card["plan"]):
        return
    if release.public is None:
        yield f"the public number of {what} of every region is missing"
        return
    found = np.bincount(release.nodes[1], release.count, len(release.public)).astype(np.int64)
    for region in np.flatnonzero(found != release.public)[:1].tolist():
        code = release.spine.trees[1].codes[-1][region].as_py()
        yield f"{code} has {found[region]:,} {what}, but there are {release.public[region]:,}, which is public"


def _degrees(card: Mapping[str, Any], release: Release) -> Iterator[str]:
    """Compare the degrees with those of the plan and, of a whole graph, repair the measurements again."""
    yield from _axis(release, "degree", card["plan"]["degrees"]["largest"])
    yield from _regions(card, release, "people")
    plan = rebuild_plan(card, release.spine, release.facts)
    if not DegreeHistogram.runs(plan):
        return
    yield from _theta(plan)
    if release.cells is None:
        return
    release.intervals_at(0.5)  # refuses measurements that are not those of all degrees
    (measured,) = release.measurements.levels
    assert measured is not None
    expected = repaired(plan, measured.value, release.cells.people)
    found = np.zeros_like(expected)
    found[release.nodes[0]] = release.count
    if wrong := np.flatnonzero(found != expected).tolist():
        degree = wrong[0]
        yield f"{found[degree]:,} people have degree {degree}, but the measurements give {expected[degree]:,}"


def _theta(plan: Plan) -> Iterator[str]:
    """Choose theta again, where it was chosen, from what was measured of the candidates."""
    mechanism, theta = DegreeHistogram.of(plan), plan.largest
    choice = mechanism.choice
    if choice is None:
        return
    if choice.measured is None or len(choice.measured) != len(choice.candidates):
        yield "theta was chosen, but not by a measurement of every candidate"
    elif (expected := choice.best(mechanism.widths(plan), choice.measured)) != theta:
        yield f"theta is {theta:,}, but by the measurements of its candidates it would be {expected:,}"


def _axis(release: Release, name: str, largest: int) -> Iterator[str]:
    codes = release.spine.attributes[name].codes[-1].to_pylist()
    if [int(code) for code in codes] != list(range(largest + 1)):
        yield f"the {name}s are {codes[0]} to {codes[-1]}, but the plan has 0 to {largest}"


_RELATION = re.compile(r'The neighbour relation is "|^# relation = "', re.MULTILINE)
_PROBLEMS: tuple[type[Exception], ...] = (TreetopError, RecursionError, *files.DAMAGE)


@dataclass(frozen=True)
class Verdict:
    """What became of one check."""

    subject: str
    findings: tuple[str, ...] = ()
    """What is wrong; empty where it was verified."""
    caution: bool = False
    """Whether this was not verified, and is only said."""
    warns: bool = False
    """Whether nobody should rely on the card without knowing it: it is said again at the end."""

    @property
    def verified(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def check(folder: str | Path) -> tuple[Verdict, ...]:
    """Check a release folder: all that its card states is computed again, and verified if no verdict has findings."""
    return tuple(check_folder(Path(folder)))


def check_folder(folder: Path) -> Iterator[Verdict]:
    """Check a release folder, and yield a verdict for each thing that was recomputed.

    `ReleaseError` if it is no release folder at all.
    """
    if not (folder / files.CARD).is_file():
        raise ReleaseError(f"{folder} is not a release folder: there is no {files.CARD} in it")
    try:
        card = files.read_card(folder)
    except ReleaseError as problem:
        yield Verdict(f"{files.CARD} is a card", (str(problem),))
        return
    misfits = tuple(f"{files.CARD}: {finding}" for finding in schema.findings(card))
    yield Verdict(f"{files.CARD} fits its schema", misfits)
    yield _verdict(*_page(folder, card, fits=not misfits))
    if misfits:
        return
    folder_check = _Check(folder, card)
    for subject, check in folder_check.checks():
        yield _verdict(subject, check)
    for warning in folder_check.warnings():
        yield Verdict(warning, caution=True, warns=True)


def beyond_proof(card: dict[str, Any], digest: str) -> str:
    """Say what no folder can prove by itself, whether it is bound to this one at least, and who can prove it."""
    told = ["its id", "its day", "the software", "whether its noise was fresh"]
    told += ["what the ledger held before"] if card["composition"]["ledger"] else []
    told += ["how often intervals held on a public table"] if "twin" in card["accuracy"].get("coverage", {}) else []
    return (
        f"{files.PLAN} is bound to this card, also in what no folder can prove: {', '.join(told)}; that is the word of "
        f"whoever made it. Ask them for the SHA-256 of {files.CARD}, which their ledger keeps: here it is {digest}"
    )


@dataclass(frozen=True)
class _Check:
    """The checks of a card that fits its schema; what several of them need is computed once."""

    folder: Path
    card: dict[str, Any]

    def checks(self) -> Iterator[tuple[str, Callable[[], Iterator[str]]]]:
        """Yield each check under the line that is printed for it."""
        card = self.card
        loss, table = card["loss"], "level and margin" if "margins" in card else "level"
        amount, name = loss["rho"] or loss["epsilon"], "rho" if loss["rho"] else "epsilon"
        exact = "accounting" in loss
        how = "exact accounting of all levels together, by the law of their noise" if exact else "the conversion"
        delta = " (pure)" if loss["delta"] is None else f" at delta {plain(Fraction(loss['delta']['exact']))}"
        yield f"the SHA-256, size and rows of {len(card['files'])} files, and no other file is there", self.files
        yield f"the SHA-256 of the plan ({card['plan_sha256'][:12]}…)", lambda: arithmetic.plan_hash(card)
        yield f"{files.PLAN} states the same plan", lambda: counting.plan_file(self.folder, self.plan, card)
        yield beyond_proof(card, files.file_sha256(self.folder / files.CARD)), lambda: counting.bond(self.folder, card)
        yield f"the trees of {len(card['hierarchies'])} hierarchies have the SHA-256 that the card names", self.trees
        yield (
            f"the loss, from the noise and the sensitivity of every {table}: {name} = {amount['exact']}",
            lambda: arithmetic.loss(card),
        )
        yield f"{how}: epsilon {loss['epsilon']['value']}{delta}", lambda: arithmetic.conversion(card)
        yield "every exact number has the float nearest to it beside it", lambda: arithmetic.amounts(card)
        yield (
            "what was spent before and with this release adds up within the budget",
            lambda: arithmetic.composition(card),
        )
        if "twin" in card["accuracy"].get("coverage", {}):
            yield "the trial on a public table is about the levels of the plan", lambda: arithmetic.coverage(card)
        yield "everything else in the card is what the plan gives: meaning, margins, bounds, sentences", self.content
        yield (
            f"{card['released']['leaves']:,} leaves: whole numbers above zero, known codes, none twice",
            partial(self.of_shards, shards.LEAVES),
        )
        levels = len(card["levels"])
        left = card["released"].get("unresolved")
        with_left = "" if left is None else f" with what is unresolved ({left['total']:,} at {left['nodes']:,} nodes)"
        yield (
            f"{levels} levels add up{with_left} to the same total, {card['released']['total']:,}, node by node",
            partial(self.of_shards, shards.SUMS),
        )
        if "margins" in card:
            said = f"{len(card['margins'])} margins are what the leaves add up to, cell by cell"
            yield said + counting.left_over(card["released"]), partial(self.of_shards, shards.MARGIN)
        if "facts" in card["plan"]:
            tables = ", ".join(fact["table"] for fact in card["plan"]["facts"])
            yield f"every public fact is kept, node by node: {tables}", partial(self.of_shards, shards.FACT)
        if self._lists(files.MEASUREMENTS):
            yield "the interval of every count, from the measurements that were kept", self.intervals
            if files.made_from_all(card):
                how = "the joint fit of" if "mechanism" in card["plan"] else "least squares from"
                subject = f"the counts, by {how} the measurements that were kept"
                yield subject, lambda: counting.estimated(self.release)
        yield "every table has the columns and rows of its kind, and says what other files say", self.tables
        kept = keeps_regions(card["plan"])
        if (groups := card["plan"].get("groups")) is not None:
            every = ", in every region and" if kept else ","
            words = f"as many groups as there are publicly, {groups['number']:,}{every} at every level, of sizes 0 to "
            yield f"{words}{groups['largest']:,}", lambda: _groups(card, self.release)
        if (degrees := card["plan"].get("degrees")) is not None:
            how = "as many as there are publicly in every region" if kept else "by region"
            how = how if "mechanism" in degrees else "repaired from the measurements, where those were kept"
            rule = "chosen by the public rule from what was measured of its candidates"
            chosen = f", {rule}" if "choice" in degrees else ""
            words = f"people of degrees 0 to {degrees['largest']:,}{chosen}, {how}"
            yield words, lambda: _degrees(card, self.release)

    def _lists(self, name: str) -> bool:
        return any(file["path"] == name for file in self.card["files"])

    @cached_property
    def spine(self) -> Spine:
        return files.read_spine(self.folder, self.card)

    @cached_property
    def plan(self) -> Plan:
        return rebuild_plan(self.card, *files.read_domain(self.folder, self.card))

    @cached_property
    def release(self) -> Release:
        return files.read_contents(self.folder, Release)

    @cached_property
    def _by_shards(self) -> dict[str, list[str]]:
        return ShardsCheck(self.release, self.card, self.folder).findings()

    def of_shards(self, about: str) -> Iterator[str]:
        yield from self._by_shards[about]

    def files(self) -> Iterator[str]:
        stated = [file["path"] for file in self.card["files"]]
        for path in dict.fromkeys(path for path in stated if stated.count(path) > 1):
            yield f"{files.CARD} lists {path} twice"
        if stated != sorted(stated):
            yield f"{files.CARD} does not list its files in the order of their names"
        for needed in (*counting.needed(self.card), files.PLAN):
            if needed not in stated:
                yield f"{files.CARD} does not list {needed}"
        for file in self.card["files"]:
            yield from _file(self.folder, file)
        for name in counting.unneeded(self.card):
            yield f"{files.CARD} lists {name}, which is not in a folder like this"
        allowed = {*stated, files.CARD, files.PAGE, *(files.FOLDERS if files.in_parts(self.card) else ())}
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if name not in allowed and name not in (files.HIERARCHIES, files.NAMES, files.PLACES):
                yield f"{name} is in the folder, but not in the card"

    def warnings(self) -> Iterator[str]:
        """Yield what the card is not to be trusted in, though it is as the version that made it wrote it."""
        try:
            text = files.read_text(self.folder / files.PLAN)
            if "graph" not in self.card and any(map(_RELATION.search, (self.card["description"], text))):
                yield (
                    "the neighbour relation of this graph is stated in words only, which nothing here can verify: no "
                    "field of the card or of its plan holds it. Ask whoever made it which graphs are neighbours"
                )
        except _PROBLEMS:
            return  # which the checks have found

    def trees(self) -> Iterator[str]:
        for name, tree in zip(self.spine.attributes, self.spine.trees, strict=True):
            stated = self.card["plan"]["attributes"][name]["sha256"]
            if tree.digest != stated:
                yield f"the hierarchy of {name!r} has SHA-256 {tree.digest}, but the card says {stated}"

    def content(self) -> Iterator[str]:
        expected = draft_card(self.plan, RunInfo.of_card(self.card))
        stated = {name: value for name, value in self.card.items() if name not in schema.FINISHED}
        if (problem := misfit(self.card["software"][DISTRIBUTION])) is not None:
            yield f"{files.CARD} says that it was made by {problem}"
        for where, told, given in differences(stated, expected):
            yield f"{files.CARD}: {where} is {told}, but the plan gives {given}"

    @cached_property
    def _tables(self) -> dict[str, list[str]]:
        """The findings of each table by name; those of several shards are compared shard by shard."""
        return counting.tables(self.release, self.folder)

    def intervals(self) -> Iterator[str]:
        for name in counting.BOUNDED:
            yield from self._tables.get(name, [])
        yield from self.of_shards(shards.INTERVALS)

    def tables(self) -> Iterator[str]:
        bounded = counting.BOUNDED if self._lists(files.MEASUREMENTS) else ()
        for name, findings in self._tables.items():
            yield from findings if name not in bounded else []
        yield from counting.beside(self.release, self.folder, self.card)
        yield from self.of_shards(shards.TABLES)


def _verdict(subject: str, check: Callable[[], Iterator[str]]) -> Verdict:
    findings: list[str] = []
    try:
        findings.extend(check())
    except _PROBLEMS as problem:
        message = str(problem) if isinstance(problem, TreetopError | OSError) else repr(problem)
        findings.append(message or repr(problem))
    return Verdict(subject, tuple(findings))


def _page(folder: Path, card: dict[str, Any], fits: bool) -> tuple[str, Callable[[], Iterator[str]]]:
    """Compare card.html with card.json: by the hash that it names and, if it fits its schema, letter by letter."""

    def check() -> Iterator[str]:
        page = files.read_bytes(folder / files.PAGE)
        digest = files.file_sha256(folder / files.CARD)
        if digest.encode() not in page:
            wrong = "which is not the one that"
            yield f"{files.CARD} has SHA-256 {digest}, {wrong} {files.PAGE} names: one of them was changed"
        elif fits and page != (expected := render(card, digest).encode()):
            at = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(page, expected, strict=False)))
            yield f"{files.PAGE} is not the page of {files.CARD}: they differ from byte {at} on{_other_texts(card)}"

    how = "is the page of" if fits else "names the SHA-256 of"
    return f"{files.PAGE} {how} {files.CARD}", check


def _other_texts(card: dict[str, Any]) -> str:
    """Say that a page may differ because another version wrote it; nothing if this version says that it did."""
    if (made_by := card["software"][DISTRIBUTION]) == VERSION:
        return ""
    return (
        f". Version {made_by} wrote it, and this is {VERSION}, whose sentences may read otherwise: compare it with "
        f"that version; {files.CARD} itself is compared with the plan and the tables here"
    )


def _file(folder: Path, file: dict[str, Any]) -> Iterator[str]:
    path = folder / file["path"]
    if not path.is_file():
        yield f"{file['path']} is missing"
        return
    size = path.stat().st_size
    if size != file["bytes"]:
        yield f"{file['path']} has {size:,} bytes, but the card says {file['bytes']:,}"
    digest = files.file_sha256(path)
    if digest != file["sha256"]:
        yield f"{file['path']} has SHA-256 {digest}, but the card says {file['sha256']}"
    yield from counting.rows(path, file)
