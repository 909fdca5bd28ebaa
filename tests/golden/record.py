"""Digests of releases under a testing key: `python -m tests.golden.record` writes them.

`tables.json` has the digests of tables and plans, `cards.json` those of cards: a better sentence changes the second
alone. Tables are digested by content, so that another version of Arrow, which may write other bytes, gives the same
digest. Fields of a card that name the run (its id, its day, the software) are left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import treetop as tt
from treetop import Graph, Hierarchy, Loss, Spine, read_plan
from treetop.addons.lab.mechanisms.registry import MECHANISMS
from treetop.cli import main
from treetop.counts.cleaning import Cleaning
from treetop.counts.reading import read_counts
from treetop.measure.questions import Batch, measure, parse
from treetop.noise import Key

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLES = ROOT / "examples"
SHARED = ROOT.parent / "shared" / "data"
TABLES, CARDS = HERE / "tables.json", HERE / "cards.json"
CARD = "card.json"
KEY = "0f" * 32
SECRET = bytes.fromhex(KEY)
LOSS = Loss(epsilon=1, delta=1e-8)

Digests = dict[str, str]


def treetop(*arguments: object) -> str:
    """Run a command in this process, and return what it printed; one that fails is an error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            if leaving.code:
                raise RuntimeError(f"treetop {' '.join(map(str, arguments))}: {err.getvalue()}") from leaving
    return out.getvalue()


