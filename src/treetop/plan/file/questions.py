"""The questions of a plan file that have no safe default, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from treetop.errors import IncompletePlan

ENTITY = 'Who or what is protected? Name one of them: "trip", "person", "household".'

CONTRIBUTIONS = (
    "How many records can one of them have at most? More records need more noise; a limit that is too low "
    "leaves those above it less protected."
)

NEIGHBOURS = (
    'What must stay hidden? "replace" hides what the records of one of them say; with one record each the '
    'number of records is then public and exact. "add-remove" also hides whether one of them is in the data '
    "at all, and the total gets noise."
)

EPSILON = (
    "How much may the release tell about one of them? epsilon limits how far anyone's odds about one of them "
    "can move: by a factor of 2.7 for 1, 1.1 for 0.1, 150 for 5. Give epsilon and delta, or rho, or epsilon "
    "alone for the stricter pure guarantee."
)

DELTA = (
    "The chance left to exceed epsilon: well below one in the number of records, such as 1e-8. Without it, "
    "the guarantee is pure, with Laplace noise."
)

COUNT = (
    "Does a row stand for several records, as many as a column says? Then name it: one row counts so often. If a row "
    "is one record, leave this out: a column that says something else about a record is no count."
)

ID = (
    "Optional: the column that identifies one of them. With it the limit is enforced, not declared. Ids that are spelt "
    "differently are different ones, but for what id_clean takes away."
)

ATTRIBUTES = "Which columns of the table are published? Give each a section, such as [attributes.place]."

HIERARCHY = (
    "Which public file lists all its codes? It must come from a public source, never from the private table: "
    "which codes occur there is private."
)

LEVELS = "Which columns of the hierarchy file are its levels, coarse to fine?"

CODES = "Which column of the hierarchy file holds the codes that widths cut into levels?"

ORDER = (
    'In which order are the attributes refined? "destination-first" or "origin-first" for two ends, or a '
    'list such as ["place.state", "sex", "place.county"].'
)


def refuse_open(file: str, questions: Sequence[tuple[str, str]]) -> None:
    """Refuse a plan that leaves questions open, naming every field at once."""
    if not questions:
        return
    many = "a question" if len(questions) == 1 else f"{len(questions)} questions"
    lines = [f"  {field}: {question}" for field, question in questions]
    raise IncompletePlan("\n".join([f"{file} leaves {many} open, for which there is no safe default:", *lines]))
