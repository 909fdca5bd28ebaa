"""What only one kind of plan promises: of group sizes, the public number of groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from treetop.release.release import Release


def promise(card: Mapping[str, Any]) -> str | None:
    """Return what only this kind of plan promises, in words; None where there is nothing of its own."""
    groups = card["plan"].get("groups")
    if groups is None:
        return None
    return (
        f"as many groups as there are publicly, {groups['number']:,}, at every level, of sizes 0 to "
        f"{groups['largest']:,}"
    )


def check_kind(card: Mapping[str, Any], release: Release) -> Iterator[str]:
    """Compare the number of groups, to which every level adds up, and the sizes with what is public about them."""
    groups = card["plan"]["groups"]
    number, largest = groups["number"], groups["largest"]
    sizes = release.spine.attributes["size"].codes[-1].to_pylist()
    if [int(size) for size in sizes] != list(range(largest + 1)):
        yield f"the sizes are {sizes[0]} to {sizes[-1]}, but the plan has 0 to {largest}"
    if release.total != number:
        yield f"the release has {release.total:,} groups, but there are {number:,}, which is public"
