"""`treetop plan`: the cost and the accuracy of a plan, before any private data is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from treetop.cli.progress import Bar
from treetop.cli.terminal import PATH, bold, numbers, pairs, say_json, style, text_table

if TYPE_CHECKING:
    from treetop.advice import Report
    from treetop.plan.file import PlanFile
    from treetop.plan.plan import Plan

DEFAULT_GRID = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Epsilons of a plot by default."""

ANSWERS = ("answer", "forecast", "refined", "design")
"""Reports with a plan to write, in the order in which they are made."""

_Names: TypeAlias = tuple[str, ...]
_NEEDED: tuple[tuple[_Names, _Names], ...] = (
    (("weights", "prior_source", "objective", "refine", "squared_error"), ("prior",)),
    (("shares",), ("refine",)),
    (("shares_weight",), ("shares",)),
    (("care",), ("design",)),
    (("twin_source",), ("twin",)),
    (("force",), ("plot",)),
    (("write",), ("targets", "prior", "design")),
    (("delta", "pure"), ("targets", "squared_error", "epsilons", "plot")),
)
"""Options, and the options of which each needs at least one."""
_APART: tuple[tuple[_Names, _Names], ...] = (
    (("pure",), ("delta",)),
    (("targets",), ("prior",)),
    (("design",), ("targets", "epsilons", "plot", "weights", "objective", "refine", "squared_error")),
    (("shares",), ("weights",)),
)
"""Options that exclude others."""


def _given(asked: Mapping[str, Any]) -> set[str]:
    return {name for name, value in asked.items() if value is not None and value is not False and value != ()}


def check_options(asked: Mapping[str, Any]) -> None:
    """Refuse options that exclude each other, or that have no effect, before anything is read."""
    parameters = click.get_current_context().command.params
    flag = {parameter.name: parameter.opts[0] for parameter in parameters}
    given = _given(asked)
    for names, others in _APART:
        for name, other in ((name, other) for name in names for other in others):
            if {name, other} <= given:
                raise click.UsageError(f"give {flag[name]} or {flag[other]}, not both")
    if {"design", "twin", "prior"} <= given:
        raise click.UsageError("--advise tries plans on one public table: give --twin or --prior")
    for names, needed in _NEEDED:
        for name in names:
            if name in given and not given & set(needed):
                raise click.UsageError(f"{flag[name]} needs {' or '.join(flag[other] for other in needed)}")


def advise(file: PlanFile, asked: Mapping[str, Any], confidence: float, bar: Bar) -> dict[str, Report]:
    """Answer the questions; each answer is about the plan that the answers before it have changed."""
    from treetop.advice import design, error_grid, known_outlook, loss_for, split_for, try_out, twin_of, with_epsilon

    found: dict[str, Report] = {}
    trials = {"runs": asked["runs"], "threads": asked["threads"], "progress": bar}
    loss = {"delta": asked["delta"], "pure": asked["pure"]}
    twin, twin_source, epsilons = asked["twin"], asked["twin_source"], asked["epsilons"]

    def add(report: Report) -> PlanFile:
        found.update({report.name: report, **report.parts})
        return replace(file, plan=report.plan, loss_is_open=False)

    if asked["targets"]:
        file = add(loss_for(file, asked["targets"], **loss))
    if asked["design"]:
        public, source = (twin, twin_source) if twin else (asked["prior"], asked["prior_source"])
        file = add(design(file, asked["care"], total=asked["total"], twin=public, twin_source=source, **trials))
    elif asked["prior"]:
        names = ("prior", "prior_source", "weights", "objective", "squared_error", "refine", "shares", "shares_weight")
        file = add(split_for(file, **{name: asked[name] for name in names}, **loss, **trials))
    if epsilons:
        grid = found["grid"] = error_grid(file, epsilons, confidence=confidence, **loss)
    if twin and not asked["design"]:
        if not file.loss_is_open:
            add(try_out(file, twin, twin_source=twin_source, total=asked["total"], confidence=confidence, **trials))
        if epsilons:
            public, _ = twin_of(file, twin, twin_source)
            for epsilon in epsilons:
                plan = with_epsilon(file.plan, epsilon, grid["delta"])
                found[f"epsilon {epsilon:g}"] = try_out(plan, public, confidence=confidence, **trials)
    if not {"outlook", "theta"} & found.keys():
        expected = known_outlook(file, asked["total"], twin)
        found |= {} if expected is None else {"outlook": expected, **expected.parts}
    return found


