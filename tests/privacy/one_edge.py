"""What one edge of a list can show in a release of degrees: small graphs, every list, every edge that it may have.

Person 0 has the list; two others have lists as well, so that degrees meet. Which edges of a list are kept is decided by
the key, and the loss of such a mixture is at most the largest of its pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import permutations

import numpy as np

import treetop as tt
from treetop.card.meaning import meaning
from treetop.counts.graph_reader import Edges, Nodes
from treetop.measure import readers
from treetop.noise import Key
from treetop.plan.degree_unit import Degree, Form

from . import dwellings, small_graphs
from .audits import Audit, audit
from .divergence import TOLERANCE, loss_of
from .small_graphs import PLACES, Pairs

PEOPLE = tuple(range(4))
OWN: Pairs = ((0, 1), (0, 2), (0, 3))
OTHERS: Pairs = ((1, 2), (1, 3), (2, 1), (3, 0))
KEYS = [Key(bytes([number]) * 32) for number in range(3)]


def _edges(pairs: Pairs) -> Edges:
    ends = [np.array([edge[side] for edge in pairs], np.int32) for side in (0, 1)]
    return Edges(ends[0], ends[1], directed=True)


def _subsets(pairs: Pairs) -> list[Pairs]:
    return [tuple(one for bit, one in enumerate(pairs) if mask >> bit & 1) for mask in range(1 << len(pairs))]


def _changed_by_one_edge() -> Iterator[tuple[Pairs, Pairs]]:
    """Graphs with one edge of person 0 less, and with one that leads elsewhere."""
    for rest in _subsets(OTHERS):
        for own in _subsets(OWN):
            yield from ((own + rest, tuple(one for one in own if one != less) + rest) for less in own)
            for one, other in permutations(OWN, 2):
                if one in own and other not in own:
                    yield own + rest, (*(edge for edge in own if edge != one), other, *rest)


def _stated(plan: tt.Plan) -> float:
    """What the card says of one edge."""
    row = next(row for row in meaning(plan) if row["units"] is None)
    said: float = row["epsilon"] if plan.loss.definition == "pure" else row["rho"]
    return said


@audit
def the_loss_of_one_edge(degree: Degree, form: Form, loss: tt.Loss, most: int | None, regions: bool) -> str | None:
    """Compare what the card says of one edge with what it can show at most."""
    nodes = Nodes.read(small_graphs.people(PEOPLE), "id", ["town"])
    if regions:
        plan = tt.regional_degree_plan(PLACES, 3, "user-out", loss, True, form, degree=degree, contributions=most)
    else:
        plan = tt.degree_plan("user-out", "add-remove", loss, 3, form, degree=degree, contributions=most)
    worst = 0.0
    for key in KEYS:

        @cache
        def counted(pairs: Pairs, key: Key = key) -> object:
            if not regions:
                return readers.degree_cells(plan, nodes, _edges(pairs), key)
            return readers.regional_sizes(plan, nodes, _edges(pairs), {"place": "town"}, key)

        for one, other in _changed_by_one_edge():
            here, there = counted(one), counted(other)
            if not regions:
                spent = loss_of([(plan.levels[1].law, here - there)])  # type: ignore[operator]
            else:
                spent = dwellings.loss_between(plan, here, there)  # type: ignore[arg-type]
            worst = max(worst, float(spent))
    if worst > _stated(plan) * (1 + TOLERANCE):
        return f"one edge shows {worst:.4g}, and the card says {_stated(plan):.4g}"
    return None


PURE, RHO = tt.Loss(epsilon=1), tt.Loss(rho=1)


def edge_audits() -> dict[str, Audit]:
    """The audits of the card's row about one edge of a list."""
    return {
        "one edge, in, cut to 2": partial(the_loss_of_one_edge, "in", "histogram", PURE, 2, False),
        "one edge, in, cut to 2, rho": partial(the_loss_of_one_edge, "in", "cumulative", RHO, 2, False),
        "one edge, total": partial(the_loss_of_one_edge, "total", "histogram", RHO, 2, False),
        "one edge, total, cut to 1": partial(the_loss_of_one_edge, "total", "cumulative", PURE, 1, False),
        "one edge, out": partial(the_loss_of_one_edge, "out", "histogram", PURE, None, False),
        "one edge, by region": partial(the_loss_of_one_edge, "in", "histogram", RHO, 2, True),
    }
