"""What cards said of resolution in its first edition, in versions before only children were tested: put back here.

They say nothing of an edition in `plan.resolve`, and are held to these words, and to the intervals of then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treetop.card import words
from treetop.plan.plan import PurePlan
from treetop.plan.resolution import Resolution

FDR = (
    "from the least measurement up at which, of all children that are tested together, at most {value:g} % of the "
    "named are expected to be truly empty (Benjamini and Hochberg 1995)"
)
CAUTION = (
    "That at most {value:g} % of the named are truly empty is an expectation, over many nodes: of a single node, or "
    "of a few, it says little."
)
NAMED = (
    "A child was named only where its own measurement shows that it is not empty: {how}. An only child was named with "
    "its parent."
)


def as_first_edition(card: Mapping[str, Any], plan: PurePlan) -> dict[str, Any]:
    """Return a card, all but its files, in the words of then."""
    resolve = plan.resolve
    assert isinstance(resolve, Resolution)
    value = float(100 * (resolve.fdr or 0))
    how = resolve.words if resolve.fdr is None else FDR.format(value=value)
    before = {words.named(resolve): NAMED.format(how=how)}
    before |= dict.fromkeys(resolve.cautions, CAUTION.format(value=value))
    told = {name: [before.get(one, one) for one in card[name]] for name in ("post_processing", "caveats")}
    accuracy = dict(card["accuracy"])
    if "interval" in accuracy:
        coverage = accuracy["coverage"]
        tried = coverage if "twin" in coverage else None
        sentence = words.coverage(coverage["nominal"], tried)
        accuracy |= {"interval": words.INTERVAL, "coverage": {**coverage, "sentence": sentence}}
    return {**card, **told, "accuracy": accuracy}