def run(path: Path, asked: dict[str, Any], confidence: float, as_json: bool) -> None:
    """Answer the questions about a plan, print the answers and write the files."""
    from treetop.advice import design_toml, designed_in, filled_in, loss_toml, plot_grid, private_tables
    from treetop.card import in_words
    from treetop.card.meaning import meaning
    from treetop.plan.file import read_plan
    from treetop.plan.workload import as_confidence

    check_options(asked)
    confidence = as_confidence(confidence)
    weights = pairs("--weight", "state=2", asked["weights"])
    asked["weights"] = {name: click.FLOAT(number) for name, number in weights}
    asked["epsilons"] = sorted(asked["epsilons"] or (DEFAULT_GRID if asked["plot"] else ()))
    is_open = asked["targets"] or asked["epsilons"] or asked["squared_error"] is not None
    file = read_plan(path, stand_in=1 if is_open else None)
    _check_places(path, asked)
    with Bar(shown=not as_json) as bar:
        found = advise(file, asked, confidence, bar)
    answers = [found[name] for name in ANSWERS if name in found]
    plan = answers[-1].plan if answers else file.plan
    toml = design_toml(plan, file.text) if "design" in found else loss_toml(plan) if answers else None
    by_epsilon = {epsilon: found[name] for epsilon in asked["epsilons"] if (name := f"epsilon {epsilon:g}") in found}
    files = [place for place in (asked["plot"], asked["write"]) if place is not None]
    if asked["plot"]:
        plot_grid(found["grid"], asked["plot"], confidence, by_epsilon, plan.title or path.name)
    if asked["write"]:
        text = (designed_in if "design" in found else filled_in)(file.text, plan, str(path))
        with asked["write"].open("x", encoding="utf-8") as stream:
            stream.write(text)
    notes = list(dict.fromkeys(note for report in found.values() for note in report.public_notes))
    if as_json:
        told = {name: report.alone().to_dict() for name, report in found.items()}
        grid, answer = told.get("grid"), told.get("answer")
        summary = {
            "title": plan.title,
            "plan": str(path),
            "targets": answer["targets"] if answer and asked["targets"] else [],
            "squared_error": asked["squared_error"],
            "refined": told.get("refined"),
            "answer": answer and {**answer, "meaning": in_words(meaning(plan))},
            **{name: told.get(name) for name in ("forecast", "design", "outlook", "largest", "limits")},
            "toml": toml,
            "confidence": confidence,
            "grid": grid["rows"] if grid else [],
            "grid_delta": grid["delta"] if grid else None,
            "trials": told.get("trials"),
            "grid_trials": [{"epsilon": epsilon, **report.alone().to_dict()} for epsilon, report in by_epsilon.items()],
            "theta": told.get("theta"),
            "notes": notes,
            "files": [str(place) for place in files],
        }
        say_json(summary)
        return
    compared = bool(asked["twin"] or asked["prior"]) and bool(private_tables(file))
    title = bold(plan.title or path.name)
    read = "Of private data, only this was asked: whether the public table is the private one."
    blocks = [f"{title}\n{read if compared else 'No private data was read.'}", *_blocks(found, by_epsilon, toml)]
    blocks += ["\n".join(notes)] if notes else []
    click.echo("\n\n".join([*blocks, *(f"Wrote {place}." for place in files)]))


def _check_places(path: Path, asked: Mapping[str, Any]) -> None:
    """Refuse output paths that cannot be written, before any data are read."""
    from treetop._util.files import resolved

    if (out := asked["write"]) is not None:
        if out.exists():
            raise click.UsageError(f"{out} exists already: choose another name")
        if resolved(out).parent != (own := resolved(path).parent):
            raise click.UsageError(f"{out}: paths in a plan are relative to its folder: write it to {own}")
    plot = asked["plot"]
    if plot is not None and not asked["force"] and (plot.exists() or plot.is_symlink()):
        raise click.UsageError(f"{plot} exists already: choose another name, or replace it (--force)")


def _blocks(found: Mapping[str, Report], by_epsilon: Mapping[float, Report], toml: str | None) -> Iterator[str]:
    """Yield the reports as text, one block per answer."""
    from treetop.advice import grid_text
    from treetop.card import in_words
    from treetop.card.meaning import meaning

    for name in (*ANSWERS, "trials", "largest", "grid", "theta", "limits"):
        if (report := found.get(name)) is not None:
            yield f"{bold(report.title)}\n{report.alone()}"
            if name == "answer":
                yield render_meaning(in_words(meaning(report.plan)))
        if name == ANSWERS[-1] and toml is not None:
            instead = "its own" if "design" in found else "its [loss]"
            yield f"{bold(f'For the plan file, in place of {instead}')}\n\n{toml}"
    if by_epsilon:
        first = next(iter(by_epsilon.values()))
        title = f"Released counts within ± the margin: {first['runs']} trials each on {first['twin']}"
        yield f"{bold(title)}\n{grid_text({epsilon: report.rows for epsilon, report in by_epsilon.items()})}"
    if "outlook" in found:
        yield render_outlook(found["outlook"].alone())


