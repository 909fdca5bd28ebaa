"""What the paper says, claim by claim, beside what was measured; the words are in `claims.md`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from experiments.inftda.measure import DELTA, EPSILONS, REAL, SOLVER, half_budget
from experiments.kit.cases import MADE_UP
from experiments.kit.pages import Claim, Claims
from treetop.compare.comparison import Comparison, number, percent, seconds
from treetop.compare.trial import CONFIDENCE, Accounting, Trial

TOP_DOWN = ("inftda", "tda-l2", SOLVER)
Found = Mapping[str, Comparison]
Metric = Callable[[Trial], float]

_judge = Claims("inftda/claims.md").judge


def claims(found: Found) -> Iterator[Claim]:
    """Judge all claims by what was measured."""
    first = (hierarchical_accuracy, stability_histogram, beside_euclidean, beside_solver, false_discoveries, speed)
    yield from (judge(found) for judge in (*first, flat_beside_stability, bound, published, accounting))


def trials(found: Found, table: str, mechanism: str, epsilon: float, way: Accounting = "paper") -> list[Trial]:
    """Return the runs of one setting; none where it was not run."""
    return [
        trial
        for trial in (found[table].trials if table in found else ())
        if (trial.setting.mechanism, trial.setting.accounting) == (mechanism, way)
        and math.isclose(trial.setting.epsilon, epsilon)
    ]


@dataclass(frozen=True, eq=False)
class At:
    """One table at one epsilon."""

    found: Found
    table: str
    epsilon: float

    def __str__(self) -> str:
        return f"{self.table} at ε = {self.epsilon:g}"

    def mean(self, mechanism: str, metric: Metric, way: Accounting = "paper") -> float | None:
        """Return the mean over the runs of a mechanism; None where there are none."""
        runs = trials(self.found, self.table, mechanism, self.epsilon, way)
        return fmean(map(metric, runs)) if runs else None

    def ratio(self, one: str, other: str, metric: Metric) -> float | None:
        """Return the mean of one mechanism over that of another; None where one of them was not run."""
        above, below = self.mean(one, metric), self.mean(other, metric)
        return None if above is None or not below else above / below

    def row(self, *cells: str) -> tuple[str, ...]:
        """Return a row of a table about it."""
        return self.table, f"{self.epsilon:g}", *cells


def places(found: Found) -> list[At]:
    """Return every table at every epsilon."""
    return [At(found, table, epsilon) for table in found for epsilon in EPSILONS]


def by_table(cells: Mapping[At, str]) -> list[Sequence[str]]:
    """Return the rows of a table with a row a table and a column an epsilon."""
    rows: dict[str, list[str]] = {}
    for at, cell in cells.items():
        rows.setdefault(at.table, [at.table]).append(cell)
    return list(rows.values())


def leaf_error(trial: Trial) -> float:
    """The largest error at the leaves."""
    return trial.errors[-1].largest


def top_error(trial: Trial) -> float:
    """The largest error at the first level below the total."""
    return trial.errors[1].largest


def leaf_invented(trial: Trial) -> float:
    """The false discovery rate at the leaves."""
    return trial.errors[-1].false_discoveries


def hierarchical_accuracy(found: Found) -> Claim:
    """InfTDA's error grows with depth."""
    errors = {at: (at.mean("inftda", top_error), at.mean("inftda", leaf_error)) for at in places(found)}
    grows = [leaf > top for top, leaf in errors.values() if top is not None and leaf is not None]
    rows = by_table({at: " → ".join(map(_say, both)) for at, both in errors.items()})
    return _judge("hierarchical_accuracy", None, rows, held=_held(grows))


def stability_histogram(found: Found) -> Claim:
    """SH is best at the leaves, and poor above."""
    every = places(found)
    leaf, top = ({at: at.ratio("sh", "inftda", metric) for at in every} for metric in (leaf_error, top_error))
    poor = sum(one is not None and one > 1 for one in top.values())
    flat = _below_one(at.ratio("gauss", "sh", leaf_error) for at in every)
    rows = by_table({at: f"{_times(top[at])} · {_times(leaf[at])}" for at in every})
    numbers = {"best": _below_one(leaf.values()), "poor": poor, "flat": flat, "all": len(every)}
    return _judge("stability_histogram", None, rows, **numbers)


