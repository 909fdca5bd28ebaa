"""Deliberate faults in the measuring of joint fits."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from typing import Any

import pytest

from treetop.noise import Key, NoiseStream

from .faults import Fault, narrowed

joint: Any = import_module("treetop.measure.joint")
plans: Any = import_module("treetop.plan.workload")
runs: Any = import_module("treetop.release.run")
tables: Any = import_module("treetop.release.intervals.table_evidence")
Patch = pytest.MonkeyPatch


def joint_tables_with_noise_of_half_the_scale(patch: Patch) -> None:
    patch.setattr(joint, "NoiseStream", lambda law, key: NoiseStream(narrowed(law, Fraction(1, 2)), key))


def joint_tables_that_share_one_noise(patch: Patch) -> None:
    patch.setattr(Key, "derive", lambda key, *_: key)


def a_joint_table_that_nobody_pays_for(patch: Patch) -> None:
    """All tables get the noise of one table fewer."""
    shares = plans.shares

    def one_fewer(split: Any, names: list[str]) -> Any:
        paid = shares(split, names)
        return [Fraction(len(names), len(names) - 1) * share for share in paid]

    patch.setattr(plans, "shares", one_fewer)
    original = plans.Workload.spent
    patch.setattr(plans.Workload, "spent", property(lambda self: original.fget(self) * Fraction(1, 2)))


def a_joint_fit_with_the_true_total(patch: Patch) -> None:
    original = runs.measure_total

    def true(counts: Any, how: Any, key: Any, *facts: Any) -> int:
        original(counts, how, key, *facts)
        return int(counts.total)

    patch.setattr(runs, "measure_total", true)


def a_joint_fit_that_starts_from_the_true_counts(patch: Patch) -> None:
    """The private table decides where counts may be at all."""
    measured, fitted = runs.measure_tables, runs.fitted_leaves
    private: list[Any] = []

    def noted(plan: Any, counts: Any, key: Any) -> Any:
        private.append(counts)
        return measured(plan, counts, key)

    def kept(evidence: Any) -> Any:
        nodes, count = fitted(evidence)
        return nodes[:, : len(private[-1])], count[: len(private[-1])]

    patch.setattr(runs, "measure_tables", noted)
    patch.setattr(runs, "fitted_leaves", kept)


FAULTS_OF_JOINT_FITS = [
    Fault(make, "joint fit")
    for make in (
        joint_tables_with_noise_of_half_the_scale,
        joint_tables_that_share_one_noise,
        a_joint_table_that_nobody_pays_for,
        a_joint_fit_with_the_true_total,
        a_joint_fit_that_starts_from_the_true_counts,
    )
]
