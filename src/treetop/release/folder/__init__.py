"""The release folder: written whole or not at all, and read back with its own hierarchies."""

from treetop.release.folder.evidence import EVIDENCE, MEASUREMENTS
from treetop.release.folder.facts import FACTS
from treetop.release.folder.names import NAMES, PLACES
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
    load,
    read_card,
    read_contents,
    read_domain,
    read_spine,
)
from treetop.release.folder.unresolved import UNRESOLVED
from treetop.release.folder.write import Draft, drafted, nodes_schema, nodes_table, save, sizes
from treetop.release.margins import MARGINS

__all__ = [
    "CARD",
    "COUNTS",
    "EVIDENCE",
    "FACTS",
    "HIERARCHIES",
    "MARGINS",
    "MEASUREMENTS",
    "NAMES",
    "NODES",
    "PAGE",
    "PLACES",
    "PLAN",
    "PUBLIC",
    "UNRESOLVED",
    "Draft",
    "check_place",
    "claimed",
    "drafted",
    "file_sha256",
    "load",
    "nodes_schema",
    "nodes_table",
    "read_card",
    "read_contents",
    "read_domain",
    "read_spine",
    "save",
    "sizes",
]
