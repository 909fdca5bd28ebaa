"""What a plan file says, field by field, before its hierarchies are read: the part that all families of plans share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treetop.basics.exact import Number
from treetop.basics.frozen import FrozenMap
from treetop.basics.nearest import nearest
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import IncompletePlan, PlanFileError
from treetop.plan import fields
from treetop.plan.fields.ordinary import ATTRIBUTE
from treetop.plan.fields.section import Section
from treetop.plan.file.attributes import Attribute, read_attributes, read_lookups
from treetop.plan.file.graph import private_tables
from treetop.plan.file.planfile import PlanFile
from treetop.plan.file.public_files import PublicFile, public_files, refuse_private
from treetop.plan.plan import PurePlan
from treetop.privacy import Loss
from treetop.sources.prepare import Prepare
from treetop.sources.source import Source

_FIRST_ASKED = ("graph", ATTRIBUTE, "", "spine", "groups")
"""The sections whose questions come before those of the others."""


@dataclass(frozen=True, eq=False)
class Stated:
    """What a plan file says, each field checked by itself."""

    path: Path
    """The plan file."""
    text: str
    """Its text."""
    family: str
    """The family of plans that it is of."""
    sections: Mapping[str, Section]
    """Its sections as they are written; empty ones where there are none."""
    values: Mapping[str, Any]
    """Its fields, by section and name; of the attributes by theirs."""
    attributes: Mapping[str, Attribute]
    """Its attributes."""
    loss_is_open: bool
    """Whether no loss is stated, so that epsilon only stands in for one, or is missing."""

    @property
    def source(self) -> str | None:
        """The private table."""
        return self.values["data"]["source"]  # type: ignore[no-any-return]

    @property
    def public_files(self) -> tuple[PublicFile, ...]:
        """The public files that it names."""
        return public_files(self.values, self.attributes, self.path.parent)

    def refuse_private_files(self) -> None:
        """Refuse a private table that the plan names as one of its public files, before any of them is read."""
        tables = [self.source, *private_tables(self.values.get("graph", {}), self.path.parent)]
        refuse_private(self.path, self.public_files, tables)

    def loss(self) -> Loss:
        """Return the loss."""
        with self.sections["loss"].located():
            return Loss(**fields.arguments(self.values, "plan.loss", self.family))

    def refuse_open(self) -> None:
        """Refuse a plan that leaves questions open for which there is no safe default, naming every field at once."""
        asked = []
        for section in dict.fromkeys((*_FIRST_ASKED, *self.sections)):
            if section == ATTRIBUTE:
                for one in self.attributes.values():
                    own = fields.open_questions(section, one.stated, one.stated, self.family)
                    asked += [(one.section.dotted(name), question) for name, question in own]
            else:
                own = fields.open_questions(section, self.values.get(section, {}), self.values, self.family)
                asked += [(f"{section}.{name}" if section else name, question) for name, question in own]
        if asked:
            many = "a question" if len(asked) == 1 else f"{len(asked)} questions"
            lines = [f"  {name}: {question}" for name, question in asked]
            head = f"{self.path} leaves {many} open, for which there is no safe default:"
            raise IncompletePlan("\n".join([head, *lines]))

    def check_columns(self, columns: Sequence[str | None]) -> None:
        """Refuse a column that is not among the fields of a fixed-width table, or the names of one without a header."""
        data, section = self.values["data"], self.sections["data"]
        chosen = (*(data["keep"] or ()), *(data["drop"] or ()))
        used = [one for one in (*columns, data["count"], *chosen) if one is not None]
        names, positions = data["names"], data["fields"]
        for column in used if names is not None else ():
            if column not in names:
                raise section.problem(
                    f"names: there is no column {column!r}{nearest(column, names)}; the names are {', '.join(names)}"
                )
        for column in used if positions is not None else ():
            if column not in positions:
                raise section.table("fields").problem(
                    f"there is no field {column!r}{nearest(column, positions)}: say where it stands, as in {column} = "
                    f"[8, 13]; the fields are {', '.join(positions)}"
                )

    def check_digest(self, name: str, tree: Hierarchy) -> None:
        """Refuse a hierarchy that is not the one that the plan names by its hash."""
        attribute = self.attributes[name]
        stated = attribute.stated["hierarchy_sha256"]
        if stated is not None and stated.lower() != tree.digest:
            raise attribute.section.problem(
                f"the hierarchy of {name} has SHA-256 {tree.digest}, but hierarchy_sha256 is {stated}: the plan was "
                "made for another tree"
            )

    def plan_file(self, plan: PurePlan, columns: Mapping[str, str], **more: Any) -> PlanFile:
        """Return the plan with what is said about the private table."""
        said, own = (fields.arguments(self.values, what, self.family) for what in ("said", "file"))
        return PlanFile(
            plan=plan,
            path=self.path,
            text=self.text,
            attributes=FrozenMap({name: one.section.values for name, one in self.attributes.items()}),
            columns=FrozenMap(columns),
            lookups=FrozenMap(read_lookups(self.attributes, self.path.parent)),
            public_files=self.public_files,
            loss_is_open=self.loss_is_open,
            **{**said, **own, **more},
        )


def read_stated(path: Path, text: str, given: Mapping[str, Any], family: str, stand_in: Number | None) -> Stated:
    """Read every field; where no loss is stated, an epsilon may stand in for it."""
    named = fields.sections(family)
    homes: dict[str, str] = {}
    known = [*fields.names("", family), *named]
    if family == fields.SPINE:
        known.append("groups")
        homes = {key: name for name in named if name != "graph" for key in fields.names(name) if key != "order"}
    if family == fields.GROUPS and "facts" in given:
        raise PlanFileError(
            f"{path}: [facts] are about counts of records, and this plan counts groups by size. What is public of "
            "groups is their list: name it with [groups] list, and every region keeps its number of groups (public = "
            '"regions"); leave [facts] out'
        )
    top = Section(str(path), "", given).only(known, homes)
    sections = {name: top.table(name).only(fields.names(name, family)) for name in named}
    attributes = read_attributes(top, family)
    values: dict[str, Any] = {name: fields.read(section, name, family) for name, section in sections.items()}
    values |= {"": fields.read(top, "", family), "attributes": attributes}
    if "graph" not in given:
        values["graph"] = {}
    _check_data(sections["data"], values["data"], path.parent)
    loss = values["loss"]
    is_open = loss["epsilon"] is None and loss["rho"] is None
    if is_open:
        loss["epsilon"] = stand_in
    return Stated(path, text, family, sections, values, attributes, is_open)


def _check_data(section: Section, data: dict[str, Any], folder: Path) -> None:
    """See that what is said about the private table fits together, and find it from the plan file's folder."""
    source = data["source"]
    if source is not None and "://" not in source and source != "-":
        data["source"] = str(folder / source)
    if data["fields"] is not None and data["delimiter"] is not None:
        raise section.problem("fields are of fixed-width text, which has no delimiter: keep one")
    with section.located():
        Source("-", **{key: data[key] for key in ("fields", "keep", "drop", "header", "names", "blank_lines")})
        Prepare(
            trim=data["trim"] or (),
            missing=data["missing"] or (),
            thousands=data["thousands"] or {},
            pad=data["pad"] or {},
            bands=data["bands"] or {},
        )