def sha256(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def of_table(path: Path) -> str:
    """The digest of what a Parquet file holds: names, types and values, whatever its bytes are."""
    table = pq.read_table(path)
    digest = hashlib.sha256(
        json.dumps(
            [[name, str(kind)] for name, kind in zip(table.column_names, table.schema.types, strict=True)]
        ).encode()
    )
    for column in table.columns:
        array = column.combine_chunks()
        array = array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array
        digest.update(json.dumps(array.to_pylist(), default=str).encode())
    return digest.hexdigest()


def of_card(path: Path) -> str:
    card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for run in ("id", "time", "date", "software"):
        card.pop(run, None)
    card["files"] = [{"path": file["path"], "rows": file["rows"]} for file in card["files"]]
    return sha256(json.dumps(card, sort_keys=True))


def of_folder(folder: Path) -> Digests:
    """The digest of each file of a release folder; that the page is that of its card is for `treetop check` to say."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".parquet":
            found[name] = of_table(path)
        elif name == CARD:
            found[name] = of_card(path)
        elif name == "plan.toml":
            # Without the bond to its card, which names the run.
            lines = path.read_text(encoding="utf-8").splitlines()
            found[name] = sha256("\n".join(line for line in lines if not line.startswith("# card_statement_")))
    return found


def release(plan: Path, *options: object, table: Path | None = None) -> Digests:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "release")
        named = () if table is None else (table,)
        treetop("release", plan, *named, "--out", out, "--testing-key", KEY, "--quiet", *options)
        treetop("check", out)
        return of_folder(out)


def changed(plan: Path, old: str = "", new: str = "", **sections: str) -> Path:
    """Copy a plan and the files beside it; add lines to some of its sections, and replace one text by another."""
    folder = Path(tempfile.mkdtemp())
    for file in plan.parent.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    text = plan.read_text(encoding="utf-8").replace(old, new)
    for section, lines in sections.items():
        head = f"[{section}]\n"
        text = text.replace(head, head + lines + "\n") if head in text else f"{text}\n{head}{lines}\n"
    (folder / plan.name).write_text(text, encoding="utf-8")
    return folder / plan.name


def example_cases() -> Iterator[tuple[str, Callable[[], Digests]]]:
    flights, alone = EXAMPLES / "flights" / "plan.toml", 'margins = "none"'
    yield "flights", lambda: release(changed(flights, spine=alone), "--nodes")
    yield "flights, measurements kept", lambda: release(changed(flights, spine=alone), "--keep-measurements")
    beside = {
        "margins": {},
        "margins, lower error": {"release": 'prefer = "lower-error"'},
        "margins, fdr": {"release": "resolve = { fdr = 0.05 }"},
        "margins, crossing": {
            "spine": 'margins = ["origin.state * destination.region", "origin.region * destination.state"]'
        },
    }
    for name, sections in beside.items():
        yield f"flights, {name}", lambda sections=sections: release(changed(flights, **sections))  # type: ignore[misc]
    variants = {
        "lower error": {"release": 'prefer = "lower-error"'},
        "fewer lost": {"release": 'prefer = "fewer-lost"'},
        "fdr": {"release": "resolve = { fdr = 0.05 }"},
        "sigmas": {"release": "resolve = { sigmas = 3 }"},
        "no intervals": {"release": "intervals = false"},
        "euclidean": {"repair": 'method = "euclidean"'},
        "exact accounting": {"loss": 'accounting = "exact"'},
        "through rho": {"loss": 'accounting = "zcdp"'},
        "bottom-heavy": {"loss": 'split = "bottom-heavy"'},
        "by nodes": {"loss": 'split = "by-nodes"'},
    }
    for name, sections in variants.items():
        every = {"spine": alone, **sections}
        yield f"flights, {name}", lambda every=every: release(changed(flights, **every))  # type: ignore[misc]
    for name in ("friendships", "users"):
        graph = EXAMPLES / "graph" / f"{name}.toml"
        yield name, lambda graph=graph: release(changed(graph, spine=alone), "--nodes")  # type: ignore[misc]
    yield "flights, in parts", lambda: release(flights, "--part", 500)
    yield "flights, out of core", lambda: release(flights, "--engine", "processes", "--memory", "300MB")
    merged = ('order = "destination-first"', 'order = "merged"')
    yield "flights, merged", lambda: release(changed(flights, *merged, spine=alone))
    yield "flights, merged, margins", lambda: release(changed(flights, *merged))
    yield "pupils", lambda: release(EXAMPLES / "pupils" / "plan.toml")
    yield (
        "pupils, fdr",
        lambda: release(changed(EXAMPLES / "pupils" / "plan.toml", release="resolve = { fdr = 0.05 }")),
    )
    yield "patients", lambda: release(EXAMPLES / "patients" / "top_down.toml")
    yield "patients, joint", lambda: release(EXAMPLES / "patients" / "plan.toml")
    yield "visits", lambda: release(visits())
    yield "visits, distinct", lambda: release(visits("distinct = true"))
    yield "visits, out of core", lambda: release(visits(), "--engine", "processes", "--memory", "300MB")
    for name in ("degrees", "theta"):
        plan = EXAMPLES / "graph" / f"{name}.toml"
        yield f"graph, {name}", lambda plan=plan: release(plan)  # type: ignore[misc]
    households = EXAMPLES / "households" / "plan.toml"
    yield "households", lambda: release(households)
    yield "households, by regions", lambda: release(changed(households, groups='public = "regions"'))
    yield "households, direct", lambda: release(changed(households, groups='form = "direct"'))


def visits(limits: str = "") -> Path:
    """A table of people with up to nine visits each, of which three count."""
    folder = Path(tempfile.mkdtemp())
    random = np.random.default_rng(7)
    person, town = random.integers(0, 700, 3000), random.integers(0, 12, 3000) ** 2 // 12
    rows = (f"p{one},t{where:02}" for one, where in zip(person, town, strict=True))
    (folder / "visits.csv").write_text("\n".join(["person,town", *rows]) + "\n", encoding="utf-8")
    towns = (f"r{number // 4},t{number:02}" for number in range(12))
    (folder / "towns.csv").write_text("\n".join(["region,town", *towns]) + "\n", encoding="utf-8")
    (folder / "plan.toml").write_text(
        f"""
[attributes.town]
hierarchy = "towns.csv"
levels = ["region", "town"]
[unit]
entity = "person"
id = "person"
contributions = 3
neighbours = "add-remove"
{limits}
[loss]
epsilon = 1
delta = 1e-8
[data]
source = "visits.csv"
""",
        encoding="utf-8",
    )
    return folder / "plan.toml"


def other_cases() -> Iterator[tuple[str, Callable[[], Digests]]]:
    """What has no folder: degrees, degrees by region, answers to questions, and the mechanisms that are compared."""
    yield "degrees", _degrees
    yield "degrees by region", _regional
    yield "questions", _questions
    yield "mechanisms", _mechanisms


def _graph(relation: str) -> Graph:
    folder = EXAMPLES / "graph"
    bounds: dict[str, Any] = {"edge": {}, "user-out": {"contributions": 10}, "node": {"degree_bound": 500}}
    cleaning = {"town": Cleaning(missing="missing")}
    return Graph(folder / "nodes.csv", folder / "edges.csv", relation, cleaning=cleaning, **bounds[relation])


def _degrees() -> Digests:
    found: Digests = {}
    relations: tuple[str, ...] = ("edge", "user-out", "node")
    for relation in relations:
        form: Any = "histogram" if relation == "user-out" else "cumulative"
        plan = tt.degree_plan(relation, "add-remove", LOSS, 30, form)
        released = tt.make_release(plan, _graph(relation), tt.RunOptions(testing_key=SECRET))
        number = np.zeros(31, np.int64)
        number[released.nodes[0]] = released.count
        table = {"degree": list(range(31)), "people": number.tolist(), "cumulative": number.cumsum().tolist()}
        found[relation] = sha256(json.dumps(table))
    return found


def _regional() -> Digests:
    places = Hierarchy.from_table(EXAMPLES / "graph" / "places.csv", ["region", "town"])
    plan = tt.regional_degree_plan(places, 30, "edge", LOSS)
    released = tt.make_release(plan, _graph("edge"), tt.RunOptions(columns={"place": "town"}, testing_key=SECRET))
    found: Digests = {}
    degree, town = released.nodes
    for level in ("total", "region", "town"):
        region = np.zeros(len(town), np.int64)
        if level != "total":
            region = places.ancestors(places.levels.index(level))[town]
        number = np.zeros((len(town), 31), np.int64)
        np.add.at(number, (region, degree), released.count)
        rows, size = np.nonzero(number)
        codes = ["total"] if level == "total" else places.codes[places.levels.index(level)].to_pylist()
        table = {"region": [codes[row] for row in rows], "size": size.tolist(), "groups": number[rows, size].tolist()}
        found[level] = sha256(json.dumps(table))
    return found


def _questions() -> Digests:
    file = read_plan(changed(EXAMPLES / "graph" / "users.toml", spine='margins = "none"'))
    asked = tuple(parse(text, file.plan.spine) for text in ("hobby=music", "hobby=sport", "height=160-189"))
    batch = Batch(file.plan.spine, asked, file.plan.unit, LOSS)
    table, spent = file.table(str(EXAMPLES / "graph" / "nodes.csv")), list[None]()
    answers = measure(
        batch, file.plan, table, columns=file.columns, before_measuring=lambda: spent.append(None), testing_key=SECRET
    )
    return {"answers": sha256(json.dumps(list(answers)))}


def _mechanisms() -> Digests:
    file = read_plan(EXAMPLES / "flights" / "plan.toml")
    spine = Spine(["destination.region", "origin.region", "destination.division"], file.plan.spine.attributes)
    counts = read_counts(file.table(str(EXAMPLES / "flights" / "flights.csv")), spine, file.columns, file.count)
    found = {}
    for name, kind in MECHANISMS.items():
        estimate = kind(spine, file.plan.unit, LOSS).run(counts, Key(SECRET))
        values = (
            [estimate.keys[word].tolist() for word in range(len(estimate.keys))],
            np.round(estimate.value, 6).tolist(),
        )
        found[name] = sha256(json.dumps(values))
    return found


def real_cases() -> Iterator[tuple[str, Callable[[], Digests]]]:
    """Every real table by the plan files of tests/real that name their source."""
    for plan in sorted((ROOT / "tests" / "real").glob("[!.]*.toml")):
        if "\nsource = " in plan.read_text(encoding="utf-8"):
            yield f"real: {plan.stem}", lambda plan=plan: as_it_was(plan)  # type: ignore[misc]


def as_it_was(plan: Path) -> Digests:
    """Release with the spine alone, and an epsilon that is kept through rho: what a plan was before there was more."""
    text = plan.read_text(encoding="utf-8").replace("[spine]\n", '[spine]\nmargins = "none"\n')
    if "\ndelta = " in text and "\naccounting = " not in text:
        text = text.replace("[loss]\n", '[loss]\naccounting = "zcdp"\n')
    with tempfile.NamedTemporaryFile("w", suffix=".toml", prefix=".", dir=plan.parent, encoding="utf-8") as beside:
        beside.write(text)  # beside the plan, so that the paths in it lead where they did
        beside.flush()
        return release(Path(beside.name))


def cases() -> Iterator[tuple[str, Callable[[], Digests]]]:
    yield from example_cases()
    yield from other_cases()
    if SHARED.is_dir():
        yield from real_cases()


def is_real(name: str) -> bool:
    return name.startswith("real: ")


def split(digests: dict[str, Digests]) -> tuple[dict[str, Digests], dict[str, str]]:
    """Return the digests of tables and plans, and those of cards."""
    tables = {name: {file: sha for file, sha in case.items() if file != CARD} for name, case in digests.items()}
    return tables, {name: case[CARD] for name, case in digests.items() if CARD in case}


def write(path: Path, digests: dict[str, Any], named: list[str]) -> None:
    known = json.loads(path.read_text(encoding="utf-8")) if named else {}
    path.write_text(json.dumps(known | digests, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    chosen = sys.argv[1:]
    tables, cards = split({name: make() for name, make in cases() if name in (chosen or [name])})
    write(TABLES, tables, chosen)
    write(CARDS, cards, chosen)
