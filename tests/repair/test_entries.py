"""Whatever numbers the public functions over compiled code are given, they answer or refuse: no process ends by it."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.graphs.rebalance import rebalance
from tests.processes import Server
from treetop.errors import NumberError
from treetop.noise import Key
from treetop.repair import Tree, certified, chebyshev, euclidean, isotonic, project_tree, relax_isotonic, whole_weights

TREE = Tree.from_levels([[0, 2]])
FAR = 2**62
KEY = Key(bytes(32))
WRONG: dict[str, Any] = {
    "a measurement that is not a number": lambda: rebalance([41.5, 22, float("nan")], 102, 100, seed=1),
    "an infinite measurement": lambda: rebalance([41.5, 22, float("inf")], 102, 100, seed=1),
    "a variance that is not a number": lambda: rebalance([41.5, 22], 102, float("nan"), seed=1),
    "a negative variance": lambda: rebalance([41.5, 22], 102, -1, seed=1),
    "a measurement far out": lambda: euclidean([-FAR, 22, 5], 102, "ascending", seed=1),
    "many that sum to too much": lambda: chebyshev([2**57] * 20, 102, "ascending", seed=1),
    "a parent far out": lambda: euclidean([1, 2], FAR, "ascending", seed=1),
    "a parent with a fraction": lambda: euclidean([1, 2], 2.5, "ascending", seed=1),  # type: ignore[arg-type]
    "a parent that is none": lambda: euclidean([1, 2], float("nan"), "ascending", seed=1),  # type: ignore[arg-type]
    "measurements with fractions": lambda: chebyshev([1.5, 2.5], 3, "ascending", seed=1),
    "measurements in words": lambda: chebyshev(["1", "2"], 3, "ascending", seed=1),
    "measurements in two dimensions": lambda: chebyshev([[1, 2], [3, 4]], 3, "ascending", seed=1),
    "an order that there is none of": lambda: chebyshev([1, 2], 3, order="upwards", seed=1),  # type: ignore[arg-type]
    "the least of all integers": lambda: isotonic([[np.iinfo(np.int64).min, 1]], 5),
    "an unsigned one": lambda: isotonic(np.array([[2**64 - 1, 1]], np.uint64), 5),
    "a bound for each of more rows": lambda: isotonic([[1, 2]], [1, 2, 3]),
    "a bound that is not a number": lambda: isotonic([[1, 2]], float("nan")),
    "real rows that are none": lambda: relax_isotonic([[1.0, float("nan")]], 5),
    "a real bound that is none": lambda: relax_isotonic([[1.0, 2.0]], float("nan")),
    "a tree of far measurements": lambda: project_tree(TREE, [-FAR, 1, 2], key=KEY),
    "a tree of the least of all integers": lambda: project_tree(TREE, [np.iinfo(np.int64).min, 1, 2], key=KEY),
    "a tree with a far total": lambda: project_tree(TREE, [1, 1, 2], total=FAR, key=KEY),
    "weights far out": lambda: project_tree(TREE, [1, 1, 2], np.array([2**64 - 1, 1], np.uint64), key=KEY),
    "counts of another shape": lambda: certified(TREE, [[1, 1, 0], [1, 1, 0]], [1, 1, 0]),
    "no weights": lambda: whole_weights([]),
}


@pytest.mark.parametrize("what", WRONG)
def test_numbers_that_compiled_code_cannot_take_are_refused(what: str) -> None:
    with pytest.raises(NumberError):
        WRONG[what]()


def test_weights_as_far_apart_as_floats_are_made_whole() -> None:
    assert whole_weights([1e-300, 1.0, 1e300]).min() == 1


FUZZ = """
    import warnings
    import numpy as np, pyarrow as pa
    from fractions import Fraction
    from treetop.errors import TreetopError
    from treetop.repair.least_squares import MeasuredLevel, least_squares
    from treetop.counts.graph_reader import Edges
    from treetop.counts.graph_reader import Nodes
    from treetop.counts.degree_projection import projected_degrees
    from treetop.repair._cumulative import relax_direct
    from treetop.measure.vectors import measured_groups
    from treetop.noise.gate import Gate
    from treetop.plan.group_plan import group_plan
    from treetop.plan.group_unit import GroupUnit
    from treetop.counts.group_reader import GroupSizes
    from treetop.domain.hierarchy import Hierarchy
    from treetop.noise.sum_noise import sum_margins
    from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key, NoiseStream
    from treetop.noise.sampler import sampler
    from treetop.privacy import Loss
    from treetop import repair

    warnings.simplefilter("ignore")
    random = np.random.default_rng(SEED)
    KEY = Key(bytes(32))
    ODD = [0, -1, 1, 2**31, 2**53, 2**62, -2**62, 2**63 - 1, -2**63, 2**64 - 1, 1e18, 1e300, -1e300, 0.5,
           float("nan"), float("inf"), -float("inf")]
    TYPES = [np.int64, np.int8, np.uint64, np.float64, np.float32, bool, object, "U3", np.complex128]
    NODES = Nodes.read(pa.table({"id": ["a", "b", "c"]}))
    PLACES = Hierarchy.flat(["east", "west"])
    PLAN = group_plan(PLACES, 3, GroupUnit("person", "join-leave"), Loss(epsilon=1), rows="histogram", number=9)
    LAWS = [DiscreteGaussian(Fraction(4)), DiscreteLaplace(Fraction(2)), DiscreteGaussian(Fraction(10**16))]

    def number():
        return ODD[random.integers(len(ODD))] if random.random() < 0.4 else int(random.integers(-50, 50))

    def array(ndim=None):
        ndim = int(random.integers(0, 4)) if ndim is None or random.random() < 0.1 else ndim
        shape = tuple(int(random.integers(0, 6)) for _ in range(ndim))
        size = int(np.prod(shape))
        values = [number() if random.random() < 0.3 else int(random.integers(-50, 50)) for _ in range(size)]
        kind = TYPES[random.integers(len(TYPES))] if random.random() < 0.4 else np.int64
        try:
            made = np.array(values, dtype=kind)
        except (ValueError, OverflowError, TypeError):
            made = np.array(values)
        made = made.reshape(shape)
        return made[..., ::-1] if ndim and random.random() < 0.1 else made

    def tree():
        sizes = np.cumsum([0, *random.integers(1, 4, 2)])
        try:
            return repair.Tree.from_levels([[0, 2], sizes.tolist()])
        except TreetopError:
            return repair.Tree.from_levels([[0, 2]])

    def many(node):
        return np.array([number() if random.random() < 0.2 else turn % 97 for _ in range(node.nodes)])

    def projected():
        node = tree()
        return repair.project_tree(node, many(node), None if random.random() < 0.7 else array(1), number(), key=KEY)

    ENTRIES = [
        lambda: repair.chebyshev(array(1), number(), "ascending", number()),
        lambda: repair.euclidean(array(1), number(), "ascending", number()),
        lambda: repair.isotonic(array(2), number() if random.random() < 0.5 else array(1)),
        lambda: repair.relax_isotonic(array(2), number()),
        projected,
        lambda: repair.relax_tree(tree(), array(1), None, number()),
        lambda: repair.certified(repair.Tree.from_levels([[0, 2]]), array(1), array(1), None, number()),
        lambda: repair.relax_cumulative(repair.Tree.from_levels([[0, 2]]), array(2), number(), most_steps=20),
        lambda: relax_direct(repair.Tree.from_levels([[0, 2]]), array(2), array(1), most_steps=20),
        lambda: repair.whole_weights(array(1)),
        lambda: repair.Tree(array(1)),
        lambda: repair.Tree.from_levels([array(1), array(1)]),
        lambda: repair.Tree.from_parents(array(1)),
        lambda: projected_degrees(NODES, Edges(array(1), array(1), True), number(), KEY),
        lambda: NoiseStream(LAWS[random.integers(3)], KEY).fill(array(), number()),
        lambda: sampler(LAWS[random.integers(3)]).draw(array().astype(np.uint64), array()),
        lambda: measured_groups(PLAN, GroupSizes(PLACES, array(2)), Gate(KEY), None).__enter__(),
        lambda: GroupSizes.from_rows(PLACES, array(1), array(1), array(1), largest=number()),
        lambda: least_squares([MeasuredLevel(np.zeros(1, int), array(1), array(1)),
                               MeasuredLevel(array(1), array(1), array(1))]),
        lambda: sum_margins(LAWS[random.integers(2)], array(1), Fraction(1, 20)),
    ]
    for turn in range(TURNS):
        entry = ENTRIES[turn % len(ENTRIES)]
        try:
            entry()
        except (TreetopError, ValueError, TypeError, ArithmeticError, IndexError, KeyError) as problem:
            pass
    print("done")
"""


def test_no_numbers_end_the_process(tmp_path: Path, processes: Server) -> None:
    """Thousands of odd arrays into every entry, in a process of its own: it must come to its end."""
    code = textwrap.dedent(FUZZ).replace("SEED", "7").replace("TURNS", "6000")
    done = processes.run(code, folder=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr[-2000:]
