"""What the paper says, claim by claim, beside what was measured; the words are in `claims.md`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from experiments.inftda.measure import DELTA, EPSILONS, FIGURE, REAL, SOLVER, half_budget
from experiments.kit.cases import MADE_UP
from experiments.kit.pages import Claim, Claims
from experiments.kit.verdicts import NothingRunError, Tally, standing, tally
from treetop.addons.lab.comparison import CONFIDENCE, Accounting, Comparison, Trial, number, percent, seconds

TOP_DOWN = ("inftda", "tda-l2", SOLVER)
Found = Mapping[str, Comparison]
Metric = Callable[[Trial], float]

COMPARABLE = 1.5
"""Two largest errors within this factor of each other are called comparable; the paper names no number."""
WORSE = 1.05
"""Means of ten runs move by some percent: what is larger by no more is not called worse."""
HARDLY = 0.02
"""Shares of invented leaves that are no further apart hardly differ."""
AGREES = 0.01
"""A share that is no further from the published one, which has two digits, agrees with it."""
PUBLISHED = {
    ("binary-sparse", 1.0): 0.90,
    ("random-sparse", 1.0): 0.84,
    ("binary-dense", 1.0): 0.36,
    ("random-dense", 1.0): 0.36,
    ("random-sparse", 10.0): 0.640,
}
"""The authors' shares of invented leaves, by table and epsilon."""
PUBLISHED_SOLVER = {1.0: 0.899, 10.0: 0.770}
"""Their shares with TDA ℓ∞ on the table of figure 5, by epsilon, as an audit of the page read them from the figure."""

_CLAIMS = Claims("inftda", beta=1 - CONFIDENCE, delta=DELTA, comparable=COMPARABLE)
_judge = _CLAIMS.judge


def claims(found: Found) -> Iterator[Claim]:
    """Judge all claims by what was measured."""
    yield from _CLAIMS.all(found)


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


@dataclass(frozen=True)
class SolverShare:
    """The invented leaves of TDA ℓ∞ at the authors' noise, beside the published share and other repairs."""

    epsilon: float
    published: float
    shares: tuple[float | None, ...]
    """Ours, of InfTDA, TDA ℓ₂ and TDA ℓ∞."""

    @property
    def agrees(self) -> bool:
        """Whether ours of TDA ℓ∞ is the published one."""
        return self.shares[-1] is not None and abs(self.shares[-1] - self.published) <= AGREES

    @property
    def words(self) -> str:
        """Both shares of TDA ℓ∞."""
        return f"{_share(self.shares[-1])} against {percent(self.published)} at ε = {self.epsilon:g}"

    @property
    def row(self) -> tuple[str, ...]:
        """Return a row of the table of shares."""
        told = f"{FIGURE}, half of rho ({percent(self.published)} published for TDA ℓ∞)"
        return told, f"{self.epsilon:g}", *map(_share, self.shares)


def solver_shares(found: Found) -> list[SolverShare]:
    """Return TDA ℓ∞ beside its published shares, where it was run at the authors' noise."""
    halves = {epsilon: At(found, FIGURE, half_budget(epsilon)) for epsilon in PUBLISHED_SOLVER}
    every = [
        SolverShare(epsilon, PUBLISHED_SOLVER[epsilon], tuple(at.mean(name, leaf_invented) for name in TOP_DOWN))
        for epsilon, at in halves.items()
    ]
    return [one for one in every if one.shares[-1] is not None]


def _agreement(solver: list[SolverShare]) -> list[Tally]:
    return [tally(one.agrees for one in solver)] if solver else []


@_CLAIMS.verdict
def hierarchical_accuracy(found: Found) -> Claim:
    """InfTDA's error grows with depth."""
    errors = {at: (at.mean("inftda", top_error), at.mean("inftda", leaf_error)) for at in places(found)}
    grows = tally(leaf > top for top, leaf in errors.values() if top is not None and leaf is not None)
    rows = by_table({at: " → ".join(map(_say, both)) for at, both in errors.items()})
    return _judge("hierarchical_accuracy", standing(grows), rows, grows=grows)


