"""The plan file as the state: read anew for every page, changed field by field, never overwritten blindly."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from treetop.addons.studio.folder import Folder
from treetop.addons.studio.wording import control_for
from treetop.domain.spine import BELOW, TIMES, problem_with_name
from treetop.errors import DataError, IncompletePlan, PlanFileError, TreetopError
from treetop.plan.fields import DEGREES, GROUPS
from treetop.plan.fields.declarations import SOURCES
from treetop.plan.file import PlanFile, family_of, named_files, parse_plan, plan_text
from treetop.plan.file.describe import value as written
from treetop.plan.file.edit import Changes, changed, parsed, renamed
from treetop.plan.mechanism import JointMechanism

_MANY = 100
"""Most versions of a plan that a session keeps."""
_STAND_INS: Mapping[str, Mapping[str, Any]] = {
    "unit": {"entity": "record", "contributions": 1, "neighbours": "replace"},
    "loss": {"epsilon": Decimal(1), "delta": Decimal("1e-8")},
}
"""Stand-ins for open questions, so that hierarchies and codes can be shown before they are answered."""


class Stale(TreetopError):
    """The plan file was changed by somebody else since a page was shown."""


@dataclass(frozen=True)
class PlanText:
    """A plan file as it is on disk now."""

    path: Path
    text: str
    folder: Folder
    """The studio's folder: a plan that names files outside it is not read."""

    @staticmethod
    def read(path: Path, folder: Folder) -> PlanText:
        """Read it."""
        return PlanText(path, plan_text(path), folder)

    def with_text(self, text: str) -> PlanText:
        """Return the same file with another text, which is not written."""
        return PlanText(self.path, text, self.folder)

    @property
    def version(self) -> str:
        """Hash that identifies this text."""
        return sha256(self.text.encode()).hexdigest()

    @cached_property
    def values(self) -> dict[str, Any]:
        """The content as plain values."""
        return parsed(self.text, self.path.name)

    def get(self, *names: str, default: Any = None) -> Any:
        """Return one field."""
        inner: Any = self.values
        for name in names:
            if not isinstance(inner, Mapping) or name not in inner:
                return default
            inner = inner[name]
        return inner

    @property
    def kind(self) -> str | None:
        """The plan's kind if the studio does not prepare its table; None for a table of records."""
        family = family_of(self.values)
        if family == GROUPS:
            return "group sizes"
        if family == DEGREES:
            return "the degrees of a graph"
        return "a graph" if "graph" in self.values else None

    def refuse_other_kinds(self) -> None:
        """Refuse to change fields that only plans for tables of records have."""
        if self.kind is not None:
            raise PlanFileError(
                f"This plan counts {self.kind}: what this page changes is not for it. Change {self.path.name} in an "
                "editor"
            )

    def location(self, name: str) -> str | Path:
        """Return the location of a file that the plan names: its path, or its URL if it is in a database."""
        return name if "://" in name or name.strip() == "-" else self.path.parent / name

    def refuse_outside(self, only: str | None = None) -> None:
        """Refuse a plan that names a file outside the studio's folder, in one field or in any, before reading it."""
        for field, name in named_files(self.values):
            if only is not None and field != only:
                continue
            try:
                self.folder.contain(self.location(name))
            except DataError as problem:
                raise PlanFileError(
                    f"{self.path.name}: [{field}] names {name!r}, which {problem}. Copy it into the folder, and "
                    f"change the plan {control_for(f'[{field}]')}"
                ) from problem

    def _parse(self, text: str) -> PlanFile:
        """Read a text of the plan; the only place of the studio that does."""
        self.refuse_outside()
        return parse_plan(text, self.path)

    @cached_property
    def _read(self) -> PlanFile | IncompletePlan:
        try:
            return self._parse(self.text)
        except IncompletePlan as problem:
            return problem

    @cached_property
    def whole(self) -> PlanFile | None:
        """The plan; None if it is incomplete or wrong."""
        return self._read if isinstance(self._read, PlanFile) else None

    @cached_property
    def open(self) -> str | None:
        """Message on the open question; None if there is none."""
        return str(self._read) if isinstance(self._read, IncompletePlan) else None

    @cached_property
    def sketch(self) -> PlanFile:
        """The plan, with stand-ins for the protected unit and the loss if these are open."""
        if isinstance(self._read, PlanFile):
            return self._read
        if self.kind is not None:  # whose questions are others
            raise self._read
        return self._parse(changed(self.text, self._lacking(), self.path.name))

    def _lacking(self) -> dict[tuple[tuple[str, ...], str], Any]:
        """Return stand-ins for the open questions about the unit and the loss."""
        stated = {name: self.values.get(name, {}) for name in _STAND_INS}
        lacking: dict[tuple[tuple[str, ...], str], Any] = {
            ((section,), field): value
            for section, values in _STAND_INS.items()
            for field, value in values.items()
            if field not in stated[section] and not (section == "loss" and "rho" in stated[section])
        }
        if "epsilon" in stated["loss"]:  # without a delta it is a pure one
            lacking.pop((("loss",), "delta"), None)
        return lacking

    @cached_property
    def draft(self) -> PlanFile:
        """The plan, with stand-ins for lists of codes that are open as well."""
        if not (waiting := self.waiting):
            return self.sketch
        own = self.get("attributes", default={})
        filled = {name: {"values": ["a", "b"]} for name in waiting}
        changes = self._lacking() | {(("attributes", name), "values"): ["a", "b"] for name in waiting}
        changes |= {(("attributes", name), field): None for name in waiting for field in ("levels", "widths", "codes")}
        ordered = spine_changes({"attributes": {**own, **filled}, "spine": {"order": self.get("spine", "order")}}, True)
        return self._parse(changed(self.text, {**changes, **ordered, (SPINE, "margins"): None}, self.path.name))

    @cached_property
    def waiting(self) -> list[str]:
        """The attributes without a list of codes."""
        own = self.get("attributes", default={}) if self.kind is None else {}
        return [name for name, one in own.items() if not isinstance(one, Mapping) or not LISTS & one.keys()]

    @cached_property
    def questions(self) -> list[tuple[str, str]]:
        """What the plan leaves open: the step that asks, and the question."""
        if self.kind is not None:
            return [] if self.open is None else [("protected", self.open)]
        asked = [("columns", f"Which values can {name} have?") for name in self.waiting]
        if not self.get("attributes", default={}):
            asked = [("columns", "Which columns do you publish?")]
        unit, loss = (self.get(name, default={}) for name in ("unit", "loss"))
        for field, question in (
            ("entity", "Who or what is protected?"),
            ("contributions", "How many records can one of them have?"),
            ("neighbours", "What must stay hidden?"),
        ):
            asked += [] if field in unit else [("protected", question)]
        if not {"epsilon", "rho"} & loss.keys():
            asked.append(("accuracy", "How accurate, and how private?"))
        if not isinstance(self.get("data", "source"), str):
            asked.append(("table", "Which file holds the private records?"))
        return asked or ([] if self.open is None else [("review", self.open)])

    @cached_property
    def problem(self) -> TreetopError | None:
        """The error of the plan, apart from open questions; None if it has none."""
        try:
            _ = self.draft.prepare
        except IncompletePlan:
            return None
        except TreetopError as problem:
            return problem
        return None

    def changed(self, changes: Changes) -> str:
        """Return the text with some fields changed; fields with the same value keep their text."""
        differing = {
            (section, name): item
            for (section, name), item in changes.items()
            if not _same(item, self.get(*section, name))
        }
        return changed(self.text, differing, self.path.name) if differing else self.text

    def change(self, changes: Changes, seen: str) -> PlanText:
        """Write some fields, and return the new plan; `seen` is the version that the page was made of."""
        return self.replace(self.changed(changes), seen)

    def replace(self, text: str, seen: str) -> PlanText:
        """Write another text.

        Raises:
            Stale: The file is no longer the one that the page was made of.
            PlanFileError: The plan would not read, and did before, or for the same reason. Nothing is written.
        """
        if seen != self.version:
            raise Stale(
                f"{self.path.name} was changed since this page was shown, in another tab or in an editor. Nothing was "
                "overwritten: what the file says now is below. Look at it, and save again"
            )
        after = self.with_text(text)
        if text == self.text:
            return after
        if after.problem is not None and (self.problem is None or str(self.problem) == str(after.problem)):
            raise PlanFileError(
                f"Nothing was saved, because the plan would not read: {after.problem}.\nMend it "
                f"{control_for(str(after.problem))}"
            )
        write(self.path, text)
        return after


