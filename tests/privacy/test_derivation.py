"""From one key to every word: streams are unrelated to each other, and the way from key to release never changes.

All keys are fixed, so that nothing here is left to chance. The limits would be broken by truly random words with a
chance below 1e-7 in all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

import treetop as tt
from treetop.counts.reading import read_counts
from treetop.engine.engine import Threads
from treetop.measure.descent import descent_of
from treetop.noise import Key, Keystream

from .audits import (
    another_table_gets_other_noise,
    every_leaf_is_counted_under_its_own_node,
    every_word_serves_once,
    many_places,
    small_trees_are_cut_too,
    the_spread_of_released_counts,
)
from .engine import KEY, descents, words_read


def streams(threads: int = 1, chunk: int = 64) -> dict[bytes, dict[int, int]]:
    """The words that a run reads, by stream and position."""
    plan, counts = many_places()
    with small_trees_are_cut_too(), words_read() as reads:
        descents.run_descent(descent_of(plan), counts, KEY, Threads(threads), chunk=chunk)
    read: dict[bytes, dict[int, int]] = {}
    for secret, start, words in reads:
        read.setdefault(secret, {}).update(enumerate(words.tolist(), start))
    return read


def test_every_leaf_is_counted_under_its_own_node() -> None:
    assert every_leaf_is_counted_under_its_own_node() is None


def test_a_run_has_a_stream_for_the_total_and_for_each_level() -> None:
    plan, _ = many_places()
    assert len(streams()) == 1 + len(plan.spine.levels)


def derived(secret: bytes, *parts: str | int) -> bytes:
    """Derive a key as it is written down: keyed BLAKE2b of a purpose and a number, each with its type and length."""
    message = b""
    for part in parts:
        content = part.encode() if isinstance(part, str) else part.to_bytes(1, "little")
        message += (b"s" if isinstance(part, str) else b"i") + len(content).to_bytes(8, "little") + content
    return hashlib.blake2b(message, digest_size=32, key=secret, person=b"treetop").digest()


def test_every_stream_is_where_the_derivation_says_and_holds_those_words() -> None:
    read, secret = streams(), KEY.secret
    levels = [derived(secret, "level", level) for level in (1, 2, 3)]
    expected = [derived(derived(secret, "total"), "words")]
    expected += [derived(derived(level, "noise"), "words") for level in levels]
    assert set(read) == set(expected)
    for own, words in read.items():
        cipher = Cipher(algorithms.AES256(own), modes.ECB()).encryptor()
        for word, value in words.items():
            block = cipher.update((word // 2).to_bytes(16, "big"))
            assert value == int.from_bytes(block[8 * (word % 2) :][:8], "little")


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("chunk", [20, 64, 1 << 15])
def test_every_word_serves_one_measurement(threads: int, chunk: int) -> None:
    assert every_word_serves_once(threads, chunk) is None


@pytest.mark.parametrize(("threads", "chunk"), [(4, 64), (1, 20), (3, 1 << 15), (2, 7)])
def test_threads_and_chunks_read_the_same_words(threads: int, chunk: int) -> None:
    assert streams(threads, chunk) == streams()


def test_all_words_of_a_run_differ() -> None:
    # 681 words of 64 bits: two agree with a chance of 1e-14.
    words = [word for stream in streams().values() for word in stream.values()]
    assert len(words) == 681
    assert len(set(words)) == len(words)


def words_of(key: Key, number: int = 1 << 12) -> NDArray[np.uint64]:
    out = np.empty(number, np.uint64)
    Keystream(key).fill(out, 0)
    return out


def test_words_of_different_places_are_unrelated_bit_by_bit() -> None:
    places = [KEY.derive("total"), *(KEY.derive("level", level) for level in range(1, 11))]
    keys = [place.derive(purpose).derive("words") for place in places for purpose in ("noise", "ties")]
    keys += [KEY.derive("run", bytes(32), table).derive("level", 1) for table in (b"one", b"other")]
    words = [words_of(key) for key in keys]
    for one, other in combinations(words, 2):
        agreeing = 64 * len(one) - int(np.bitwise_count(one ^ other).sum())
        # Seven standard deviations; 276 pairs.
        assert abs(agreeing - 32 * len(one)) < 7 * (16 * len(one)) ** 0.5
        shifted = np.bitwise_count(one[1:] ^ other[:-1]).sum()
        assert abs(int(shifted) - 32 * (len(one) - 1)) < 7 * (16 * len(one)) ** 0.5


def test_the_noise_of_a_release_is_as_wide_as_the_loss_demands_to_a_percent_and_a_half() -> None:
    assert the_spread_of_released_counts() is None


def test_another_table_gets_unrelated_noise_from_the_same_key() -> None:
    assert another_table_gets_other_noise() is None


@pytest.mark.fresh_noise(3e-12)
def test_releases_of_the_same_table_have_unrelated_noise() -> None:
    zones = [f"{i:04d}" for i in range(2_000)]
    plan = tt.Plan(
        tt.Spine(["zone"], {"zone": tt.Hierarchy.flat(zones)}),
        tt.Unit("trip", neighbours="replace"),
        tt.Loss(rho=Fraction(1, 200)),
        margins="none",
    )
    table = pa.table({"zone": zones, "n": [1_000] * len(zones)})
    counts = [tt.make_release(plan, table, tt.RunOptions(count="n")).count for _ in range(2)]
    # Seven standard deviations have a chance of 3e-12.
    assert abs(np.corrcoef(np.array(counts, float))[0, 1]) < 7 / len(zones) ** 0.5


def od(**options: Any) -> tt.Plan:
    place = tt.Hierarchy.from_prefixes(["A1", "A2", "B1", "B2", "B3"], widths=[1])
    unit = options.pop("unit", tt.Unit("trip", neighbours="replace"))
    return tt.Plan(tt.Spine.destination_first(origin=place, destination=place), unit, **options, margins="none")


TRIPS = pa.table({"origin": ["A1", "A1", "B3", "B2"], "destination": ["B1", "A2", "B1", "A1"], "n": [20, 9, 4, 1]})


def described(release: tt.Release) -> str:
    return " ".join(f"{row['origin']}>{row['destination']}={row['count']}" for row in release.table().to_pylist())


KNOWN: dict[str, tuple[Callable[[], tt.Plan], str]] = {
    "Gaussian": (lambda: od(loss=tt.Loss(rho=1)), "1.0=8 2.0=18 2.2=2 2.4=4 4.3=2"),
    "Laplace": (lambda: od(loss=tt.Loss(epsilon=4)), "1.0=8 2.0=15 2.2=3 2.4=4 4.3=3 4.4=1"),
    "a measured total": (
        lambda: od(
            loss=tt.Loss(epsilon=3, delta=1e-6, accounting="zcdp"), unit=tt.Unit("trip", neighbours="add-remove")
        ),
        "1.0=5 2.0=14 2.2=1 2.3=3 2.4=3 4.3=3",
    ),
    "euclidean, descending": (
        lambda: od(loss=tt.Loss(rho=1), repair="euclidean", order="descending"),
        "1.0=9 2.0=17 2.2=1 2.3=1 2.4=3 4.2=1 4.3=2",
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_engine_gives_for_a_key_what_it_always_gave(name: str) -> None:
    # From a key of the run on: it changes when the derivation, the sampler, a repair or the order of children does.
    plan, expected = KNOWN[name]
    counts = read_counts(TRIPS, plan().spine, count="n")
    leaves = descents.run_descent(descent_of(plan()), counts, KEY).leaves
    rows = zip(*leaves.nodes.tolist(), leaves.count.tolist(), strict=True)
    assert " ".join(f"{destination}.{origin}={count}" for destination, origin, count in rows) == expected


def test_trunk_and_subtrees_give_for_a_key_what_they_always_gave() -> None:
    plan, counts = many_places()
    with small_trees_are_cut_too():
        leaves = descents.run_descent(descent_of(plan), counts, KEY, chunk=64).leaves
    content = b"".join(np.ascontiguousarray(array.astype("<i8")).tobytes() for array in (leaves.nodes, leaves.count))
    assert hashlib.sha256(content).hexdigest()[:16] == "2b1bb2f8e59073f4"


def test_a_release_with_a_testing_key_is_what_it_always_was() -> None:
    # It changes as well when the plan describes itself in other words, since the noise is bound to that.
    plan = od(loss=tt.Loss(rho=1))
    release = tt.make_release(plan, TRIPS, tt.RunOptions(count="n", testing_key=KEY.secret))
    assert (plan.digest[:16], described(release)) == (
        "ce2de93f6ed5051c",
        "A1>A2=6 A1>B1=21 A1>B2=1 B2>B1=2 B3>B1=2 B3>B3=2",
    )
