"""How the loss is divided over the levels: exact shares that sum to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from treetop.basics.exact import Number, positive
from treetop.basics.frozen import FrozenMap
from treetop.basics.nearest import nearest
from treetop.domain.unit import TOTAL
from treetop.errors import LossError


@dataclass(frozen=True, init=False)
class Split:
    """Each level's share of the loss.

    >>> Split({"place.state": 0.25, "place.county": 0.75}).over(["place.state", "place.county"])
    (Fraction(1, 4), Fraction(3, 4))
    """

    shares: Mapping[str, Fraction]
    """By level name, the exact share of the loss; together they are exactly 1."""

    def __init__(self, shares: Mapping[str, Number]) -> None:
        exact = _read(shares, "share")
        total = sum(exact.values())
        if total != 1:
            remedy = ", ".join(f"{level} = {share / total}" for level, share in exact.items())
            raise LossError(
                f"The shares of the loss sum to {total}, not 1; "
                f"write them as weights (Split.weighted), or as these exact shares: {remedy}."
            )
        object.__setattr__(self, "shares", FrozenMap(exact))

    @classmethod
    def uniform(cls, levels: Sequence[str]) -> Split:
        """The same share for every level."""
        return cls.weighted(dict.fromkeys(levels, 1))

    @classmethod
    def weighted(cls, weights: Mapping[str, Number]) -> Split:
        """Shares in proportion to weights.

        >>> dict(Split.weighted({"place": 2, "age": 1}).shares)
        {'place': Fraction(2, 3), 'age': Fraction(1, 3)}
        """
        exact = _read(weights, "weight")
        total = sum(exact.values())
        return cls({level: weight / total for level, weight in exact.items()})

    def over(self, levels: Sequence[str]) -> tuple[Fraction, ...]:
        """The shares of these levels, in this order; the split must name them all and no others."""
        _check_names(self.shares, levels)
        return tuple(self.shares[level] for level in levels)


def shares(split: Literal["uniform"] | Mapping[str, Number] | Split, levels: Sequence[str]) -> tuple[Fraction, ...]:
    """Each level's share of the loss, as a plan states it: "uniform", weights by level name, or a `Split`.

    >>> shares({"place.state": 1, "place.county": 3}, ["place.state", "place.county"])
    (Fraction(1, 4), Fraction(3, 4))
    """
    if isinstance(split, Split):
        return split.over(levels)
    if isinstance(split, Mapping):
        # Names before weights: a misspelt level is the likelier mistake.
        _check_names(split, levels)
        return Split.weighted(split).over(levels)
    if split == "uniform":
        return Split.uniform(levels).over(levels)
    raise LossError(f'The split is {split!r}; write "uniform", or a weight for each of: {", ".join(levels)}.')


def _read(values: Mapping[str, Number], what: str) -> dict[str, Fraction]:
    if not values:
        raise LossError("The split of the loss names no level; give at least one.")
    return {level: positive(value, f"The {what} of level {level}") for level, value in values.items()}


def _check_names(named: Mapping[str, object], levels: Sequence[str]) -> None:
    if len(set(levels)) < len(levels):
        raise LossError(f"A level is repeated among {', '.join(levels)}; measure each level once.")
    for name in named:
        if name in levels:
            continue
        if name == TOTAL:
            raise LossError("The split gives the total a share, but here it is not measured; leave it out.")
        raise LossError(
            f"The split names the level {name!r}, which is not measured{nearest(str(name), levels)}; "
            f"the measured levels are {', '.join(levels)}."
        )
    if missing := [level for level in levels if level not in named]:
        raise LossError(f"The split leaves out {', '.join(missing)}; give every measured level a share.")
