"""Priors: they count what a descent would measure, say where they are from, and are never the private table."""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import treetop as tt
from treetop import Source
from treetop.advice import try_out
from treetop.advice.coverage import twin_coverage
from treetop.advice.public import Prior, refuse_private
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.reading import read_counts
from treetop.errors import PlanError, PrivatePrior, Refusal
from treetop.noise import Key

SOURCE = "Census of 2011, published tables"


def test_a_public_table_tells_how_many_nodes_of_which_size_a_descent_measures(
    spine: tt.Spine, people: pa.Table
) -> None:
    prior = Prior.from_public_table(people, spine, source=SOURCE)
    rows = list(zip(people["place"].to_pylist(), people["sex"].to_pylist(), strict=True))
    states = Counter(place[0] for place, _ in rows)
    expected = {
        "total": [4000],
        "place.state": [states[state] for state in "ABCDE"],
        "sex": [Counter((p[0], s) for p, s in rows)[state, sex] for state in "ABCE" for sex in "fm"],
        # E has one county, which is not measured; D is empty, and so are its counties
        "place.county": [
            Counter(rows)[f"{state}{county}", sex]
            for state in "ABC"
            for sex in "fm"
            if any(p[0] == state and s == sex for p, s in rows)
            for county in "1234567"
        ],
    }
    for name, counts in expected.items():
        level = prior.level(name)
        sizes, nodes = np.unique(counts, return_counts=True)
        assert level.counts.tolist() == sizes.tolist() and level.nodes.tolist() == nodes.tolist()
    assert (prior.kind, prior.source, prior.spine.digest) == ("public table", SOURCE, spine.digest)


def test_a_long_path_is_read_over_several_words() -> None:
    tree = tt.Hierarchy.from_prefixes([f"{i:05d}" for i in range(3000)], widths=[2], levels=["group", "code"])
    names = [f"a{i}" for i in range(6)]
    spine = tt.Spine([f"{n}.{level}" for level in ("group", "code") for n in names], dict.fromkeys(names, tree))
    rng = np.random.default_rng(0)
    codes = np.array([f"{i:05d}" for i in range(3000)])
    table = pa.table({name: codes[rng.zipf(1.3, 500) % 3000] for name in names})
    prior = Prior.from_public_table(table, spine, source=SOURCE)
    leaves = Counter(zip(*(table[name].to_pylist() for name in names), strict=True))
    last = prior.levels[-1]
    above = last.counts > 0
    assert Counter(leaves.values()) == dict(zip(last.counts[above], last.nodes[above], strict=True))
    for level in prior.levels:
        assert level.counts @ level.nodes == 500


def test_an_earlier_release_is_a_prior(spine: tt.Spine, people: pa.Table, trip: tt.Unit) -> None:
    release = tt.make_release(tt.Plan(spine, trip, tt.Loss(rho=1), title="Trips, 2011"), people)
    prior = Prior.from_release(release)
    assert (prior.kind, prior.source) == ("release", "Trips, 2011")
    states = release.level("place.state")["count"].to_pylist()
    level = prior.level("place.state")
    assert sorted(states) == np.repeat(level.counts, level.nodes.astype(int))[-len(states) :].tolist()
    with pytest.raises(PlanError, match="whole release"):
        Prior.from_release(release.where(sex="f"))


def test_a_release_with_a_testing_key_is_no_prior(spine: tt.Spine, people: pa.Table, trip: tt.Unit) -> None:
    release = tt.make_release(tt.Plan(spine, trip, tt.Loss(rho=1)), people, tt.RunOptions(testing_key=bytes(32)))
    with pytest.raises(PrivatePrior, match="testing key"):
        Prior.from_release(release)


def test_private_counts_are_refused_with_the_reason(spine: tt.Spine, people: pa.Table) -> None:
    counts = read_counts(people, spine)
    with pytest.raises(PrivatePrior, match="which are private: noise whose size depends on the private counts"):
        Prior.from_public_table(counts, spine, source=SOURCE)
    with pytest.raises(PrivatePrior, match="private"):
        Prior.from_release(counts)  # type: ignore[arg-type]
    assert issubclass(PrivatePrior, Refusal)


def test_the_plans_own_table_is_refused_under_any_name(tmp_path: Path, spine: tt.Spine, people: pa.Table) -> None:
    private, copy, link = tmp_path / "private.csv", tmp_path / "copy.csv", tmp_path / "link.csv"
    pyarrow.csv.write_csv(people, private)
    shutil.copy(private, copy)
    link.symlink_to(private)
    for prior in (private, str(private), copy, link, [private], Source(private)):
        with pytest.raises(PrivatePrior, match="private table itself"):
            Prior.from_public_table(prior, spine, source=SOURCE, private=private)
    other = tmp_path / "other.csv"
    pyarrow.csv.write_csv(people.slice(1), other)
    assert Prior.from_public_table(other, spine, source=SOURCE, private=private).twin is not None


def test_the_same_rows_in_memory_are_refused(people: pa.Table) -> None:
    for private in (people, people.slice(0)):
        with pytest.raises(PrivatePrior):
            refuse_private(people, private)
    refuse_private(people, people.slice(1))
    refuse_private(people, None)
    refuse_private(people, "trips.csv")