def beside_euclidean(found: Found) -> Claim:
    """InfTDA is not worse than TDA with the Euclidean distance."""
    metrics = (_mean_over_levels, leaf_error, _leaf_mean)
    ratios = {at: [at.ratio("inftda", "tda-l2", metric) for metric in metrics] for at in places(found)}
    leaves = {at: leaf for at, (_, leaf, _) in ratios.items() if leaf is not None}
    return _judge(
        "beside_euclidean",
        None,
        by_table({at: " · ".join(map(_times, three)) for at, three in ratios.items()}),
        leaves=list(leaves.values()),
        mean=fmean(leaves.values()),
        worse=sum(ratio > 1.05 for ratio in leaves.values()),
        worst=max(leaves, key=lambda at: leaves[at]),
        means=[mean for *_, mean in ratios.values() if mean is not None],
    )


def beside_solver(found: Found) -> Claim:
    """The solver's optimum is the poorer one."""
    ratios = {at: ratio for at in places(found) if (ratio := at.ratio(SOLVER, "inftda", leaf_error)) is not None}
    larger = [ratio > 1 for at, ratio in ratios.items() if not at.table.startswith("binary")]
    rows = [
        at.row(
            str(len(trials(found, at.table, SOLVER, at.epsilon))),
            " against ".join(_say(at.mean(name, leaf_error)) for name in (SOLVER, "inftda")),
            " against ".join(_share(at.mean(name, leaf_invented)) for name in (SOLVER, "inftda")),
        )
        for at in ratios
    ]
    return _judge("beside_solver", None, rows, larger=sum(larger), all=len(larger))


def false_discoveries(found: Found) -> Claim:
    """InfTDA invents the fewest, except where nodes have two children."""
    sparse = [at for at in places(found) if not at.table.endswith("complete")]
    shares = {at: [at.mean(name, leaf_invented) for name in TOP_DOWN] for at in sparse}
    off_binary = [three for at, three in shares.items() if not at.table.startswith("binary")]
    pairs = [[(three[0], three[at]) for three in off_binary] for at in (1, 2)]
    fewer = [[ours < other for ours, other in each if ours is not None and other is not None] for each in pairs]
    rows = [at.row(*map(_share, three)) for at, three in shares.items()]
    return _judge("false_discoveries", None, rows, fewer=fewer)


def speed(found: Found) -> Claim:
    """InfTDA is the fastest of the top-down ones."""
    names = ("inftda", "tda-l2-exact", "tda-l2", SOLVER, "gauss", "sh")
    rows, compiled = [], []
    for at in places(found):
        times = [at.mean(name, _seconds) for name in names]
        ratio = at.ratio(*names[:2], _seconds)
        compiled += [ratio] if ratio is not None else []
        if at.epsilon == 1 or times[3] is not None:
            rows.append(at.row(*("-" if time is None else seconds(time) for time in times)))
    return _judge("speed", None, rows, compiled=compiled, mean=fmean(compiled))


def flat_beside_stability(found: Found) -> Claim:
    """The flat Gaussian is better than SH for larger areas unless the table is sparse."""
    ratios = {at: at.ratio("gauss", "sh", top_error) for at in places(found)}
    judged = {at: ratio for at, ratio in ratios.items() if ratio is not None and at.table in MADE_UP}
    held = [ratio > 1 if at.table.endswith("sparse") else ratio < 1 for at, ratio in judged.items()]
    odd = [at for at, ok in zip(judged, held, strict=True) if not ok]
    rows = by_table({at: _times(ratio) for at, ratio in ratios.items()})
    return _judge("flat_beside_stability", None, rows, held=_held(held), odd=odd)


