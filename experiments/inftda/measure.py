"""What is run on which table, how often, and in which order: the slowest mechanisms less often, and said so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from experiments.kit.cases import MADE_UP, TRIP, Table, made_up, new_york
from experiments.kit.runs import Kept
from treetop.addons.lab.compare import compare, settings
from treetop.addons.lab.comparison import Accounting, Case, Comparison, Setting
from treetop.addons.lab.mechanisms.registry import MECHANISMS
from treetop.noise import Key
from treetop.privacy import rho_from_epsilon_loose

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-8
REPEATS = 10
REAL = "new-york"
SOLVER = "tda-linf"
FIGURE = "random-sparse"
"""The table of figure 5 for which published shares of the solver are known: it is run at the authors' noise as well."""
SOLVER_ORDER = (
    *("random-sparse", "binary-sparse", "random-dense", "random-complete", REAL, "binary-dense", "binary-complete"),
)
"""Where it takes the least time first."""
SOLVER_RUNS = 5
SOLVER_SECONDS = 60.0
"""The solver is run so often where a run takes less than this, and at most once where it takes more."""
OF_PAPERS = tuple(name for name in MECHANISMS if name != "lower-error")
"""What papers propose; `experiments.estimates` is about the other."""
DENSE_LIMIT = 2**25
"""Above the 24,059,025 leaves of New York, so that the flat mechanism is run there: the paper had to leave it out."""
KEY = Key(b"figures 3 to 6 of the paper".ljust(32, b"."))
"""The tables are public, so the noise may be too: a run can be repeated."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Batch:
    """Some mechanisms at some losses, run equally often."""

    mechanisms: tuple[str, ...]
    """Their names."""
    epsilons: tuple[float, ...]
    """The losses, at `DELTA`."""
    accounting: Accounting
    """How noise is found from them."""
    repeats: int
    """How often each is run."""
    again: int = field(default=0, repr=False)
    """Which of several batches of the same: each has noise of its own."""

    @property
    def name(self) -> str:
        """What its results are kept by."""
        return f"{self!r} again {self.again}" if self.again else repr(self)

    def settings(self) -> list[Setting]:
        """Return what is run."""
        options = {name: {"limit": DENSE_LIMIT} for name in ("gauss", "bottom-up")}
        return settings(self.mechanisms, self.epsilons, DELTA, (self.accounting,), options)


def half_budget(epsilon: float) -> float:
    """The epsilon at which the paper's accounting gives half of the rho that it gives at `epsilon`.

    The authors' code spends half of its rho, and their published results were made with it; the same noise is had by
    asking for less.
    """
    rho = float(rho_from_epsilon_loose(epsilon, DELTA) / 2)
    return rho + 2 * math.sqrt(rho * -math.log(DELTA))  # Bun and Steinke 2016, Proposition 1.3


def batches(table: str, repeats: int = REPEATS) -> list[Batch]:
    """Return what is run on a table, but for the solver: see `run_solver`."""
    if table == REAL:
        return [
            Batch(("inftda", "sh"), EPSILONS, "paper", repeats),
            Batch(("inftda", "sh"), EPSILONS, "tight", repeats),
            Batch(("tda-l2", "tda-l2-exact", "gauss"), EPSILONS, "paper", min(repeats, 3)),
            Batch(("hay",), EPSILONS[1:2], "paper", 1),
        ]
    others = tuple(name for name in OF_PAPERS if name != SOLVER)
    halves = tuple(map(half_budget, EPSILONS))
    return [
        Batch(others, EPSILONS, "paper", repeats),
        Batch(others, EPSILONS, "tight", repeats),
        Batch(("inftda",), halves, "paper", repeats),
        *([Batch(("tda-l2",), halves[1:], "paper", repeats)] if table == FIGURE else []),
    ]


def solver_losses(table: str) -> tuple[float, ...]:
    """Return the losses at which the solver may be run: on the real table that at which the fewest nodes are left."""
    halves = tuple(map(half_budget, EPSILONS[1:])) if table == FIGURE else ()
    return EPSILONS[:1] if table == REAL else (*EPSILONS, *halves)


def run_solver(name: str, case: Case, jobs: int, kept: Kept, repeats: int = REPEATS) -> Comparison:
    """Run the solver on a table, which takes milliseconds a node where others take microseconds.

    It is run once at the least loss and, where that took under a minute, as often as is right. Where it took more, it
    is not run at larger losses: more nodes are left there.
    """
    parts: list[Comparison] = []
    for epsilon in solver_losses(name):
        for again in range(min(repeats, SOLVER_RUNS)):
            parts.append(run_table(name, case, [Batch((SOLVER,), (epsilon,), "paper", 1, again)], jobs, kept))
            if any(trial.seconds >= SOLVER_SECONDS for trial in parts[-1].trials):
                return _joined(parts)
    return _joined(parts)


def case_of(table: Table) -> Case:
    """Return a table as what mechanisms are compared on."""
    return Case(table.spine, TRIP, table.truth)


def run_all(
    data: Path | None, repeats: int, jobs: int, quick: bool, say: Say, kept: Callable[[str], Kept] = lambda _: Kept()
) -> dict[str, Comparison]:
    """Run everything, table by table. `quick` leaves out the solver and all but the sparse tables."""
    found: dict[str, Comparison] = {}
    for table in _tables(data, quick, (*MADE_UP, REAL)):
        name = table.name
        found[name] = run_table(name, case_of(table), batches(name, repeats), jobs, kept(name))
        say(f"{name}: {_told(found[name])}")
    solved: dict[str, Comparison] = {}
    # Last, for it takes longer than all others together; and once everywhere before it is run twice anywhere.
    most = min(repeats, SOLVER_RUNS)
    rounds = range(1, most + 1) if kept(REAL).file else (most,)  # what is not kept would be run again in every round
    for often in () if quick else rounds:
        for table in _tables(data, quick, SOLVER_ORDER):
            name = table.name
            solved[name] = run_solver(name, case_of(table), jobs, kept(name), often)
            say(f"{name}, the solver, up to {often} times: {_told(solved[name])}")
    return {name: _joined([made, *([solved[name]] if name in solved else [])]) for name, made in found.items()}


def _told(made: Comparison) -> str:
    return f"{len(made.trials)} runs, {sum(trial.seconds for trial in made.trials):,.0f} s of them"


def run_table(name: str, case: Case, chosen: Iterable[Batch], jobs: int, kept: Kept | None = None) -> Comparison:
    """Run some batches on one table, and put them together."""
    keep, key = kept or Kept(), KEY.derive("table", name.encode())

    def run(batch: Batch) -> Comparison:
        own = key.derive("again", b"", batch.again) if batch.again else key
        return compare(case, batch.settings(), batch.repeats, key=own, jobs=jobs)

    return _joined(keep.run(Comparison, batch.name, partial(run, batch)) for batch in chosen)


def _joined(parts: Iterable[Comparison]) -> Comparison:
    every = list(parts)
    return Comparison(
        tuple(trial for part in every for trial in part.trials), tuple(one for part in every for one in part.refused)
    )


def _tables(data: Path | None, quick: bool, names: Sequence[str]) -> Iterator[Table]:
    """Yield the tables of these names, one after the other; the real one where it is."""
    for name in names:
        if name != REAL and (not quick or name.endswith("sparse")):
            yield made_up(name)
        elif name == REAL and data is not None and not quick:
            yield new_york(data)
