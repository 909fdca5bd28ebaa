"""The model of costs finds what made the measurements, and says what it is not."""

from __future__ import annotations

import pytest

from benchmarks.cost_model import Taken, fit, say


def taken(records: int, leaves: int, workers: int = 2) -> Taken:
    """What a made-up program takes: 8 s, 400 ns a record and 5 us a leaf, of which 3 s and 2 us a leaf alone."""
    processor, alone = 8 + 4e-7 * records + 5e-6 * leaves, 3 + 2e-6 * leaves
    return Taken(records, leaves, alone + (processor - alone) / workers, processor, workers, 3e8 + 250 * leaves)


SIZES = [taken(10**7, 6 * 10**5), taken(10**8, 5 * 10**6), taken(10**9, 3 * 10**7)]


def test_it_finds_what_made_the_measurements() -> None:
    model = fit(SIZES)
    assert model.processor.at(10**10, 10**9) == pytest.approx(8 + 4000 + 5000)
    assert model.serial.at(10**10, 10**9) == pytest.approx(3 + 2000)
    assert model.seconds(10**10, 10**9, 100) == pytest.approx(2003 + (9008 - 2003) / 100)
    assert model.driver.at(0, 10**9) == pytest.approx(3e8 + 2.5e11)


def test_nothing_costs_less_than_nothing() -> None:
    model = fit(
        [Taken(n, n // 10, 1.0 + n * 1e-7, 1.5 + n * 1.9e-7, 2, 1e9 - n) for n in (10**6, 2 * 10**6, 4 * 10**6)]
    )
    for line in (model.processor, model.serial, model.driver):
        assert min(line.start, line.record, line.leaf) >= 0


def test_two_sizes_are_no_model_and_a_prediction_is_called_one() -> None:
    with pytest.raises(ValueError, match="three sizes"):
        fit(SIZES[:2])
    *_, last = say(fit(SIZES), SIZES, 10**10, 10**9, 160, 1.5)
    assert last.startswith("Prediction, not measured:")
