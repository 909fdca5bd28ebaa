"""Every mechanism, by its name on the command line; another one is added by one registration."""

from __future__ import annotations

from typing import TypeVar

from treetop._util.choices import nearest
from treetop.addons.lab.mechanisms.baselines import (
    BottomUp,
    Hay,
    PerLevel,
    Practice,
    Rounding,
    StabilityHistogram,
    Suppression,
    VanillaGauss,
)
from treetop.addons.lab.mechanisms.groups import KINDS, OfGroups
from treetop.addons.lab.mechanisms.inftda import (
    EuclideanTDA,
    InfTDA,
    LowerError,
    TDAl2,
    TDAlinf,
    WithFacts,
    WithMargins,
)
from treetop.addons.lab.mechanisms.mechanism import Mechanism
from treetop.errors import PlanError

Kind = TypeVar("Kind", bound=type[Mechanism])

MECHANISMS: dict[str, type[Mechanism]] = {}
GROUP_MECHANISMS: dict[str, type[Mechanism]] = {}
PRACTICES: dict[str, type[Mechanism]] = {}
"""Practices without a guarantee, for comparison only."""


def register(kind: Kind) -> Kind:
    """Register a mechanism under its name; refuse one without a description. Also a decorator."""
    name, about = (getattr(kind, what, "").strip() for what in ("name", "about"))
    if not name or not about:
        raise PlanError(f"{kind.__name__} cannot be registered: give it a name, and say what it is about in a sentence")
    if (every() | {name: kind})[name] is not every().get(name, kind):
        raise PlanError(f"there is a mechanism {name!r} already: give {kind.__name__} another name")
    own = GROUP_MECHANISMS if issubclass(kind, OfGroups) else PRACTICES if issubclass(kind, Practice) else MECHANISMS
    own[name] = kind
    return kind


def every() -> dict[str, type[Mechanism]]:
    """Return all mechanisms by name."""
    return MECHANISMS | PRACTICES | GROUP_MECHANISMS


def named(name: str) -> type[Mechanism]:
    """Return the mechanism of a name."""
    if name not in every():
        raise PlanError(
            f"there is no mechanism {name!r}{nearest(name, every())}; the mechanisms are {', '.join(MECHANISMS)}; "
            f"without a guarantee {', '.join(PRACTICES)}; and for group sizes {', '.join(GROUP_MECHANISMS)}"
        )
    return every()[name]


register(InfTDA)
register(WithMargins)
register(WithFacts)
register(LowerError)
register(TDAl2)
register(EuclideanTDA)
register(TDAlinf)
register(VanillaGauss)
register(StabilityHistogram)
register(BottomUp)
register(Hay)
register(PerLevel)
register(Suppression)
register(Rounding)
for _kind in KINDS:
    register(_kind)
