"""Releases in parts: every answer is that of one file, less is read, and `check` finds all that it finds there."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.commands import said
from tests.engines.descents import cut_small
from tests.forging import relist
from treetop._util import system as memory
from treetop.checking import _counting as counting
from treetop.checking.check import check_folder
from treetop.errors import ReleaseError, TreetopError
from treetop.exporting import any_table as streamed
from treetop.measure import level as gathered
from treetop.release import run
from treetop.release import shards as cutting
from treetop.release.folder import _shards as files
from treetop.release.folder import file_sha256
from treetop.release.release import Release

KEY = bytes(range(32))
TOWNS = [f"{a}{b}{c}" for a in "ZABCDE" for b in "312" for c in "wxyz"]
PLACE = tt.Hierarchy.from_prefixes(TOWNS, widths=[1, 2], levels=["r", "d", "t"])
ENDS = {"origin": PLACE, "destination": PLACE}
IN_TURN = tt.Spine.destination_first(**ENDS)
MERGED = tt.Spine(["destination.r * origin.r", "destination.d", "origin.d * destination.t", "origin.t"], ENDS)
UNIT, LOSS = tt.Unit("trip", neighbours="replace"), tt.Loss(rho=2)
FACTS = {"origin.r": tt.Fact(invariant=True), "origin.d": tt.Fact(at_most={"A1": 900})}
PLANS: Mapping[str, dict[str, Any]] = {
    "spine alone": {"spine": IN_TURN, "margins": "none"},
    "margins": {"spine": IN_TURN},
    "merged": {"spine": MERGED},
    "facts": {"spine": IN_TURN, "facts": FACTS},
    "no intervals": {"spine": IN_TURN, "margins": "none", "confidence": None},
    "total measured": {"spine": IN_TURN, "margins": "none", "unit": tt.Unit("trip", neighbours="add-remove")},
}
PART = 100


def trips(rows: int = 4000) -> pa.Table:
    rng = np.random.default_rng(3)
    ends = [np.array(TOWNS)[(rng.zipf(1.3, rows) * step) % len(TOWNS)] for step in (5, 7)]
    return pa.table(dict(zip(("origin", "destination"), ends, strict=True)))


def plan_of(kind: str) -> tt.Plan:
    options = {"unit": UNIT, **PLANS[kind]}
    return tt.Plan(loss=LOSS, **options)


@pytest.fixture(autouse=True)
def few_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep all measurements of the first levels only, as large tables do."""
    monkeypatch.setattr(run, "FEW_NODES", 120)
    monkeypatch.setattr(cutting, "FEW_NODES", 120)
    monkeypatch.setattr(counting, "FEW_NODES", 120)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Every release in one file, and in parts."""
    made = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, "FEW_NODES", 120)
        patched.setattr(cutting, "FEW_NODES", 120)
        for kind in PLANS:
            folder = tmp_path_factory.mktemp("parts")
            release = tt.make_release(plan_of(kind), trips(), tt.RunOptions(testing_key=KEY))
            release.save(folder / "one", nodes=True)
            release.save(folder / "many", nodes=True, part=PART)
            made[kind] = folder / "one", folder / "many"
    return made


@pytest.fixture(params=list(PLANS))
def both(request: pytest.FixtureRequest, folders: dict[str, tuple[Path, Path]]) -> tuple[Release, Release]:
    one, many = folders[request.param]
    return tt.Release.load(one), tt.Release.load(many)


@pytest.fixture
def many(folders: dict[str, tuple[Path, Path]], tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(folders["margins"][1], tmp_path / "many"))


CONDITIONS: list[dict[str, str]] = [
    {},
    {"origin": "A"},
    {"origin": "Z3w"},
    {"origin": "A1", "destination": "Z"},
    {"origin": "C2x", "destination": "Z3y"},
]
LEVELS = [("r",), ("origin.t",), ("destination.d", "origin.r"), ("t",)]


def test_every_answer_is_that_of_one_file_and_nothing_is_held(both: tuple[Release, Release]) -> None:
    one, many = both
    assert len(one.shards) == 1 and len(many.shards) > 3
    assert (repr(one), one.total, one.leaves) == (repr(many), many.total, many.leaves)
    for codes in CONDITIONS:
        ours, theirs = many.where(**codes), one.where(**codes)
        assert (ours.total, ours.unresolved_total) == (theirs.total, theirs.unresolved_total), codes
        if one.confidence is not None:
            assert many.interval(**codes) == one.interval(**codes), codes
        for levels in LEVELS if len(codes) < 2 else LEVELS[:2]:
            assert ours.table(levels).equals(theirs.table(levels)), (codes, levels)
    for codes in CONDITIONS[:2]:
        ours, theirs = many.where(**codes), one.where(**codes)
        for level in (None, "total", *one.spine.splits):
            expected = theirs.level(level)
            assert ours.level(level).equals(expected), (codes, level)
            assert pa.concat_tables(ours.batches(level)).combine_chunks().equals(expected)
    assert many.interval(0.5, origin="A1") == one.interval(0.5, origin="A1") if one.confidence else True
    assert all(type(many.__dict__[name]).__name__ == "_Later" for name in ("count", "evidence"))


def test_who_asks_for_all_arrays_gets_them(both: tuple[Release, Release]) -> None:
    one, many = both
    assert np.array_equal(one.nodes, many.nodes) and np.array_equal(one.count, many.count)
    assert one.records().equals(many.records())
    if one.confidence is None:
        return
    for ours, theirs in zip(many.intervals, one.intervals, strict=True):
        for end in ("lower", "upper", "absent"):
            assert np.array_equal(getattr(ours, end), getattr(theirs, end))
    assert many.measurements.table().equals(one.measurements.table())
    assert many.measured.measurements.table().equals(one.measurements.table())


@pytest.mark.parametrize("kind", list(PLANS))
def test_a_folder_in_parts_is_verified_and_can_be_saved_again(
    kind: str, folders: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    wrong = [verdict for verdict in tt.check(folders[kind][1]) if verdict.findings]
    assert not wrong
    tt.Release.load(folders[kind][1]).save(tmp_path / "again", nodes=True)
    assert tables(tmp_path / "again") == tables(folders[kind][1])


@pytest.mark.parametrize("to", ["csv", "od", "skmob", "qgis", "records"])
def test_exports_are_those_of_one_file(
    to: str, folders: dict[str, tuple[Path, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed, "ROWS", 64)
    written = []
    for number, folder in enumerate(folders["margins"]):
        done = tt.export(folder, to, tmp_path / str(number))
        content = pq.read_table(done.files[0]) if to == "records" else [file.read_bytes() for file in done.files]
        written.append((content, done.rows, done.total, done.notes))
    assert written[0] == written[1]


def test_a_part_of_the_codes_reads_a_part_of_the_rows(
    folders: dict[str, tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    plain = files.read_groups

    def counted(file: Any, groups: list[int], columns: list[str]) -> pa.Table:
        read.extend(groups)
        return plain(file, groups, columns)

    monkeypatch.setattr(files, "read_groups", counted)
    release = tt.Release.load(folders["no intervals"][1])
    assert isinstance(release.shards, files.StoredShards)
    groups = len(release.shards.index.rows)

    def needed(ask: Callable[[], object]) -> int:
        read.clear()
        ask()
        return len(read)

    assert groups > 20
    assert needed(release.query) == needed(lambda: release.table("destination.r")) == 0
    assert needed(lambda: release.query(destination="Z")) == 0
    assert 0 < needed(lambda: release.query(destination="A1x")) < groups / 4
    assert 0 < needed(lambda: release.where(destination="A1x").table()) < groups / 4
    # Groups that lie within the codes are known by their sums; those at the ends are read.
    assert needed(lambda: release.query(destination="Z3")) < needed(lambda: release.where(destination="Z3").nodes)
    assert needed(lambda: release.table("origin.t")) == groups


def tables(folder: Path) -> dict[str, str]:
    found = sorted(folder.rglob("*.parquet"))
    return {file.relative_to(folder).as_posix(): file_sha256(file) for file in found}


@pytest.mark.parametrize("kind", ["spine alone", "margins"])
def test_engines_and_cuts_give_the_same_bytes(
    kind: str, folders: dict[str, tuple[Path, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_small(monkeypatch)
    monkeypatch.setattr(gathered, "IN_MEMORY", 100)
    release = tt.make_release(
        plan_of(kind), trips(), tt.RunOptions(testing_key=KEY, engine=tt.Engine("processes", workers=1))
    )
    assert isinstance(release.count.base, np.memmap)
    release.save(tmp_path / "many", nodes=True, part=PART)
    assert tables(tmp_path / "many") == tables(folders[kind][1])


def test_small_releases_and_those_that_need_all_of_it_are_one_file(tmp_path: Path) -> None:
    release = tt.make_release(plan_of("spine alone"), trips(), tt.RunOptions(testing_key=KEY))
    release.save(tmp_path / "small")
    resolved = tt.Plan(IN_TURN, UNIT, LOSS, resolve={"fdr": 0.1}, margins="none")
    tt.make_release(resolved, trips(), tt.RunOptions(testing_key=KEY)).save(tmp_path / "resolved", part=10)
    kept = tt.make_release(plan_of("spine alone"), trips(), tt.RunOptions(testing_key=KEY, keep_measurements=True))
    kept.save(tmp_path / "kept", part=10)
    for name in ("small", "resolved", "kept"):
        assert (tmp_path / name / "counts.parquet").is_file() and not (tmp_path / name / "counts").exists()
    with pytest.raises(ReleaseError, match="give one at least"):
        release.save(tmp_path / "none", part=0)


def test_the_command_line_writes_and_reads_parts(tmp_path: Path) -> None:
    pq.write_table(trips(), tmp_path / "trips.parquet")
    (tmp_path / "places.csv").write_text("t\n" + "\n".join(TOWNS))
    (tmp_path / "plan.toml").write_text(
        'title = "Trips"\n[attributes.origin]\nhierarchy = "places.csv"\nlevels = ["t"]\n'
        '[attributes.destination]\nsame_as = "origin"\n[spine]\norder = "destination-first"\n'
        '[unit]\nentity = "trip"\ncontributions = 1\nneighbours = "replace"\n[loss]\nepsilon = 1.0\ndelta = 1e-8\n'
    )
    command = ["release", "plan.toml", "trips.parquet", "--out", "out", "--part", 50, "--testing-key", KEY.hex()]
    assert said(command, tmp_path).code == 0
    assert len(list((tmp_path / "out" / "counts").iterdir())) > 3
    assert said(["check", "out"], tmp_path).code == 0
    assert said(["query", "out"], tmp_path).out.split()[-1] == "4000"


def rewritten(file: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    table = pq.read_table(file)
    rows = pq.ParquetFile(file).metadata.row_group(0).num_rows
    pq.write_table(change(table), file, compression="zstd", store_schema=False, row_group_size=rows)


def with_value(name: str, row: int, value: object) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        own = table[name].to_pylist()
        own[row] = value if not callable(value) else value(own[row])
        return table.set_column(table.column_names.index(name), name, pa.array(own, table[name].type))

    return change


def more(value: int) -> int:
    return value + 1


def part(folder: Path, kind: str, number: int) -> Path:
    return folder / kind / f"part-{number:05d}.parquet"


def a_row_moved(folder: Path) -> None:
    first, second = (pq.read_table(part(folder, "counts", number)) for number in (1, 2))
    rewritten(part(folder, "counts", 1), lambda table: table.slice(0, len(table) - 1))
    rewritten(part(folder, "counts", 2), lambda table: pa.concat_tables([first.slice(len(first) - 1), second]))


def a_count_moved(folder: Path) -> None:
    rewritten(part(folder, "counts", 1), with_value("count", 0, more))
    rewritten(part(folder, "counts", 2), with_value("count", 0, lambda value: value - 1 or 2))


def two_parts_exchanged(folder: Path) -> None:
    for kind in ("counts", "evidence", "nodes"):
        one, other = part(folder, kind, 1), part(folder, kind, 2)
        aside = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(aside)


def last(folder: Path, kind: str) -> Path:
    return sorted((folder / kind).iterdir())[-1]


def the_last_part_gone(folder: Path) -> None:
    for kind in ("counts", "evidence", "nodes"):
        last(folder, kind).unlink()


def a_part_more(folder: Path) -> None:
    for kind in ("counts", "evidence", "nodes"):
        shutil.copy(last(folder, kind), part(folder, kind, len(list((folder / kind).iterdir()))))


def swapped(table: pa.Table) -> pa.Table:
    return table.take(pa.array([1, 0, *range(2, len(table))]))


FAULTS: dict[str, Callable[[Path], object]] = {
    "a leaf's count": lambda folder: rewritten(part(folder, "counts", 2), with_value("count", 3, more)),
    "a count of zero": lambda folder: rewritten(part(folder, "counts", 2), with_value("count", 3, 0)),
    "a leaf's bound": lambda folder: rewritten(part(folder, "counts", 2), with_value("upper", 3, more)),
    "an unknown code": lambda folder: rewritten(part(folder, "counts", 0), with_value("origin", 0, "nowhere")),
    "no code": lambda folder: rewritten(part(folder, "counts", 0), with_value("origin", 0, None)),
    "two leaves in the wrong order": lambda folder: rewritten(part(folder, "counts", 1), swapped),
    "a leaf twice": lambda folder: rewritten(
        part(folder, "counts", 1), lambda table: pa.concat_tables([table.slice(0, 1), table])
    ),
    "a leaf that is gone": lambda folder: rewritten(part(folder, "counts", 1), lambda table: table.slice(1)),
    "a row in the part before": a_row_moved,
    "a count in another part": a_count_moved,
    "two parts exchanged": two_parts_exchanged,
    "the last part is gone": the_last_part_gone,
    "one part is gone": lambda folder: part(folder, "counts", 1).unlink(),
    "a part more": a_part_more,
    "a column more": lambda folder: rewritten(
        part(folder, "counts", 1), lambda table: table.append_column("more", table["count"])
    ),
    "counts of another type": lambda folder: rewritten(
        part(folder, "counts", 1), lambda table: table.set_column(2, "count", table["count"].cast(pa.int32()))
    ),
    "a node of a small level": lambda folder: rewritten(folder / "top.parquet", with_value("count", -1, more)),
    "the total": lambda folder: rewritten(folder / "top.parquet", with_value("count", 0, more)),
    "the bound of a small level": lambda folder: rewritten(folder / "top.parquet", with_value("upper", 2, more)),
    "a node below": lambda folder: rewritten(part(folder, "nodes", 1), with_value("count", 0, more)),
    "a measurement": lambda folder: rewritten(part(folder, "evidence", 1), with_value("measured", -1, 4000)),
    "a measurement above": lambda folder: rewritten(folder / "evidence.parquet", with_value("measured", 1, 1)),
    "a sum of rows": lambda folder: rewritten(folder / "parts.parquet", with_value("count", 4, more)),
    "where rows lie": lambda folder: rewritten(folder / "parts.parquet", with_value("last", 4, "Z3w")),
    "where a part begins": lambda folder: rewritten(folder / "parts.parquet", with_value("node", -1, more)),
    "a margin": lambda folder: rewritten(folder / "margins.parquet", with_value("count", 5, more)),
    "a table in one file": lambda folder: (folder / "counts.parquet").write_bytes(
        part(folder, "counts", 0).read_bytes()
    ),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_check_finds_every_fault_also_where_all_hashes_are_put_right(fault: str, many: Path) -> None:
    FAULTS[fault](many)
    assert next(verdict for verdict in check_folder(many) if " files" in verdict.subject).findings
    relist(many)
    wrong = [verdict for verdict in tt.check(many) if verdict.findings]
    assert wrong, fault
    assert all(finding for verdict in wrong for finding in verdict.findings)


@pytest.mark.parametrize("fault", ["a leaf's count", "one part is gone", "a node of a small level", "a sum of rows"])
def test_what_was_changed_is_refused_when_it_is_read(fault: str, many: Path) -> None:
    FAULTS[fault](many)
    with pytest.raises(ReleaseError, match="SHA-256|is missing"):
        tt.Release.load(many).table()


def test_facts_that_are_not_kept_are_found(folders: dict[str, tuple[Path, Path]], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["facts"][1], tmp_path / "many"))
    a_count_moved(folder)
    relist(folder)
    assert any("fact" in verdict.subject for verdict in tt.check(folder) if verdict.findings)


def test_all_at_a_time_is_refused_where_there_is_no_room(
    folders: dict[str, tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = tt.Release.load(folders["margins"][1])
    monkeypatch.setattr(memory, "available", lambda: 1000)
    for ask in (lambda: release.nodes, release.table, lambda: release.evidence):
        with pytest.raises(TreetopError, match=r"bytes of memory, and 1,000 are to be had: ask for"):
            ask()
    assert release.table("origin.t").num_rows > 10 and release.query(origin="A1w") >= 0


def test_no_more_than_two_parts_are_in_memory_at_a_time(
    folders: dict[str, tuple[Path, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is being read, and the one before it: whatever goes through all leaves."""
    read: list[weakref.ref[Any]] = []
    plain, most = files.StoredShards.checked, 0

    def counted(self: files.StoredShards, number: int, table: pa.Table) -> Any:
        nonlocal most
        found = plain(self, number, table)
        read.append(weakref.ref(found[0]))
        most = max(most, sum(one() is not None for one in read))
        return found

    monkeypatch.setattr(files.StoredShards, "checked", counted)
    monkeypatch.setattr(streamed, "ROWS", 64)
    folder = folders["spine alone"][1]
    release = tt.Release.load(folder)
    ways: list[Callable[[], object]] = [
        lambda: tt.check(folder),
        lambda: release.table(["origin.t", "destination.r"]),
        lambda: release.interval(origin="A1w"),
        lambda: [table.num_rows for table in tt.Selection(release).batches()],
        lambda: [tt.export(folder, to, tmp_path / to) for to in ("csv", "od", "records")],
        lambda: release.save(tmp_path / "again", nodes=True),
    ]
    for way in ways:
        read.clear()
        most = 0
        way()
        assert len(read) > 3 and most <= 2
    release.table()
    release.nodes.sum()
    assert most > 3
