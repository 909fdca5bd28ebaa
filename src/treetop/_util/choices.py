"""Registries of named choices, and the nearest name for a message if one is not known."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar

from treetop.errors import PlanError


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return " (did you mean …?)" for the choice that is closest to `name`, or nothing.

    The case of letters does not matter, a beginning is near to the whole, and so is the last part of a dotted name.

    >>> nearest("Prov", ["region", "province"]), nearest("prov", ["origin.region", "origin.province"])
    (" (did you mean 'province'?)", " (did you mean 'origin.province'?)")
    >>> nearest("xyz", ["region", "province"])
    ''
    """
    listed = list(choices)
    found = _closest(name.casefold(), {known.casefold(): known for known in reversed(listed)})
    if found is None:
        found = _closest(name.casefold(), {known.casefold().rpartition(".")[2]: known for known in reversed(listed)})
    return "" if found is None else f" (did you mean {found!r}?)"


def check_choice(what: str, value: object, choices: Collection[str]) -> None:
    """Refuse a value that is none of some names."""
    if value not in choices:
        raise PlanError(f"{what} is {value!r}{nearest(str(value), choices)}; choose one of {', '.join(choices)}")


def _closest(name: str, choices: dict[str, str]) -> str | None:
    close = difflib.get_close_matches(name, choices, n=1)
    begun = [choice for choice in choices if len(name) > 1 and choice.startswith(name)]
    if close or not begun:
        return choices[close[0]] if close else None
    return choices[min(begun, key=len)]


T = TypeVar("T")


class Registry(MutableMapping[str, T]):
    """Objects by name, in the order of registration. Those of add-ons are imported on first use."""

    def __init__(self) -> None:
        self._loaded: dict[str, T] = {}
        self._addresses: dict[str, str | None] = {}

    def offer(self, name: str, address: str) -> None:
        """Add an object by its address, as in "package.module:OBJECT"."""
        self._addresses[name] = address

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded and (address := self._addresses[name]) is not None:
            module, _, attribute = address.partition(":")
            self._loaded[name] = getattr(import_module(module), attribute)
        return self._loaded[name]

    def __setitem__(self, name: str, value: T) -> None:
        self._addresses[name] = self._addresses.get(name)
        self._loaded[name] = value

    def __delitem__(self, name: str) -> None:
        del self._addresses[name]
        self._loaded.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._addresses

    def __iter__(self) -> Iterator[str]:
        return iter(self._addresses)

    def __len__(self) -> int:
        return len(self._addresses)


# Registered choices: what can be named in a plan, each with the words that a card says about it.


class Choice(Protocol):
    """Something that can be chosen by its name."""

    @property
    def name(self) -> str:
        """The name in plans and cards."""

    @property
    def words(self) -> Any:
        """Its description in a card: a sentence, or several."""


C = TypeVar("C", bound=Choice)


class Choices(Registry[C]):
    """The choices of one kind, by name, in the order in which they were registered."""

    def __init__(self, kind: str, *choices: C) -> None:
        super().__init__()
        self._kind = kind
        for choice in choices:
            self.register(choice)

    def register(self, choice: C) -> C:
        """Add a choice. It needs a name of its own, and words: a card must describe every choice."""
        name, words = getattr(choice, "name", None), getattr(choice, "words", None)
        if not isinstance(name, str) or not name.strip():
            raise PlanError(f"a {self._kind} needs a name, not {name!r}")
        if name in self:
            raise PlanError(f"there is already a {self._kind} {name!r}")
        sentences = (words,) if isinstance(words, str) else words
        if not sentences or not all(isinstance(sentence, str) and sentence.strip() for sentence in sentences):
            raise PlanError(f"the {self._kind} {name!r} has no words for the card: say what it does")
        self[name] = choice
        return choice

    def __getitem__(self, name: str) -> C:
        try:
            return super().__getitem__(name)
        except KeyError:
            raise PlanError(
                f"there is no {self._kind} {name!r}{nearest(name, self)}; known: {', '.join(self)}"
            ) from None

    def named(self, wanted: Callable[[C], bool]) -> Collection[str]:
        """Return the names of some of them, also of such as are registered later."""
        return _Named(self, wanted)


@dataclass(frozen=True)
class _Named(Collection[str]):
    choices: Choices[Any]
    wanted: Callable[[Any], bool]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.choices if self.wanted(self.choices[name]))

    def __contains__(self, name: object) -> bool:
        return any(name == one for one in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


# Small words of English that a noun decides.


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
