"""The exceptions, and text that is safe to show.

A message names an argument, or a field of a plan file, in backticks, with a value if it proposes one: `staging`,
`encoding="latin-1"`. No message names a flag or a control: front ends do, with `translate_arguments`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

# Text that may be shown: without passwords, without what drives a terminal, and of a length that people read.

_LONGEST_WORD = 300
_LONGEST = 6000
_ENDS = 120
_USER = re.compile(r"[a-z][a-z0-9+.-]+:/+[^\s:@/?#]*:", re.IGNORECASE)
_BEFORE = " \t'\"`(["
_KEY = re.compile(
    r"""(pass(?:word|phrase|wd)|pwd)(\s?=\s?)('(?:[^'\\]|\\.)*'|\S*[^\s"',:;\])}])""", re.IGNORECASE | re.DOTALL
)
# Every control, format, separator and surrogate character of Unicode, but for line feed, tab, and the two joiners that
# words are written with.
_DRIVES = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def discreet(text: str) -> str:
    """Blot out passwords: of a URL wherever it stands, also one that was taken for a path, and after `password=`.

    >>> discreet("postgresql:/ann:secret@db: no such file; host=db password=secret")
    'postgresql:/ann:***@db: no such file; host=db password=***'
    """
    text = "\n".join(map(_without_user_password, text.split("\n"))) if "@" in text else text
    return _KEY.sub(r"\1\2***", text) if "=" in text else text


def brief(text: str) -> str:
    """Leave out the middle of very long words, such as a code of a megabyte, and of a very long text.

    >>> brief("the code " + 1000 * "x" + " is unknown").replace("x", "")
    'the code [… 760 characters …] is unknown'
    """
    if len(text) > _LONGEST_WORD:
        text = re.sub(rf"\S{{{_LONGEST_WORD},}}", lambda word: _ends(word[0], _ENDS), text)
    return text if len(text) <= _LONGEST else _ends(text, _LONGEST // 2)


def visible(text: str) -> str:
    r"""Escape characters that drive a terminal or hide in a text, as JSON does: an escape is shown as \u001b.

    >>> print(visible("Trips\x1b[2J"))
    Trips\u001b[2J
    """
    return _DRIVES.sub(lambda sign: _written_out(sign[0]), text)


def printable(text: str) -> str:
    """Return a text for one line or cell: without line breaks either, and nothing longer for it."""
    return _DRIVES.sub("\N{REPLACEMENT CHARACTER}", re.sub("[\n\t]", "\N{REPLACEMENT CHARACTER}", text))


_ARGUMENT = re.compile(r"`([a-z][a-z0-9_]*)(?:=([^`\n]*))?`")


def translate_arguments(text: str, translate: Callable[[str, str | None], str | None]) -> str:
    """Replace the arguments that a text names by a front end's own words for them.

    Args:
        text: A message, such as "give `staging`, or leave out `allow_dropped=True`".
        translate: Called with each name and value (None if there is none). If it returns None, the name stays.

    >>> translate_arguments("name `staging`", lambda name, value: f"a {name} folder")
    'name a staging folder'
    """
    return _ARGUMENT.sub(lambda argument: translate(argument[1], argument[2]) or argument[0], text)


def _without_user_password(line: str) -> str:
    shown = ""
    for part in _parts(line):
        user = _USER.search(part)
        while user is not None and part.startswith("***@", user.end()):  # this one is blotted out already
            user = _USER.search(part, user.end())
        # An unescaped password may hold any sign, even @: so it reaches to the last one.
        at = part.rfind("@")
        shown += part if user is None or at < user.end() else f"{part[: user.end()]}***{part[at:]}"
    return shown


def _parts(line: str) -> Iterator[str]:
    """Divide a line before each URL that begins a word, if the one before it is over: it has had its @."""
    start, at = 0, line.find("@")
    for user in _USER.finditer(line):
        begins = user.start() == 0 or line[user.start() - 1] in _BEFORE
        if begins and start <= at < user.start():
            yield line[start : user.start()]
            start, at = user.start(), line.find("@", user.start())
    yield line[start:]


def _ends(text: str, kept: int) -> str:
    return f"{text[:kept]}[… {len(text) - 2 * kept:,} characters …]{text[-kept:]}"


def _written_out(sign: str) -> str:
    if ord(sign) < 1 << 16:
        return f"\\u{ord(sign):04x}"
    high, low = divmod(ord(sign) - (1 << 16), 1 << 10)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


class TreetopError(Exception):
    """Anything that Treetop refuses; the call that raises it has spent and written nothing, unless it is Unfinished."""

    def __init__(self, message: object = "", *rest: object) -> None:
        """Keep a message that may be shown: it may quote a URL, or a code of any length."""
        super().__init__(brief(discreet(str(message))), *rest)


class HierarchyError(TreetopError):
    """A public hierarchy that is not a tree with named levels."""


class SpineError(TreetopError):
    """A spine that refines attributes that it does not have, or out of order."""


class UnitError(TreetopError):
    """A protected unit that is not fully or not sensibly stated."""


class LossError(TreetopError):
    """A privacy loss, or a split of it over the levels, that cannot be kept."""


class PlanError(TreetopError):
    """A plan with parts that contradict each other."""


class FactError(TreetopError):
    """A public fact that cannot be read, or that the plan's other facts contradict."""


class UnkeptFact(FactError, PlanError):
    """A public fact that a release by this plan could not keep, or that would leave nobody protected."""


class DataError(TreetopError):
    """A private table that does not fit the plan."""


class EngineError(TreetopError):
    """Workers or a staging folder that cannot do a task, or failed at it several times."""


class QueryError(TreetopError):
    """A question to a release that names nothing, or more than one thing."""


class ReleaseError(TreetopError):
    """A release folder that cannot be written, or contradicts its card."""


class PlanFileError(TreetopError):
    """A plan file that cannot be understood: broken TOML, unknown keys, wrong types."""


class NumberError(TreetopError, ValueError):
    """Numbers that a repair, an estimate or a sampler cannot take: not finite, out of range, or of another shape."""


class LedgerError(TreetopError):
    """A ledger that cannot be opened, or is not one."""


class Unfinished(TreetopError):
    """Something that failed after its loss was charged: the loss stays spent, and the message says how far it came."""


class Refusal(TreetopError):
    """Well-formed, and still refused: the budget does not cover it, or a question is left open."""


class IncompletePlan(Refusal):
    """A plan that leaves a question open for which there is no safe default."""


class PrivatePrior(Refusal):
    """A plan that would be made from the private data that it is to protect."""


class ManyDropped(Refusal):
    """A release of a table with more unknown codes than is likely to be meant, dropped or counted under a leaf."""


class Overspent(Refusal):
    """A release that the ledger cannot cover."""
