"""Every mechanism, by its name on the command line."""

from __future__ import annotations

from treetop.basics.nearest import nearest
from treetop.compare.mechanisms.gauss import BottomUp, VanillaGauss
from treetop.compare.mechanisms.hay import Hay, PerLevel
from treetop.compare.mechanisms.inftda import EuclideanTDA, InfTDA, LowerError
from treetop.compare.mechanisms.mechanism import Mechanism
from treetop.compare.mechanisms.stability import StabilityHistogram
from treetop.compare.mechanisms.tda_l2 import TDAl2
from treetop.compare.mechanisms.tda_linf import TDAlinf
from treetop.errors import PlanError

MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind
    for kind in (
        InfTDA,
        LowerError,
        TDAl2,
        EuclideanTDA,
        TDAlinf,
        VanillaGauss,
        StabilityHistogram,
        BottomUp,
        Hay,
        PerLevel,
    )
}


def named(name: str) -> type[Mechanism]:
    """Return the mechanism of a name."""
    if name not in MECHANISMS:
        raise PlanError(
            f"there is no mechanism {name!r}{nearest(name, MECHANISMS)}; the mechanisms are {', '.join(MECHANISMS)}"
        )
    return MECHANISMS[name]
