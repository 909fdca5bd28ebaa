"""The release folder: written whole or not at all, and read back with its own hierarchies."""

from treetop.release.folder._read import in_parts, load, read_card, read_contents, read_domain, read_spine
from treetop.release.folder._shards import (
    COUNT_PARTS,
    EVIDENCE_PARTS,
    FOLDERS,
    INDEX,
    NODE_PARTS,
    TOP,
    StoredShards,
    index_rows,
    leaves_file,
    part_name,
    parts_listed,
    shard_files,
    top_table,
)
from treetop.release.folder._tables import (
    CARD,
    COUNTS,
    DAMAGE,
    EVIDENCE,
    FACTS,
    HIERARCHIES,
    MARGINS,
    MEASUREMENTS,
    NAMES,
    NODES,
    PAGE,
    PLACES,
    PLAN,
    PUBLIC,
    UNRESOLVED,
    file_sha256,
    made_from_all,
    measures_cells,
    names_table,
    parquet_file,
    read_bytes,
    read_table,
    read_text,
    unresolved_table,
)
from treetop.release.folder._write import Draft, drafted, save, sizes, stored_tables
from treetop.release.folder.place import check_place, claimed

__all__ = [
    "CARD", "COUNTS", "COUNT_PARTS", "DAMAGE", "EVIDENCE", "EVIDENCE_PARTS", "FACTS", "FOLDERS", "HIERARCHIES", "INDEX",
    "MARGINS", "MEASUREMENTS", "NAMES", "NODES", "NODE_PARTS", "PAGE", "PLACES", "PLAN", "PUBLIC", "TOP", "UNRESOLVED",
    "Draft", "StoredShards", "check_place", "claimed", "drafted", "file_sha256", "in_parts", "index_rows",
    "leaves_file", "load", "made_from_all", "measures_cells", "names_table", "parquet_file", "part_name",
    "parts_listed", "read_bytes", "read_card", "read_contents", "read_domain", "read_spine", "read_table", "read_text",
    "save", "shard_files", "sizes", "stored_tables", "top_table", "unresolved_table",
]  # fmt: skip
