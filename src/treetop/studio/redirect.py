"""A page that leads a browser to the studio: the one-time link is not shown on a command line, which all users see."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from tempfile import mkdtemp

_PAGE = """\
<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>Treetop studio</title>
<p><a href="{link}">Open the studio</a>
"""


def redirect_page(link: str) -> str:
    """Return an HTML page that leads to a link."""
    return _PAGE.format(link=escape(link))


class RedirectFile:
    """A file that leads to a link, which only this user can read."""

    def __init__(self, link: str) -> None:
        self.path = Path(mkdtemp(prefix="treetop-studio-")) / "open.html"  # mkdtemp: 0700
        with open(self.path, "x", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(redirect_page(link))

    def remove(self) -> None:
        """Remove the file and its folder, if they are still there."""
        try:
            self.path.unlink(missing_ok=True)
            self.path.parent.rmdir()
        except OSError:  # gone already
            return
