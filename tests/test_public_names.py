"""Tests of behaviour go through public names, so that the inside can move; tests of an algorithm may know its module.

What is public: `treetop`, `treetop.errors`, `treetop.cli`, and what some packages list in their `__all__`. Tests in the
folders of algorithms may import anything. The modules that are listed beside them still know the inside: the list gets
shorter, and no module is added to it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import treetop

TESTS = Path(__file__).parent
WHOLE = {"treetop", "treetop.errors", "treetop.cli"}
INSIDE = {path.stem for path in Path(treetop.__file__).parent.iterdir()} - {"cli", "errors"} - set(treetop.__all__)
LISTED = {
    f"treetop.{name}"
    for name in ("addons.studio", "advice", "card", "exporting", "ledger", "noise", "privacy", "repair")
}

ALGORITHMS = {
    "data": "readers of tables, and what they make of every byte",
    "engines": "where work is done, and what becomes of it when a worker dies",
    "estimates": "least squares over what was measured",
    "evaluate": "errors and coverage, and the comparison of mechanisms",
    "experiments": "the studies behind docs/results",
    "fit": "least squares over measured tables, non-negative fits and rounding",
    "facts": "what public facts leave possible, and by how much they bound it",
    "intervals": "bounds of nodes and of sums",
    "mechanisms": "what Treetop is compared with",
    "noise": "laws, samplers and keys",
    "parts": "releases larger than memory: which rows are read, and what is held",
    "planning": "how a plan is chosen",
    "privacy": "audits, which look behind every door",
    "repair": "repairs of one node, of blocks and of trees",
    "topdown": "the way down, and the tasks that it is cut into",
    "test_conditions.py": "the grammar of conditions",
    "test_counts.py": "counts as keys of integers",
    "test_gate.py": "the gate that noise goes through",
    "test_kernel.py": "how kernels are compiled and kept",
    "test_showing.py": "how values are shown in messages",
    "test_sorting.py": "sorting by several keys",
}
"""The folders and modules of tests that may know what they test from the inside, and what that is."""

KNOWING = {
    "real/test_shown.py",
    "cli/test_ask_adds_up.py",
    "graphs/test_degree_intervals.py",
    "graphs/test_theta.py",
    "graphs/test_worth.py",
    "groups/test_intervals.py",
    "benchmarks/test_peers.py",
    "export/test_statements.py",
    "card/test_checking.py",
    "card/test_content.py",
    "card/test_damage.py",
    "card/test_forged.py",
    "card/test_html.py",
    "card/test_forged_tables.py",
    "card/test_versions.py",
    "card/test_schema.py",
    "card/test_together.py",
    "cli/test_ask.py",
    "cli/test_estimate.py",
    "cli/test_plan_choosing.py",
    "cli/test_query.py",
    "cli/test_release_ledger.py",
    "cli/test_release_place.py",
    "graphs/test_degree_plans.py",
    "graphs/test_degrees.py",
    "graphs/test_graph.py",
    "graphs/test_planfile.py",
    "graphs/test_relations.py",
    "groups/test_card.py",
    "groups/test_plan.py",
    "groups/test_planfile.py",
    "groups/test_read.py",
    "groups/test_release.py",
    "ledger/test_book.py",
    "ledger/test_command.py",
    "ledger/test_composed.py",
    "planfile/test_describe.py",
    "planfile/test_fields.py",
    "planfile/test_fuzz.py",
    "planfile/test_reader.py",
    "planfile/test_reading.py",
    "properties/test_releases.py",
    "real/test_tables.py",
    "test_extensions.py",
    "test_margins.py",
    "test_names.py",
    "test_plan.py",
    "test_release.py",
    "test_unresolved.py",
}
"""Other modules that know the inside, and should not."""


def inside(path: Path) -> Iterator[str]:
    """The names that a module imports and that are not public."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("treetop.") and one.name not in WHOLE)
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "treetop":
            module = str(node.module)
            public = import_module(module).__all__ if module in LISTED else ()
            if module not in WHOLE:
                yield from (f"{module}.{one.name}" for one in node.names if one.name not in public)
            elif module == "treetop":  # a module of it that is imported by its name
                yield from (one.name for one in node.names if one.name in INSIDE)


def test_only_tests_of_algorithms_know_what_is_not_public() -> None:
    assert all((TESTS / name).exists() for name in ALGORITHMS)
    paths = {path.relative_to(TESTS).as_posix(): path for path in TESTS.rglob("test_*.py")}
    others = {name: path for name, path in paths.items() if name.split("/")[0] not in ALGORITHMS}
    found = {name: names for name, path in others.items() if (names := sorted(inside(path)))}
    new = {name: names for name, names in found.items() if name not in KNOWING}
    assert new == {}, "go through public names, or move the test to a folder of algorithms"
    assert KNOWING - found.keys() == set(), "take these off the list: they know nothing of the inside any more"
