"""Step 8: publish. A site of static pages in a folder, which any web server can serve."""

from __future__ import annotations

from functools import partial
from typing import Any

from treetop.addons.studio.background import report_share
from treetop.addons.studio.folder import TABLES, free
from treetop.addons.studio.forms import Done, Form
from treetop.addons.studio.workspace import Workspace
from treetop.errors import ReleaseError
from treetop.exporting import export
from treetop.exporting.language import languages
from treetop.release.folder import PLACES


def show(workspace: Workspace, entered: Form) -> dict[str, Any]:
    """Return the values of the page."""
    names = workspace.folder.releases()
    name = entered.get("release") if entered.get("release") in names else "".join(names[:1])
    return {
        "releases": names,
        "release": name,
        "sites": workspace.folder.sites(),
        "languages": languages(),
        "files": workspace.folder.files(TABLES),
        "placed": bool(name) and any((workspace.folder.release(name) / PLACES).glob("*.parquet")),
        "form": {
            "out": entered.get("out") or free(workspace.folder, "site"),
            "language": entered.get("language") or "en",
            "credit": entered.get("credit"),
            "coordinates": entered.get("coordinates"),
        },
    }


def act(workspace: Workspace, form: Form) -> Done:
    """Write the site."""
    if not form.get("release"):
        raise ReleaseError("There is no release yet: make one first, in step 6")
    release, out = workspace.folder.release(form.get("release")), workspace.folder.new(form.get("out"), ReleaseError)
    if out.suffix:
        raise ReleaseError(f"{out.name}: a site is a folder, whose name has no ending: leave the dot out")
    done = export(
        release,
        "site",
        out,
        language=form.get("language") or None,
        credit=form.get("credit") or None,
        coordinates=workspace.folder.file(form.get("coordinates")) if form.get("coordinates") else None,
        skip_missing="skip_missing" in form,
        force="force" in form,
        share=partial(report_share, done="of the files are written"),
    )
    notes = "".join(f" {note[0].upper()}{note[1:]}." for note in done.notes)
    return Done("publish", f"{out.name} is written: {done.rows:,} rows, {done.total:,} in all.{notes}")