def _same(item: Any, stated: Any) -> bool:
    """Whether a new value of a field equals the stated one."""
    if item is None:
        return stated is None
    return bool(tomllib.loads(f"x = {written(item)}", parse_float=Decimal)["x"] == stated)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".plan-", delete=False) as draft:
            draft.write(text)
        try:
            if path.exists():
                shutil.copymode(path, draft.name)
            Path(draft.name).replace(path)
        except BaseException:
            Path(draft.name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise PlanFileError(f"{path.name}: cannot be written: {problem.strerror or problem}") from problem


# The order of the spine, kept in step with the attributes of a plan when these change.

SPINE = ("spine",)
LISTS = set(SOURCES)
"""Fields of an attribute that say which codes there are."""
_ENDS = {"origin", "destination"}
_ANY = "bottom-up"
_FLAT = "value"
"""The level of a plain list of values."""


def spine_changes(values: Mapping[str, Any], anew: bool = False, fresh: str | None = None) -> Changes:
    """Return the fields that must change so that the spine fits the attributes.

    Args:
        values: The plan file's values, with the attributes as they are to be.
        anew: Whether to ignore the stated order.
        fresh: An attribute with other levels than before: all of them are split.
    """
    attributes, spine = values.get("attributes", {}), values.get("spine", {})
    if len(attributes) < 2:
        return {(SPINE, name): None for name in ("order", "margins") if name in spine}
    order = None if anew else spine.get("order")
    if isinstance(order, str) and (
        order == _ANY or set(attributes) == _ENDS or (order == JointMechanism.name and len(attributes) > 2)
    ):
        return {}
    changes: dict[tuple[tuple[str, ...], str], Any] = {}
    if spine.get("order") == JointMechanism.name and spine.get("margins") == "pairs":
        changes[SPINE, "margins"] = "each"  # tables that cross are kept by a joint fit alone
    names = list(attributes)
    if order == "destination-first" and set(names) >= _ENDS:  # which stays the more accurate one
        first, second = sorted((names.index("origin"), names.index("destination")))
        names[first], names[second] = "destination", "origin"
    levels = {name: level_names(name, attributes) for name in names}
    wanted = _kept(order, levels, fresh) if isinstance(order, list) else default_order(levels)
    if wanted != order:
        changes[SPINE, "order"] = wanted
    if isinstance(margins := spine.get("margins"), list):
        left = [one for one in margins if all(_is_level(token, levels) for token in _tokens(one))]
        if left != margins:
            changes[SPINE, "margins"] = left or "none"
    return changes


def level_names(name: str, attributes: Mapping[str, Any]) -> list[str] | None:
    """Return the levels of an attribute, coarse to fine; None if its list of codes is still open."""
    own = attributes[name]
    if (twin := own.get("same_as")) in attributes and twin != name:
        return level_names(twin, {**attributes, name: {}})
    if not LISTS & own.keys():
        return None
    if isinstance(bands := own.get("bands"), Mapping):
        return list(bands)
    return list(own["levels"]) if "levels" in own else [_FLAT]


def default_order(levels: Mapping[str, Sequence[str] | None]) -> list[str]:
    """Return all levels, coarse ones of all attributes before fine ones, as a draft has them."""
    deep = zip_longest(*(_splits(name, own) for name, own in levels.items()))
    return [split for splits in deep for split in splits if split is not None]


def _splits(name: str, levels: Sequence[str] | None) -> list[str]:
    return [name] if levels is None or list(levels) == [_FLAT] else [f"{name}.{level}" for level in levels]


def _kept(order: list[str], levels: Mapping[str, Sequence[str] | None], fresh: str | None) -> list[str]:
    """Return an order: steps of attributes with changed levels are replaced, those of others kept."""
    stale = [name for name in levels if name == fresh or not _fits(name, order, levels)]
    kept: list[str] = []
    for step in order:
        chains = [chain for chain in _chains(step) if _apart(chain, levels)[0] in levels]
        left = [chain for chain in chains if _apart(chain, levels)[0] not in stale]
        if left:
            kept.append(TIMES.join(left) if len(left) < len(_chains(step)) else step)
        for name in stale:
            if any(_apart(chain, levels)[0] == name for chain in chains):
                placed = sum(split in kept for split in _splits(name, levels[name]))
                kept += _splits(name, levels[name])[placed : placed + 1]
    for name in stale:
        kept += [split for split in _splits(name, levels[name]) if split not in kept]
    return kept


def _fits(name: str, order: list[str], levels: Mapping[str, Sequence[str] | None]) -> bool:
    """Whether the levels of an attribute that an order has are some of its own, from coarse to fine."""
    tokens = [_apart(token, levels) for step in order for token in _tokens(step)]
    stated, own = [level for attribute, level in tokens if attribute == name], levels[name]
    if own is None:
        return bool(stated)
    if stated == [""]:
        return len(own) == 1 or name in own
    rest = iter(own)
    return bool(stated) and all(level in rest for level in stated)


def _apart(token: str, attributes: Collection[str]) -> tuple[str, str]:
    """Return the attribute and the level of a name; both may have dots."""
    token = token.strip()
    begins = [name for name in attributes if token == name or token.startswith(f"{name}.")]
    attribute = max(begins, key=len, default=token.partition(".")[0])
    return attribute, token[len(attribute) + 1 :]


def _is_level(token: str, levels: Mapping[str, Sequence[str] | None]) -> bool:
    """Whether a margin names an attribute, or one of its levels, that there is."""
    name, level = _apart(token, levels)
    if name not in levels:
        return False
    known = levels[name]
    return known is None or not level or level in known


def _chains(step: str) -> list[str]:
    return [chain.strip() for chain in step.split(TIMES.strip())]


def _tokens(step: str) -> list[str]:
    return [token.strip() for chain in _chains(step) for token in chain.split(BELOW.strip())]


def with_renamed(plan: PlanText, old: str, name: str) -> PlanText:
    """Return the plan with another name of an attribute, wherever it stands."""
    attributes = plan.get("attributes")
    if (problem := problem_with_name(name, [one for one in attributes if one != old])) is not None:
        raise PlanFileError(f"“Name in the release” is {name!r}: {problem}")
    token = re.compile(rf"(?<![\w.]){re.escape(old)}(?![\w])")
    text = renamed(plan.text, ("attributes", old), name, plan.path.name)
    after = plan.with_text(text)
    own = attributes[old]
    changes: dict[tuple[tuple[str, ...], str], Any] = {
        (("attributes", other), "same_as"): name for other, one in attributes.items() if one.get("same_as") == old
    }
    if "column" not in own:
        changes[("attributes", name), "column"] = old
    for field in ("order", "margins"):
        if isinstance(stated := plan.get("spine", field), list):
            changes[SPINE, field] = [token.sub(name, one) for one in stated]
    for path in (("data", "unknown"), ("loss", "split"), ("facts",), ("unit", "per_node")):
        if isinstance(stated := plan.get(*path), Mapping):
            changes[path[:-1], path[-1]] = {token.sub(name, key): item for key, item in stated.items()}
    if {old, name} & {"origin", "destination"} and isinstance(plan.get("spine", "order"), str):
        after = after.with_text(after.changed(changes))
        return after.with_text(after.changed(spine_changes(after.values, anew=True)))
    return after.with_text(after.changed(changes))


class History:
    """The saved versions of one plan, to go back to and forth again."""

    def __init__(self) -> None:
        self._versions: list[tuple[str, str]] = []
        """Texts, each with the step that saved it."""
        self._at = 0

    def keep(self, before: str, after: str, said: str) -> None:
        """Note what was saved."""
        if not before or before == after:
            return
        del self._versions[self._at + 1 :]
        if not self._versions or self._versions[-1][0] != before:  # an editor has changed it
            self._versions.append((before, "in an editor"))
        self._versions = [*self._versions, (after, said)][-_MANY:]
        self._at = len(self._versions) - 1

    def offered(self, text: str) -> dict[str, str]:
        """Return what can be undone and done again, and which step had saved it."""
        if not self._versions or self._versions[self._at][0] != text:
            return {}
        offered = {"undo": self._versions[self._at][1]} if self._at else {}
        if self._at + 1 < len(self._versions):
            offered["redo"] = self._versions[self._at + 1][1]
        return offered

    def go(self, way: str, text: str) -> str:
        """Return the version before or after the one that the plan has."""
        if way not in self.offered(text):
            raise PlanFileError("There is nothing to undo: the plan was changed in an editor, or is the first version")
        self._at += 1 if way == "redo" else -1
        return self._versions[self._at][0]
