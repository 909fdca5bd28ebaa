"""Fields that are made when they are first asked for: values that take much memory and may not be needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

T = TypeVar("T")
C = TypeVar("C", bound=type)


class _Later:
    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def later(make: Callable[[], T]) -> T:
    """Return a placeholder for a value that a field of a `deferring` class computes on first use."""
    return cast(T, _Later(make))


class _Deferred:
    """A field that may be given as `later`; its value is computed once and kept."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, one: object | None, owner: type) -> Any:
        if one is None:
            raise AttributeError(self._name)
        value = one.__dict__[self._name]
        if isinstance(value, _Later):
            value = one.__dict__[self._name] = value.make()
        return value

    def __set__(self, one: object, value: object) -> None:
        one.__dict__[self._name] = value  # frozen classes set their fields once, through here


def deferring(*names: str) -> Callable[[C], C]:
    """Let some fields of a dataclass be given as `later`."""

    def of(own: C) -> C:
        for name in names:
            setattr(own, name, _Deferred(name))
        return own

    return of


def set_fields(one: object, **values: Any) -> None:
    """Set fields of a frozen dataclass that is being made."""
    for name, value in values.items():
        object.__setattr__(one, name, value)


def changed(one: T, **changes: Any) -> T:
    """Return a dataclass with some fields changed, as `dataclasses.replace` does, without computing deferred fields."""
    same = {field.name: one.__dict__[field.name] for field in fields(one) if field.init}  # type: ignore[arg-type]
    return type(one)(**same | changes)


# A mapping that cannot change: value objects that hold one stay hashable and can be sent to workers.

Value = TypeVar("Value")


class FrozenMap(Mapping[str, Value]):
    """A read-only copy of a mapping, in its order. (`MappingProxyType` can be neither hashed nor pickled.)"""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Value]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Value:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)
