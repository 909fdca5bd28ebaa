"""Reading a release folder: its card, its hierarchies and its counts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from treetop.basics.sorting import first_disorder
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine, WrittenSpine
from treetop.errors import ReleaseError, TreetopError
from treetop.privacy import TOTAL
from treetop.read.counts import pack
from treetop.release.release import Release

COUNTS, NODES, PLAN, CARD, PAGE = "counts.parquet", "nodes.parquet", "plan.toml", "card.json", "card.html"
HIERARCHIES, PLACES = "hierarchies", "places"
"""Folders with one Parquet file a hierarchy, named by its SHA-256: its codes, and where its leaves are on a map."""


def load(folder: Path) -> Release:
    """Read a release folder, and refuse one that was damaged since it was written.

    Every file that is read has the SHA-256 that the card names, and the card the one that its page names. Whoever
    changes a number and puts these right as well is found by `treetop check`, which computes everything again.
    """
    release = read_release(folder)
    _refuse_changes(release.card, folder)
    return release


def read_release(folder: Path) -> Release:
    """Read a release folder as it is, and refuse only what is no release: for whoever compares it with its card."""
    card = read_card(folder)
    _refuse_misfit(card, folder)
    try:
        spine = read_spine(folder, card)
        _refuse_other_levels(card, spine, folder)
        leaves = pq.read_table(folder / COUNTS, columns=[*spine.attributes, "count"])
        trees = zip(spine.attributes, spine.trees, strict=True)
        nodes = [tree.encode(leaves.column(name).combine_chunks()) for name, tree in trees]
        plan_toml = (folder / PLAN).read_text(encoding="utf-8") if (folder / PLAN).exists() else None
    except (KeyError, TypeError, AttributeError) as problem:
        raise ReleaseError(f"{folder}: {CARD} lacks {problem}") from problem
    except (OSError, ValueError, pa.ArrowException) as problem:
        raise ReleaseError(f"{folder}: cannot be read: {problem}") from problem
    count = leaves.column("count").to_numpy()
    if count.dtype != np.int64 or leaves.column("count").null_count or (len(count) and count.min() <= 0):
        raise ReleaseError(f"{folder}: {COUNTS} must hold whole numbers above zero")
    if any(len(node) and node.min() < 0 for node in nodes):
        raise ReleaseError(f"{folder}: {COUNTS} has a code that is not in its hierarchy")
    release = Release(spine, np.array(nodes, dtype=np.int32), count, card, plan_toml)
    _refuse_disorder(release, folder)
    return _with_evidence(release, folder)


def _refuse_misfit(card: dict[str, Any], folder: Path) -> None:
    """Refuse a card that is not what a card must be: all that is read by it may then trust its types."""
    from treetop.card.schema import findings

    for finding in findings(card):
        raise ReleaseError(f"{folder}: {CARD} does not fit its schema: {finding}")


def _refuse_other_levels(card: dict[str, Any], spine: Spine, folder: Path) -> None:
    """Refuse a card whose levels are not those of its spine: noise is then looked up where there is none."""
    stated = [(level["name"], level["noise"] is not None) for level in card["plan"]["levels"]]
    expected = [(level.name, level.divides) for level in spine.levels]
    if [name for name, _ in stated[:1]] != [TOTAL] or stated[1:] != expected:
        raise ReleaseError(f"{folder}: {CARD} has other levels than its spine, or noise at others than it measures")


def _refuse_changes(card: dict[str, Any], folder: Path) -> None:
    """Refuse files that are not those that the card names, and a card that is not the one that its page names."""
    from treetop.release.folder.evidence import EVIDENCE, MEASUREMENTS
    from treetop.release.folder.unresolved import UNRESOLVED

    more = f"`treetop check {folder}` says more"
    try:
        stated = {file["path"]: file["sha256"] for file in card["files"]}
        if (folder / PAGE).is_file() and file_sha256(folder / CARD).encode() not in (folder / PAGE).read_bytes():
            raise ReleaseError(f"{folder}: {CARD} is not the one that {PAGE} names, so one was changed: {more}")
        # Of hierarchies the content has been compared; nodes and places are not read here.
        for name in (COUNTS, PLAN, EVIDENCE, MEASUREMENTS, UNRESOLVED):
            found = file_sha256(folder / name) if (folder / name).is_file() else None
            if found is None and name in stated:
                raise ReleaseError(f"{folder}: {name} is missing, which {CARD} names: {more}")
            if found != stated.get(name):
                raise ReleaseError(f"{folder}: {name} is not the one that {CARD} names, by its SHA-256: {more}")
    except (LookupError, TypeError) as problem:
        raise ReleaseError(f"{folder}: {CARD} lacks {problem}") from problem
    except OSError as problem:
        raise ReleaseError(f"{folder}: cannot be read: {problem}") from problem


def _with_evidence(release: Release, folder: Path) -> Release:
    """Read what was left unresolved, and what intervals come from."""
    from treetop.release.folder.evidence import read_evidence
    from treetop.release.folder.unresolved import UNRESOLVED, read_unresolved

    try:
        if (folder / UNRESOLVED).is_file():
            release = replace(release, left=read_unresolved(folder / UNRESOLVED, release.spine))
        evidence, kept = read_evidence(folder, release)
        return replace(release, evidence=evidence, kept=kept)
    except ReleaseError:
        raise
    except TreetopError as problem:  # such as noise of a law that there is not
        raise ReleaseError(f"{folder}: {problem}") from problem
    except (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, pa.ArrowException) as problem:
        raise ReleaseError(f"{folder}: cannot be read: {problem}") from problem


def read_spine(folder: Path, card: dict[str, Any]) -> Spine:
    """Read the hierarchies that a card names, by their hash, and put its spine together."""
    described = card["plan"]["attributes"]
    trees = {}
    for name, about in described.items():
        if not re.fullmatch("[0-9a-f]{64}", about["sha256"]):
            raise ReleaseError(f"{folder}: {CARD} names the hierarchy of {name!r} by something that is not a SHA-256")
        try:
            tree = Hierarchy.from_table(folder / HIERARCHIES / f"{about['sha256']}.parquet", about["levels"])
        except TreetopError as problem:
            raise ReleaseError(f"{folder}: {problem}") from problem
        if tree.digest != about["sha256"]:
            raise ReleaseError(f"{folder}: the hierarchy of {name!r} is not the one that the card names")
        trees[name] = tree
    try:
        return WrittenSpine(card["plan"]["spine"], trees)
    except TreetopError as problem:
        raise ReleaseError(f"{folder}: {problem}") from problem


def read_card(folder: Path) -> dict[str, Any]:
    """Read a card; it is JSON without doubt: no key stands twice, and every number is one."""
    path = folder / CARD
    if not path.is_file():
        raise ReleaseError(f"{folder} is not a release folder: there is no {CARD} in it")
    try:
        text = path.read_text(encoding="utf-8")
        card = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except (ValueError, RecursionError, OSError) as problem:
        raise ReleaseError(f"{path}: not a card: {problem}") from problem
    if not isinstance(card, dict) or "plan" not in card:
        raise ReleaseError(f"{path}: not a card")
    return card


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _refuse_disorder(release: Release, folder: Path) -> None:
    """Refuse leaves that stand twice, or out of spine order: sums over them would be wrong."""
    found = first_disorder(pack(release.spine, release.nodes))
    if found is not None:
        row, twice = found
        why = "stands twice" if twice else "is out of order"
        raise ReleaseError(f"{folder}: {COUNTS}, row {row + 2}: the leaf {why}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
