"""Where two JSON values differ, each place by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator

_EXACT = re.compile(r"[0-9]+(/[0-9]+)?|[0-9a-f]{64}")
_ABSENT = object()


def differences(
    stated: object, expected: object, *, words: bool = True, where: str = ""
) -> Iterator[tuple[str, str, str]]:
    """Yield each place where two values differ, with both; without `words`, sentences may.

    >>> list(differences({"a": [1, 2]}, {"a": [1, 3]}))
    [('a[1]', '2', '3')]
    """
    if isinstance(stated, dict) and isinstance(expected, dict):
        for name in {**stated, **expected}:
            place = f"{where}.{name}" if where else str(name)
            one, other = stated.get(name, _ABSENT), expected.get(name, _ABSENT)
            yield from differences(one, other, words=words, where=place)
    elif isinstance(stated, list) and isinstance(expected, list) and len(stated) == len(expected):
        for index, (one, other) in enumerate(zip(stated, expected, strict=True)):
            yield from differences(one, other, words=words, where=f"{where}[{index}]")
    elif _differ(stated, expected) and (words or not (_is_words(stated) and _is_words(expected))):
        yield where, _say(stated), _say(expected)


def _differ(one: object, other: object) -> bool:
    return one != other or isinstance(one, bool) != isinstance(other, bool)


def _is_words(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_words(item) for item in value)
    return isinstance(value, str) and not _EXACT.fullmatch(value)


def _say(value: object) -> str:
    text = "absent" if value is _ABSENT else repr(value)
    return text if len(text) <= 200 else f"{text[:199]}…"
