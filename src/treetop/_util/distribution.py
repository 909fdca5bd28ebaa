"""The distribution that this package is installed from: its name, its version and its extras."""

from __future__ import annotations

DISTRIBUTION = "treetop-dp"
"""The name to install; the import and the command are `treetop`."""

VERSION = "0.4.0"
"""The version; the build reads it here (`[tool.hatch.version]` in pyproject.toml)."""


def install_extra(extra: str) -> str:
    """Return the command that installs the packages of an extra.

    >>> install_extra("excel")
    "pip install 'treetop-dp[excel]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"
