"""What the sections of a plan file must be to each other: questions left open, and what does not fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from treetop.basics.nearest import nearest
from treetop.basics.resolved import resolved
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import PlanFileError
from treetop.plan.file import questions
from treetop.plan.file.attributes import Attribute
from treetop.plan.file.fields import Fields


def open_questions(
    section: Mapping[str, Fields], attributes: Mapping[str, Attribute], order: object, epsilon: object
) -> list[tuple[str, str]]:
    """Return the fields that have no safe default and are left open, each with its question."""
    unit, loss = section["unit"], section["loss"]
    open_ = [question for attribute in attributes.values() for question in attribute.open_questions()]
    if not attributes:
        open_.append(("attributes", questions.ATTRIBUTES))
    if order is None and len(attributes) > 1:
        open_.append(("spine.order", questions.ORDER))
    if not (unit.text("entity") or "").strip():
        open_.append(("unit.entity", questions.ENTITY))
    if not unit.has("contributions"):
        open_.append(("unit.contributions", questions.CONTRIBUTIONS))
    if not unit.has("neighbours"):
        open_.append(("unit.neighbours", questions.NEIGHBOURS))
    if epsilon is None and not loss.has("rho"):
        open_.append(("loss.epsilon", questions.EPSILON))
    return open_


def refuse_private_hierarchy(attributes: Mapping[str, Attribute], source: str | None, path: Path) -> None:
    """Refuse the private table as its own hierarchy: which codes occur in it is private."""
    for attribute in attributes.values():
        file = attribute.file(path.parent)
        if file is not None and source is not None and same_file(file, Path(source)):
            raise PlanFileError(
                f"{path}: [{attribute.fields.section}] hierarchy is the private table itself: which codes "
                "occur there is private. Take the list of codes from a public source"
            )


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    return one == other or resolved(one) == resolved(other)


def check_digest(name: str, attribute: Attribute, tree: Hierarchy) -> None:
    """Refuse a hierarchy that is not the one that the plan names by its hash."""
    stated = attribute.stated["hierarchy_sha256"]
    if stated is not None and stated.lower() != tree.digest:
        raise PlanFileError(
            f"{attribute.fields.file}: [{attribute.fields.section}] the hierarchy of {name} has SHA-256 "
            f"{tree.digest}, but hierarchy_sha256 is {stated}: the plan was made for another tree"
        )


def check_fields(data: Fields, kept: Mapping[str, Any], columns: Sequence[str | None]) -> None:
    """Refuse a column that is not among the fields of a fixed-width table, or the names of one without a header."""
    names = kept["names"]
    for column in [*columns, kept["count"], *(kept["keep"] or ())]:
        if names is not None and column is not None and column not in names:
            raise PlanFileError(
                f"{data.file}: [data] names: there is no column {column!r}{nearest(column, names)}; the names are "
                f"{', '.join(names)}"
            )
    positions = kept["fields"]
    for column in [*columns, kept["count"], *(kept["keep"] or ())]:
        if positions is not None and column is not None and column not in positions:
            raise PlanFileError(
                f"{data.file}: [data.fields] there is no field {column!r}{nearest(column, positions)}: say where it "
                f"stands, as in {column} = [8, 13]; the fields are {', '.join(positions)}"
            )


def check_unknown(data: Fields, unknown: Any, trees: Mapping[str, Hierarchy]) -> None:
    """Refuse a leaf for unknown codes that is not one, before private data is read."""
    if isinstance(unknown, str):
        return
    for attribute in unknown:
        if attribute not in trees:
            raise PlanFileError(
                f"{data.file}: [data.unknown] {attribute!r} is not an attribute{nearest(attribute, trees)}"
            )
    for attribute, tree in trees.items():
        code = unknown.get(attribute)
        if code is None or code not in tree.codes[-1].to_pylist():
            stated = f"the leaf {code!r} is not in its hierarchy" if code else "no leaf is named for it"
            raise PlanFileError(
                f"{data.file}: [data.unknown] {attribute}: {stated}; name the leaf under which its "
                "unknown codes are counted"
            )
