"""Keys and keystreams."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from treetop.noise import Key, Keystream


def words(key: Key, word: int, count: int) -> list[int]:
    out = np.empty(count, dtype=np.uint64)
    Keystream(key).fill(out, word)
    result: list[int] = out.tolist()
    return result


def test_a_key_does_not_show_its_secret(key: Key) -> None:
    assert repr(key) == str(key) == "Key()"


@pytest.mark.fresh_noise(2**-256)
def test_fresh_keys_differ() -> None:
    assert Key.fresh() != Key.fresh()


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_key_has_32_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Key(bytes(size))


def test_a_derived_key_is_the_keyed_hash_of_its_tagged_parts(key: Key) -> None:
    message = b"s" + bytes([5, 0, 0, 0, 0, 0, 0, 0]) + b"noise"
    message += b"i" + bytes([1, 0, 0, 0, 0, 0, 0, 0]) + b"\x07"
    message += b"i" + bytes([2, 0, 0, 0, 0, 0, 0, 0]) + b"\xff\x00"
    message += b"i" + bytes([1, 0, 0, 0, 0, 0, 0, 0]) + b"\xfe"
    message += b"b" + bytes([2, 0, 0, 0, 0, 0, 0, 0]) + b"ab"
    expected = hashlib.blake2b(message, digest_size=32, key=bytes(range(32)), person=b"treetop").digest()
    assert key.derive("noise", 7, 255, -2, b"ab").secret == expected


def test_a_derived_key_never_changes(key: Key) -> None:
    assert (
        key.derive("level", 3, b"subtree").secret.hex()
        == "eb46bd1755f0ba7e195aae4ff3f2e7d4a76ff216cf47f7f5fdc1b5b4b36ae346"
    )


def test_different_parts_give_different_keys(key: Key) -> None:
    lists: list[tuple[int | bytes, ...]] = [
        (), (0,), (0, 0), (1,), (-1,), (255,), (-(2**80),), (2**80,), (b"",), (b"", b""),
        (b"a", b"b"), (b"ab",), (b"ab", b""), (b"\x00",), (97,), (b"a", 1), (1, b"a"),
    ]  # fmt: skip
    derived = {key.derive(purpose, *parts).secret for purpose in ("a", "ab", "") for parts in lists}
    assert len(derived) == 3 * len(lists)


def test_numpy_integers_are_integers_and_floats_are_refused(key: Key) -> None:
    assert key.derive("a", np.int64(5)) == key.derive("a", 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="integer"):
        key.derive("a", 5.0)  # type: ignore[arg-type]


def test_the_keystream_is_the_one_of_nist_sp_800_38a_f_5_5() -> None:
    secret = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = int("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", 16)
    plain = bytes.fromhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    )
    cipher = bytes.fromhex(
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
    )
    stream = bytes(a ^ b for a, b in zip(plain, cipher, strict=True))
    expected = [int.from_bytes(stream[at : at + 8], "little") for at in range(0, 64, 8)]
    assert words(Key(secret), 2 * counter, 8) == expected


def test_the_words_of_a_key_never_change(key: Key) -> None:
    assert words(key, 0, 3) == [15032814528976949490, 9256919087594533801, 16546147286388202992]
    assert words(key, 10**12 + 1, 2) == [3836406758937196722, 9921734840999622439]


def test_words_are_the_same_however_they_are_read(key: Key) -> None:
    whole = words(key, 0, 1000)
    stream, position, pieces = Keystream(key), 0, []
    for count in [1, 1, 2, 3, 0, 5, 88, 400, 1, 499]:
        piece = np.empty(count, dtype=np.uint64)
        stream.fill(piece, position)
        pieces += piece.tolist()
        position += count
    assert pieces == whole
    for position, count in [(999, 1), (0, 7), (501, 30), (500, 30), (7, 1), (8, 2)]:
        piece = np.empty(count, dtype=np.uint64)
        stream.fill(piece, position)
        assert piece.tolist() == whole[position : position + count]


def test_a_long_fill_is_the_same_as_short_ones(key: Key) -> None:
    count = 2**18 + 5  # more than two megabytes, so that the fill is fed in pieces
    assert words(key, 3, count) == words(key, 3, 131_073) + words(key, 131_076, count - 131_073)


def test_going_on_makes_no_new_cipher(key: Key, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, out = Keystream(key), np.empty(7, dtype=np.uint64)
    stream.fill(out, 0)
    monkeypatch.setattr("treetop.noise.keystream.Cipher", None)
    stream.fill(out, 7)
    with pytest.raises(TypeError):
        stream.fill(out, 7)
