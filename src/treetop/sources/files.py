"""The files that a path, a folder or a pattern stands for, each once."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from treetop.errors import DataError

PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
"""How a file may be packed, by the last ending of its name."""

_MOST_ENTRIES = 100_000
"""How many entries of a folder are looked at: more are hardly those of one table."""


def files_at(location: str | Path, endings: Collection[str], names: Sequence[str]) -> list[Path]:
    """Return the file of a path, or those of a folder or a pattern in the order of their names.

    Of a folder these are the files with one of the endings; `names` are the formats that have them.
    """
    path = Path(location)
    try:
        if path.is_dir():
            return refuse_twice(_in_folder(path, endings, names), str(path), endings)
        if path.exists():
            return [path]
        if re.match(r"(?i)\s*(select|with)\s", str(location)):
            raise DataError(
                f"{location}: a query goes beside its database: name that as the table, and give the query with "
                "--query, as query in the plan file, or as Source('sqlite:///file', query='select …') in Python"
            )
        if glob.has_magic(str(path)):
            found = [Path(one) for one in glob.glob(str(path), recursive=True)]  # noqa: PTH207 - absolute too
            if files := sorted(file for file in found if file.is_file()):
                return refuse_twice(files, str(path), endings)
            raise DataError(f"{path}: no file matches this pattern")
    except (OSError, ValueError) as problem:
        raise DataError(f"cannot be read: {problem}") from problem
    raise DataError(f"{path}: no such file")


def refuse_twice(files: list[Path], where: str, endings: Collection[str]) -> list[Path]:
    """Refuse a file beside its own copy: each row would count twice, and so would everybody in it."""
    seen: dict[object, Path] = {}
    for file in files:
        about = file.stat()
        # A link to it, and a copy in another form.
        traits = ((about.st_dev, about.st_ino), _without_endings(file, endings))
        other = next((seen[trait] for trait in traits if trait in seen), None)
        if other is not None:
            raise DataError(
                f"{where}: holds {other.name} and {file.name}, which look like the same rows, and would be read twice: "
                "take one of them away, or name the file that is meant, or a pattern such as folder/*.csv"
            )
        seen |= dict.fromkeys(traits, file)
    return files


def _in_folder(folder: Path, endings: Collection[str], names: Sequence[str]) -> list[Path]:
    if folder.resolve() == Path(folder.resolve().anchor):
        raise DataError(f"{folder}: is a whole disk, not a table: name a file, or the folder of a table")
    files, seen = [], 0
    for place, folders, found in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        seen += len(folders) + len(found)
        if seen > _MOST_ENTRIES:
            raise DataError(
                f"{folder}: holds more than {_MOST_ENTRIES:,} files and folders: name a file, or the folder of a table"
            )
        paths = (Path(place, name) for name in found if not name.startswith((".", "_")))
        files += [path for path in paths if path.suffix.lower() in endings and path.is_file()]
    files.sort()
    if not files:
        raise DataError(f"{folder}: the folder holds no {' or '.join(names)} file")
    return files


def _without_endings(file: Path, endings: Collection[str]) -> Path:
    """Return what a file is called apart from how it is packed and written.

    >>> _without_endings(Path("trips.2001.csv.gz"), {".csv", ".gz"}).name
    'trips.2001'
    """
    if file.suffix.lower() in PACKED:
        file = file.with_suffix("")
    return file.with_suffix("") if file.suffix.lower() in endings else file
