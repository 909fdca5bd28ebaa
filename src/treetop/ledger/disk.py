"""The disk that a ledger is on: one over a network may not keep two machines from writing at once."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from treetop.basics.resolved import resolved

MOUNTS = Path("/proc/self/mounts")
"""Where Linux lists its file systems."""

_NETWORK = re.compile(r"(nfs\d?|cifs|smb\w*|afs|ncpfs|9p|fuse\.(sshfs|s3fs|rclone|gcsfuse|glusterfs|davfs\w*))")


_log = logging.getLogger("treetop")


def network_disk(path: Path) -> str | None:
    """Return the kind of network file system that holds a file; None for a local disk, or where nothing tells."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        place = resolved(path)
    except OSError:
        return None
    found, kind = -1, ""
    for line in lines:
        fields = line.split(" ")
        mount = Path(_unescaped(fields[1])) if len(fields) > 2 else None
        if mount is not None and place.is_relative_to(mount) and len(mount.parts) >= found:
            found, kind = len(mount.parts), fields[2]  # a later line hides an earlier one at the same place
    return kind if _NETWORK.fullmatch(kind) else None


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def warn_of_network(path: Path) -> None:
    """Say that a network disk may let two machines spend at once."""
    if (kind := network_disk(path)) is not None:
        _log.warning(
            "%s is on a network disk (%s): locks may not hold there, and two machines may spend the same budget. Keep "
            "a ledger on a local disk, and charge it from one machine",
            path,
            kind,
        )
