"""What maps of sparse real tables show as real is real, nine times in ten and more."""

from __future__ import annotations

from pathlib import Path

import pytest

import treetop as tt
from treetop.measure.facts import leaf_nodes
from treetop.noise import Key
from treetop.plan.file import read_plan
from treetop.release.measurements import surviving
from treetop.release.run import run_plan

from .conftest import HERE

RUNS = 4


@pytest.mark.parametrize("name", ["it_sardinia", "slovenia_2008"])
def test_nine_in_ten_flows_that_a_map_shows_as_real_are_real(name: str, data: Path, tmp_path: Path) -> None:
    text = (HERE / f"{name}.toml").read_text(encoding="utf-8").replace("epsilon = 1.0", "epsilon = 0.1")
    plan = tmp_path / "plan.toml"
    plan.write_text(text.replace("../../../shared/data", str(data)), encoding="utf-8")
    file = read_plan(plan)
    assert file.source is not None
    truth = tt.read_true_counts(file.plan, file.table(file.source), file.columns, file.count)
    there = set(map(tuple, leaf_nodes(file.plan.spine, truth).T.tolist()))
    shown = true = every = 0
    for run in range(RUNS):
        release = run_plan(file.plan, truth, Key(bytes([run] * 32)), {})
        real = release.nodes[:, surviving(release.measured, len(release.spine.levels))]
        shown, every = shown + real.shape[1], every + release.nodes.shape[1]
        true += sum(tuple(node) in there for node in real.T.tolist())
    assert 20 < shown < every / 2
    assert true >= 0.9 * shown
