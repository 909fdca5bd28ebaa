"""The page of results, and the same as text: what the paper says, what was measured, figures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.loss_split.claim import Claim
from experiments.loss_split.claims import claims
from experiments.loss_split.study import Study

HEAD = """\
# Dividing the loss over levels: the paper's experiments again

Written by `python -m experiments.loss_split`. What follows for a steward is in
[Choosing epsilon](../choosing-epsilon.md).

Ko, Ziani and Fioretto ("Optimal Allocation of Privacy Budget on Hierarchical Data Release") divide an epsilon over a
state, its tracts and its blocks so that the total mean squared error is least. Their noise is Laplace with one person
more or less as neighbours; no count is released below zero; with consistency, tracts are then moved to the state's
count and blocks to their tract's by least squares (program 8). They have Wyoming: 1 state, 128 tracts, 20,975
blocks. Its blocks are not at hand here, so the main tree has its shape and is made up; two real states stand beside it.

"""

NOTES = """\
Every division is found from the prior and tried on the truth. Each division of each loss is released {runs} times,
those of figure 5 {weight_runs} times, and Treetop's own {engine_runs} times. Shares are dealt out in {tracts} tracts of
each population, drawn at random. Bias and variance are summed over nodes, with what is due to the finite number of
releases taken out. Seeds are fixed: a second run gives the same numbers.
"""


def render(studies: Sequence[Study]) -> str:
    """Return the claims and their tables, as Markdown."""
    judged = list(claims(studies))
    lines = ["## In short", "", "| | the paper says | here |", "|---|---|---|"]
    lines += [f"| {place} | {claim.title} | {_word(claim)} |" for place, claim in enumerate(judged, start=1)]
    lines += ["", "## Claim by claim", ""]
    for place, claim in enumerate(judged, start=1):
        lines += [f"### {place}. {claim.title}", "", f"**{_word(claim)}.** {claim.verdict}", "", *claim.table, ""]
    return "\n".join(lines)


def write(studies: Sequence[Study], page: Path, figures: Mapping[Path, str]) -> None:
    """Write the page."""
    size = studies[0].size
    lines = [HEAD + "| population | people | tracts | blocks | empty blocks | |", "|---|---:|---:|---:|---:|---|"]
    for study in studies:
        (people,), tracts, blocks = study.tree.truth.levels
        empty = f"{(blocks == 0).mean():.0%}"
        lines.append(
            f"| {study.tree.title} | {people:,} | {len(tracts):,} | {len(blocks):,} | {empty} | {study.tree.about} |"
        )
    numbers = {name: getattr(size, name) for name in ("runs", "weight_runs", "engine_runs", "tracts")}
    lines += ["", NOTES.format(**numbers), render(studies), "## Figures", ""]
    for file, caption in figures.items():
        beside = Path(os.path.relpath(file, page.parent)).as_posix()
        lines += [f"**{caption}**", "", f"![{caption}]({beside})", ""]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _word(claim: Claim) -> str:
    return {True: "Holds", False: "Does not hold", None: "In part"}[claim.holds]
