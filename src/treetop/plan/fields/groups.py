"""The fields of group sizes: rows, protected unit, and the public list of groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from treetop.counts.group_reader import Rows
from treetop.plan.fields.field import FILE, GROUPS, NAME, WHOLE, Field, Kind, Ran, Values, choice
from treetop.plan.fields.ordinary import always
from treetop.plan.group_unit import Event, Form, GroupUnit
from treetop.plan.region_histograms import Public


def _is_people(read: Values) -> bool:
    return bool(read["groups"]["rows"] == "people")


def _has_no_list(read: Values) -> bool:
    return not _is_people(read) and read["groups"]["list"] is None


def _most(ran: Ran) -> int | None:
    most = GroupUnit.of(ran.plan.unit).quantity
    return None if most == 1 else most


def _list(ran: Ran) -> str | None:
    named = None if ran.file is None or ran.file.groups is None else ran.file.groups.get("list")
    return None if named is None else Path(named).name


def _groups(name: str, kind: Kind, help: str, at: str = "", **more: Any) -> Field:
    return Field("groups", name, kind, help, families=(GROUPS,), at=at, **{"since": "0.2", **more})


FIELDS = (
    _groups("rows", choice(get_args(Rows)), 'A row is one of the `"people"`, one of the `"groups"`, or a number of '
            'groups of a region and size, `"histogram"` (with `[data] count`). There is one attribute, the place. '
            "`[spine]` and `[repair]` are left out; of `[unit]`, `entity`, `id` and `population` stay, and of "
            "`[release]`, `intervals`, `confidence` and `keep_measurements`",
            "plan.reader.rows", asked=always, digest="groups.rows", always=True,
            question='What is a row of the private table? "people": a person in a group. "groups": a group with its '
            'size. "histogram": a region and a size with its number of groups.'),
    _groups("largest", WHOLE, "The largest size that is told apart, public; larger groups are counted with it",
            "plan.unit.largest", asked=always, digest="groups.largest", always=True, sketch="8",
            question="Which is the largest size to tell apart? Larger groups are counted with it. Take it from public "
            "knowledge, never from the table."),
    _groups("event", choice(get_args(Event)), 'What stays hidden: `"join-leave"`, `"move"` or `"group"`',
            "plan.unit.event", asked=always, digest="groups.event", always=True, sketch='"join-leave"',
            question='What must stay hidden? "join-leave": whether a person is in a group at all. "move": also in '
            'which of them. "group": all that is in one group, whatever its size.'),
    _groups("group", NAME, "The column with the id of the group", "said.columns.group", place=2),
    _groups("size", NAME, "The column with its size", "said.columns.size", place=2),
    _groups("quantity", NAME, "The column with what a person adds to it", "said.columns.quantity", place=2),
    _groups("most", WHOLE, "The most that a person adds to it", "plan.unit.quantity", default=1, take=_most,
            digest="groups.quantity", place=1, always=True),
    _groups("form", choice(get_args(Form)), 'How sizes are measured: `"cumulative"` or `"direct"`', "plan.unit.form",
            default="cumulative", digest="groups.form", always=True),
    _groups("number", WHOLE, "How many groups there are, public; asked unless there is a list", "plan.reader.number",
            asked=_has_no_list, digest="groups.number", always=True, sketch="1000",
            question="How many groups are there in all? It is public and released exactly. Give it, or name a public "
            "list of all groups with their regions as list."),
    _groups("public", choice(get_args(Public)), 'Of what the number of groups is public, used and kept: of every '
            'region (`"regions"`, the default with a list), or of all together (`"total"`, the default without)',
            "plan.mechanism.public", digest="groups.public", always=True),
    _groups("repair", choice(("joint", "exact")), 'How measurements are made to add up: `"joint"`, all regions and '
            'sizes at once, or `"exact"`, as the paper has it. The default is the former, but for direct sizes where '
            "regions are not public",
            "plan.mechanism.repair", always=True, since="0.3"),
    _groups("list", FILE, "A public file with every group and its region; asked for people", asked=_is_people,
            take=_list, place=4, sketch='"groups.csv"',
            question="Which public file lists all groups with their regions? A table of people does not say which "
            "groups are empty, and whether one is must stay hidden."),
    _groups("list_group", NAME, "Its column with the groups", "file.groups.list_group", place=3),
    _groups("list_region", NAME, "Its column with their regions", "file.groups.list_region", place=3),
    _groups("list_sha256", NAME, "Refuses another list", "plan.reader.list_sha256", digest="groups.list_sha256",
            place=5, always=True),
)  # fmt: skip
