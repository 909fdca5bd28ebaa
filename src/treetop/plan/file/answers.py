"""What people type for an attribute, as fields of a plan file: values and their names, bands, and levels of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from treetop.errors import PlanFileError

_EDGE = r"-?[0-9]{1,12}(\.[0-9]{1,6})?"


def read_values(lines: Sequence[str], what: str = "values") -> dict[str, Any]:
    """Return values, and the names of those with one.

    >>> read_values(["0 = female", "1 = male"])
    {'values': ['0', '1'], 'labels': {'0': 'female', '1': 'male'}}
    """
    pairs = [line.strip().partition(" = ") for line in lines if line.strip()]
    if not pairs:
        raise PlanFileError(f"{what} is empty: write all values that there can be")
    labels = {code.strip(): label.strip() for code, _, label in pairs if label.strip()}
    return {"values": [code.strip() for code, _, _ in pairs], **({"labels": labels} if labels else {})}


def read_bands(text: str, what: str = "bands") -> Any:
    """Return where bands begin, of one level or of several with their names.

    >>> read_bands("0, 18, 65"), read_bands("adult = 0 18; age = 0 10 18")
    ([0, 18, 65], {'adult': [0, 18], 'age': [0, 10, 18]})
    """
    if "=" not in text:
        return _edges(text, what)
    pairs = [part.partition("=") for part in re.split(r"[;\n]", text) if part.strip()]
    return {level.strip(): _edges(edges, what) for level, _, edges in pairs}


def written_bands(bands: Any) -> str:
    """Write bands as they are typed."""
    if isinstance(bands, Mapping):
        return "; ".join(f"{level} = {written_bands(edges)}" for level, edges in bands.items())
    return " ".join(map(str, bands))


def _edges(text: str, what: str) -> list[Any]:
    found = [one for one in re.split(r"[;\s]+|,\s+|,(?=\S+,)", text.strip()) if one]
    found = [part for one in found for part in (one.split(",") if re.fullmatch(r"-?\d+(,-?\d+)+", one) else [one])]
    if len(found) < 2 or not all(re.fullmatch(_EDGE, one) for one in found):
        raise PlanFileError(f"{what} is {text!r}: write where each band begins, such as 0 18 40 60 80")
    numbers = [Decimal(one) for one in found]
    if sorted(set(numbers)) != numbers:
        raise PlanFileError(f"{what} is {text!r}: write rising numbers, such as 0 18 40 60 80")
    return [int(one) if one == int(one) else one for one in numbers]


def read_levels(text: str) -> Any:
    """Return levels, coarse to fine; some may rename their columns.

    >>> read_levels("region, town"), read_levels("region = COD_REG, town")
    (['region', 'town'], {'region': 'COD_REG', 'town': 'town'})
    """
    pairs = [[part.strip() for part in one.split(" = ", 1)] for one in text.split(",") if one.strip()]
    return {pair[0]: pair[-1] for pair in pairs} if " = " in text else [pair[0] for pair in pairs]


def written_levels(levels: Any) -> str:
    """Write levels as they are typed."""
    pairs = levels.items() if isinstance(levels, Mapping) else ((level, level) for level in levels)
    return ", ".join(level if level == column else f"{level} = {column}" for level, column in pairs)
