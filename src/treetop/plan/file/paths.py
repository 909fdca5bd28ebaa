"""The files that a plan file names, found without reading any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from treetop.plan import fields


def named_files(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each file that a plan file names, as (dotted field, name as written).

    Args:
        values: The plan file's values, as TOML has them. Values of a wrong type are left to the reader of plans.

    >>> list(named_files({"data": {"source": "trips.csv"}, "facts": {"place.state": "totals.csv"}}))
    [('facts.place.state', 'totals.csv'), ('data.source', 'trips.csv')]
    """
    for section in dict.fromkeys(one.section for one in fields.file_fields()):
        names = [one.name for one in fields.file_fields() if one.section == section]
        for place, inner in _sections(values, section.split(".")):
            if isinstance(inner, str):  # the short form of a fact
                yield place, inner
            elif isinstance(inner, Mapping):
                for name in names:
                    yield from _texts(f"{place}.{name}", inner.get(name))


def _sections(values: Any, path: list[str], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the sections of a declared path, in which a name in capitals stands for every name."""
    if not path:
        yield place, values
    elif isinstance(values, Mapping):
        for name in values if path[0].isupper() else [path[0]]:
            if name in values:
                yield from _sections(values[name], path[1:], f"{place}.{name}" if place else name)


def _texts(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(f"{place}.{name}", inner)
