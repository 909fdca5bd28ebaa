"""Running the mechanism for group sizes by itself, for comparisons."""

from __future__ import annotations

from treetop.intake.groups.sizes import GroupSizes
from treetop.measure.groups import measured_groups
from treetop.noise import Key
from treetop.noise.gate import Charge, Gate
from treetop.plan.groups.plan import GroupPlan
from treetop.release.groups.release import GroupRelease


def release_groups(
    plan: GroupPlan,
    sizes: GroupSizes,
    key: Key | None = None,
    threads: int = 1,
    *,
    before_measuring: Charge | None = None,
) -> GroupRelease:
    """Measure the private sizes once and return what may be published.

    `before_measuring` is called when nothing has been spent yet: it charges a ledger. The key is fresh; with one that a
    test gives, the release says that it is not private.
    """
    gate = Gate(key)
    with measured_groups(plan, sizes, gate, before_measuring, threads) as found:
        return GroupRelease(plan, found.counts, gate.private)
