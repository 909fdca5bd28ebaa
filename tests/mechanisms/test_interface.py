"""What holds for every mechanism: guarantee, cost, refusals, and tables of every shape."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import pytest

import treetop as tt
from treetop import Counts
from treetop.addons.lab.compare import compare, settings
from treetop.addons.lab.comparison import Case
from treetop.addons.lab.mechanisms import registry
from treetop.addons.lab.mechanisms.baselines import Hay
from treetop.addons.lab.mechanisms.compared import Estimate, NotServed, paper_loss
from treetop.addons.lab.mechanisms.inftda import InfTDA
from treetop.addons.lab.mechanisms.registry import MECHANISMS, named, register
from treetop.errors import LossError, PlanError, Refusal, TreetopError
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key

from . import tables
from .tables import ANYONE, KEY, LOSS, NO_NOISE, SPINES, TRIP

EVERY = list(MECHANISMS)
LEVELLED = ["inftda", "tda-l2", "tda-l2-exact", "tda-linf", "hay", "per-level"]
TOP_DOWN = LEVELLED[:4]
DENSE = ["gauss", "bottom-up", "hay", "per-level"]
NEVER_NEGATIVE = [*TOP_DOWN, "bottom-up", "sh"]
BOTH = pytest.mark.parametrize("unit", [TRIP, ANYONE], ids=["replace", "add-remove"])


def test_the_mechanisms_of_the_paper_are_there_by_name() -> None:
    assert {"inftda", "tda-l2", "tda-linf", "gauss", "sh", "bottom-up", "hay"} <= set(MECHANISMS)
    assert all(name == kind.name and kind.about.endswith(".") for name, kind in MECHANISMS.items())


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    assert named("hay") is Hay
    with pytest.raises(PlanError, match="no mechanism 'inf-tda'.*inftda"):
        named("inf-tda")


@BOTH
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("shape", [*SPINES, "two words"])
def test_without_noise_every_mechanism_publishes_the_truth(name: str, shape: str, unit: tt.Unit) -> None:
    spine = tables.two_words() if shape == "two words" else SPINES[shape]()
    assert (shape == "two words") == (tables.words(spine) == 2)
    counts = tables.table(spine, 30, largest=10**6)
    estimate = MECHANISMS[name](spine, unit, NO_NOISE).run(counts, KEY)
    assert np.allclose(tables.leaves(estimate).astype(float), tables.truth(spine, counts).astype(float), rtol=1e-9)
    assert estimate.violations() == 0
    assert estimate.total == pytest.approx(counts.total, rel=1e-12)


@BOTH
@pytest.mark.parametrize("loss", [LOSS, tt.Loss(epsilon=100, delta=1e-8)], ids=["much noise", "little noise"])
@pytest.mark.parametrize("rows", [0, 1, 40])
@pytest.mark.parametrize("name", NEVER_NEGATIVE)
def test_what_is_promised_to_be_a_count_is_one(name: str, rows: int, loss: tt.Loss, unit: tt.Unit) -> None:
    for make in SPINES.values():
        spine = make()
        mechanism = MECHANISMS[name](spine, unit, loss)
        estimate = mechanism.run(tables.table(spine, rows), KEY)
        assert estimate.value.dtype == np.int64
        assert (estimate.value > 0).all()
        assert estimate.violations() == 0


@pytest.mark.parametrize("name", ["inftda", "tda-l2", "tda-l2-exact", "tda-linf", "hay", "per-level"])
def test_a_total_that_is_public_is_published_exactly(name: str) -> None:
    for rows in (0, 1, 40):
        spine = tables.pairs()
        counts = tables.table(spine, rows)
        assert MECHANISMS[name](spine, TRIP, LOSS).run(counts, KEY).total == pytest.approx(counts.total, abs=1e-9)


@pytest.mark.parametrize("name", LEVELLED)
def test_a_total_that_may_differ_between_neighbours_is_measured(name: str) -> None:
    spine, dropped = tables.pairs(), {"records_may_be_dropped": True}
    cases: list[tuple[tt.Unit, dict[str, Any]]] = [(ANYONE, {}), (tt.Unit("person", 2, "replace"), {}), (TRIP, dropped)]
    for unit, options in cases:
        mechanism: Any = MECHANISMS[name]
        assert mechanism(spine, unit, LOSS, **options).levels[0].is_measured
    assert MECHANISMS[name](spine, TRIP, LOSS).levels[0].is_exact


@BOTH
@pytest.mark.parametrize("loss", [LOSS, tt.Loss(rho=Fraction(1, 7)), tt.Loss(epsilon=Fraction(1, 3))], ids=str)
@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("name", [name for name in EVERY if name != "sh"])
def test_the_noise_costs_exactly_the_loss(name: str, contributions: int, loss: tt.Loss, unit: tt.Unit) -> None:
    unit = tt.Unit("person", contributions, unit.neighbours)
    mechanism = MECHANISMS[name](tables.pairs(), unit, loss)
    spent = Fraction(0)
    margins = mechanism.plan.margin_parts if name in ("margins", "facts") else ()  # type: ignore[attr-defined]
    for level in (*mechanism.levels, *margins):
        # By hand: m records in one node, or exchanged for m in another; the total moves by m at most.
        squared = contributions**2 * (2 if unit.neighbours == "replace" and level.index else 1)
        change = contributions * (2 if unit.neighbours == "replace" and level.index else 1)
        if not level.is_measured:
            continue
        if isinstance(level.law, DiscreteGaussian):
            spent += Fraction(squared, 2) / level.law.variance
        elif isinstance(level.law, DiscreteLaplace):
            spent += change / level.law.scale
    assert spent == mechanism.spent == loss.budget


@pytest.mark.parametrize(
    ("epsilon", "loose", "tight"), [(0.1, 210.55, 169.51), (1, 21.308, 18.674), (10, 2.3572, 2.2283)]
)
@pytest.mark.parametrize("name", LEVELLED)
def test_six_levels_have_the_published_noise(name: str, epsilon: float, loose: float, tight: float) -> None:
    tree = tt.Hierarchy.from_prefixes([f"{a}{b}{c}" for a in "xy" for b in "xy" for c in "xy"], widths=[1, 2])
    spine = tt.Spine.destination_first(origin=tree, destination=tree)
    for loss, sigma in ((paper_loss(epsilon, 1e-8), loose), (tt.Loss(epsilon=epsilon, delta=1e-8), tight)):
        total, *below = MECHANISMS[name](spine, TRIP, loss).levels
        laws = [level.law for level in below]
        assert len(laws) == 6 and total.is_exact
        for law in laws:
            assert isinstance(law, DiscreteGaussian)
            assert sqrt(law.variance) == pytest.approx(sigma, rel=3e-5)


def test_flat_noise_has_the_whole_loss() -> None:
    law = MECHANISMS["gauss"](tables.pairs(), TRIP, LOSS).levels[-1].law
    assert isinstance(law, DiscreteGaussian)
    assert sqrt(law.variance) == pytest.approx(18.674 / sqrt(6), rel=3e-5)


@pytest.mark.parametrize("name", EVERY)
def test_the_guarantee_is_one_sentence_that_names_unit_and_loss(name: str) -> None:
    replaced = MECHANISMS[name](tables.pairs(), TRIP, LOSS).definition
    assert replaced.startswith("For one trip of at most 1 record, replaced by another: approximate")
    assert "epsilon 1 and delta 1e-08" in replaced and replaced.endswith(".")
    removed = MECHANISMS[name](tables.pairs(), tt.Unit("person", 4, "add-remove"), LOSS).definition
    assert removed.startswith("For one person of at most 4 records, added or removed:")


@pytest.mark.parametrize("name", [name for name in EVERY if name != "sh"])
def test_a_loss_in_rho_or_pure_epsilon_says_so(name: str) -> None:
    assert "zero-concentrated" in MECHANISMS[name](tables.pairs(), TRIP, tt.Loss(rho=1)).definition
    assert "pure differential privacy" in MECHANISMS[name](tables.pairs(), TRIP, tt.Loss(epsilon=1)).definition


@pytest.mark.parametrize("name", EVERY)
def test_the_same_key_gives_the_same_estimate_on_any_number_of_threads(name: str) -> None:
    spine = tables.flat(300_000) if name in ("gauss", "sh", "bottom-up", "hay") else tables.pairs()
    counts = tables.table(spine, 3_000)
    mechanism = MECHANISMS[name](spine, TRIP, tt.Loss(epsilon=10, delta=1e-8))
    one, other = (mechanism.run(counts, KEY, threads) for threads in (1, 3))
    assert np.array_equal(one.value, other.value)
    assert all(np.array_equal(a, b) for a, b in zip(one.keys, other.keys, strict=True))
    fresh = mechanism.run(counts, KEY.derive("another"))
    assert not np.array_equal(one.value, fresh.value)


@pytest.mark.parametrize("name", EVERY)
def test_another_table_gets_other_noise_under_the_same_key(name: str) -> None:
    spine = tables.flat(2_000)
    mechanism = MECHANISMS[name](spine, TRIP, tt.Loss(epsilon=1, delta=1e-4))
    errors = []
    for change in (0, 1):
        exact = np.full(2_000, 1_000)
        exact[0] -= change
        exact[1] += change
        if name == "tda-linf":
            spine_part = tables.flat(200)  # the solver is slow, and noise is noise
            mechanism, exact = MECHANISMS[name](spine_part, TRIP, LOSS), exact[:200]
        counts = Counts.from_leaves(mechanism.spine, [np.arange(len(exact))], exact)
        errors.append(mechanism.run(counts, KEY).value - exact)
        assert errors[-1].any()
    assert abs(np.corrcoef(*errors)[0, 1]) < 6 / len(errors[0]) ** 0.5


@pytest.mark.parametrize("name", DENSE)
def test_a_domain_that_is_too_large_is_refused_with_its_size(name: str) -> None:
    tree = tt.Hierarchy.flat([f"{i:05d}" for i in range(5_000)])
    spine = tt.Spine.destination_first(origin=tree, destination=tree)
    with pytest.raises(NotServed, match=f"{name} puts noise on every .* 25,000,000 .* limit of 16,777,216"):
        MECHANISMS[name](spine, TRIP, LOSS)
    mechanism: Any = MECHANISMS[name]
    with pytest.raises(Refusal, match="5 of them, more than its limit of 4"):
        mechanism(tables.flat(5), TRIP, LOSS, limit=4)
    assert mechanism(tables.flat(5), TRIP, LOSS, limit=5).limit == 5


@pytest.mark.parametrize("name", [name for name in EVERY if name not in DENSE])
def test_a_sparse_mechanism_serves_a_large_domain(name: str) -> None:
    tree = tt.Hierarchy.from_prefixes([f"{i:04d}" for i in range(5_000)], widths=[1, 2, 3])
    spine = tt.Spine.destination_first(origin=tree, destination=tree)
    counts = tables.table(spine, 5, largest=10**5)
    estimate = MECHANISMS[name](spine, TRIP, tt.Loss(epsilon=100, delta=1e-8)).run(counts, KEY)
    assert estimate.total == pytest.approx(counts.total, rel=0.01)


@pytest.mark.parametrize("name", EVERY)
def test_parts_that_do_not_fit_are_refused(name: str) -> None:
    kind: Any = MECHANISMS[name]
    with pytest.raises(PlanError, match="loss is 1"):
        kind(tables.pairs(), TRIP, 1)
    capped = tt.Unit("person", 3, "replace", per_node={"origin.twon": 1})
    with pytest.raises(PlanError, match="'origin.twon', which is not a level"):
        kind(tables.pairs(), capped, LOSS)


@pytest.mark.parametrize("name", [name for name in EVERY if name != "sh"])
def test_noise_that_would_not_fit_64_bits_is_refused(name: str) -> None:
    with pytest.raises(LossError, match="too wide"):
        MECHANISMS[name](tables.pairs(), TRIP, tt.Loss(rho=Fraction(1, 10**40)))


def test_the_refusals_are_of_the_family() -> None:
    assert issubclass(NotServed, TreetopError)


def test_a_cap_at_the_leaves_lowers_flat_noise() -> None:
    spine = tables.pairs()
    plain, capped = (
        MECHANISMS["gauss"](spine, tt.Unit("person", 3, "replace", per_node=caps), LOSS).levels[-1].law
        for caps in (None, {spine.levels[-1].name: 1})
    )
    assert isinstance(plain, DiscreteGaussian) and isinstance(capped, DiscreteGaussian)
    assert plain.variance == 3 * capped.variance


@dataclass(frozen=True, eq=False)
class Doubled(InfTDA):
    """A mechanism of somebody else's, which nobody should want."""

    name: ClassVar[str] = "doubled"
    about: ClassVar[str] = "Top down, and every count twice."

    def run(self, counts: tt.Counts, key: Key, threads: int = 1) -> Estimate:
        once = super().run(counts, key, threads)
        return Estimate(once.spine, once.keys, once.value * 2)


def test_a_mechanism_from_outside_is_offered_by_one_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MECHANISMS", dict(MECHANISMS))
    assert register(Doubled) is Doubled is register(Doubled) is named("doubled")
    spine = tables.pairs()
    counts = tables.table(spine, 60)
    (trial,) = compare(Case(spine, TRIP, counts), settings(["doubled"], [1.0]), 1, key=KEY).trials
    assert trial.errors[0].largest == counts.total


def test_a_mechanism_without_words_or_with_the_name_of_another_is_not_registered() -> None:
    for wrong in (type("Mute", (Doubled,), {"about": " "}), type("Another", (Doubled,), {"name": "inftda"})):
        with pytest.raises(
            PlanError, match=f"{wrong.__name__} cannot be registered|give {wrong.__name__} another name"
        ):
            register(wrong)
