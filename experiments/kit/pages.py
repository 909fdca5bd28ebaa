"""Pages of results: words are in the study's templates, and numbers are put into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from experiments.kit import tables
from experiments.kit.stamp import SEEN, machine, now
from experiments.kit.verdicts import NOT_RUN, NOTHING_RUN, WORDS, NothingRunError, verdict

__all__ = ["BELOW_ITS_CAPTION", "Claim", "Claims", "insert", "machine", "pictures", "render", "write"]

_Run = TypeVar("_Run")
_FOLDER = Path(__file__).parents[1]
_TEMPLATES = Environment(
    loader=FileSystemLoader(_FOLDER), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_TEMPLATES.filters |= {
    "g": lambda value: f"{value:g}",
    "comma": lambda value: f"{value:,}",
    "number": tables.number,
    "percent": tables.percent,
    "table": lambda rows, head, sides="l": tables.table(head, rows, sides),
}


def render(template: str, **values: object) -> str:
    """Fill in a template of a study."""
    return _TEMPLATES.get_template(template).render(**values)


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and what became of it."""

    title: str
    """What the paper says, in a few words."""
    holds: bool | None
    """Whether it holds here in every case; None where it does in some."""
    verdict: str
    """What was measured, in a sentence or two."""
    table: list[str]
    """The numbers, as the lines of a table."""
    was_run: bool = True
    """Whether anything was run that it is about."""

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return WORDS[self.holds] if self.was_run else NOT_RUN


class Claims:
    """The claims of a study: their words, and what judges them.

    The words are in a file of sections, each a name, a title, the head of a table, and a verdict, with places for
    numbers. What judges a claim has the name of its section, and is registered with all other verdicts.
    """

    def __init__(self, study: str, **constants: object) -> None:
        self.study, self.constants = study, constants
        self.judges: dict[str, Callable[[Any], Claim]] = {}

    @cached_property
    def words(self) -> dict[str, tuple[str, str, str]]:
        """Title, head and verdict by name."""
        found = {}
        for section in (_FOLDER / self.study / "claims.md").read_text(encoding="utf-8").split("\n## ")[1:]:
            name, *parts = (" ".join(part.split()) for part in section.split("\n\n") if part.strip())
            title, head, verdict = parts
            found[name] = (title, head, verdict)
        return found

    def judge(self, name: str, holds: bool | None, rows: Iterable[Sequence[str]], **numbers: object) -> Claim:
        """Put what was measured into the words of a claim."""
        title, head, text = self._said(name, numbers)
        return Claim(title, holds, " ".join(text.split()), tables.lines(head.split(" | "), rows))

    def verdict(self, judge: Callable[[_Run], Claim]) -> Callable[[_Run], Claim]:
        """Register what judges the claim of its name; where nothing was run that it is about, the claim says so."""

        @wraps(judge)
        def judged(found: _Run) -> Claim:
            try:
                return judge(found)
            except NothingRunError:
                title = _TEMPLATES.from_string(self.words[judge.__name__][0]).render(self.constants)
                return Claim(title, None, NOTHING_RUN, [], was_run=False)

        self.judges[judge.__name__] = verdict(f"{self.study}.{judge.__name__}")(judged)
        return judged

    def all(self, found: object) -> Iterator[Claim]:
        """Judge every claim of the study by what was measured, in the order of its words."""
        if self.judges.keys() != self.words.keys():
            raise ValueError(f"claims without words or a judge: {sorted(self.judges.keys() ^ self.words.keys())}")
        yield from (self.judges[name](found) for name in self.words)

    def _said(self, name: str, numbers: Mapping[str, object]) -> Iterator[str]:
        given = {**self.constants, **numbers}
        return (_TEMPLATES.from_string(text).render(given) for text in self.words[name])


def write(file: Path, text: str) -> Path:
    """Write a page, with the version that measured it below its title, and more about that as its last line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    title, _, rest = text.strip().partition("\n")
    own = now()
    measured = f"> Measured with Treetop {own.version} on {own.date}."
    file.write_text("\n\n".join(filter(None, (title, measured, rest.strip(), SEEN.line()))) + "\n", encoding="utf-8")
    return file


def insert(page: Path, texts: Mapping[str, str]) -> Path:
    """Put each text between the two marks of its name in a page that is there already."""
    text = page.read_text(encoding="utf-8")
    for name, body in texts.items():
        start, stop = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        head, found, rest = text.partition(start)
        _, closed, tail = rest.partition(stop)
        if not found or not closed:
            raise ValueError(f"{page} has no marks {start.strip()} and {stop.strip()} for the {name}")
        text = f"{head}{start}\n{body}\n\n{stop}{tail}"
    page.write_text(text, encoding="utf-8")
    return page


def pictures(captions: Mapping[str, str], form: str = "![{caption}](../images/{name})\n\n{caption}") -> str:
    """Return pictures, by file name, with their captions."""
    return "\n\n".join(form.format(name=name, caption=caption) for name, caption in captions.items())


BELOW_ITS_CAPTION = "**{caption}**\n\n![{caption}](../images/{name})"
"""Another form of `pictures`."""
