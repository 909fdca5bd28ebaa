"""The folder of a studio: files below it can be chosen, and no other file is read, written or shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from treetop._util.files import resolved
from treetop.errors import DataError, ReleaseError, TreetopError
from treetop.io.database import sqlite_path
from treetop.io.source import Source, reads_once
from treetop.release.folder import CARD, COUNTS, INDEX

TABLES = (".csv", ".tsv", ".txt", ".dat", ".parquet", ".xlsx", ".xls", ".ods", ".gz", ".zst", ".bz2", ".db", ".sqlite")
LEDGERS = (".ledger",)
PLANS = (".toml",)
_DEEP = 3
_MANY = 500
_NAME = re.compile(r"[^\x00-\x1f\x7f/\\:*?\"<>|]{1,120}")


class File(NamedTuple):
    """A file that can be chosen."""

    name: str
    """Its path from the folder, with slashes."""
    size: int


class Folder:
    """A folder, and the files below it."""

    def __init__(self, path: str | Path) -> None:
        self.path = resolved(path)
        if not self.path.is_dir():
            raise DataError(f"{path}: is not a folder: name the folder that your table is in")

    def find(self, name: str, kind: type[TreetopError] = DataError) -> Path:
        """Return a path below the folder, existing or not; symbolic links are followed first."""
        found = self._below(self.path / name) if name else None
        if found is None:
            raise kind(f"{name!r} is not below {self.path}: the studio takes only what is in its folder")
        return found

    def _below(self, path: Path) -> Path | None:
        """Return the target of a path, with symbolic links followed; None if that is not below the folder."""
        try:
            found = path.resolve()
            return found if found.is_relative_to(self.path) and found != self.path else None
        except (OSError, ValueError, RuntimeError):  # a zero byte, or links that go in a ring
            return None

    def contain(self, location: str | Path) -> None:
        """Refuse a table that is not wholly below the folder: each of its files, with symbolic links followed.

        Args:
            location: The absolute path of a file or folder, a pattern, or a database URL, of which SQLite is a file.

        Raises:
            DataError: It is not; the message is the end of a sentence, "is not below …".
        """
        text = str(location).strip()
        if "://" in text and text.lower().startswith("sqlite:"):
            location = resolved(sqlite_path(text))
        elif "://" in text or text == "-":
            raise DataError("is not a file: the studio takes only what is in its folder")
        path = Path(location)
        outside = f"is not below {self.path}: the studio takes only what is in its folder"
        if self._below(path) is None and path != self.path:
            raise DataError(outside)
        if reads_once(path):
            raise DataError("is not a file, but a pipe or a device")
        try:
            files = Source(path).files()
        except DataError:  # a file that is not there is refused by whoever reads it
            return
        if any(self._below(file) is None for file in files):
            raise DataError(outside)

    def file(self, name: str) -> Path:
        """Return a file below the folder."""
        found = self.find(name)
        if not found.is_file():
            raise DataError(f"{name}: there is no such file in {self.path}: choose one that is listed")
        return found

    def name_of(self, path: str | Path) -> str:
        """Return the name of something below the folder."""
        return Path(os.path.relpath(path, self.path)).as_posix()

    def new(self, name: str, kind: type[TreetopError] = ReleaseError) -> Path:
        """Return the path of something new, right in the folder, by a plain name."""
        name = name.strip()
        if not _NAME.fullmatch(name) or name.startswith(".") or name.endswith((".", " ")):
            raise kind(f"{name!r} cannot be a name here: take letters, digits, blanks, - and _")
        return self.find(name, kind)

    def files(self, endings: Iterable[str]) -> list[File]:
        """List the files below it that end so, sorted; not those of releases and of exports."""
        wanted = tuple(endings)
        found = [one for one in self._walk(self.path, 0) if one.suffix.lower() in wanted]
        return [File(self.name_of(one), one.stat().st_size) for one in sorted(found)[:_MANY]]

    def releases(self) -> list[str]:
        """List the release folders below it, the newest first."""
        found = [one for one in self._folders(self.path, 0) if _is_release(one)]
        return [self.name_of(one) for one in sorted(found, key=lambda one: -(one / CARD).stat().st_mtime)[:_MANY]]

    def sites(self) -> list[str]:
        """List the sites below it, the newest first."""
        found = [one for one in self._folders(self.path, 0) if is_site(one)]
        return [self.name_of(one) for one in sorted(found, key=lambda one: -one.stat().st_mtime)[:_MANY]]

    def release(self, name: str) -> Path:
        """Return a release folder below it."""
        found = self.find(name, ReleaseError)
        if not _is_release(found):
            raise ReleaseError(f"{name}: is not a release: choose one that is listed")
        for one in found.rglob("*"):
            if one.is_symlink():
                self.find(str(one), ReleaseError)
        return found

    def _walk(self, folder: Path, deep: int) -> Iterator[Path]:
        for one in self._inside(folder):
            if one.is_file():
                yield one
            elif one.is_dir() and deep < _DEEP and not _is_release(one) and not is_site(one):
                yield from self._walk(one, deep + 1)

    def _folders(self, folder: Path, deep: int) -> Iterator[Path]:
        for one in self._inside(folder):
            if one.is_dir():
                yield one
                if deep < _DEEP and not _is_release(one):
                    yield from self._folders(one, deep + 1)

    def _inside(self, folder: Path) -> list[Path]:
        """Return the content of a folder, without hidden or unreadable entries and links that lead out of it."""
        try:
            found = [one for one in folder.iterdir() if not one.name.startswith((".", "~", "__pycache__"))]
            found = [one for one in found if os.access(one, os.R_OK)]  # not so of links that go in a ring
            return [one for one in found if not one.is_symlink() or resolved(one).is_relative_to(self.path)]
        except OSError:
            return []


def _is_release(folder: Path) -> bool:
    return (folder / CARD).is_file() and any((folder / name).is_file() for name in (COUNTS, INDEX))


def is_site(folder: Path) -> bool:
    """Whether a folder holds an exported site."""
    return (folder / "index.html").is_file() and (folder / "card.html").is_file() and not (folder / CARD).exists()


def free(folder: Folder, name: str, ending: str = "") -> str:
    """Return a name that is not taken in a folder: the first of release, release-2, release-3, …"""
    number = 1
    while (folder.path / (taken := f"{name}{'' if number == 1 else f'-{number}'}{ending}")).exists():
        number += 1
    return taken
