"""How much memory a process may have: below what its libraries need, some of them hang or abort."""

from __future__ import annotations

import click

LEAST = 1 << 30
"""How many bytes of address space loading everything takes, with room for a small table."""


def refuse_little_memory() -> None:
    """Refuse a limit on memory under which nothing can be loaded reliably."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST:
        raise click.ClickException(
            f"there is not enough memory: this process may use {limit >> 20:,} MB, and loading the libraries takes "
            f"{LEAST >> 20:,} MB. Raise the limit (ulimit -v)"
        )


def is_no_thread(problem: RuntimeError) -> bool:
    """Whether no thread could be started, which is for lack of memory or of processes."""
    return "can't start new thread" in str(problem)
