"""How much memory there is: what is known not to fit is refused before anything is spent on it."""

from __future__ import annotations

from pathlib import Path

from treetop.errors import Refusal

LEAST = 1 << 30
"""How many bytes of address space loading everything takes, with room for a small table."""


class TooLarge(Refusal):
    """Something that would not fit in memory."""


def refuse_beyond_memory(needed: int, what: str, remedy: str) -> None:
    """Refuse what takes more bytes than are to be had, and say how many of each."""
    there = available()
    if there is not None and needed > there:
        raise TooLarge(f"{what} would take about {needed:,} bytes of memory, and {there:,} are to be had: {remedy}")


def available() -> int | None:
    """Return how many bytes of memory this process can still get; None where nobody knows."""
    known = [bytes_ for bytes_ in (_of_machine(), _of_group(), _of_limit()) if bytes_ is not None]
    return max(min(known), 0) if known else None


def _of_machine() -> int | None:
    return _field("/proc/meminfo", "MemAvailable:")


def limit() -> int | None:
    """Return how many bytes of address space this process may have; None where there is no such limit."""
    try:
        import resource
    except ImportError:  # not on this system
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most


def too_little() -> str | None:
    """Say that nothing can be loaded reliably, where it cannot: libraries hang or abort below what they need."""
    most = limit()
    if most is None or most >= LEAST:
        return None
    return (
        f"there is not enough memory: this process may use {most >> 20:,} MB, and loading the libraries takes "
        f"{LEAST >> 20:,} MB. Raise the limit (ulimit -v)"
    )


def _of_limit() -> int | None:
    most, used = limit(), _field("/proc/self/status", "VmSize:")
    return None if most is None or used is None else most - used


def _of_group() -> int | None:
    """What is left of the limit of a container."""
    limit, used = (_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    return None if limit is None or used is None else limit - used


def _field(file: str, name: str) -> int | None:
    """Return a field of a system file, which is in kilobytes."""
    try:
        lines = Path(file).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    found = next((line.split()[1] for line in lines if line.startswith(name)), "")
    return 1024 * int(found) if found.isdigit() else None


def _number(file: str) -> int | None:
    try:
        text = Path(file).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
