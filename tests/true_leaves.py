"""Where true counts stand, leaf by leaf: what tests compare releases with."""

from treetop.measure.questions import leaves_of

__all__ = ["leaves_of"]