@_CLAIMS.verdict
def stability_histogram(found: Found) -> Claim:
    """SH is best at the leaves, and poor above."""
    every = places(found)
    leaf, top = ({at: at.ratio("sh", "inftda", metric) for at in every} for metric in (leaf_error, top_error))
    flat = [ratio >= 1 for at in every if (ratio := at.ratio("gauss", "sh", leaf_error)) is not None]
    best, poor, first = tally(_below_one(leaf.values())), tally(_above_one(top.values())), tally(flat)
    rows = by_table({at: f"{_times(top[at])} · {_times(leaf[at])}" for at in every})
    beaten = first.all - first.held
    return _judge(
        "stability_histogram", standing(best, poor, first), rows, best=best, poor=poor, beaten=beaten, all=first.all
    )


@_CLAIMS.verdict
def beside_euclidean(found: Found) -> Claim:
    """InfTDA is not worse than TDA with the Euclidean distance."""
    metrics = (_mean_over_levels, leaf_error, _leaf_mean)
    ratios = {at: [at.ratio("inftda", "tda-l2", metric) for metric in metrics] for at in places(found)}
    leaves = {at: leaf for at, (_, leaf, _) in ratios.items() if leaf is not None}
    near = tally(1 / COMPARABLE <= ratio <= COMPARABLE for ratio in leaves.values())
    as_good = tally(ratio <= WORSE for ratio in leaves.values())
    return _judge(
        "beside_euclidean",
        standing(near, as_good),
        by_table({at: " · ".join(map(_times, three)) for at, three in ratios.items()}),
        near=near,
        leaves=list(leaves.values()),
        mean=fmean(leaves.values()),
        worse=as_good.all - as_good.held,
        all=as_good.all,
        worst=max(leaves, key=lambda at: leaves[at]),
        means=[mean for *_, mean in ratios.values() if mean is not None],
        percent=100 * (WORSE - 1),
    )


@_CLAIMS.verdict
def beside_solver(found: Found) -> Claim:
    """The solver's optimum is the poorer one."""
    ratios = {at: ratio for at in places(found) if (ratio := at.ratio(SOLVER, "inftda", leaf_error)) is not None}
    many = {str(at): ratio for at, ratio in ratios.items() if not at.table.startswith("binary")}
    larger, solver = tally(_above_one(many.values())), solver_shares(found)
    named = many.get(f"random-sparse at ε = {min(EPSILONS):g}")
    rows = [
        at.row(
            str(len(trials(found, at.table, SOLVER, at.epsilon))),
            " against ".join(_say(at.mean(name, leaf_error)) for name in (SOLVER, "inftda")),
            " against ".join(_share(at.mean(name, leaf_invented)) for name in (SOLVER, "inftda")),
        )
        for at in ratios
    ]
    return _judge(
        "beside_solver",
        standing(larger, *_agreement(solver)),
        rows,
        larger=larger,
        solver=solver,
        least=min(many.values()),
        most=max(many.values()),
        mean=fmean(many.values()),
        named=named,
        stands_out=named is not None and named == max(many.values()),
    )


