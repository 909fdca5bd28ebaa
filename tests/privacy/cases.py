"""What the audits are run on: plans, pairs of tables, and a few audits of each kind for the many faults."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

from treetop.privacy import Neighbours

from .audits import (
    DEEP,
    Audit,
    another_table_gets_other_noise,
    contributions_are_bounded,
    distinct_records_count_once,
    events_in_many_descents,
    every_leaf_is_counted_under_its_own_node,
    every_word_serves_once,
    the_law_of_all_measurements,
    the_law_of_releases,
    the_same_measurements_give_the_same_release,
    the_spread_of_released_counts,
)
from .neighbours import EXACT, KNOWN_LOSSES, PAIRS_OF_PLACES, SPLITS, Pair, split_of

SPLIT_WITH_MARGINS = {
    "total": 1,
    "destination.digits1": 2,
    "origin.digits1": 1,
    "destination.digits2": 1,
    "origin.digits2": 3,
    "margin origin.digits1": 1,
    "margins": 2,
}
MEASURED: list[tuple[str, Neighbours, int, dict[str, Any], dict[str, Any]]] = [
    ("two by two", neighbours, most, loss, split_of(weights, neighbours == "add-remove" or most > 1, exact))
    for neighbours in ("replace", "add-remove")
    for most in (1, 2, 3)
    for loss in KNOWN_LOSSES.values()
    for weights, exact in ((None, False), (SPLITS["top-heavy"], False), (SPLITS["bottom-heavy"], True))
]
MEASURED += [
    ("three levels", neighbours, most, loss, {})
    for neighbours in ("replace", "add-remove")
    for most in (1, 2, 3)
    for loss in KNOWN_LOSSES.values()
    if most == 1 or (most == 2 and "rho" in loss) or (DEEP and (most == 2 or neighbours == "add-remove"))
]
MEASURED += [
    ("pairs of places", "replace", 1, {"epsilon": 1, "delta": 1e-6}, {}),
    ("pairs of places", "add-remove", 2, {"epsilon": 1, "delta": 1e-6}, {}),
    ("pairs of places", "replace", 1, {"epsilon": 1, "delta": 1e-6}, {"margins": "none"}),
    ("pairs of places", "replace", 1, EXACT, {"margins": "each"}),
    (
        "pairs of places",
        "add-remove",
        1,
        EXACT,
        {"margins": ["origin.digits1", "origin.digits1 * destination.digits2"]},
    ),
    ("pairs of places", "replace", 2, KNOWN_LOSSES["rho"], {"split": SPLIT_WITH_MARGINS, "margins": "each"}),
    ("pairs of places", "replace", 1, KNOWN_LOSSES["pure"], {"margins": ["origin.digits2 * destination.digits1"]}),
    ("merged pairs of places", "replace", 1, EXACT, {"margins": "each"}),
    ("merged pairs of places", "add-remove", 2, KNOWN_LOSSES["rho"], {"margins": "none"}),
    ("merged pairs of places", "replace", 2, KNOWN_LOSSES["pure"], {"margins": ["origin.digits2"]}),
    ("pairs of places, bottom up", "replace", 1, EXACT, {"margins": "none"}),
    ("pairs of places, bottom up", "add-remove", 2, KNOWN_LOSSES["rho"], {"margins": "none"}),
    ("pairs of places, bottom up", "replace", 2, KNOWN_LOSSES["pure"], {"margins": "none"}),
    ("an only child", "replace", 2, KNOWN_LOSSES["rho"], {}),
    ("three leaves", "replace", 3, KNOWN_LOSSES["rho"], {}),
    ("two by two", "replace", 1, KNOWN_LOSSES["rho"], {"unknown": "drop"}),
    ("two by two", "replace", 3, KNOWN_LOSSES["rho"], {"per_node": {"place.digits2": 1}}),
    ("two by two", "add-remove", 3, KNOWN_LOSSES["rho"], {"per_node": {"place.digits1": 2, "place.digits2": 1}}),
    ("two by two", "replace", 1, EXACT, {}),
    ("two by two", "add-remove", 1, EXACT, {}),
    ("three levels", "replace", 1, EXACT | {"delta": 1e-6}, {}),
    ("two by two", "replace", 1, EXACT, {"split": {"place.digits1": 1, "place.digits2": 4}}),
    ("two by two", "replace", 1, EXACT, {"unknown": "drop"}),
]

PLENTY = dict.fromkeys(("A1", "A2", "B1", "B2"), 30)
"""A table on which repairs change little: what noise hides, nothing else does."""

TELLING: dict[str, Any] = {"epsilon": 3, "delta": 0.01, "large_delta": True}
"""A loss at which a wrong scale shows in few runs; at a smaller one, the same fault hides in the error of estimates."""

BLACK_BOX = [
    Pair("next door", {"A": 30, "B": 30}, {"A": 29, "B": 31}, tree="two leaves", loss=TELLING),
    Pair("next door", {"A": 30, "B": 30}, {"A": 29, "B": 31}, tree="two leaves", loss={"epsilon": 3}),
    Pair("among many", PLENTY, {**PLENTY, "A1": 29, "B2": 31}, loss=TELLING),
    Pair("among many", PLENTY, {**PLENTY, "A1": 29, "A2": 31}, loss={"epsilon": 3}),
    Pair("among many", PLENTY, {**PLENTY, "A1": 29, "B2": 31}, loss={"epsilon": 1, "delta": 1e-3}),
    Pair("alone", {"A1": 1}, {"B2": 1}, loss=TELLING),
    Pair("alone", {"A1": 1}, {"B2": 1}, loss={"epsilon": 1}),
    Pair("three records", PLENTY, {**PLENTY, "A1": 27, "B2": 33}, contributions=3, loss=TELLING),
    Pair("fewer records", PLENTY, {**PLENTY, "A1": 28, "B2": 31}, contributions=2, loss={"rho": Fraction(1, 2)}),
    Pair("leaves many", PLENTY, {**PLENTY, "A1": 29}, neighbours="add-remove", loss=TELLING),
    Pair("leaves nobody", {"A1": 1}, {}, neighbours="add-remove", loss={"epsilon": 1}),
    Pair("a dropped record", {"A1": 3}, {"A1": 2, "?": 1}, options={"unknown": "drop"}, loss={"epsilon": 1}),
]
FRONT_DOOR = [
    Pair("next door", {"A": 30, "B": 30}, {"A": 29, "B": 31}, tree="two leaves", loss={"epsilon": 1}),
    Pair("fewer records", {"A1": 3}, {"B2": 1}, contributions=3, loss={"epsilon": 1}),
    *BLACK_BOX[-2:],
]


SAME = [
    Pair("far apart", {"A1": 80}, PLENTY | {"A1": 0, "A2": 20}),
    Pair("far apart", {"A1": 80}, PLENTY, neighbours="add-remove", options={"resolve": {"fdr": 0.5}}),
    Pair("far apart", {"A1": 2}, {"B2": 2}, contributions=2, options={"repair": "euclidean", "order": "descending"}),
    Pair(
        "far apart", {"A1x": 2, "B1y": 9}, {"A1x": 2}, "three levels", "add-remove", options={"resolve": {"sigmas": 1}}
    ),
    Pair("far apart", {"A1": 80}, PLENTY, neighbours="add-remove", options={"repair": "least-squares"}),
    Pair("far apart", {"A1>B1": 9}, {"A1>B1": 5, "A2>A1": 4}, "pairs of places", options={"resolve": {"fdr": 0.9}}),
    Pair(
        "far apart", {"A1x": 9, "B2x": 9}, {"A2x": 9}, "three levels", "add-remove", options={"resolve": {"fdr": 0.5}}
    ),
    Pair("far apart", {"A1>B1": 9}, {"A1>B1": 5, "A2>A1": 4}, "pairs of places", options={"prefer": "lower-error"}),
    Pair(
        "far apart",
        {"A1>B1": 9},
        {"B1>B1": 5, "A2>A1": 4},
        "pairs of places",
        options={"margins": ["origin.digits1 * destination.digits2", "origin.digits2 * destination.digits1"]},
    ),
    Pair("far apart", {"A1>B1": 9}, {"A1>B1": 5, "A2>A1": 4}, "pairs of places"),
    Pair("far apart", {"A1>B1": 9}, {"A1>B1": 5, "A2>A1": 4}, "merged pairs of places"),
    Pair(
        "far apart",
        {"A1>B1": 9},
        {"B1>B1": 5, "A2>A1": 4},
        "merged pairs of places",
        options={"resolve": {"fdr": 0.9}, "margins": "none"},
    ),
    Pair("far apart", {"A1>B1": 9}, {"B1>B1": 9}, "merged pairs of places", options={"prefer": "lower-error"}),
]
"""Tables, neighbours or not, whose releases are compared measurement by measurement."""


def quick_audits() -> dict[str, Audit]:
    """A few of each kind, cheapest first, for the many faults that they are to find."""
    approximate, rho, pure = KNOWN_LOSSES.values()
    law = the_law_of_all_measurements
    return {
        "measurements": partial(law, "two by two", "replace", 1, approximate),
        "measurements, through rho": partial(law, "two by two", "replace", 1, approximate | {"accounting": "zcdp"}),
        "measurements, rho": partial(law, "two by two", "replace", 1, rho),
        "measurements, pure": partial(law, "two by two", "replace", 1, pure),
        "measurements, three trips": partial(law, "two by two", "replace", 3, rho),
        "measurements, add-remove": partial(law, "two by two", "add-remove", 2, rho),
        "measurements, drop": partial(law, "two by two", "replace", 1, rho, unknown="drop"),
        "measurements, exact": partial(law, "two by two", "add-remove", 1, EXACT),
        "measurements, margins": partial(law, PAIRS_OF_PLACES, "replace", 1, rho, margins="each"),
        "releases": partial(the_law_of_releases, Pair("elsewhere", {"A1": 2}, {"A1": 1, "B2": 1})),
        "releases, empty leaf": partial(
            the_law_of_releases, Pair("into an empty leaf", {"A": 2}, {"A": 1, "C": 1}, tree="three leaves", loss=pure)
        ),
        "releases, drop": partial(
            the_law_of_releases, Pair("dropped", {"A1": 1}, {"?": 1}, options={"unknown": "drop"})
        ),
        "same measurements": partial(the_same_measurements_give_the_same_release, SAME[0]),
        "same measurements, least squares": partial(the_same_measurements_give_the_same_release, SAME[4]),
        "same measurements, resolved": partial(the_same_measurements_give_the_same_release, SAME[1]),
        "same measurements, only children": partial(the_same_measurements_give_the_same_release, SAME[6]),
        "same measurements, margins": partial(the_same_measurements_give_the_same_release, SAME[-1]),
        "words": every_word_serves_once,
        "leaves": every_leaf_is_counted_under_its_own_node,
        "other table": another_table_gets_other_noise,
        "spread": the_spread_of_released_counts,
        "bounding": contributions_are_bounded,
        "bounding, distinct": distinct_records_count_once,
        "black box": partial(events_in_many_descents, BLACK_BOX[0]),
        "black box, two levels": partial(events_in_many_descents, BLACK_BOX[2]),
        "black box, alone": partial(events_in_many_descents, BLACK_BOX[5]),
    }