def bound(found: Found) -> Claim:
    """The bound of Theorem 1 on the largest error of every level."""
    rows, all_, beyond = [], 0, 0
    for mechanism in TOP_DOWN:
        runs = [trial for table in found.values() for trial in table.trials if trial.setting.mechanism == mechanism]
        below = [
            (trial.errors[level].largest, limit, paper_bound(trial, level))
            for trial in runs
            for level, limit in enumerate(trial.bounds)
            if limit
        ]
        if not below:
            continue
        all_ += len(below)
        over = [sum(error > limits[at] for error, *limits in below) for at in (0, 1)]
        beyond += over[0]
        ratios = [median(error / limits[at] for error, *limits in below) for at in (0, 1)]
        counts = (f"{count:,}" for count in (len(runs), len(below), *over))
        rows.append((mechanism, *counts, *(f"{one:.2f}" for one in ratios)))
    return _judge("bound", None, rows, beta=1 - CONFIDENCE, beyond=beyond, all=all_)


def paper_bound(trial: Trial, level: int) -> float:
    """The paper's bound, Σ 2σ_l·√(2 ln(k|V_l|/β)) over the k measured levels down to this one."""
    measured = [at for at in range(level + 1) if trial.noise[at] > 0]
    beta = 1 - CONFIDENCE
    return sum(
        2 * trial.noise[at] * math.sqrt(2 * math.log(len(measured) * trial.errors[at].nodes / beta)) for at in measured
    )


def published(found: Found) -> Claim:
    """The authors' published figures beside ours."""

    def rate(table: str, epsilon: float) -> str:
        return _share(At(found, table, epsilon).mean("inftda", leaf_invented))

    half = half_budget(1.0)
    made_up = [table for table in MADE_UP if table in found]
    largest = [[At(found, table, rho).mean("inftda", leaf_error) or 0.0 for table in made_up] for rho in (half, 1.0)]
    spans = (f"{min(values):.0f}–{max(values):.0f}" for values in largest)
    rows = [("ε = 1, six tables: largest error at the leaves", "119–143", *spans)]
    for table, theirs in (
        *(("binary-sparse", "90 %"), ("random-sparse", "84 %")),
        *(("binary-dense", "36 %"), ("random-dense", "36 %")),
    ):
        rows.append((f"ε = 1, {table}: invented leaves", theirs, rate(table, half), rate(table, 1.0)))
    ours = (rate("random-sparse", half_budget(10.0)), rate("random-sparse", 10.0))
    rows.append(("ε = 10, random-sparse: invented leaves", "64.0 % (59.8 % with the whole budget)", *ours))
    if REAL in found:
        errors = " / ".join(_say(At(found, REAL, epsilon).mean("inftda", leaf_error)) for epsilon in EPSILONS)
        italy = "Italy's largest error at the leaves, ε = 0.1 / 1 / 10, beside New York's"
        rows.append((italy, "1,407 / 144 / 17.8", "-", errors))
        rates = " / ".join(rate(REAL, epsilon) for epsilon in EPSILONS)
        rows.append(("Italy's invented leaves, beside New York's", "36 / 30 / 23 %", "-", rates))
    return _judge("published", None, rows)


def accounting(found: Found) -> Claim:
    """The tight accounting beside the paper's."""
    ways: tuple[Accounting, ...] = ("paper", "tight")
    rows = []
    for at in places(found):
        runs = [trials(found, at.table, "inftda", at.epsilon, way) for way in ways]
        if all(runs):
            noise = " → ".join(f"{some[0].noise[-1]:,.4g}" for some in runs)
            errors = " → ".join(_say(at.mean("inftda", leaf_error, way)) for way in ways)
            rows.append(
                at.row(noise, errors, " → ".join(_share(at.mean("inftda", leaf_invented, way)) for way in ways))
            )
    return _judge("accounting", None, rows, delta=DELTA)


def _seconds(trial: Trial) -> float:
    return trial.seconds


def _mean_over_levels(trial: Trial) -> float:
    return fmean(errors.largest for errors in trial.errors[1:])


def _leaf_mean(trial: Trial) -> float:
    return trial.errors[-1].mean_of_all


def _below_one(ratios: Iterable[float | None]) -> int:
    return sum(ratio is not None and ratio < 1 for ratio in ratios)


def _held(held: Sequence[bool]) -> str:
    return f"Holds in {'all' if all(held) else f'{sum(held)} of'} {len(held)} settings."


def _say(value: float | None) -> str:
    return "-" if value is None else number(value)


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value)


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    form = ",.0f" if ratio >= 10 else ".2f" if ratio >= 0.1 else ".2g"
    return f"{ratio:{form}} ×"