@_CLAIMS.verdict
def false_discoveries(found: Found) -> Claim:
    """InfTDA invents the fewest, except where nodes have two children."""
    sparse = [at for at in places(found) if not at.table.endswith("complete")]
    shares = {at: [at.mean(name, leaf_invented) for name in TOP_DOWN] for at in sparse}

    def apart(other: int, binary: bool) -> list[float]:
        """By how much another mechanism invents more than InfTDA does, where both were run."""
        chosen = (three for at, three in shares.items() if at.table.startswith("binary") == binary)
        return [three[other] - three[0] for three in chosen if three[0] is not None and three[other] is not None]  # type: ignore[operator]

    parts = {name: apart(other, binary=False) for other, name in ((1, "TDA ℓ₂"), (2, "TDA ℓ∞"))}
    fewer = {name: tally(more > 0 for more in some) for name, some in parts.items() if some}
    binary = [abs(more) for other in (1, 2) for more in apart(other, binary=True)]
    same = [tally(more <= HARDLY for more in binary)] if binary else []
    if not fewer:
        raise NothingRunError
    solver = solver_shares(found)
    rows = [*(at.row(*map(_share, three)) for at, three in shares.items()), *(one.row for one in solver)]
    return _judge(
        "false_discoveries",
        standing(*fewer.values(), *same, *_agreement(solver)),
        rows,
        solver=solver,
        fewer=[
            f"than {name} in {found_} settings, by {100 * min(parts[name]):.1f} to {100 * max(parts[name]):.1f} points"
            for name, found_ in fewer.items()
        ],
        same=f"{100 * max(binary):.1f}" if binary else None,
    )


@_CLAIMS.verdict
def speed(found: Found) -> Claim:
    """InfTDA is the fastest of the top-down ones."""
    names = ("inftda", "tda-l2-exact", "tda-l2", SOLVER, "gauss", "sh")
    rows, compiled, fastest, behind = [], [], [], []
    for at in places(found):
        times = [at.mean(name, _seconds) for name in names]
        ours, exact, euclidean, solver, _, histogram = times
        if ours is None:
            continue
        fastest += [ours < other for other in (euclidean, solver) if other is not None]
        behind += [histogram < ours] if histogram is not None else []
        compiled += [ours / exact] if exact else []
        if at.epsilon == 1 or solver is not None:
            rows.append(at.row(*("-" if time is None else seconds(time) for time in times)))
    first, second, third = tally(fastest), tally(behind), tally(ratio < 1 for ratio in compiled)
    return _judge(
        "speed",
        standing(first, second),
        rows,
        first=first,
        second=second,
        third=third,
        compiled=compiled,
        mean=fmean(compiled),
    )


@_CLAIMS.verdict
def flat_beside_stability(found: Found) -> Claim:
    """The flat Gaussian is better than SH for larger areas unless the table is sparse."""
    ratios = {at: at.ratio("gauss", "sh", top_error) for at in places(found)}
    judged = {at: ratio for at, ratio in ratios.items() if ratio is not None and at.table in MADE_UP}
    held = {at: ratio > 1 if at.table.endswith("sparse") else ratio < 1 for at, ratio in judged.items()}
    odd = [at for at, ok in held.items() if not ok]
    settings = tally(held.values())
    rows = by_table({at: _times(ratio) for at, ratio in ratios.items()})
    return _judge(
        "flat_beside_stability",
        standing(settings),
        rows,
        settings=settings,
        sparse=[at for at in odd if at.table.endswith("sparse")],
        others=[at for at in odd if not at.table.endswith("sparse")],
    )


@_CLAIMS.verdict
def bound(found: Found) -> Claim:
    """The bound of Theorem 1 on the largest error of every level."""
    rows, within = [], []
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
        within += [error <= limit for error, limit, _ in below]
        over = [sum(error > limits[at] for error, *limits in below) for at in (0, 1)]
        ratios = [median(error / limits[at] for error, *limits in below) for at in (0, 1)]
        counts = (f"{count:,}" for count in (len(runs), len(below), *over))
        rows.append((mechanism, *counts, *(f"{one:.2f}" for one in ratios)))
    levels = tally(within)
    beyond = levels.all - levels.held
    return _judge("bound", beyond <= (1 - CONFIDENCE) * levels.all, rows, beyond=beyond, all=levels.all)


