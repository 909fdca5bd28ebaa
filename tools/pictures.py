"""Pictures of pages for the docs and for whoever reviews them: wide and narrow, by day and in the dark.

python -m tools.pictures site/map.html --out pictures [--fragment "#level=state"] [--one]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser import CHROMIUM, browser

SIZES = {"desktop": (1280, 800), "phone": (390, 800)}


def main() -> None:
    """Open the pages in Chromium, and keep what is seen."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("pages", type=Path, nargs="+")
    asked.add_argument("--out", type=Path, default=Path("pictures"))
    asked.add_argument("--fragment", default="", help="what the address says after #, for a map")
    asked.add_argument("--one", action="store_true", help="the wide picture by day alone")
    given = asked.parse_args()
    if CHROMIUM is None:
        raise SystemExit("there is no Chromium here to open pages with")
    given.out.mkdir(parents=True, exist_ok=True)
    kinds = [(size, dark) for size in SIZES for dark in (False, True)]
    with TemporaryDirectory() as home, browser(Path(home)) as tab:
        for page in given.pages:
            for size, dark in kinds[:1] if given.one else kinds:
                tab.open(page, *SIZES[size], dark=dark, fragment=given.fragment)
                tab.ask("new Promise((done) => setTimeout(done, 600))")  # a map paints after it has loaded
                file = given.out / f"{page.stem}-{size}{'-dark' if dark else ''}.png"
                tab.seen(file)
                sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
