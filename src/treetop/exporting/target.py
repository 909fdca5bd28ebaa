"""The target of an export: a new folder or file, in place whole or not at all, and never inside a release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from treetop._util.files import resolved
from treetop.errors import ReleaseError
from treetop.release.folder.place import scratch, sync


@dataclass(frozen=True)
class Target:
    """The files to be written: in a folder of their own, or beside other files."""

    out: Path
    """The folder, or the main file."""
    names: tuple[str, ...]
    """Names of the files in a folder, the main one first."""
    is_folder: bool
    every: frozenset[str]
    """The files that a folder may hold and still be replaced."""

    @staticmethod
    def of(out: Path, names: tuple[str, ...], suffixes: Sequence[str], force: bool, every: frozenset[str]) -> Target:
        """Choose the target of the files; refuse to overwrite anything else."""
        is_folder = out.is_dir() or not out.suffix
        if not is_folder and out.suffix not in suffixes:
            single = f"a file that ends in {' or '.join(suffixes)}, or " if suffixes else ""
            raise ReleaseError(f"{out}: name {single}a folder, whose name has no ending")
        target = Target(out, names, is_folder, every)
        target._refuse_release()
        if not out.absolute().parent.is_dir():
            raise ReleaseError(f"{out.absolute().parent} is not a folder: create it first")
        target._refuse_existing(force)
        return target

    def only(self, names: Sequence[str]) -> Target:
        """Return the same with some of the files."""
        return replace(self, names=tuple(names))

    def named(self, name: str) -> str:
        """Return a file's name at the target: a single file has its own name, and files beside it follow it."""
        if self.is_folder:
            return name
        return self.out.stem + (self.out.suffix if name == self.names[0] else Path(name).suffix)

    def files(self) -> tuple[Path, ...]:
        """Return the files, the main one first."""
        folder = self.out if self.is_folder else self.out.parent
        return tuple(folder / self.named(name) for name in self.names)

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """Yield a folder beside the target to write in; its content is moved into place at the end."""
        try:
            with scratch(self.out) as beside:
                whole = beside / "whole"
                whole.mkdir()
                yield whole
                for path in [*whole.iterdir(), whole]:
                    sync(path)
                (self._replace_folder if self.is_folder else self._replace_files)(whole)
                sync(self.out.absolute().parent)
        except OSError as problem:
            raise ReleaseError(f"{self.out}: cannot be written: {problem.strerror or problem}") from problem

    def _replace_folder(self, whole: Path) -> None:
        if not self.out.exists():
            whole.rename(self.out)
            return
        old = whole.parent / "old"
        self.out.rename(old)
        try:
            whole.rename(self.out)
        except OSError:
            old.rename(self.out)
            raise

    def _replace_files(self, whole: Path) -> None:
        # What stands beside the main file comes first: the main file is there only when all is.
        for file in reversed(self.files()):
            (whole / file.name).replace(file)

    def _refuse_release(self) -> None:
        place = resolved(self.out)
        for folder in (place, *place.parents):
            if (folder / "card.json").is_file() and (folder / "counts.parquet").is_file():
                raise ReleaseError(f"{self.out} is inside the release {folder}, which is not to change: choose another")

    def _refuse_existing(self, force: bool) -> None:
        there = [path for path in (self.out, *self.files()) if path.exists() or path.is_symlink()]
        if there and not force:
            raise ReleaseError(f"{there[0]} exists already: choose another name, or replace it (`force=True`)")
        if not self.is_folder or not there:
            return
        if not self.out.is_dir():
            raise ReleaseError(f"{self.out} is a file, not a folder: choose another name")
        others = sorted(path.name for path in self.out.iterdir() if path.name not in self.every)
        if others:
            raise ReleaseError(
                f"{self.out} holds more than an export, {others[0]!r} for example, so it is not replaced: "
                "choose another folder"
            )