def paper_bound(trial: Trial, level: int) -> float:
    """The paper's bound, Σ 2σ_l·√(2 ln(k|V_l|/β)) over the k measured levels down to this one."""
    measured = [at for at in range(level + 1) if trial.noise[at] > 0]
    beta = 1 - CONFIDENCE
    return sum(
        2 * trial.noise[at] * math.sqrt(2 * math.log(len(measured) * trial.errors[at].nodes / beta)) for at in measured
    )


@_CLAIMS.verdict
def published(found: Found) -> Claim:
    """The authors' published figures beside ours."""
    made_up = [table for table in MADE_UP if table in found]
    halves = {(table, epsilon): At(found, table, half_budget(epsilon)) for table, epsilon in PUBLISHED}
    ours = {place: at.mean("inftda", leaf_invented) for place, at in halves.items()}
    apart = {place: abs(share - PUBLISHED[place]) for place, share in ours.items() if share is not None}
    agree = tally(one <= AGREES for one in apart.values())
    errors = [
        [error for table in made_up if (error := At(found, table, epsilon).mean("inftda", leaf_error)) is not None]
        for epsilon in (half_budget(1.0), 1.0)
    ]
    spans = (f"{min(values):.0f}–{max(values):.0f}" if values else "-" for values in errors)
    rows = [(f"ε = 1, {len(made_up)} of six tables: largest error at the leaves", "119–143", *spans)]
    for (table, epsilon), theirs in PUBLISHED.items():
        whole = At(found, table, epsilon).mean("inftda", leaf_invented)
        rows.append(
            (f"ε = {epsilon:g}, {table}: invented leaves", percent(theirs), _share(ours[table, epsilon]), _share(whole))
        )
    if REAL in found:
        real = [At(found, REAL, epsilon) for epsilon in EPSILONS]
        italy = "Italy's largest error at the leaves, ε = 0.1 / 1 / 10, beside New York's"
        rows.append((italy, "1,407 / 144 / 17.8", "-", " / ".join(_say(at.mean("inftda", leaf_error)) for at in real)))
        rates = " / ".join(_share(at.mean("inftda", leaf_invented)) for at in real)
        rows.append(("Italy's invented leaves, beside New York's", "36 / 30 / 23 %", "-", rates))
    return _judge(
        "published",
        standing(agree),
        rows,
        agree=agree,
        points=100 * AGREES,
        furthest=100 * max(apart.values()),
        real=REAL in found,
    )


@_CLAIMS.verdict
def accounting(found: Found) -> Claim:
    """The tight accounting beside the paper's."""
    ways: tuple[Accounting, ...] = ("paper", "tight")
    rows, less = [], []
    for at in places(found):
        runs = [trials(found, at.table, "inftda", at.epsilon, way) for way in ways]
        if all(runs):
            before, after = (some[0].noise[-1] for some in runs)
            less.append(after / before)
            errors = " → ".join(_say(at.mean("inftda", leaf_error, way)) for way in ways)
            invented = " → ".join(_share(at.mean("inftda", leaf_invented, way)) for way in ways)
            rows.append(at.row(f"{before:,.4g} → {after:,.4g}", errors, invented))
    lower = tally(ratio < 1 for ratio in less)
    return _judge("accounting", standing(lower), rows, lower=lower, least=min(less), most=max(less))


def _seconds(trial: Trial) -> float:
    return trial.seconds


def _mean_over_levels(trial: Trial) -> float:
    return fmean(errors.largest for errors in trial.errors[1:])


def _leaf_mean(trial: Trial) -> float:
    return trial.errors[-1].mean_of_all


def _below_one(ratios: Iterable[float | None]) -> list[bool]:
    return [ratio < 1 for ratio in ratios if ratio is not None]


def _above_one(ratios: Iterable[float | None]) -> list[bool]:
    return [ratio > 1 for ratio in ratios if ratio is not None]


def _say(value: float | None) -> str:
    return "-" if value is None else number(value)


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value)


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    form = ",.0f" if ratio >= 10 else ".2f" if ratio >= 0.1 else ".2g"
    return f"{ratio:{form}} ×"
