"""Draft a plan file for a table: fill in visible facts, and leave fields without a safe default open."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import get_args

from treetop._util.files import resolved
from treetop.domain.unit import IdClean
from treetop.inspection import EdgeLayout, GroupLayout, Inspection
from treetop.inspection.suggest import Suggestion, sound_levels
from treetop.io.source import PACKED
from treetop.plan import fields
from treetop.plan.fields.declarations import ATTRIBUTE
from treetop.plan.file.describe import key, value
from treetop.plan.mechanism import MOST_CELLS

_WIDTH = 96
_FEW, _MANY = 4, 1000
"""Supposed numbers of codes of attributes without a public file."""
_VALUES = '# values = ["first", "second"]'
_HIERARCHY = fields.find(ATTRIBUTE, "hierarchy").question


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")


_MARGINS = (
    *_comment(
        "Totals of every attribute alone, at all its levels, are measured beside the spine and kept. Without them "
        '("none"), sums over many small counts are far off.'
    ),
    'margins = "each"',
)


def draft_plan(inspection: Inspection, folder: str | Path = ".") -> str:
    """Return the text of a plan file that is to be kept in `folder`.

    It contains column names and none of the values or numbers in the table, so that a plan may be shown to others. Open
    questions are commented-out lines: the file is valid TOML, and `read_plan` refuses it until they are answered.
    """
    folder = Path(folder)
    lines = [
        *_comment(
            f"A plan for {Path(inspection.path).name}, drafted by treetop inspect. Read every line; answer "
            "each open question by removing the # before its field and changing the value."
        ),
        "",
        f"title = {value(_title(inspection.path))}",
    ]
    if inspection.layout is not None:
        return "\n".join([*lines, *_of_layout(inspection, inspection.layout, folder)]) + "\n"
    for attribute in inspection.attributes:
        lines += _attribute(attribute, folder, _VALUES not in lines)
    if not inspection.attributes:
        lines += ["", *_comment("No column looks like codes. Name the ones to publish:"), "# [attributes.place]"]
        lines += ['# column = "place"', *_unknown_hierarchy(["region", "town"])]
    lines += _other_columns(inspection)
    lines += _spine(inspection)
    seen = {("unit", "id"): _id(inspection), ("data", "source"): _data(inspection, folder)}
    for section in fields.sections(fields.RECORDS):
        lines += _section(section, seen)
    lines += _facts(inspection)
    if inspection.source.fields is not None:
        lines += ["", "[data.fields]", *_comment("Fixed-width text: first and last character of each field.")]
        lines += [f"{key(name)} = {value(pieces)}" for name, pieces in inspection.source.fields.items()]
    return "\n".join(lines) + "\n"


def _title(path: str) -> str:
    name = Path(path)
    return name.with_suffix("").stem if name.suffix.lower() in PACKED else name.stem


def _attribute(attribute: Suggestion, folder: Path, explain: bool) -> list[str]:
    lines = ["", f"[attributes.{key(attribute.name)}]", f"column = {value(attribute.column)}"]
    if attribute.same_as is not None:
        return [*lines, f"same_as = {value(attribute.same_as)}"]
    match = attribute.match
    if match is not None:
        lines += _comment("Is this file public, and complete? A hierarchy never comes from the private table.")
        lines += [f"hierarchy = {value(_relative(match.lookup.path, folder))}"]
        if match.lookup.encoding is not None:
            lines += [f"encoding = {value(match.lookup.encoding)}"]
        named = dict(zip(attribute.levels, match.levels, strict=True))
        lines += [f"levels = {value(match.levels if attribute.levels == match.levels else named)}"]
        if match.ragged:
            lines += ['ragged = "repeat"  # branches end at different depths: their last code is carried down']
        labels = dict(match.labels)
        if match.coordinates is not None and match.leaf in labels:
            lines += [f"name = {value(labels.pop(match.leaf))}"]
        if labels:
            lines += [f"names = {value(labels)}"]
        if match.coordinates is not None:
            lines += [f"latitude = {value(match.coordinates[0])}", f"longitude = {value(match.coordinates[1])}"]
        return lines
    if attribute.prefixes is not None:
        prefixes = attribute.prefixes
        lines += _comment(f"{_HIERARCHY} It needs one column with all codes of {prefixes.length} digits.")
        lines += ['# hierarchy = "places.csv"', f"# codes = {value(attribute.levels[-1])}"]
        lines += [f"widths = {value(prefixes.widths)}  # lengths of the prefixes: check where the cuts belong"]
        return [*lines, f"levels = {value(attribute.levels)}"]
    if _is_end(attribute):
        return [*lines, *_unknown_hierarchy(sound_levels(attribute.chain or ("region", attribute.column)))]
    if levels := attribute.levels:
        file = f"{attribute.column}.csv" if attribute.many else "places.csv"
        return [*lines, *_unknown_hierarchy(levels, file)]
    if explain:
        lines += _comment(
            "Which values can it have? List them all from public knowledge, also those that do not occur: which "
            "ones occur in the table is private. For more than a few, name a public file: hierarchy and levels."
        )
    return [*lines, _VALUES]


def _unknown_hierarchy(levels: Sequence[str], file: str = "places.csv") -> list[str]:
    needs = "It needs one row for every finest code that exists, and one column per level."
    return [*_comment(f"{_HIERARCHY} {needs}"), f"# hierarchy = {value(file)}", f"# levels = {value(list(levels))}"]


def _other_columns(inspection: Inspection) -> list[str]:
    used = {attribute.column for attribute in inspection.attributes} | {inspection.count}
    used |= {name for chain in inspection.chains for name in chain[:-1]} | set(inspection.names)
    others = [
        column.name for column in inspection.columns if column.kind in ("code", "date") and column.name not in used
    ]
    if not others:
        return []
    return ["", *_comment(f"Other columns that could be attributes: {', '.join(map(value, others[:12]))}.")]


def _spine(inspection: Inspection) -> list[str]:
    names = [attribute.name for attribute in inspection.attributes]
    if len(names) < 2:
        return []
    if set(names) == {"origin", "destination"}:
        return [
            "",
            "[spine]",
            'order = "destination-first"  # or "origin-first": the first end is the more accurate one',
            *_MARGINS,
        ]
    if len(names) > 2 and _cells(inspection) <= MOST_CELLS:
        return [
            "",
            "[spine]",
            *_comment(
                "All tables of one and of two attributes are measured, and one table of all attributes is fitted to "
                "them. With a table of two or three attributes that matters more, list tables instead of pairs."
            ),
            'order = "joint"',
            'margins = "pairs"',
        ]
    # What is refined early is measured while counts are large, so that no attribute has to wait for another's leaves.
    deep = zip_longest(*(_splits(attribute, inspection) for attribute in inspection.attributes))
    rounds = [[split for split in splits if split is not None] for splits in deep]
    return [
        "",
        "[spine]",
        *_comment(
            "Coarse levels of all attributes before fine ones: in combinations, what comes first is more accurate."
        ),
        "order = [",
        *(f"    {', '.join(map(value, splits))}," for splits in rounds),
        "]",
        *_MARGINS,
    ]


def _cells(inspection: Inspection) -> int:
    """Guess the number of cells of all attributes together from public files alone."""
    matches = {one.name: one.match for one in inspection.attributes}
    sizes = {name: _FEW if one is None else len(one.lookup.known(one.leaf)) for name, one in matches.items()}
    many = [one for one in inspection.attributes if one.match is None and (one.many or one.prefixes or one.chain)]
    sizes |= dict.fromkeys((one.name for one in many), _MANY)
    return math.prod(sizes[one.same_as or one.name] for one in inspection.attributes)


def drafted_splits(inspection: Inspection) -> list[str]:
    """Return the order of the spine of a draft: levels of all attributes in turn, coarse ones before fine ones."""
    deep = zip_longest(*(_splits(attribute, inspection) for attribute in inspection.attributes))
    return [split for splits in deep for split in splits if split is not None]


def _splits(attribute: Suggestion, inspection: Inspection) -> list[str]:
    if attribute.same_as is not None:
        levels = next(one for one in inspection.attributes if one.name == attribute.same_as).levels
    else:
        levels = attribute.levels
    return [f"{attribute.name}.{level}" for level in levels] or [attribute.name]


def _facts(inspection: Inspection) -> list[str]:
    """Show how public facts are stated, with the first level of the draft; there may be none."""
    splits = _splits(inspection.attributes[0], inspection) if inspection.attributes else ["place.region"]
    return [
        "",
        *_comment(
            "Optional: what everyone knows, from public files with a column of codes and, for numbers, one called "
            "count. Exact counts are released as they are, and cost nothing; bounds are kept; what is impossible stays "
            "empty."
        ),
        "# [facts]",
        f'# {value(splits[0])} = "published_totals.csv"',
        *(f'# {value(split)} = {{ at_most = "public_limits.csv" }}' for split in splits[1:][-1:]),
    ]


def _section(section: str, seen: Mapping[tuple[str, str], list[str]], family: str = fields.RECORDS) -> list[str]:
    """Draft the fields found in the table, and questions for the proposed ones."""
    lines: list[str] = []
    for one in fields.of(section, family):
        asked = [*_comment(one.question or one.help), f"# {one.name} = {one.sketch}"] if one.sketch else []
        lines += seen.get((section, one.name), asked)
    return ["", f"[{section}]", *lines] if lines else []


def _of_layout(inspection: Inspection, layout: GroupLayout | EdgeLayout, folder: Path) -> list[str]:
    """Draft the rest of a plan for a table of groups, or of edges."""
    if isinstance(layout, GroupLayout):
        seen = {
            ("groups", "rows"): [f"rows = {value(layout.rows)}  # a row is one of these; change it if that is wrong"],
            ("groups", "group"): [f"group = {value(layout.group)}"],
            ("groups", "size"): [] if layout.size is None else [f"size = {value(layout.size)}"],
            ("unit", "id"): [] if layout.person is None else [f"id = {value(layout.person)}"],
            ("data", "source"): _data(inspection, folder),
        }
        seen |= {("groups", "number"): []} if layout.rows == "people" else {}  # its list tells it
        columns = (layout.group, layout.size, layout.person)
        places = [one for one in inspection.attributes if one.column not in columns][:1]
        lines = [line for place in places for line in _attribute(place, folder, True)] or _place("place")
        family = fields.GROUPS
    else:
        lines, family = _graph(inspection, layout, folder), fields.RECORDS if layout.attributes else fields.DEGREES
        seen = {("data", "source"): [line for line in _data(inspection, folder) if not line.startswith("source = ")]}
        seen |= {("unit", name): [] for name in ("entity", "contributions", "id", "may_be_missing")}
    for section in sorted(fields.sections(family), key=lambda name: name != fields.GROUPS):
        lines += _section(section, seen, family)
    return lines


def _place(name: str) -> list[str]:
    return ["", f"[attributes.{name}]", *_unknown_hierarchy(["region", "town"])]


def _graph(inspection: Inspection, layout: EdgeLayout, folder: Path) -> list[str]:
    """Draft the section of a graph: edges between the places of people or, if these are not known, degrees."""

    def asked(name: str, proposal: str) -> list[str]:
        return [*_comment(fields.find("graph", name).question or fields.find("graph", name).help), f"# {proposal}"]

    place = next((one for one in layout.attributes if one.match is not None), next(iter(layout.attributes), None))
    lines = ["", "[graph]", f"counts = {value('degrees' if place is None else 'edges')}"]
    nodes = None if layout.nodes is None else f"nodes = {value(_relative(layout.nodes, folder))}"
    lines += asked("nodes", 'nodes = "people.csv"') if nodes is None else [nodes]
    lines += [f"edges = {value(_relative(inspection.path, folder))}"]
    lines += [f"{name} = {value(getattr(layout, name))}" for name in ("id", "source", "target")]
    lines += [
        *asked("relation", 'relation = "edge"'),
        "directed = true  # or false: one edge is two people; then leave margins out",
    ]
    if place is None:
        return [*lines, *asked("largest", "largest = 50")]
    first = replace(place, name="origin", column=f"source.{place.column}")
    lines += _attribute(first, folder, True)
    lines += ["", "[attributes.destination]", f"column = {value(f'target.{place.column}')}", 'same_as = "origin"']
    return [*lines, "", "[spine]", 'order = "origin-first"', *_MARGINS]


def _id(inspection: Inspection) -> list[str]:
    """Propose an identifier column with repeated values; a column of unique values identifies rows only."""
    ids = [one for one in inspection.identifiers if one.named]
    repeating = [one for one in ids if one.repeats]
    lines = _comment(fields.find("unit", "id").question)
    if rows := [value(one.column) for one in ids if not one.repeats]:
        lines += _comment(f"Hardly {' or '.join(rows)}: it never repeats, so that each row would be one of them.")
    if len(repeating) > 1:
        lines += _comment(f"It could be {' or '.join(value(one.column) for one in repeating)}.")
    named = repeating[0] if repeating else None
    lines.append(f"# id = {value('person' if named is None else named.column)}")
    return [*lines, f"# id_clean = {value((named.clean if named else ()) or get_args(IdClean))}"]


def _data(inspection: Inspection, folder: Path) -> list[str]:
    source = inspection.source
    if source.location == "-":
        lines = ["# source: name the table on the command line"]
    else:
        lines = [f"source = {value(_relative(inspection.path, folder))}"]
    for name in ("query", "delimiter", "encoding", "sheet", "comment"):
        if (option := getattr(source, name)) is not None:
            lines += [f"{name} = {value(option)}"]
    lines += _header(inspection)
    if source.keep is not None:
        lines += [f"keep = {value(source.keep)}  # only these rows are the data set, decided without looking at it"]
    if source.drop is not None:
        lines += [f"drop = {value(source.drop)}  # these rows are no part of it, decided without looking at it"]
    if inspection.count is not None and inspection.count_is_stated:
        lines += [f"count = {value(inspection.count)}  # a row stands for so many records"]
    elif inspection.count is not None:
        lines += [*_comment(fields.find("data", "count").question), f"# count = {value(inspection.count)}"]
    lines += _prepare(inspection)
    if any(one.match is not None and one.match.unmatched for one in inspection.attributes):
        lines += _comment(
            "Optional: what to do with codes that are not in the hierarchy: stop with an error, drop their rows "
            '("drop"), or count them under a leaf that every hierarchy is given for them ("elsewhere").'
        )
        lines += ['# unknown = "elsewhere"']
    if any(column.kind == "date" for column in inspection.columns):
        lines += [*_comment("Optional: the time that the table is about."), '# period = "2011"']
    return lines


def _prepare(inspection: Inspection) -> list[str]:
    """Draft the rules that make codes match, commented out: the need for them may depend on one record."""
    prepare = inspection.prepare
    if prepare is None:
        return []
    lines = [f"# trim = {value(prepare.trim)}"] if isinstance(prepare.trim, tuple) and prepare.trim else []
    lines += [f"# pad = {value(prepare.pad)}"] if prepare.pad else []
    lines += [f"# thousands = {value(prepare.thousands)}"] if prepare.thousands else []
    if lines:
        lines = [
            *_comment(
                "More of the table fits after this. One record may be the reason, and the card states every rule: "
                "remove the # if it is right for the form that the table comes from, whoever is in it."
            ),
            *lines,
        ]
    return lines


def _header(inspection: Inspection) -> list[str]:
    source = inspection.source
    if source.header is None:
        return []
    lines = [f"header = {value(source.header)}"]
    if source.header:
        return lines
    if source.names is None:
        lines += _comment("The file has no names for its columns: give better ones, here and wherever they stand.")
    return [*lines, f"names = {value([column.name for column in inspection.columns])}"]


def _is_end(attribute: Suggestion) -> bool:
    return attribute.name in ("origin", "destination")


def _relative(path: str | Path, folder: Path) -> str:
    if "://" in str(path):
        return str(path)
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return resolved(path).as_posix()