def render_meaning(rows: Sequence[dict[str, Any]]) -> str:
    """Return the meaning of a loss for each party, as text."""
    from treetop.card.sentences import say_epsilon, say_odds

    table = [("what it means for", "epsilon", "odds move by at most")]
    table += [(row["who"], say_epsilon(row["epsilon"]), say_odds(row["epsilon"])) for row in rows]
    return text_table(table, left=(0,))


def _schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from treetop.plan.file import plan_schema

        say_json(plan_schema())
        context.exit()


@click.command()
@click.argument("plan", type=PATH)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="How sure margins and bounds are.")
@click.option("--target", "targets", multiple=True, help='What a level must keep: "state=20", "state mean 8".')
@click.option("--delta", type=float, help="Delta; the plan's by default.")
@click.option("--pure", is_flag=True, help="A pure epsilon, without delta: Laplace noise.")
@click.option("--epsilon-grid", "epsilons", callback=numbers, help="Errors at several epsilons: 0.1,1,10.")
@click.option("--plot", type=PATH, help="Draw the grid to this file.")
@click.option("--twin", metavar="TABLE", help="A public or synthetic table, or a release, to try the plan on.")
@click.option("--twin-source", help="Where the twin is from, in words.")
@click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True, help="Trials on the twin.")
@click.option("--threads", type=click.IntRange(min=1), help="Trials at once; as many as cores by default.")
@click.option("--prior", metavar="TABLE", help="An earlier release, or a public table, to choose the split by.")
@click.option("--prior-source", help="Where the prior is from, in words.")
@click.option("--weight", "weights", multiple=True, metavar="LEVEL=NUMBER", help="With --prior: what errors weigh.")
@click.option("--squared-error", type=float, help="With --prior: find the smallest loss with this total error.")
@click.option(
    "--objective", type=click.Choice(["separate", "consistent"]), help="With --prior: whose errors are least."
)
@click.option("--refine", is_flag=True, help="With --prior: also try splits near the best, on its table.")
@click.option("--shares", metavar="TASK", help='With --refine: for sums dealt out by counts, "block in tract".')
@click.option(
    "--shares-weight",
    type=click.Choice(["log", "linear", "quadratic"]),
    help="With --shares: what a part with the share p is dealt: log(1 + p), p (default) or p².",
)
@click.option("--advise", "design", is_flag=True, help="Choose tables, order and shares for what you care about.")
@click.option("--care", multiple=True, help='With --advise: "origin totals", "all 2-way", "leaves=3".')
@click.option("--total", type=float, help="About how many records there are: what would be mostly noise?")
@click.option("--write", type=PATH, help="Write the plan with the answer filled in.")
@click.option("--force", is_flag=True, help="Draw over a plot that is there already.")
@click.option("--against", type=PATH, help="Only what changed since an earlier plan file.")
@click.option("--json", "as_json", is_flag=True, help="The same numbers for machines.")
@click.option("--schema", is_flag=True, is_eager=True, expose_value=False, callback=_schema, help="The JSON Schema.")
def command(plan: Path, confidence: float, against: Path | None, as_json: bool, **asked: Any) -> None:
    """Show accuracy per level, noise and cost of PLAN; reads no private data.

    With --target, find the smallest loss that is accurate enough; the plan may leave its loss open then. With --advise,
    find which tables to measure, in which order and with which shares.
    """
    from treetop.plan.file import differences, plan_text, read_plan
    from treetop.publishing.publish import plan_summary

    if against is not None:
        found = differences(plan_text(against), plan_text(plan))
        rows = [(one.field, one.before or "-", one.after or "-") for one in found]
        if as_json:
            say_json([asdict(one) for one in found])
        elif found:
            click.echo(text_table([("field", str(against), str(plan)), *rows], left=(0, 1, 2)))
        else:
            click.echo("Both say the same.")
        return
    if _given(asked) - {"runs", "threads", "total"}:  # those only say how trials are run, or how large the table is
        run(plan, asked, confidence, as_json)
        return
    file = read_plan(plan)
    summary = plan_summary(file, confidence, asked["total"])
    say_json(summary) if as_json else click.echo(render(file, summary))


