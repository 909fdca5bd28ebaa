"""Registered choices: what can be named in a plan, each with the words that a card says about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from treetop.basics.nearest import nearest
from treetop.errors import PlanError


class Choice(Protocol):
    """Something that can be chosen by its name."""

    @property
    def name(self) -> str:
        """What it is called in plans and cards."""

    @property
    def words(self) -> Any:
        """What a card says about it: a sentence, or several."""


C = TypeVar("C", bound=Choice)


class Choices(Mapping[str, C]):
    """The choices of one kind, by name, in the order in which they were registered."""

    def __init__(self, kind: str, *choices: C) -> None:
        self._kind = kind
        self._by_name: dict[str, C] = {}
        for choice in choices:
            self.register(choice)

    def register(self, choice: C) -> C:
        """Add a choice. It needs a name of its own, and words: a card must not be silent about what was done."""
        name, words = getattr(choice, "name", None), getattr(choice, "words", None)
        if not isinstance(name, str) or not name.strip():
            raise PlanError(f"a {self._kind} needs a name, not {name!r}")
        if name in self._by_name:
            raise PlanError(f"there is already a {self._kind} {name!r}")
        sentences = (words,) if isinstance(words, str) else words
        if not sentences or not all(isinstance(sentence, str) and sentence.strip() for sentence in sentences):
            raise PlanError(f"the {self._kind} {name!r} has no words for the card: say what it does")
        self._by_name[name] = choice
        return choice

    def __getitem__(self, name: str) -> C:
        try:
            return self._by_name[name]
        except KeyError:
            hint = nearest(name, self._by_name)
            raise PlanError(f"there is no {self._kind} {name!r}{hint}; known: {', '.join(self)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

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
