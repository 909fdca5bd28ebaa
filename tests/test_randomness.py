"""Where the sources take fresh randomness, and why: everything else repeats with the key or the measurements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import treetop

SOURCES = Path(treetop.__file__).parent
FRESH = {"secrets", "random", "uuid", "urandom", "getrandom", "default_rng", "fresh", "SystemRandom", "RandomState"}
"""Modules and names that give other values in each process."""

ALLOWED = {
    "card/run_info.py": "the name of a release",
    "cli/terminal.py": "a mark that no text can hold",
    "addons/lab/compare.py": "the key of the noise of a comparison, which is not published",
    "addons/clusters/dask.py": "the name of a run",
    "addons/clusters/spark.py": "names of files, and the password of a session",
    "addons/clusters/task_files.py": "the seal of task files",
    "counts/codebook.py": "the key of a hash table, which finds the same leaves with any key",
    "ledger/_book.py": "the name of a ledger, and of its entries",
    "noise/gate.py": "the key of the noise",
    "noise/keystream.py": "the key of the noise",
    "addons/studio/app.py": "names of running work",
    "addons/studio/forms.py": "names of forms",
    "addons/studio/guard.py": "the password of the studio",
}
SEEDED = {"addons/studio/made_up.py": "default_rng of a seed from the spine"}


def _fresh(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] in FRESH)
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")[0]
            yield from (name.name for name in node.names if module in FRESH or name.name in FRESH)
        elif isinstance(node, ast.Attribute) and node.attr in FRESH:
            yield node.attr


@cache
def _files() -> dict[str, ast.Module]:
    paths = sorted(SOURCES.rglob("*.py"))
    return {path.relative_to(SOURCES).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def test_fresh_randomness_is_for_keys_names_and_passwords_only() -> None:
    found = {name for name, tree in _files().items() if any(_fresh(tree))}
    assert found == {*ALLOWED, *SEEDED}, "say why here, or take the seed as an argument"


KEYS = ("seed", "key", "testing_key")
OPTIONAL = {
    ("noise/gate.py", "testing_key"), ("publishing/releasing.py", "testing_key"),
    ("measure/questions.py", "testing_key"),  # these are the keys of the noise
    ("measure/measure.py", "key"),  # the key of the whole run, or a subkey
    ("measure/readers.py", "key"),  # without it no edge is left out
}  # fmt: skip
"""The arguments for a key that may be left out."""


def test_no_seed_or_key_can_be_left_out_for_a_fresh_one() -> None:
    found = set()
    for name, tree in _files().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):  # a field of options
                optional = isinstance(node.value, ast.Constant) and node.value.value is None
                found |= {(name, node.target.id)} if optional and node.target.id in KEYS else set()
            if not isinstance(node, ast.FunctionDef):
                continue
            last = [*node.args.posonlyargs, *node.args.args][-len(node.args.defaults) :]
            pairs = [*zip(last, node.args.defaults, strict=False)]
            pairs += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)  # type: ignore[arg-type]
            for argument, value in pairs:
                if argument.arg in KEYS and isinstance(value, ast.Constant):
                    found |= {(name, argument.arg)} if value.value is None else set()
    assert found == OPTIONAL


def _sets(tree: ast.AST) -> Iterator[int]:
    """Loops over a set that is made on the spot: of texts, another order in every process."""
    for node in ast.walk(tree):
        loops = []
        if isinstance(node, ast.For):
            loops = [node.iter]
        elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
            loops = [part.iter for part in node.generators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple"):
            loops = node.args
        for one in loops:
            made = isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in ("set", "frozenset")
            if made or isinstance(one, ast.Set | ast.SetComp):
                yield one.lineno


def test_nothing_depends_on_the_order_of_a_set() -> None:
    assert [f"{name}:{line}" for name, tree in _files().items() for line in _sets(tree)] == []


@pytest.mark.parametrize(
    "source",
    ["import secrets", "from os import urandom", "os.urandom(8)", "np.random.default_rng()", "from uuid import uuid4"],
)
def test_the_search_finds_fresh_randomness(source: str) -> None:
    assert list(_fresh(ast.parse(source)))
