"""A loss as text: pasted or filled in, it is read back as the plan that it came from."""

from __future__ import annotations

import tomllib
from fractions import Fraction

import pytest

import treetop as tt
from treetop._util.numbers import Number
from treetop.advice._fill_in import filled_in, loss_toml
from treetop.errors import LossError, PlanFileError
from treetop.plan.workload import SPLITS, named_split

LOSSES = [tt.Loss(epsilon=0.5, delta=1e-9), tt.Loss(epsilon=2), tt.Loss(rho=Fraction(1, 3))]
TITLE = 'title = "A [loss] of its own"\n'
FILES = {
    "none": TITLE,
    "last": f"{TITLE}[loss]\nepsilon = 1\nsplit = {{ sex = 1 }}\n",
    "first": f"[loss] # asked\n# why\nrho = 1\n\n[unit]\n{TITLE}",
    "table": f"[loss]\nepsilon = 1\n[loss.split]\nsex = 1\n\n[unit]\n{TITLE}",
    "apart": f"[loss.split]\nsex = 1\n[unit]\n{TITLE}[loss]\nepsilon = 1\n",
    "other": f"[loss]\nepsilon = 1\nnote = 'kept'\n[unit]\n{TITLE}",
}


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.definition)
@pytest.mark.parametrize("split", ["uniform", "weights"])
@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_an_answer_that_is_filled_in_is_the_only_change(
    spine: tt.Spine, trip: tt.Unit, loss: tt.Loss, split: str, text: str
) -> None:
    weights: dict[str, Number] = {"place.state": 0.1, "sex": Fraction(2, 7), "place.county": 3}
    plan = tt.Plan(spine, trip, loss, split="uniform" if split == "uniform" else weights)
    before, after = tomllib.loads(text), tomllib.loads(filled_in(text, plan, "plan.toml"))
    answer = tomllib.loads(loss_toml(plan))["loss"]
    kept = {name: entry for name, entry in before.get("loss", {}).items() if name == "note"}
    assert after == {**before, "loss": {**kept, **answer}}
    assert set(answer) == {name for name in ("epsilon", "delta", "rho") if getattr(loss, name)} | {"split"}


def test_comments_stay(spine: tt.Spine, trip: tt.Unit) -> None:
    filled = filled_in(FILES["first"], tt.Plan(spine, trip, LOSSES[0]), "plan.toml")
    assert filled.startswith("[loss] # asked\n# why\nepsilon = 0.5\ndelta = 1e-9\n")


def test_a_split_stands_after_its_section(spine: tt.Spine, trip: tt.Unit) -> None:
    plan = tt.Plan(spine, trip, LOSSES[1], split={"place.state": 1, "sex": 2, "place.county": 3})
    split = '[loss.split]\n"place.state" = 1\nsex = 2\n"place.county" = 3\n'
    assert filled_in(FILES["first"], plan, "p") == f"[loss] # asked\n# why\nepsilon = 2\n\n{split}\n[unit]\n{TITLE}"
    assert filled_in(FILES["none"], plan, "p") == f"{TITLE}\n[loss]\nepsilon = 2\n\n{split}"


def test_what_cannot_be_filled_in_is_not(spine: tt.Spine, trip: tt.Unit) -> None:
    for text in ("loss.epsilon = 1\n", "loss = { epsilon = 1 }\n"):
        with pytest.raises(PlanFileError, match="plan.toml: .* change it in an editor"):
            filled_in(text, tt.Plan(spine, trip, LOSSES[0]), "plan.toml")


def test_every_name_of_a_split_is_one_and_others_are_refused(spine: tt.Spine, trip: tt.Unit) -> None:
    for name in SPLITS:
        split = named_split(name, spine, trip, LOSSES[0])
        plan = tt.Plan(spine, trip, LOSSES[0], split=split)
        assert plan.spent == plan.budget > LOSSES[0].budget
    with pytest.raises(LossError, match="did you mean 'by-nodes'"):
        named_split("by-node", spine, trip, LOSSES[0])
