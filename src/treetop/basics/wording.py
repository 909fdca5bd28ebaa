"""Small words of English that a noun decides."""

from __future__ import annotations


def with_article(noun: str) -> str:
    """Return a noun after "a" or "an", by its first letter.

    >>> with_article("trip"), with_article("airport code"), with_article("Employee"), with_article("user list")
    ('a trip', 'an airport code', 'an Employee', 'a user list')
    """
    vowel = noun[:1].lower() in tuple("aeiou") and not noun.lower().startswith(("uni", "use", "eu", "one"))
    return f"{'an' if vowel else 'a'} {noun}"


def say_size(count: float) -> str:
    """Write a number of bytes in the unit that is shortest to read.

    >>> say_size(999), say_size(2_345_678)
    ('999 B', '2.35 MB')
    """
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}"
