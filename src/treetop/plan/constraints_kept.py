"""Check that a plan can satisfy its facts, regardless of the noise; refuse the others before anything is spent.

Facts about levels of the spine bound nodes, and a node's children can always share its count (`domain.facts`). Facts
about one attribute are kept beside the spine, like margins: a level that refines the attribute then has fixed row and
column sums. If every cell is unbounded, whole numbers with these sums always exist. If some cells of the level are
impossible or bounded, they may not exist, so such a fact is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from treetop.domain.constraints import INVARIANT, NarrowLevel, PublicFacts, TableFact
from treetop.domain.marginal import Margin, exact_margins, is_within, title_of
from treetop.domain.spine import Spine
from treetop.domain.spine_level import Level
from treetop.domain.table_cells import Depths, meet
from treetop.domain.unit import GuaranteeCondition, Unit
from treetop.errors import FactError, UnkeptFact
from treetop.io.table import same_table
from treetop.repair import NodeRepair


@dataclass(frozen=True, eq=False)
class FactCheck:
    """Checks that the facts of a plan can be kept."""

    spine: Spine
    facts: PublicFacts
    margins: tuple[Margin, ...]

    def __call__(self, unit: Unit, repair: NodeRepair, drops: bool) -> None:
        """Refuse facts that cannot be kept for certain."""
        if not self.facts:
            return
        if repair.again:
            raise UnkeptFact(
                'facts: prefer = "lower-error" estimates every count again, and would leave facts behind: leave out '
                "prefer, or [facts]"
            )
        if repair.code is None and any(map(_counts, self.facts)):
            raise UnkeptFact(
                f"facts: the repair {repair.name!r} knows no bounds, and the plan has facts with numbers: choose "
                "another one"
            )
        if self.facts.invariants:
            _check_invariants(unit, drops)
        if unit.neighbours != "replace":
            self._refuse_compared(unit)
        self._check_merged()
        self._check_margins()
        levels = [self.spine.depths(level.index) for level in self.spine.levels]
        for fact in filter(_counts, self.facts):
            if fact.table.depths not in levels:
                self._check_beside(fact)

    def _refuse_compared(self, unit: Unit) -> None:
        """Refuse compared facts that fix a count: adding or removing a unit there contradicts them.

        A count is fixed by exact facts, or if the bounds of one or several facts coincide. A cell that must be empty is
        allowed: no unit is in it.
        """
        compared = PublicFacts(self.spine, tuple(fact for fact in self.facts if not fact.unchecked))
        for fact in compared:
            if "exact" in fact.kinds:
                _refuse_fixed(fact.words, "", unit)
        for depths in compared.bounded:
            boxes = compared.at(depths)
            meeting = np.flatnonzero((boxes.lower == boxes.upper) & (boxes.upper > 0))
            if len(meeting):
                names = [one.words for one in compared if one.boxes is not None and is_within(depths, one.table.depths)]
                cell = boxes.table.words(int(boxes.cells[meeting[0]]))
                _refuse_fixed(" and ".join(names), f" and fixes the count of {cell}", unit)

    def _check_merged(self) -> None:
        """Refuse bounds of single cells if several attributes are refined at once under margins."""
        if not (self.margins or exact_beside(self.spine, self.facts)):
            return
        for level in limited_levels(self.spine, self.facts):
            if level.is_merged:
                raise FactError(
                    f"facts: single cells of the merged step {level.name!r} have bounds, which it cannot keep beside "
                    'margins: refine its attributes one after the other, or write margins = "none"'
                )

    def _check_margins(self) -> None:
        """Refuse margins of several attributes beside a table of them that facts fix: the two would not agree."""
        for margin in self.margins:
            for told in (*self.facts.bounded, *self.facts.invariants):
                both = meet(told, margin.depths)
                if np.count_nonzero(both) > 1 and self.facts.decides(both):
                    raise FactError(
                        f"facts: {title_of(self.spine, both)} is known, and the margin {margin.name} would be measured "
                        "beside it without agreeing with it: leave that margin out, or name one that has fewer "
                        "attributes in common with the facts"
                    )

    def _check_beside(self, fact: TableFact) -> None:
        """Refuse a fact about a table that is no level, unless it is about one attribute and can be kept."""
        name, depths = fact.words, fact.table.depths
        if len(fact.table.attributes) > 1:
            order = " > ".join(level.name for level in self.spine.levels)
            raise FactError(
                f"facts: {name} is about several attributes, and no level of the spine ({order}) is that table: change "
                "the order so that one is, or state the fact for one attribute"
            )
        (attribute,) = fact.table.attributes
        if not _exact(fact) and not self._is_kept(attribute, depths[attribute]):
            raise FactError(
                f"facts: {name} bounds a table beside the spine, which is kept only where a margin is measured: add "
                f'margins = ["{fact.name}"], or leave margins out'
            )
        for level in limited_levels(self.spine, self.facts):
            if any(part.attribute == attribute and part.depth < depths[attribute] for part in level.parts):
                raise FactError(
                    f"facts: {name} cannot be kept for certain beside what is known of single cells of {level.name}: "
                    f"the noise may leave no counts that agree with both. Put {fact.name} first in the order of the "
                    "spine"
                )

    def _is_kept(self, attribute: int, depth: int) -> bool:
        """Whether a margin, or a level that refines this attribute only, has at least this depth."""
        levels = [self.spine.depths(level.index) for level in self.spine.levels]
        alone = [one for one in levels if np.count_nonzero(one) == 1]
        return any(table[attribute] >= depth for table in alone + [margin.depths for margin in self.margins])


def _refuse_fixed(facts: str, fixes: str, unit: Unit) -> NoReturn:
    raise FactError(
        f"facts: {facts} is compared with the private table{fixes}, and to add or remove one {unit.entity} changes "
        "whether they agree, so that nobody would be protected: write unchecked = true with it (it is kept whatever "
        'the table says), or choose neighbours = "replace"'
    )


def refuse_private_facts(facts: PublicFacts, tables: Sequence[Any]) -> None:
    """Refuse a fact that was read from one of the private tables."""
    for fact in facts:
        for source in fact.sources:
            for table in tables:
                if (how := same_table(source, table)) is not None:
                    raise FactError(
                        f"facts: {fact.words} is the private table itself ({how}): what it says is private. To publish "
                        "its own counts as they are, unprotected, write invariant = true"
                    )


def _counts(fact: TableFact) -> bool:
    return fact.boxes is not None or INVARIANT in fact.kinds


def _exact(fact: TableFact) -> bool:
    return "exact" in fact.kinds or INVARIANT in fact.kinds


def _check_invariants(unit: Unit, drops: bool) -> None:
    """Refuse invariants that leave no unit protected, or that reveal dropped records."""
    if unit.neighbours != "replace":
        raise UnkeptFact(
            f"facts: an invariant is the same for all neighbours, and to add or remove one {unit.entity} changes it, "
            'so that nobody would be protected: choose neighbours = "replace", or leave invariant out'
        )
    if drops:
        raise UnkeptFact(
            "facts: an invariant counts the records that were not dropped, and so tells of one whether it was: give "
            "unknown codes a leaf of their own, or leave invariant out"
        )
    if unit.graph is not None:
        raise UnkeptFact("facts: invariants are not offered for the edges of a graph: leave invariant out")


def compared(fact: TableFact) -> bool:
    """Whether the private table must agree with a fact; if it does not, there is no release."""
    return not fact.unchecked and INVARIANT not in fact.kinds


def conditions_of(spine: Spine, facts: PublicFacts, unit: Unit, unknown: Any) -> tuple[GuaranteeCondition, ...]:
    """Return the conditions of the guarantee, without which losses do not add up: shared counts, and declared caps."""
    told: list[GuaranteeCondition] = []
    for fact in facts:
        if not (INVARIANT in fact.kinds or compared(fact)):
            continue
        title = title_of(spine, fact.table.depths)
        same = f"neighbours have the same counts by {title}"
        agree = f"neighbours agree with the public facts about {title}"
        trees = {name: spine.trees[at].digest for at, name in enumerate(spine.attributes) if fact.table.depths[at]}
        dealt = {name: unknown[name] for name in trees if name in unknown} if isinstance(unknown, Mapping) else unknown
        states = fact.describe() | {"unknown": dealt}
        told.append(GuaranteeCondition(same if INVARIANT in fact.kinds else agree, trees, states))
    every = {name: tree.digest for name, tree in zip(spine.attributes, spine.trees, strict=True)}
    for level, cap in sorted(unit.per_node.items()):
        most = f"no {unit.entity} has more than {cap} record{'s' * (cap > 1)} in one node of {level} (declared)"
        # A level is "place.town", a margin "margin place.town * sex"; one attribute too many only refuses more.
        told.append(GuaranteeCondition(most, {name: tree for name, tree in every.items() if name in level}))
    return tuple(sorted(told, key=lambda condition: condition.words))


def limited_levels(spine: Spine, facts: PublicFacts) -> list[Level]:
    """Return the levels at which counts may not agree with margins: cells are bounded there, or in a coarser level."""
    found: list[Level] = []
    for level in spine.levels:
        deeper = {part.attribute for one in found for part in one.parts}
        if is_limited(spine, facts, level) or any(part.attribute in deeper for part in level.parts):
            found.append(level)
    return found


def kept_exactly(spine: Spine, facts: PublicFacts, margins: Sequence[Margin]) -> tuple[bool, ...]:
    """Return which margins the counts agree with exactly."""
    limited = [part for level in limited_levels(spine, facts) for part in level.parts]
    return tuple(
        agrees and not any(part.depth < margin.depths[part.attribute] for part in limited)
        for margin, agrees in zip(margins, exact_margins(spine, margins), strict=True)
    )


def is_limited(spine: Spine, facts: PublicFacts, level: Level) -> bool:
    """Whether facts about other attributes, not a level's own, limit the counts of its cells."""
    if isinstance(level, NarrowLevel) and len(level.rule.table.attributes) > 1:
        return True
    depths = spine.depths(level.index)
    return bool(np.count_nonzero(depths) > 1) and facts.says_something(depths) and not facts.decides(depths)


def known_levels(spine: Spine, facts: PublicFacts) -> set[int]:
    """Return the positions of levels with counts that all follow from facts; the total has position 0."""
    every = range(len(spine.levels) + 1) if facts else ()
    return {index for index in every if facts.decides(spine.depths(index))}


def exact_beside(spine: Spine, facts: PublicFacts) -> tuple[Depths, ...]:
    """Return the finest tables of one attribute that facts fix and that are no levels of the spine."""
    levels = [spine.depths(level.index) for level in spine.levels]
    exact = [fact.table.depths for fact in facts if _exact(fact)]
    return finest([depths for depths in exact if depths not in levels])


def finest(tables: Sequence[Depths]) -> tuple[Depths, ...]:
    """Return the tables that are not sums of another one."""
    return tuple(one for one in tables if not any(one != other and is_within(one, other) for other in tables))
