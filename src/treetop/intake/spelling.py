"""The spelling of ids: what is done to each before it tells one unit from another.

An id is what it is spelt: "ann", "ann ", "Ann" and an accent that is written in two ways are different ids, and each
has records of its own. A plan may ask that some of these differences are taken away. An id is cleaned by itself,
whatever the others are, so that neighbours stay neighbours.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from treetop.domain.unit import IdClean


def cleaned(ids: pa.StringArray, ways: Collection[IdClean]) -> pa.StringArray:
    """Return ids with blanks at the ends, Unicode forms or case taken away, whatever order the ways are given in.

    >>> cleaned(pa.array(["Ann ", "ann", "STRASSE", "straße"]), ["trim", "casefold"]).to_pylist()
    ['ann', 'ann', 'strasse', 'strasse']
    """
    if not ways or not len(ids):
        return ids
    encoded = ids.dictionary_encode()
    different: Any = encoded.dictionary
    if "trim" in ways:
        different = pc.utf8_trim_whitespace(different)
    if "nfc" in ways:
        different = pc.utf8_normalize(different, form="NFC")
    if "casefold" in ways:
        different = _casefolded(different)
        if "nfc" in ways:  # folding may leave a letter and its accent apart
            different = pc.utf8_normalize(different, form="NFC")
    return different.take(encoded.indices)


def without_zeros(ids: pa.StringArray) -> pa.StringArray:
    """Return ids without leading zeros; one of zeros alone keeps the last."""
    return pc.replace_substring_regex(ids, r"^0+(.)", r"\1")


def _casefolded(texts: pa.StringArray) -> pa.StringArray:
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return pc.ascii_lower(texts)
    return pa.array([None if text is None else text.casefold() for text in texts.to_pylist()], pa.string())
