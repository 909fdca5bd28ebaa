"""The layer check: every package of `src/treetop` imports only from those before it.

The core ends with `publishing`. It imports no add-on: it loads one by the name that a registry holds, on first use.
Only `cli` names flags of the command line. A module whose name begins with an underscore is for its own package alone.

An import counts wherever it stands: inside a function and under `TYPE_CHECKING` as well. Inside functions only the edge
(`treetop/__init__.py`, `cli`) imports from the package, so that `treetop --help` starts at once; elsewhere a lazy
import would be a way around a cycle. There are no exceptions.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"

LAYERS = (
    "errors",
    "_util",
    "noise",
    "engine",
    "io",
    "domain",
    "privacy",
    "fit",
    "ledger",
    "counts",
    "inspection",
    "repair",
    "plan",
    "card",
    "measure",
    "release",
    "checking",
    "advice",
    "exporting",
    "publishing",
    "addons.clusters",
    "addons.lab",
    "addons.pages",
    "addons.map",
    "addons.site",
    "addons.studio",
    "cli",
)
"""From the ground up."""

FOLDERS = {layer.split(".")[0] for layer in LAYERS} | {"examples", "__pycache__"}

EDGE = ("cli", "__init__", "__main__")
"""What may import from anywhere, and inside functions."""

PUBLIC = ("plan", "card")
"""Packages that private counts cannot reach."""
DESCRIPTIONS = ("cleaning", "constraint_reader", "graph_reader", "group_reader")
"""Modules of `counts` that these may import, for what they describe: public facts, graphs, lists of groups."""

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
FOREIGN = {"--conf", "--protocol"}
"""Flags of Spark and Dask, which are named to those who start them."""


def findings(source: Path = SOURCE) -> Iterator[str]:
    """Yield what stands where it should not, one line each."""
    package = source / "treetop"
    for path in sorted(package.iterdir()):
        if path.suffix == ".py" and path.stem not in ("errors", *EDGE):
            yield f"{path.name}: a loose module: give it a place in one of the layers"
        if path.name not in FOLDERS and any(path.glob("**/*.py")):
            yield f"{path.name}/: not a layer: name it in {Path(__file__).name}, at its place in the order"
    for path in sorted(package.rglob("*.py")):
        own = _layer(path.relative_to(package).with_suffix("").parts)
        if own not in EDGE:
            yield from _of_module(path, own, package)
            yield from _flags(path, package)


def _flags(path: Path, package: Path) -> Iterator[str]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for flag in set(FLAG.findall(line)) - FOREIGN:
            yield f"{path.relative_to(package).as_posix()}:{number}: names {flag}: name the argument, in backticks"


def _of_module(path: Path, own: str, package: Path) -> Iterator[str]:
    where = path.relative_to(package).as_posix()
    for line, target, inside in _imports(ast.parse(path.read_text(encoding="utf-8"))):
        other = _layer(tuple(target.split(".")[1:]))
        if inside:
            yield f"{where}:{line}: imports {target} inside a function"
        if other != own and (other not in LAYERS or LAYERS.index(other) >= LAYERS.index(own)):
            yield f"{where}:{line}: {own} is below {other}, and imports {target}"
        if other != own and any(part.startswith("_") for part in target.split(".")[2:]):
            yield f"{where}:{line}: {target} is for {other} alone"
        if own in PUBLIC and other == "counts" and target.split(".")[2] not in DESCRIPTIONS:
            yield f"{where}:{line}: {own} is public, and {target} holds or reads private counts"


def _layer(parts: tuple[str, ...]) -> str:
    """Return the layer of a module that is given by the parts of its path below `treetop`."""
    return ".".join(parts[: 2 if parts[:1] == ("addons",) else 1]) or "__init__"


def _imports(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield every import of the package: its line, the module, and whether it stands inside a function."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            bare = node.module == "treetop"
            own = [f"{node.module}.{alias.name}" for alias in node.names if bare or alias.name.startswith("_")]
            names = own if bare else [node.module, *own]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.split(".")[0] == "treetop":
                yield node.lineno, name, id(node) in inside


if __name__ == "__main__":
    found = list(findings())
    sys.stdout.write("".join(f"{one}\n" for one in found))
    sys.exit(1 if found else 0)
