"""Small words of English that a noun decides."""

from __future__ import annotations


def with_article(noun: str) -> str:
    """Return a noun after "a" or "an", by its first letter.

    >>> with_article("trip"), with_article("airport code"), with_article("Employee"), with_article("user list")
    ('a trip', 'an airport code', 'an Employee', 'a user list')
    """
    vowel = noun[:1].lower() in tuple("aeiou") and not noun.lower().startswith(("uni", "use", "eu", "one"))
    return f"{'an' if vowel else 'a'} {noun}"
