"""The exceptions: one small family, whose messages say what is wrong, where, and what to do next."""

from __future__ import annotations

from treetop.errors.showing import brief, discreet


class TreetopError(Exception):
    """Anything that Treetop refuses; the call that raises it has spent and written nothing, unless it is Unfinished."""

    def __init__(self, message: object = "", *rest: object) -> None:
        """Keep a message that may be shown: it may quote a URL, or a code of any length."""
        super().__init__(brief(discreet(str(message))), *rest)


class HierarchyError(TreetopError):
    """A public hierarchy that is not a tree with named levels."""


class SpineError(TreetopError):
    """A spine that refines attributes that it does not have, or out of order."""


class UnitError(TreetopError):
    """A protected unit that is not fully or not sensibly stated."""


class LossError(TreetopError):
    """A privacy loss, or a split of it over the levels, that cannot be kept."""


class PlanError(TreetopError):
    """A plan whose parts do not fit together."""


class FactError(TreetopError):
    """A public fact that cannot be read, or that the plan's other facts contradict."""


class UnkeptFact(FactError, PlanError):
    """A public fact that a release by this plan could not keep, or that would leave nobody protected."""


class DataError(TreetopError):
    """A private table that does not fit the plan."""


class EngineError(TreetopError):
    """Workers or a staging folder that cannot do what they are asked for; or that did not, several times."""


class QueryError(TreetopError):
    """A question to a release that names nothing, or more than one thing."""


class ReleaseError(TreetopError):
    """A release folder that cannot be written, or is not what it claims to be."""


class PlanFileError(TreetopError):
    """A plan file that cannot be understood: broken TOML, unknown keys, wrong types."""


class NumberError(TreetopError, ValueError):
    """Numbers that a repair, an estimate or a sampler cannot take: not finite, out of range, or of another shape."""


class LedgerError(TreetopError):
    """A ledger that cannot be opened, or is not one."""


class Unfinished(TreetopError):
    """Something that failed after its loss was charged: the loss stays spent, and the message says how far it came."""


class Refusal(TreetopError):
    """Well-formed, and still refused: the budget does not cover it, or a question is left open."""


class IncompletePlan(Refusal):
    """A plan that leaves a question open for which there is no safe default."""


class PrivatePrior(Refusal):
    """A plan that would be made from the private data that it is to protect."""


class ManyDropped(Refusal):
    """A release of a table with more unknown codes than is likely to be meant, dropped or counted under a leaf."""


class Overspent(Refusal):
    """A release that the ledger cannot cover."""
