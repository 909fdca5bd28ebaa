"""The numbers of the page of results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.kit import pages
from experiments.kit.outcomes import Spread, leaf_table, level_table
from experiments.kit.tables import number, percent
from experiments.kit.verdicts import NOT_RUN, WORDS, verdict
from experiments.resolution.measure import DELTA, SETTINGS, Setting, Study, excess
from experiments.resolution.named import Among, Held

COLUMNS = {
    "resolved": ("resolved", percent),
    "invented nodes": ("false_discoveries", percent),
    "invented count": ("false_mass", percent),
    "missing nodes": ("false_negatives", percent),
    "missing count": ("lost_mass", percent),
    "mean error of named": ("mean_released", number),
    "largest error of named": ("largest_released", number),
}
"""The columns of the long tables: a title, a metric and how it is written."""
SURE = 2.0
"""So many standard errors above the rate that was asked for, a mean is called too high."""
PICTURES = {
    "resolution_choice.png": "Invented leaves against the share that is resolved to the leaves",
    "resolution_levels.png": "What is resolved at each level",
}


@dataclass(frozen=True)
class Promise:
    """One level of one table with one loss and one rate: what was asked for, and what came out."""

    study: Study
    epsilon: float
    setting: Setting
    level: int
    asked: float
    """The rate that was asked for."""

    @property
    def found(self) -> Spread:
        """The rate that was found."""
        return self.study.outcome(self.epsilon, self.setting).spread(self.level, "false_discoveries")

    @property
    def excess(self) -> float:
        """By how many standard errors the mean is above what was asked for."""
        return excess(self.study.outcome(self.epsilon, self.setting), self.level)

    @property
    def row(self) -> tuple[str, ...]:
        """What is told of it."""
        name, asked = self.study.levels[self.level].name, f"{self.asked:g}"
        return self.study.title, f"{self.epsilon:g}", name, asked, self.found.say(percent), f"{self.excess:.1f}"


def promises(studies: Sequence[Study]) -> Iterator[Promise]:
    """Yield every level of every table at every loss and rate."""
    for study in studies:
        for epsilon in study.epsilons:
            for setting in SETTINGS:
                if setting.fdr is not None:
                    for level in study.levels[1:]:
                        yield Promise(study, epsilon, setting, level.level, setting.fdr)


@verdict("resolution.rate")
def rate(studies: Sequence[Study]) -> str:
    """Say whether the rate that was asked for is held: everywhere, but for chance, or not."""
    held = [one.excess <= SURE for one in promises(studies)]
    return WORDS[True if all(held) else None if any(held) else False] if held else NOT_RUN


def _covered(one: Among) -> tuple[str, ...]:
    plain, own = (f"{one.covered(-1, which):.1%}" for which in (False, True))
    return one.title, f"{one.epsilon:g}", one.setting.label, plain, own, f"{one.everywhere:.1%}", f"{one.wider:.2f}"


def page(studies: Sequence[Study], named: Sequence[Among] = (), sparse: Sequence[Held] = ()) -> str:
    """Return the page in Markdown."""
    every = list(promises(studies))
    above = sorted((one for one in every if one.found.mean > one.asked), key=lambda one: -one.excess)
    return pages.render(
        "resolution/page.md",
        runs=len(studies[0].outcomes[0].runs),
        delta=DELTA,
        leaves=leaf_table(studies, SETTINGS, {"false_discoveries": percent, "resolved": percent}),
        pictures=pages.pictures(PICTURES, "![{caption}](../images/{name})"),
        rate=rate(studies),
        every=len(every),
        held=len(every) - len(above),
        above=len(above),
        surely=sum(one.excess > SURE for one in above),
        sure=SURE,
        asked=[setting for setting in SETTINGS if setting.fdr is not None],
        percent=percent,
        exceptions=[one.row for one in above],
        studies=studies,
        named=[_covered(one) for one in named],
        sparse=[one.row for one in sparse],
        sparse_runs=len(sparse[0].proportions) if sparse else 0,
        levels=lambda study, epsilon: level_table(study, epsilon, SETTINGS, "setting", COLUMNS),
    )
