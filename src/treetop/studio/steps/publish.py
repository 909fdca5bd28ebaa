"""Step 8: publish. A site of static pages in a folder, which any web server can serve."""

from __future__ import annotations

from typing import Any

from treetop.errors import ReleaseError
from treetop.exporting import export
from treetop.exporting.language import languages
from treetop.studio.bench import Bench
from treetop.studio.folder import free
from treetop.studio.forms import Form
from treetop.studio.steps import Done


def show(bench: Bench, entered: Form) -> dict[str, Any]:
    """Return what the page shows."""
    names = bench.folder.releases()
    return {
        "releases": names,
        "release": entered.get("release") or (names[0] if names else ""),
        "sites": bench.folder.sites(),
        "languages": languages(),
        "form": {
            "out": entered.get("out") or free(bench.folder, "site"),
            "language": entered.get("language") or "en",
            "credit": entered.get("credit"),
        },
    }


def act(bench: Bench, form: Form) -> Done:
    """Write the site."""
    if not form.get("release"):
        raise ReleaseError("There is no release yet: make one first, in step 6")
    release, out = bench.folder.release(form.get("release")), bench.folder.new(form.get("out"), ReleaseError)
    if out.suffix:
        raise ReleaseError(f"{out.name}: a site is a folder, whose name has no ending: leave the dot out")
    done = export(
        release,
        "site",
        out,
        language=form.get("language") or None,
        credit=form.get("credit") or None,
        skip_missing="skip_missing" in form,
        force="force" in form,
    )
    notes = "".join(f" {note[0].upper()}{note[1:]}." for note in done.notes)
    return Done("publish", f"{out.name} is written: {done.rows:,} rows, {done.total:,} in all.{notes}")
