"""Whether the closest of all repairs of least largest change helps: in words that follow from the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.estimates.measure import CLOSEST, EXACT, Setting, Study
from experiments.estimates.node import LARGE, LOW, TRUE, Node
from experiments.estimates.targets import Compared, ratio
from experiments.false_discoveries.report import percent
from experiments.resolution.page import table

EUCLIDEAN = Setting("euclidean", "exact")

WHAT = """\
Chebyshev's repair makes the largest change t of a node's measurements as small as it can be. One measurement far below
zero makes t large, since it must be raised to zero; and then fewer-invented may lower small siblings by up to t, and
raise the large ones to make up for it, though the sum does not ask for it. The variant takes, among all outcomes with
the same t, the one of least squared distance: y = clip(x + λ, max(0, x − t), x + t), in whole numbers.

One node: true counts {true}, all measured exactly except the last, which measured
{low}; the parent's count is the true one. What each repair makes of it, and what it does on average, over {draws:,}
draws with noise of σ = {sigma:.2f}: to the {large} large children (released less true count), and to all children (mean
absolute error).
"""


def variant(studies: Sequence[Study], node: Node) -> Iterator[str]:
    """Yield what the variant does to one node, what it does to the tables, and a conclusion."""
    true = ", ".join(map(str, TRUE.tolist()))
    yield WHAT.format(true=true, low=LOW, draws=node.draws, sigma=node.sigma, large=LARGE)
    rows = [
        (
            name,
            ", ".join(map(str, pushed.shown)),
            f"{pushed.change:+.1f}",
            f"{pushed.error:.2f}",
            f"{pushed.change_of_any:+.1f}",
            f"{pushed.error_of_any:.2f}",
        )
        for name, pushed in node.by_repair.items()
    ]
    given = f"last measured {LOW}"
    head = ("repair", "of the measurements shown", f"large, {given}", f"all, {given}", "large, any noise")
    yield table((*head, "all, any noise"), rows)
    yield (
        "On the tables, at exact accounting: the mean error over that of fewer-invented, at the level above the leaves "
        "and at the leaves, the largest error at the leaves, and invented leaves."
    )
    head = ("table", "level above the leaves", "leaves", "largest, leaves", "invented: closest")
    yield table((*head, "fewer-invented", "euclidean"), map(_row, studies))
    yield conclusion(studies)


def _row(study: Study) -> tuple[str, ...]:
    found = (_beside(study, -2), _beside(study, -1), _beside(study, -1, "largest"))
    invented = (percent(study.values(way, -1, "false_discoveries").mean()) for way in (CLOSEST, EXACT, EUCLIDEAN))
    return (study.title, *(f"{one.value:.3f} ± {one.error:.3f}" for one in found), *invented)


def _beside(study: Study, level: int, metric: str = "mean_of_all") -> Compared:
    return ratio(study, CLOSEST, level, metric, EXACT)


def conclusion(studies: Sequence[Study]) -> str:
    """Say whether it helps: where its mean error at the leaves is lower, and it invents no more."""
    at_leaves = {one.title: _beside(one, -1) for one in studies}
    lower = [title for title, found in at_leaves.items() if found.against(1.0) == "met"]
    higher = [title for title, found in at_leaves.items() if found.against(1.0) == "missed"]
    more = [one.title for one in studies if _invented(one, CLOSEST) > _invented(one, EXACT) + 0.001]
    like = max(abs(ratio(one, CLOSEST, -1, "mean_of_all", EUCLIDEAN).value - 1) for one in studies)
    said = (
        "On the shown node it leaves the siblings alone, as it should. But so does the euclidean repair: once squared "
        "distances are least, the bound t hardly ever binds, and the variant's mean error at the leaves is that of the "
        f"euclidean repair to within {100 * like:.1f} % in every table. Its mean error at the leaves is lower than "
        f"that of fewer-invented in {len(lower)} of {len(studies)} tables and higher in {len(higher)}, as far as it is "
        f"resolved, and it invents more leaves in {len(more)}."
    )
    if lower and not higher and not more:
        return f"{said} **It helps.**"
    return (
        f"{said} **So it does not help**: it is the euclidean repair over again, which a plan can ask for already "
        '(`repair = "euclidean"`). What keeps invented leaves down is that small entries are lowered first. The '
        "variant is not in the product."
    )


def _invented(study: Study, setting: Setting) -> float:
    return float(study.values(setting, -1, "false_discoveries").mean())
