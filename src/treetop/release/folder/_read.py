"""Reading a release folder: its card, its hierarchies and its counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treetop._util.arrays import first_disorder
from treetop._util.files import refuse_irregular
from treetop._util.lazy import later
from treetop.card.schema import findings
from treetop.counts.counts import pack
from treetop.domain.constraints import PublicFacts, narrowed
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.domain.spine_level import Level
from treetop.errors import ReleaseError, TreetopError
from treetop.privacy import TOTAL
from treetop.release.folder import _tables as files
from treetop.release.folder._shards import INDEX, TOP, leaves_in, read_shards

if TYPE_CHECKING:
    from treetop.release.release import Release

_Kinds = tuple[type[Exception], ...]


@contextmanager
def _reading(folder: Path, lacking: _Kinds = (), damage: _Kinds = ()) -> Iterator[None]:
    """Turn errors into a message about a folder; some say which entry its card lacks."""
    try:
        yield
    except ReleaseError:
        raise
    except TreetopError as problem:  # such as noise of a law that there is not
        raise ReleaseError(f"{folder}: {problem}") from problem
    except lacking as problem:
        raise ReleaseError(f"{folder}: {files.CARD} lacks {problem}") from problem
    except damage as problem:
        raise ReleaseError(f"{folder}: cannot be read: {problem}") from problem


def load(folder: Path, kind: type[Release]) -> Release:
    """Read a release folder, and refuse one that was damaged since it was written.

    Every file that is read has the SHA-256 that the card names, and the card the one that its page names. `treetop
    check` computes everything again and so finds a changed number even if the hashes were changed with it.
    """
    release = read_contents(folder, kind, verified=True)
    with _reading(folder, (LookupError, TypeError), (OSError,)):
        _refuse_changes(release.card, folder)
    return release


def read_contents(folder: Path, kind: type[Release], *, verified: bool = False) -> Release:
    """Read a release folder as it is, to compare it with its card; refuse only a folder that is no release.

    Of one in parts, the leaves are read when they are asked for; if `verified`, their files are compared with the card
    then.
    """
    card = read_card(folder)
    for finding in findings(card):  # all that is read by a card that fits may trust its types
        raise ReleaseError(f"{folder}: {files.CARD} does not fit its schema: {finding}")
    with _reading(folder, (KeyError, TypeError, AttributeError), files.DAMAGE):
        spine, facts = read_domain(folder, card)
        _refuse_other_levels(card, spine, facts, folder)
        plan_toml = files.read_text(folder / files.PLAN) if (folder / files.PLAN).exists() else None
        margins = files.read_margins(folder / files.MARGINS, card, spine, facts)
        if in_parts(card):
            shards = read_shards(folder, card, spine, facts, verified)
            nodes, count = later(lambda: shards.all_leaves[0]), later(lambda: shards.all_leaves[1])
            evidence = later(shards.all_evidence)
            return kind(spine, nodes, count, card, plan_toml, evidence, margins=margins, facts=facts, stored=shards)
        leaves = files.read_table(folder / files.COUNTS, columns=[*spine.attributes, "count"])
        nodes, count = leaves_in(leaves, spine, f"{folder}: {files.COUNTS}", [tree.encode for tree in spine.trees])
        if (found := first_disorder(pack(spine, nodes))) is not None:  # sums over such leaves would be wrong
            row, wrong = found[0] + 2, "stands twice" if found[1] else "is out of order"
            raise ReleaseError(f"{folder}: {files.COUNTS}, row {row}: the leaf {wrong}")
        unresolved, numbers = folder / files.UNRESOLVED, folder / files.PUBLIC
        left = files.read_unresolved(unresolved, spine) if unresolved.is_file() else None
        public = files.read_public(numbers, spine) if numbers.is_file() else None
        release = kind(spine, nodes, count, card, plan_toml, left=left, margins=margins, facts=facts, public=public)
        return files.with_evidence(release, folder)


def in_parts(card: dict[str, Any]) -> bool:
    """Whether a card is that of a folder in parts."""
    return any(file["path"] == TOP for file in card["files"])


def _refuse_other_levels(card: dict[str, Any], spine: Spine, facts: PublicFacts | None, folder: Path) -> None:
    """Refuse a card with other levels than its spine: noise would be looked up for levels that have none."""
    stated = [(level["name"], level["noise"] is not None) for level in card["plan"]["levels"]]

    def measured(level: Level) -> bool:
        fitted = "mechanism" in card["plan"]
        return level.divides and not fitted and not (facts is not None and facts.decides(spine.depths(level.index)))

    expected = [(level.name, measured(level)) for level in spine.levels]
    if [name for name, _ in stated[:1]] != [TOTAL] or stated[1:] != expected:
        raise ReleaseError(
            f"{folder}: {files.CARD} has other levels than its spine, or noise at others than it measures"
        )


def _refuse_changes(card: dict[str, Any], folder: Path) -> None:
    """Refuse files that are not those that the card names, and a card that is not the one that its page names."""
    more = f"`treetop check {folder}` says more"
    stated = {file["path"]: file["sha256"] for file in card["files"]}
    if (folder / files.PAGE).is_file() and files.file_sha256(folder / files.CARD).encode() not in files.read_bytes(
        folder / files.PAGE
    ):
        raise ReleaseError(f"{folder}: {files.CARD} is not the one that {files.PAGE} names, so one was changed: {more}")
    # Of hierarchies the content has been compared; nodes are not read here.
    read = [files.COUNTS, TOP, INDEX, files.PLAN, files.EVIDENCE, files.MEASUREMENTS]
    read += [files.UNRESOLVED, files.MARGINS, files.PUBLIC, files.FACTS]
    read += [name for name in stated if name.startswith((f"{files.NAMES}/", f"{files.PLACES}/"))]
    for name in read:
        found = files.file_sha256(folder / name) if (folder / name).is_file() else None
        if found is None and name in stated:
            raise ReleaseError(f"{folder}: {name} is missing, which {files.CARD} names: {more}")
        if found != stated.get(name):
            raise ReleaseError(f"{folder}: {name} is not the one that {files.CARD} names, by its SHA-256: {more}")


def read_spine(folder: Path, card: dict[str, Any]) -> Spine:
    """Read the hierarchies that a card names, by their hash, and put its spine together."""
    trees = {}
    with _reading(folder):
        for name, about in card["plan"]["attributes"].items():
            if not re.fullmatch("[0-9a-f]{64}", about["sha256"]):
                raise ReleaseError(
                    f"{folder}: {files.CARD} names the hierarchy of {name!r} by something that is not a SHA-256"
                )
            path = folder / files.HIERARCHIES / f"{about['sha256']}.parquet"
            with _reading(folder, damage=(OSError,)):
                refuse_irregular(path)
            tree = Hierarchy.from_table(path, about["levels"])
            if tree.digest != about["sha256"]:
                raise ReleaseError(f"{folder}: the hierarchy of {name!r} is not the one that the card names")
            with _reading(folder, damage=files.DAMAGE):
                trees[name] = files.with_saved_names(tree, about["sha256"], folder, card)
        return Spine(card["plan"]["spine"], trees)


def read_domain(folder: Path, card: dict[str, Any]) -> tuple[Spine, PublicFacts | None]:
    """Read the spine of a card with the public facts of its plan, which decide the possible cells."""
    spine = read_spine(folder, card)
    if "facts" not in card["plan"]:
        return spine, None
    with _reading(folder, damage=files.DAMAGE):
        facts = files.read_facts_table(folder / files.FACTS, spine, card["plan"]["facts"])
        return narrowed(spine, facts.possible), facts


def read_card(folder: Path) -> dict[str, Any]:
    """Read a card; it is JSON without doubt: no key stands twice, and every number is one."""
    path = folder / files.CARD
    if not path.is_file():
        raise ReleaseError(f"{folder} is not a release folder: there is no {files.CARD} in it")
    try:
        text = files.read_text(path)
        card = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except (ValueError, RecursionError, OSError) as problem:
        raise ReleaseError(f"{path}: not a card: {problem}") from problem
    if not isinstance(card, dict) or "plan" not in card:
        raise ReleaseError(f"{path}: not a card")
    return card


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
