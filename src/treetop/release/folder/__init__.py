"""The release folder: written whole or not at all, and read back with its own hierarchies."""

from treetop.release.folder.evidence import EVIDENCE, MEASUREMENTS, made_from_all
from treetop.release.folder.facts import FACTS
from treetop.release.folder.names import NAMES, PLACES, names_table
from treetop.release.folder.parts import (
    COUNT_PARTS,
    EVIDENCE_PARTS,
    FOLDERS,
    INDEX,
    NODE_PARTS,
    TOP,
    PartsInFiles,
    evidence_rows,
    index_rows,
    part_name,
    parts_listed,
    top_table,
)
from treetop.release.folder.place import check_place, claimed
from treetop.release.folder.public import PUBLIC
from treetop.release.folder.read import (
    CARD,
    COUNTS,
    HIERARCHIES,
    NODES,
    PAGE,
    PLAN,
    file_sha256,
    in_parts,
    load,
    read_card,
    read_contents,
    read_domain,
    read_spine,
)
from treetop.release.folder.unresolved import UNRESOLVED
from treetop.release.folder.write import Draft, drafted, nodes_schema, nodes_table, save, sizes, stored_tables
from treetop.release.margins import MARGINS

__all__ = [
    "CARD",
    "COUNTS",
    "COUNT_PARTS",
    "EVIDENCE",
    "EVIDENCE_PARTS",
    "FACTS",
    "FOLDERS",
    "HIERARCHIES",
    "INDEX",
    "MARGINS",
    "MEASUREMENTS",
    "NAMES",
    "NODES",
    "NODE_PARTS",
    "PAGE",
    "PLACES",
    "PLAN",
    "PUBLIC",
    "TOP",
    "UNRESOLVED",
    "Draft",
    "PartsInFiles",
    "check_place",
    "claimed",
    "drafted",
    "evidence_rows",
    "file_sha256",
    "in_parts",
    "index_rows",
    "load",
    "made_from_all",
    "names_table",
    "nodes_schema",
    "nodes_table",
    "part_name",
    "parts_listed",
    "read_card",
    "read_contents",
    "read_domain",
    "read_spine",
    "save",
    "sizes",
    "stored_tables",
    "top_table",
]