def _margins(plan: Plan, percent: str) -> Iterator[str]:
    """Yield the sentences on margins and bounds."""
    if plan.mechanism.name == "region-histograms":
        what = f"{plan.reader.what} of one {plan.reader.axis}"
        counted = f"one number of {what}, in one region,"
        yield f"± one: the measurements of the level put {counted} within this of the truth, with {percent} confidence."
        return
    yield f"± one: the measurement of one count is within this of the truth, with {percent} confidence."
    if not plan.margin_tables:
        yield "± all: so are, at once, all counts of the level; most are far closer."


def render(file: PlanFile, summary: dict[str, Any]) -> str:
    """Return the plan's accuracy and cost for people."""
    from treetop._util.numbers import plain
    from treetop.advice import HOW_TO, counts_groups, known_outlook, largest_sizes
    from treetop.card import in_words
    from treetop.card.statements import rows
    from treetop.errors import translate_arguments
    from treetop.privacy.loss import COMPARED_AT

    plan, confidence = file.plan, summary["confidence"]
    percent = f"{100 * confidence:g}%"
    pure = plan.loss.definition == "pure"
    chance = "" if pure else f", but for a chance of delta {plain(plan.loss.delta or COMPARED_AT)}"
    levels = len(plan.spine.levels)
    size = f"{levels} level{'s' * (levels > 1)}, {plan.spine.leaves:,} possible leaves"
    facts = summary["facts"]["sentences"]
    largest = largest_sizes(plan, confidence) if counts_groups(plan) else None
    outlook = known_outlook(file, None if summary["outlook"] is None else summary["outlook"]["total"])
    verdict = None if outlook is None else render_outlook(outlook)
    if outlook is None and plan.mechanism.name == "top-down":
        verdict = translate_arguments(HOW_TO, "--{}".format)
    return "\n".join(
        [
            bold(plan.title or file.path.name),
            f"{size}; no private data was read.",
            *in_words(list(rows(file.keep, file.drop).values())),
            *(f"{rule[0].upper()}{rule[1:]}." for rule in file.prepared),
            "",
            str(plan.accuracy(confidence)),
            "",
            *_margins(plan, percent),
            "",
            *([bold("What is known and kept"), *(f"- {fact}" for fact in facts), ""] if facts else []),
            *([] if largest is None else [bold(largest.title), str(largest), ""]),
            bold("Cost"),
            _cost(plan, summary["loss"]),
            *(style(f"Warning: {warning}", fg="red") for warning in summary["warnings"]),
            plan.unit.sentence(),
            *summary["notes"],
            *(summary["graph"] or []),
            "",
            render_meaning(summary["meaning"]),
            "",
            f"The last column bounds how far the release can move anyone's odds about them{chance}.",
            "",
            bold("Exact and unprotected"),
            *(f"- {thing}" for thing in summary["exact"]),
            *([] if verdict is None else ["", verdict]),
        ]
    )


def render_outlook(report: Report) -> str:
    """Return a verdict in a few lines, and what limits of records cost."""
    blocks = ["\n".join([bold(report.title), *report.notes])]
    blocks += [f"{bold(part.title)}\n{part}" for part in report.parts.values()]
    return "\n\n".join(blocks)


def _cost(plan: Plan, loss: dict[str, Any]) -> str:
    from treetop._util.numbers import plain
    from treetop.privacy.loss import COMPARED_AT

    if loss["rho"] is None:
        return f"Epsilon {plain(plan.spent)}, pure differential privacy; Laplace noise."
    compared = "" if loss["delta_is_stated"] else " (the plan states no delta: this one is for comparison)"
    epsilon = plain(Fraction(repr(loss["epsilon"])))  # as it prints, not as the float nearest to it
    delta = f"{plain(plan.loss.delta or COMPARED_AT)}{compared}"
    if "accounting" in loss:
        by_rho = plain(Fraction(repr(loss["epsilon_by_rho"])))
        return (
            f"Alone, this release costs epsilon {epsilon} at delta {delta} (exact accounting, Gaussian noise). If you "
            f"publish more from the same table, count it as epsilon {by_rho} (rho {plain(plan.spent)}, "
            "zero-concentrated), or let a ledger of epsilon and delta compose the noise."
        )
    return f"Rho {plain(plan.spent)} (zero-concentrated), which is epsilon {epsilon} at delta {delta}; Gaussian noise."
