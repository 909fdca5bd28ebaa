"""Every field of a plan that names a file is declared as one: the studio keeps them all below its folder."""

from __future__ import annotations

from tests.studio.test_folder import CASES
from treetop.plan import fields
from treetop.plan.file import named_files


def test_every_field_that_names_a_file_is_tried_with_one_outside_the_studio() -> None:
    declared = {f"{one.section}.{one.name}" for one in fields.file_fields()}
    assert declared == set(CASES) - {"facts.TABLE"}


def test_files_are_found_in_every_section_and_whatever_is_of_another_type_is_left_to_the_reader() -> None:
    values = {
        "attributes": {"place": {"hierarchy": "a"}, "odd": 3},
        "facts": {"place.state": "b", "place.town": {"at_most": "c", "exact": 4}},
        "data": {"source": "d", "replace": {"home": "e"}},
        "groups": {"list": "f"},
        "graph": {"nodes": "g", "edges": "h", "clean": {"hobby": {"vocabulary": "i"}}},
    }
    assert sorted(name for _, name in named_files(values)) == list("abcdefghi")
    assert list(named_files({"data": 1, "attributes": [], "graph": {"clean": "x", "nodes": []}})) == []
