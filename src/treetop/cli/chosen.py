"""What `treetop plan` found when it was asked to choose a loss: for people, and for machines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treetop.cli.terminal import style

if TYPE_CHECKING:
    from fractions import Fraction

    from treetop.choose import Answer, Forecast, GridRow, Target, Trials
    from treetop.plan.file import PlanFile
    from treetop.plan.plan import PurePlan


@dataclass(frozen=True)
class Found:
    """What came of it."""

    file: PlanFile
    """The plan that was asked about."""
    plan: PurePlan
    """The plan with the answer, or as it is."""
    targets: tuple[Target, ...]
    """The targets as they were read."""
    answer: Answer | None
    """The smallest loss for the targets."""
    forecast: Forecast | None
    """The best split for the prior."""
    grid: tuple[GridRow, ...]
    """Errors at several epsilons."""
    grid_delta: Fraction | None
    """The delta of those epsilons; None where they are pure."""
    trials: Trials | None
    """Trials of the plan on the twin."""
    grid_trials: dict[float, Trials]
    """Trials at the epsilons of the grid."""
    confidence: float
    """How sure margins are."""
    files: tuple[Path, ...]
    """What was written."""
    guarded: bool
    """Whether the plan names its private table, so that public ones could be compared with it."""
    notes: tuple[str, ...] = ()
    """How the public tables were read otherwise than the private one will be."""


def summarise(found: Found) -> dict[str, Any]:
    """Return what was found as plain values."""
    from treetop.card.meaning import meaning
    from treetop.choose import loss_toml

    chosen = found.answer is not None or found.forecast is not None
    return {
        "title": found.plan.title,
        "plan": str(found.file.path),
        "targets": [str(target) for target in found.targets],
        "answer": None if found.answer is None else {**found.answer.to_dict(), "meaning": meaning(found.plan)},
        "forecast": None if found.forecast is None else found.forecast.to_dict(),
        "toml": loss_toml(found.plan) if chosen else None,
        "confidence": found.confidence,
        "grid": [asdict(row) for row in found.grid],
        "grid_delta": float(found.grid_delta) if found.grid and found.grid_delta is not None else None,
        "trials": None if found.trials is None else _trials(found.trials),
        "grid_trials": [{"epsilon": epsilon, **_trials(trials)} for epsilon, trials in found.grid_trials.items()],
        "notes": list(found.notes),
        "files": [str(file) for file in found.files],
    }


def _trials(trials: Trials) -> dict[str, Any]:
    return {"twin": trials.twin, "runs": trials.runs, "levels": trials.to_dicts()}


def render(found: Found) -> str:
    """Return what was found for people."""
    from treetop.basics.exact import plain
    from treetop.choose import loss_toml, render_grid

    percent = f"{100 * found.confidence:g}%"
    parts = [f"{_bold(found.plan.title or found.file.path.name)}\n{_read(found)}"]
    if found.answer is not None:
        parts.append(_render_answer(found, found.answer))
    if found.forecast is not None:
        parts += [f"{_bold('The best split for the prior')}\n{found.forecast}"]
    if found.answer is not None or found.forecast is not None:
        parts += [f"{_bold('For the plan file, in place of its [loss]')}\n\n{loss_toml(found.plan)}"]
    if found.trials is not None:
        parts.append(f"{_bold(f'Trials at {_say(found.plan)}')}\n{found.trials}")
    if found.grid:
        at = "pure" if found.grid_delta is None else f"delta {plain(found.grid_delta)}"
        title = f"One measurement is within ± this, {percent} of the time ({at})"
        parts.append(f"{_bold(title)}\n{render_grid(found.grid)}")
    if found.grid_trials:
        first = next(iter(found.grid_trials.values()))
        title = f"Released counts within ± this, {percent} of them: {first.runs} trials each on {first.twin}"
        parts.append(f"{_bold(title)}\n{_render_trials(found.grid_trials)}")
    if found.notes:
        parts.append("\n".join(found.notes))
    if not found.guarded and (found.forecast is not None or found.trials is not None or found.grid_trials):
        parts.append(
            "The plan names no private table, so nothing could be compared with it: be sure that this one is public."
        )
    parts += [f"Wrote {file}." for file in found.files]
    return "\n\n".join(parts)


def _read(found: Found) -> str:
    """Say what was done with the private table."""
    public = found.forecast is not None or found.trials is not None or found.grid_trials
    if found.guarded and public:
        return "Of private data, only this was asked: whether the public table is the private one."
    return "No private data was read."


def _render_answer(found: Found, answer: Answer) -> str:
    from treetop.card.meaning import meaning, say_epsilon, say_odds
    from treetop.plan.accuracy import text_table

    rows = [("what it means for", "epsilon", "odds move by at most")]
    rows += [(row["who"], say_epsilon(row["epsilon"]), say_odds(row["epsilon"])) for row in meaning(found.plan)]
    return "\n".join(
        [
            _bold("Targets"),
            *(f"- {target}" for target in found.targets),
            "",
            _bold(f"The smallest loss that meets them: {_say(found.plan)}"),
            str(answer),
            "",
            text_table(rows, left=(0,)),
        ]
    )


def _say(plan: PurePlan) -> str:
    from treetop.basics.exact import plain

    loss = plan.loss
    if loss.epsilon is None:
        return f"rho {plain(loss.budget)}"
    return f"epsilon {plain(loss.epsilon)}" + (", pure" if loss.delta is None else f" at delta {plain(loss.delta)}")


def _render_trials(trials: dict[float, Trials]) -> str:
    from treetop.plan.accuracy import text_table

    head = ("level", "name", "public nodes", *(f"epsilon {epsilon:g}" for epsilon in trials))
    levels = zip(*(one.rows for one in trials.values()), strict=True)
    body = [
        (str(rows[0].level), rows[0].name, f"{rows[0].nodes:,}", *(f"{row.margin:,}" for row in rows))
        for rows in levels
    ]
    return text_table([head, *body], left=(1,))


def _bold(text: str) -> str:
    return style(text, bold=True)
