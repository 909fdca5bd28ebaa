"""InfTDA: the engine itself, top down with the Chebyshev repair; and with its other ways to make counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from treetop.compare.mechanisms.estimate import Estimate
from treetop.compare.mechanisms.planned import Planned
from treetop.domain.facts import PublicFacts
from treetop.domain.margin import Margins
from treetop.engine.executor import Threads
from treetop.intake.counts import Counts
from treetop.measure.descent import run_descent
from treetop.measure.topdown import descent_of
from treetop.measure.workload import run_key
from treetop.noise import Key
from treetop.release.run import run_plan
from treetop.repair import Repair


@dataclass(frozen=True, eq=False)
class InfTDA(Planned):
    """Measure, repair by least largest change, drop zeros, descend (Boninsegna and Silvestri 2025, Algorithm 1).

    Measuring is the engine's (`topdown.measure`). With the same key it gives what `Plan.release` gives.
    """

    name: ClassVar[str] = "inftda"
    about: ClassVar[str] = "Top down, each node repaired by the least largest change; compiled."
    bounded: ClassVar[bool] = True

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Descend once."""
        leaves = run_descent(descent_of(self.plan), counts, self._bound(counts, key), Threads(threads)).leaves
        return Estimate.from_nodes(self.spine, leaves.nodes, leaves.count)

    def _bound(self, counts: Counts, key: Key) -> Key:
        """Bind a key to plan and data, as `Plan.release` does."""
        return run_key(key, self.plan.digest, counts)


@dataclass(frozen=True, eq=False)
class WithMargins(InfTDA):
    """The engine with margins beside the spine: what a plan releases that keeps them."""

    name: ClassVar[str] = "margins"
    about: ClassVar[str] = "Top down as inftda, with tables of attributes alone measured and kept as well; compiled."
    bounded: ClassVar[bool] = False
    margins: Margins = "each"
    """Which tables are measured beside the spine."""

    @property
    def beside(self) -> Margins:
        """Which tables are measured beside the spine."""
        return self.margins


@dataclass(frozen=True, eq=False)
class WithFacts(WithMargins):
    """The engine with public facts, and margins: what a plan releases that has facts."""

    name: ClassVar[str] = "facts"
    about: ClassVar[str] = "Top down as margins, with the public facts of the plan kept if it has any; compiled."
    facts: PublicFacts | None = None
    """What is public and kept."""

    @property
    def known(self) -> PublicFacts | Mapping[str, Any]:
        """Which public facts are kept; without any it is as margins."""
        return self.facts or {}


@dataclass(frozen=True, eq=False)
class EuclideanTDA(InfTDA):
    """The engine with the Euclidean repair: the nearest non-negative integers with the parent's sum."""

    name: ClassVar[str] = "tda-l2-exact"
    about: ClassVar[str] = "Top down, each node repaired to the nearest integers in squared distance; compiled."
    plan_repair: ClassVar[Repair] = "euclidean"


@dataclass(frozen=True, eq=False)
class LowerError(InfTDA):
    """The engine, and then every count again from all measurements: `prefer = "lower-error"`."""

    name: ClassVar[str] = "lower-error"
    about: ClassVar[str] = "Top down as inftda, then every count estimated again from all measurements; compiled."
    plan_repair: ClassVar[Repair] = "least-squares"
    bounded: ClassVar[bool] = False

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Descend once, keep all that was measured, and estimate."""
        release = run_plan(self.plan, counts, self._bound(counts, key), {}, threads=threads)
        return Estimate.from_nodes(self.spine, release.nodes, release.count)
