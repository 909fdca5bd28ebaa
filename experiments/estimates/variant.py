"""Whether the closest of all repairs of least largest change helps: in words that follow from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.estimates.measure import CLOSEST, EUCLIDEAN, EXACT, Study
from experiments.estimates.targets import Compared, ratio
from experiments.kit.tables import percent, table


def on_tables(studies: Sequence[Study]) -> str:
    """Return what the variant does to the tables."""
    head = ("table", "level above the leaves", "leaves", "largest, leaves", "invented: closest")
    return table((*head, "fewer-invented", "euclidean"), map(_row, studies))


def _row(study: Study) -> tuple[str, ...]:
    found = (_beside(study, -2), _beside(study, -1), _beside(study, -1, "largest"))
    invented = (percent(study.mean(way, -1, "false_discoveries")) for way in (CLOSEST, EXACT, EUCLIDEAN))
    return (study.title, *map(str, found), *invented)


def _beside(study: Study, level: int, metric: str = "mean_of_all") -> Compared:
    return ratio(study, CLOSEST, level, metric, EXACT)


def conclusion(studies: Sequence[Study]) -> str:
    """Say whether it helps: where its mean error at the leaves is lower, and it invents no more."""
    verdicts = [_beside(one, -1).against(1.0) for one in studies]
    lower, higher = verdicts.count("met"), verdicts.count("missed")
    invented = [[one.mean(way, -1, "false_discoveries") for way in (CLOSEST, EXACT)] for one in studies]
    more = sum(ours > theirs + 0.001 for ours, theirs in invented)
    like = max(abs(ratio(one, CLOSEST, -1, "mean_of_all", EUCLIDEAN).value - 1) for one in studies)
    said = (
        "On the shown node it leaves the siblings alone, as it should. But so does the euclidean repair: once squared "
        "distances are least, the bound t hardly ever binds, and the variant's mean error at the leaves is that of the "
        f"euclidean repair to within {100 * like:.1f} % in every table. Its mean error at the leaves is lower than "
        f"that of fewer-invented in {lower} of {len(studies)} tables and higher in {higher}, as far as it is "
        f"resolved, and it invents more leaves in {more}."
    )
    if lower and not higher and not more:
        return f"{said} **It helps.**"
    return (
        f"{said} **So it does not help**: it is the euclidean repair over again, which a plan can ask for already "
        '(`repair = "euclidean"`). What keeps invented leaves down is that small entries are lowered first. The '
        "variant is not in the product."
    )
