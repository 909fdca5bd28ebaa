"""The ledger: the durable record, in one SQLite file, of the loss spent on data sets."""

from treetop.ledger._book import DEFAULT_DATASET, Ledger, Reservation, network_disk, warn_of_network
from treetop.ledger._log import OldCopy
from treetop.ledger.entry import Balance, Entry, OtherUnit, Review, unit_text

__all__ = [
    "DEFAULT_DATASET", "Balance", "Entry", "Ledger", "OldCopy", "OtherUnit", "Reservation", "Review", "network_disk",
    "unit_text", "warn_of_network",
]  # fmt: skip
