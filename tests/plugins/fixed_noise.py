"""Every test draws the same noise whenever it runs, unless it is about noise that is fresh.

A test's noise is drawn from its own name, and that of a fixture which several tests share from the fixture's: neither
the order of the tests nor the process that runs them makes a difference. A test that is marked
`@pytest.mark.fresh_noise(rate)` draws from the operating system, and says with what chance it fails although nothing is
wrong. The rates of all the tests together may not exceed `MOST`.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.child import sitecustomize as noise

MOST = 1e-6
"""The chance that a run of the whole suite fails although nothing is wrong."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fresh_noise(rate): noise is fresh, and such a share of runs fails by chance")
    noise.install()
    paths = [str(Path(noise.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rates = [mark.args[0] for item in items for mark in item.iter_markers("fresh_noise")]
    if sum(rates) > MOST:
        raise pytest.UsageError(
            f"tests with fresh noise fail by chance in {sum(rates):.2g} of all runs, above {MOST:g}"
        )


@contextmanager
def drawn_from(seed: str | None) -> Generator[None]:
    """Draw noise from a seed, or afresh where there is none."""
    before = os.environ.pop(noise.SEED, None)
    if seed is not None:
        os.environ[noise.SEED] = seed
        noise.drawn.pop(seed, None)
    try:
        yield
    finally:
        os.environ.pop(noise.SEED, None)
        if before is not None:
            os.environ[noise.SEED] = before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    with drawn_from(None if item.get_closest_marker("fresh_noise") else item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: Any) -> Generator[None, Any, Any]:
    if fixturedef.scope == "function":
        return (yield)
    with drawn_from(f"{fixturedef.baseid}::{fixturedef.argname}[{request.param_index}]"):
        return (yield)
