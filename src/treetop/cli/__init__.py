"""The command line: one module a command, loaded when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from treetop.errors import Refusal, TreetopError

COMMANDS = {
    "inspect": "Describe a table and draft a plan file.",
    "plan": "Accuracy, noise and cost of a plan; reads no private data.",
    "ledger": "Create and show the record of what has been spent.",
    "demo": "Everything on shipped data, in under a minute.",
}
"""Every command and its one line of help; the module has the same name. `--help` imports none of them."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"treetop.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="treetop", message="treetop %(version)s")
def cli() -> None:
    """Publish hierarchical counts under differential privacy."""


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line: exit code 0, 2 for a mistake in the call or the input, 3 for a refusal."""
    try:
        return cli.main(arguments, prog_name="treetop", standalone_mode=False)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.ClickException as problem:
        problem.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("treetop: interrupted", err=True)
        sys.exit(130)
    except TreetopError as problem:
        click.echo(f"treetop: {problem}", err=True)
        sys.exit(3 if isinstance(problem, Refusal) else 2)
