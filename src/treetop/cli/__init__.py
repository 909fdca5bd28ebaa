"""The command line: one module a command, loaded when it is called."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import re
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import click

from treetop._util.distribution import DISTRIBUTION, VERSION
from treetop._util.system import too_little
from treetop.cli.progress import check_interrupt, interrupted_by, was_interrupted, watched
from treetop.cli.terminal import in_flags, shown_safely, tell
from treetop.errors import Refusal, TreetopError, discreet, visible

COMMANDS = {
    "inspect": "Describe a table and draft a plan file.",
    "plan": "Accuracy, noise and cost of a plan; reads no private data.",
    "release": "Run a plan once on a private table and publish; spends the plan's loss.",
    "check": "Verify a release: sums, integers, card, hashes, loss.",
    "compare": "Mechanisms side by side on a private table, for the steward only.",
    "ask": "Noisy counts of a private table by question, charged to a ledger.",
    "query": "Counts of a release, by codes of any level.",
    "estimate": "Better estimates from all measurements of a release, at no cost.",
    "export": "A release in the formats of other tools.",
    "ledger": "Create and show the record of what has been spent.",
    "studio": "All of this in a browser, on this machine only.",
    "demo": "Everything on shipped data, in under a minute.",
}
"""Every command and its one line of help; the module has the same name. `--help` imports none of them."""


class _Broken(Exception):
    """An error of the system on its way past click, which would end with exit code 1: that is for findings."""

    def __init__(self, problem: OSError | MemoryError) -> None:
        self.problem = problem


class _Refused(Exception):
    """An error of the library, with its message in the flags of the command, and the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class _Warnings(logging.Handler):
    """Shows the package's log messages in the style of the command line."""

    def emit(self, record: logging.LogRecord) -> None:
        tell(visible(discreet(record.getMessage())))  # a progress bar may stand in the way


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"treetop.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from treetop._util.choices import nearest

            raise click.UsageError(f"no such command {args[0]!r}{nearest(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        if (little := too_little()) is not None:
            raise click.ClickException(little)
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except (OSError, MemoryError) as problem:
            raise _Broken(problem) from problem
        except RuntimeError as problem:
            if "can't start new thread" in str(problem):  # for lack of memory, or of processes
                raise _Broken(MemoryError()) from problem
            raise
        except TreetopError as problem:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            message = str(problem) if command is None else in_flags(str(problem), command)
            raise _Refused(message, 3 if isinstance(problem, Refusal) else 2) from problem
        except click.UsageError as problem:
            if problem.ctx is None and ctx.invoked_subcommand is not None:
                command = self.get_command(ctx, ctx.invoked_subcommand)
                problem.ctx = None if command is None else click.Context(command, ctx, ctx.invoked_subcommand)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


logging.getLogger("treetop").addHandler(_Warnings(logging.WARNING))


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message=f"treetop %(version)s, of the distribution {DISTRIBUTION}")
def cli() -> None:
    """Publish hierarchical counts under differential privacy."""


@shown_safely()
def main(arguments: list[str] | None = None) -> None:
    """Run the command line: exit code 0, 1 for a finding, 2 for a mistake in the call or the input, 3 for a refusal."""
    if arguments is None:  # the process ends with the command: nobody need look through all objects once more
        atexit.register(gc.freeze)
    with watched(process=arguments is None):
        try:
            code = cli.main(arguments, prog_name="treetop", standalone_mode=False)
            check_interrupt()
            if code:  # click turns an early exit into a value
                sys.exit(code)
        except (click.Abort, KeyboardInterrupt):
            _leave_interrupted()
        except (Exception, SystemExit) as problem:
            if was_interrupted():  # what else broke on the way out, broke because of that
                _leave_interrupted()
            if isinstance(problem, SystemExit):
                raise
            _fail(problem)


def _leave_interrupted() -> NoReturn:
    number = interrupted_by()
    click.echo("treetop: interrupted" if number == signal.SIGINT else f"treetop: ended by {number.name}", err=True)
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(128 + number)  # everything is cleaned up; readers that still run in other threads would abort the process


def _fail(problem: Exception) -> NoReturn:
    """Exit with one message, if there is one for this error."""
    if isinstance(problem, click.ClickException):
        click.echo(_told(problem), err=True)
        sys.exit(2)
    if isinstance(problem, _Refused):
        click.echo(f"treetop: {problem}", err=True)
        sys.exit(problem.code)
    if isinstance(problem, _Broken):
        _leave(problem.problem)
    if isinstance(problem, OSError | MemoryError):
        _leave(problem)
    raise problem


def _told(problem: click.ClickException) -> str:
    """Return the message for a wrong call, in the form of all errors, with the command that shows help."""
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    if context is not None and problem.message == context.get_help():  # called without anything
        return problem.message
    text = problem.format_message().rstrip(".")
    if re.match("[A-Z][a-z]+ ", text):  # click begins like a sentence
        text = text[0].lower() + text[1:]
    return f"treetop: {text}" + ("" if context is None else f" (see {context.command_path} --help)")


def _leave(problem: OSError | MemoryError) -> NoReturn:
    """Leave on an error of the system, with one message."""
    if isinstance(problem, OSError):
        with suppress(OSError):  # what is still to be printed may have nowhere to go
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(problem, BrokenPipeError):
        sys.exit(128 + 13)  # as a process that ends by SIGPIPE
    if isinstance(problem, MemoryError):
        click.echo("treetop: there is not enough memory for this", err=True)
    else:
        where = f"{problem.filename}: " if problem.filename else ""
        click.echo(f"treetop: {where}{problem.strerror or problem}", err=True)
    sys.exit(2)