@pytest.mark.parametrize(
    ("prior", "private", "same"),
    [
        (Source("sqlite:///a.db", "trips"), Source("sqlite:///a.db", "TRIPS;"), True),
        (Source("sqlite:///a.db", "trips_2011"), Source("sqlite:///a.db", "trips"), False),
        (Source("sqlite:///a.db"), Source("sqlite:///a.db", "trips"), True),
        (Source("a.db", "trips"), Source("sqlite:///a.db", "trips"), True),
        (Source("a.duckdb", "trips_2011"), Source("a.duckdb", "trips"), False),
        (Source("postgresql://ann:one@h/db", "t"), Source("postgresql://ann:two@h/db", "t"), True),
        (Source("postgresql://h/other", "t"), Source("postgresql://h/db", "t"), False),
        ("-", "-", True),
        ("not-there.csv", "./not-there.csv", True),
        ("not-there.csv", "nor-this.csv", False),
    ],
)
def test_sources_are_compared_by_what_they_name(prior: Source | str, private: Source | str, same: bool) -> None:
    if same:
        with pytest.raises(PrivatePrior):
            refuse_private(prior, private)
    else:
        refuse_private(prior, private)


@pytest.mark.parametrize("source", ["", "  ", None])
def test_a_prior_without_a_source_is_refused(spine: tt.Spine, people: pa.Table, source: str) -> None:
    with pytest.raises(PlanError, match="say where the public table is from"):
        Prior.from_public_table(people, spine, source=source)


def test_a_prior_serves_its_own_spine_only(spine: tt.Spine, people: pa.Table) -> None:
    prior = Prior.from_public_table(people, spine, source=SOURCE)
    prior.fits(spine)
    with pytest.raises(PlanError, match="another spine"):
        prior.fits(tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])}))
    other = tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m", "x"])})
    prior = Prior.from_public_table(pa.table({"sex": ["f", "m"]}), other, source=SOURCE)
    prior.fits(tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])}), nodes=False)
    with pytest.raises(PlanError, match="other codes than the plan"):
        prior.fits(tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])}))


def test_an_empty_public_table_expects_an_empty_root(spine: tt.Spine, people: pa.Table) -> None:
    prior = Prior.from_public_table(people.slice(0, 0), spine, source=SOURCE)
    assert [level.measured for level in prior.levels] == [1, 0, 0, 0]


def test_content_is_compared_inside_gzip_whichever_file_is_compressed(tmp_path: Path, people: pa.Table) -> None:
    plain, small, large, damaged = (tmp_path / name for name in ("a.csv", "b.csv.gz", "c.gz", "d.csv.gz"))
    pyarrow.csv.write_csv(people, plain)
    small.write_bytes(gzip.compress(plain.read_bytes(), 9))
    large.write_bytes(gzip.compress(plain.read_bytes(), 0))
    damaged.write_bytes(small.read_bytes()[:-12])
    for prior, private in permutations((plain, small, large), 2):
        with pytest.raises(PrivatePrior, match="has the content of"):
            refuse_private(prior, private)
    other = tmp_path / "other.csv.gz"
    other.write_bytes(gzip.compress(plain.read_bytes() + b"\n"))
    for unlike in (other, damaged):
        refuse_private(unlike, plain)
        refuse_private(plain, unlike)


@pytest.mark.parametrize("bounded", [False, True])
def test_a_table_with_the_records_of_the_private_one_is_refused_whatever_it_is(
    spine: tt.Spine, people: pa.Table, tmp_path: Path, bounded: bool
) -> None:
    who = pa.array([f"p{number % 700}" for number in range(len(people))])
    private = people.append_column("who", who)
    pyarrow.csv.write_csv(private, tmp_path / "private.csv")
    bound = ContributionCap("who", 2, Key(bytes(32))) if bounded else None
    again = private.take(pa.array(np.random.default_rng(1).permutation(len(people))))
    pyarrow.parquet.write_table(again, tmp_path / "again.parquet")

    def read(table: object) -> Prior:
        return Prior.from_public_table(table, spine, source=SOURCE, private=tmp_path / "private.csv", bound=bound)

    for same in (tmp_path / "again.parquet", again, again.set_column(2, "who", who)):
        with pytest.raises(PrivatePrior, match="has the same records as the private table"):
            read(same)
    assert read(private.slice(1)).records != read_counts(private, spine).digest
    assert Prior.from_public_table(again, spine, source=SOURCE, private=tmp_path / "absent.csv").twin is not None


def test_trials_and_coverage_take_no_twin_with_the_private_records(spine: tt.Spine, people: pa.Table) -> None:
    plan = tt.Plan(spine, tt.Unit("person", neighbours="add-remove"), tt.Loss(rho=1))
    prior, counts = Prior.from_public_table(people, spine, source=SOURCE), tt.read_true_counts(plan, people)
    for use in (try_out, twin_coverage):
        with pytest.raises(PrivatePrior, match="the twin has the same records"):
            use(plan, prior, runs=1, private=counts)
        use(plan, prior, runs=1, private=tt.read_true_counts(plan, people.slice(1)))
