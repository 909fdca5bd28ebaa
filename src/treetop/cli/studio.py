"""`treetop studio`: everything in a browser, on this machine only."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from treetop._util.distribution import install_extra

_NEEDS = ("starlette", "uvicorn", "python_multipart")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path(), required=False)
@click.option("--plan", metavar="FILE", help="The plan file of FOLDER; plan.toml by default.")
@click.option("--port", type=click.IntRange(min=0, max=65535), default=0, help="The port; a free one by default.")
@click.option("--open/--no-open", "opens", default=False, help="Open the link in a browser.")
def command(folder: Path, plan: str | None, port: int, opens: bool) -> None:
    """Prepare, plan, release and publish the tables of FOLDER in a browser.

    It listens on this machine only, and its link works once. The plan file holds all that is decided: what is done
    here could be done by hand, and the other way round. Ctrl-C ends it; a release that runs then leaves nothing.
    """
    if any(find_spec(name) is None for name in _NEEDS):
        raise click.ClickException(f"the studio needs a few packages more: {install_extra('studio')}")
    from treetop.addons.studio import serve
    from treetop.cli.progress import finish

    def ready(link: str) -> None:
        click.echo(f"The studio is ready. Open this link, which works once:\n\n  {link}\n\nCtrl-C ends it.")

    finish()  # Ctrl-C is how it ends, and the server hears of it
    serve(folder, plan, port, ready, click.launch if opens else None)
