"""Neighbouring lists of groups: all that one protected unit can change, by enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from treetop.plan.group_unit import Event


def neighbours(groups: tuple[int, ...], event: Event, quantity: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every list of group sizes that one unit can make of this one."""

    def changed(changes: dict[int, int]) -> tuple[int, ...]:
        return tuple(size + changes.get(i, 0) for i, size in enumerate(groups))

    indices = range(len(groups))
    if event == "group":
        for i, size in itertools.product(indices, range(most + 1)):
            yield changed({i: size - groups[i]})
    elif event == "join-leave":
        for i, z in itertools.product(indices, range(1, quantity + 1)):
            yield changed({i: z})
            if groups[i] >= z:
                yield changed({i: -z})
    else:
        for i, j, z, other in itertools.product(indices, indices, range(1, quantity + 1), range(1, quantity + 1)):
            if i != j and groups[i] >= z:
                yield changed({i: -z, j: other})  # the same person, or another in their place
