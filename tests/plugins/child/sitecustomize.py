"""Noise that is the same in every run of a test: secrets are drawn from a seed that the tests put in the environment.

The process of the tests installs it for itself (tests/plugins/fixed_noise.py). A Python process that a test starts
finds it by its name, because the tests put this folder in PYTHONPATH; the product knows nothing of it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections import Counter

SEED = "TREETOP_TESTS_NOISE"

drawn: Counter[str] = Counter()
"""How often each seed was drawn from."""


def install() -> None:
    """Draw what `secrets` gives from the seed, as long as there is one."""
    fresh_bytes = secrets.token_bytes

    def token_bytes(nbytes: int | None = None) -> bytes:
        seed = os.environ.get(SEED)
        if seed is None:
            return fresh_bytes(nbytes)
        drawn[seed] += 1
        content = f"{drawn[seed]} {seed}".encode()
        return hashlib.shake_256(content).digest(secrets.DEFAULT_ENTROPY if nbytes is None else nbytes)

    secrets.token_bytes = token_bytes


if SEED in os.environ:
    install()
