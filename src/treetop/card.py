"""The card: a release's machine-readable statement of its guarantee and method."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

from treetop.plan import Plan

FORMAT = 1


def describe_release(plan: Plan, private: bool) -> dict[str, Any]:
    """Return the card of a release of `plan`; `private` is false when its noise came from a testing key."""
    public_total = plan.levels[0].law is None
    return {
        "treetop": FORMAT,
        "title": plan.title,
        "private": private,
        "warning": None if private else "Not private: the noise came from a testing key. Do not publish.",
        "guarantee": plan.loss.sentence() if private else "None.",
        "protects": plan.unit.sentence(),
        "total": (
            "Public: it is the same for all neighbours, and released exactly."
            if public_total
            else "Measured with noise, like every other level."
        ),
        "plan": plan.describe(),
        "plan_sha256": plan.digest,
        "spent": {"epsilon" if plan.loss.definition == "pure" else "rho": str(plan.spent)},
        "randomness": "operating system, AES-256-CTR" if private else "testing key",
        "software": {"treetop": version("treetop"), "python": platform.python_version()},
    }
