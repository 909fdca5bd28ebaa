"""A plan: every decision made before private data is read, with its accuracy and its cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from treetop._util.choices import check_choice, nearest
from treetop._util.lazy import FrozenMap, set_fields
from treetop._util.numbers import Number
from treetop.counts.constraint_reader import read_facts
from treetop.domain.constraints import ORDERED, PAIR, PublicFacts, is_narrow, narrowed
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.marginal import DEFAULT_MARGINS, Margin, Margins, title_of
from treetop.domain.spine import Spine
from treetop.domain.unit import GuaranteeCondition, Unknown, drops
from treetop.errors import FactError, PlanError
from treetop.plan.constraints_kept import FactCheck, known_levels
from treetop.plan.fields import decided
from treetop.plan.mechanism import JointMechanism, Mechanism, Reader, RecordReader, TopDown
from treetop.plan.resolution import PREFERENCES, Prefer, Resolution
from treetop.plan.workload import CONFIDENCE, Accuracy, LevelAccuracy, Part, Workload, as_confidence, cells_of
from treetop.privacy import Loss, SplitLike, Unit
from treetop.privacy.composition import Cells
from treetop.privacy.loss import Accounting
from treetop.privacy.relation import GraphRules as GraphFacts
from treetop.repair import ORDERS, REPAIRS, Order, Repair


@dataclass(frozen=True, eq=False)
class Plan:
    """The decisions of a release: its tables, protected unit and loss. Made without private data."""

    spine: Spine
    unit: Unit
    loss: Loss
    split: SplitLike = "uniform"
    """Shares of the loss over the measured levels: even, by weights, or exact."""
    repair: Repair = "chebyshev"
    """Repair that makes measurements consistent: least largest change, or "euclidean" for least squares."""
    order: Order = "ascending"
    """Entries that a repair lowers first: small ones (fewer are invented) or, "descending", large ones."""
    unknown: Unknown = "error"
    """Treatment of rows with codes that are not in a hierarchy."""
    title: str = ""
    resolve: Literal["full"] | Mapping[str, Number] | Resolution = "full"
    """Named children: all that are repaired to more than zero, or only those with significant measurements, by a false
    discovery rate, `{"fdr": 0.05}`, or by a number of standard deviations, `{"sigmas": 3}`."""
    confidence: Number | None = CONFIDENCE
    """Confidence of the intervals of released counts; None for a release without intervals."""
    prefer: Prefer | None = None
    """One word that decides repair and order: "fewer-invented" (the default), "fewer-lost" or "lower-error". Read it
    back from `preference`."""
    margins: Margins = DEFAULT_MARGINS
    """Tables that are measured and kept beside the spine: those of every attribute alone ("each"), of every attribute
    and every two ("pairs"), none, or a list such as `["origin.district", "place.state * sex"]`."""
    facts: Mapping[str, Any] | PublicFacts = field(default_factory=lambda: FrozenMap({}))
    """Public facts by table (named like margins): a `Fact`, or exact counts by themselves. `public_facts` holds the
    parsed facts."""
    reader: Reader = field(default_factory=RecordReader)
    """What is counted: records, or what `group_plan` and `degree_plan` make."""
    mechanism: Mechanism = field(default_factory=TopDown)
    budget: Fraction = field(init=False, repr=False)
    """The budget that the levels share: epsilon if pure, otherwise rho."""
    workload: Workload = field(init=False, repr=False)
    """The workload: the total, every level of the spine and every margin, with noise and cost."""

    def __post_init__(self) -> None:
        for what, value, kind in (("spine", self.spine, Spine), ("unit", self.unit, Unit), ("loss", self.loss, Loss)):
            if not isinstance(value, kind):
                raise PlanError(f"{what} is {value!r}: give a treetop.{kind.__name__}")
        if self.unit.counts != self.reader.name or self.reader.name not in self.mechanism.counts:
            raise PlanError(
                f"the unit is about {self.unit.counts}, the reader about {self.reader.name}, and the mechanism "
                f"{self.mechanism.name} about {' or '.join(self.mechanism.counts)}: make plans for group sizes with "
                "group_plan, and those for degrees with degree_plan or regional_degree_plan"
            )
        self.reader.check(self)
        if not self.mechanism.has_margins:
            set_fields(self, margins="none")
        self._settle_preference()
        set_fields(self, facts=self._read_facts())
        self._settle_pairs()
        if self.facts or is_narrow(self.spine):
            set_fields(self, spine=narrowed(self.spine, self.public_facts.possible))
        check_choice("repair", self.repair, tuple(REPAIRS))
        check_choice("order", self.order, tuple(ORDERS))
        set_fields(self, resolve=Resolution.of(self.resolve) or "full")
        if REPAIRS[self.repair].again and self.resolve != "full":
            raise PlanError(
                'prefer = "lower-error" estimates every count again from all measurements, and what resolve leaves '
                "unnamed has no place in a second estimate: leave resolve out, or prefer"
            )
        if self.confidence is not None:
            set_fields(self, confidence=as_confidence(self.confidence))
        if isinstance(self.unknown, Mapping):
            self._check_unknown()
        else:
            check_choice("unknown", self.unknown, ("error", "drop"))
        if isinstance(self.split, Mapping):
            set_fields(self, split=FrozenMap(self.split))
        if not isinstance(self.margins, str):
            set_fields(self, margins=tuple(margin.name for margin in self.margin_tables))
        if not self.margin_tables:
            set_fields(self, margins="none")
        self._check_caps()
        set_fields(self, unit=self.unit.at_leaves(self.spine.levels[-1].name))
        self.mechanism.check(self)
        FactCheck(self.spine, self.public_facts, self.margin_tables)(
            self.unit, REPAIRS[self.repair], drops(self.unknown)
        )
        self.loss.refuse_large_delta(self.population, f"the least number of units ({self.unit.entity}) that is public")
        budget, workload = self.mechanism.tables(self)
        set_fields(self, budget=budget, workload=workload)
        self.mechanism.check_workload(self)
        self.reader.check_workload(self)

    def _settle_preference(self) -> None:
        if self.prefer is None:
            return
        check_choice("prefer", self.prefer, tuple(PREFERENCES))
        chosen = PREFERENCES[self.prefer]
        if (self.repair, self.order) not in (("chebyshev", "ascending"), (chosen.repair, chosen.order)):
            raise PlanError(f"prefer = {self.prefer!r} decides repair and order: leave those out, or prefer")
        set_fields(self, repair=chosen.repair, order=chosen.order, prefer=None)

    @property
    def pairs(self) -> tuple[int, int] | None:
        """The two ends of edges without direction that are counted as unordered pairs; None for other plans."""
        return None if self.graph is None or self.graph.directed else self.public_facts.ordered

    def _settle_pairs(self) -> None:
        """Leave out the margins of unordered pairs; refuse what is about one of their ends."""
        stated = any(ORDERED in fact.places.values() for fact in self.public_facts)
        if stated and (self.graph is None or self.graph.directed):
            raise FactError('facts: "ordered" is about edges without direction: leave it out, or say directed = false')
        about = "of unordered pairs, which end comes first means nothing, and"
        if stated and len(self.public_facts.facts) > 1:
            raise FactError(f"facts: {about} a fact would be about one end: leave other facts out")
        if self.pairs is None:
            return
        if len(self.spine.attributes) > PAIR:
            raise PlanError(f"{about} a third attribute would be that of one end: give the two ends alone")
        if len({tree.digest for tree in self.spine.attributes.values()}) > 1:
            raise PlanError("both ends of unordered pairs need the same hierarchy, all of it: give one to both")
        if self.margins not in (DEFAULT_MARGINS, "none", ()):
            raise PlanError(f"{about} a margin would be that of one end: leave margins out; queries count what touches")
        if self.mechanism.name != TopDown.name:
            raise PlanError(f"{about} tables of one end would be measured: refine the two ends one after the other")
        if self.resolve != "full":
            raise PlanError(f"{about} a count that stays at a coarser node would be left at one end: leave resolve out")
        set_fields(self, margins="none")

    @property
    def preference(self) -> Prefer | None:
        """The preference that repair and order imply; None if there is no word for it."""
        known = PREFERENCES.values()
        return next((one.name for one in known if (one.repair, one.order) == (self.repair, self.order)), None)

    def _check_caps(self) -> None:
        names = [level.name for level in self.spine.levels] + [margin.part for margin in self.margin_tables]
        for name in self.unit.per_node:
            if name not in names:
                raise PlanError(
                    f"the unit caps records per node of {name!r}, which is not a level{nearest(name, names)}"
                )

    def _read_facts(self) -> PublicFacts:
        """Read the facts, which must not contradict each other."""
        if isinstance(self.facts, PublicFacts):
            if self.facts and self.facts.spine.digest != self.spine.digest:
                raise FactError("facts: these were read for another spine: give them by their tables")
            return self.facts
        if not isinstance(self.facts, Mapping):
            raise PlanError(f'facts is {self.facts!r}: give facts by table, as in {{"place.state": "population.csv"}}')
        try:
            return read_facts(self.spine, self.facts)
        except FactError as problem:
            raise FactError(f"facts: {problem}") from problem

    def _check_unknown(self) -> None:
        """Check the leaf of each attribute; one treatment of all attributes is said once."""
        stated: dict[str, str] = {name: code for name, code in self.unknown.items() if code != "error"}  # type: ignore[union-attr]
        for name, code in stated.items():
            tree = self.spine.attributes.get(name)
            known = tree is not None and (code == "drop" or code in tree.codes[-1].to_pylist())
            if not known:
                raise PlanError(
                    f'unknown codes of {name!r} go to {code!r}, which is not one of its leaves: name one, "drop" or '
                    '"error"'
                )
        dropped = set(stated.values()) == {"drop"} and len(stated) == len(self.spine.attributes)
        set_fields(self, unknown="drop" if dropped else FrozenMap(stated) if stated else "error")

    @property
    def population(self) -> int | None:
        """Least number of units that is public before data is read; None if there is none."""
        return self.reader.population(self)

    @property
    def spent(self) -> Fraction:
        """The cost of a release: rho, or epsilon for a pure loss. Never more than the loss."""
        return self.workload.spent

    @property
    def accounting(self) -> Accounting:
        """The accounting of epsilon and delta: as the loss states or, by default, exact if that gives more rho."""
        return self.loss.accounting or ("exact" if self.budget > self.loss.budget else "zcdp")

    @cached_property
    def kept_loss(self) -> Loss:
        """The loss, with its accounting."""
        return self.loss.kept_by(self.accounting)

    @property
    def cells(self) -> Cells | None:
        """Cells that one unit changes by at most 1, for composition by their noise; None if it changes one by more."""
        return cells_of(self.unit, self.workload)

    @property
    def conditions(self) -> tuple[GuaranteeCondition, ...]:
        """The conditions of the guarantee, such as invariants and declared caps."""
        return self.reader.conditions(self)

    @property
    def levels(self) -> tuple[Part, ...]:
        """The total and every level of the spine, with noise and cost."""
        return self.workload.parts[: len(self.spine.levels) + 1]

    @property
    def reads_total(self) -> bool:
        """Whether the exact total is read from the private table, because all neighbours have the same."""
        facts, root = self.public_facts, (0,) * len(self.spine.trees)
        return self.levels[0].is_exact and (bool(facts.invariants) or not facts.decides(root))

    @property
    def margin_parts(self) -> tuple[Part, ...]:
        """Every margin, with noise and cost."""
        start = len(self.spine.levels) + 1
        return self.workload.parts[start : start + len(self.margin_tables)]

    @cached_property
    def margin_tables(self) -> tuple[Margin, ...]:
        """The margins: tables beside the spine. A margin that follows from facts is not measured."""
        return self.mechanism.margin_tables(self)

    @property
    def public_facts(self) -> PublicFacts:
        """The facts, read and checked against each other."""
        assert isinstance(self.facts, PublicFacts)
        return self.facts

    @property
    def known_tables(self) -> tuple[tuple[int, ...], ...]:
        """Tables with counts that follow from facts, regardless of the noise: levels, and stated tables."""
        levels = [self.spine.depths(index) for index in sorted(known_levels(self.spine, self.public_facts))]
        stated = [fact.table.depths for fact in self.public_facts]
        return tuple(dict.fromkeys([*levels, *(one for one in stated if self.public_facts.decides(one))]))

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of all decisions of the plan."""
        return hashlib.sha256(json.dumps(self.describe(), sort_keys=True).encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return the plan's decisions as plain values, for cards and digests."""
        told = decided(self)
        described = {
            "title": told.pop("title"),
            "spine": list(self.spine.splits),
            "attributes": {
                name: {"levels": list(tree.levels), "nodes": list(tree.sizes), "sha256": tree.digest}
                for name, tree in zip(self.spine.attributes, self.spine.trees, strict=True)
            },
            "unit": told.pop("unit"),
            "loss": {"definition": self.loss.definition, **told.pop("loss"), "budget": str(self.budget)},
            "levels": [level.describe() for level in self.levels],
            **({"margins": [margin.describe() for margin in self.margin_parts]} if self.margin_tables else {}),
            **({"facts": self.public_facts.describe()} if self.public_facts else {}),
            **told,
            **({} if self.graph is None else {"graph": self.graph.describe()}),
        }
        return described | self.reader.describe(self)

    @property
    def graph(self) -> GraphFacts | None:
        """The rules of the graph, if its edges are counted; otherwise None."""
        graph: GraphFacts | None = self.unit.graph
        return graph

    @property
    def place(self) -> str:
        """Name of the regions' attribute, beside the sizes or degrees."""
        return next(name for name in self.spine.attributes if name != self.reader.axis)

    @property
    def regions(self) -> Hierarchy:
        """Public tree of regions, beside the sizes or degrees."""
        return self.spine.attributes[self.place]

    @property
    def largest(self) -> int:
        """Largest size or degree that is told apart."""
        assert self.reader.axis is not None
        return self.spine.attributes[self.reader.axis].sizes[-1] - 1

    def accuracy(self, confidence: float | None = None) -> Accuracy:
        """Return the expected accuracy of every level, at the plan's confidence by default; reads no private data.

        `margin` ("± one") is the quantile of the noise of one count, by the measurements of its level alone. `bound`
        holds for all nodes of a level at once, or is None where the mechanism has no such bound.
        """
        confidence = as_confidence(confidence or self.confidence or CONFIDENCE)
        risk = 1 - Fraction(str(confidence))
        rows = tuple(self._row(part, risk) for part in (*self.levels, *self.margin_parts))
        size = len(self.levels)
        return Accuracy(rows[:size], confidence, rows[size:])

    @property
    def terms(self) -> int:
        """Number of measurements per count; "± one" and accuracy targets refer to their summed error."""
        return self.mechanism.terms(self)

    def _row(self, part: Part, risk: Fraction) -> LevelAccuracy:
        size = len(self.levels)
        depths = self.spine.depths(part.index) if part.index < size else self.margin_tables[part.index - size].depths
        title, share = title_of(self.spine, depths), float(part.share)
        bound = self.mechanism.bound(self, part.index, risk)
        own = (part.deviation, part.margin(risk, self.terms), bound, title, part.is_exact)
        fitted = part.index > 0 and part.index < size and JointMechanism.runs(self)
        return LevelAccuracy(part.index, part.name, part.nodes, share, *own, fitted=fitted)

    def sentence(self) -> str:
        """Describe the unit and the guarantee in plain English."""
        return f"{self.unit.sentence()} {self.kept_loss.sentence()}"

    def refuse_unless_top_down(self) -> None:
        """Refuse plans that are not measured from the top down, for features that need this."""
        if not TopDown.runs(self):
            raise PlanError(self.mechanism.not_top_down or self.reader.not_top_down)

    def as_released(self, spine: Spine) -> Plan:
        """Return the plan as settled by a release with this spine, for plans that a run completes."""
        return self.mechanism.as_released(self, spine)


def joint_plan(
    attributes: Mapping[str, Hierarchy],
    unit: Unit,
    loss: Loss,
    *,
    margins: Margins = "pairs",
    split: SplitLike = "uniform",
    unknown: Unknown = "error",
    title: str = "",
    confidence: Number | None = CONFIDENCE,
) -> Plan:
    """Return a plan that measures tables of a few attributes, and fits one table of all attributes to them.

    It suits several attributes with few values each. By default `margins` are the tables of every attribute alone and
    of every two; all are measured with equal shares of the loss unless `split` says otherwise.
    """
    return Plan(
        Spine.bottom_up(attributes),
        unit,
        loss,
        split=split,
        unknown=unknown,
        title=title,
        confidence=confidence,
        margins=margins,
        mechanism=JointMechanism(),
    )
