"""Make the tables of this example: nobody in them exists.

`python make.py` writes the same files every time: places.csv and diagnoses.csv, the public trees, and patients.csv.gz,
which stands in for a private table. Numbers come from `Random.random` alone, which gives the same ones in all versions
of Python.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

PATIENTS = 100_000
DEATHS = 1_240
AGES = ("00-04", "05-14", "15-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75-84", "85+")
SEXES = ("f", "m")
OUTCOMES = ("home", "care", "moved", "died")

REGIONS = ("Coast", "Delta", "Hills", "Lakes", "Plain")
CHAPTERS = {  # code: what it is about, how common, and the age band where it is commonest
    "A": ("infections", 7.0, 1.0),
    "B": ("growths", 9.0, 7.0),
    "D": ("blood and defence", 2.0, 6.0),
    "E": ("hormones and food", 5.0, 6.5),
    "F": ("mind", 6.0, 3.5),
    "G": ("nerves", 5.0, 6.0),
    "H": ("eyes and ears", 4.0, 7.0),
    "K": ("heart and vessels", 17.0, 8.0),
    "L": ("lungs", 11.0, 7.5),
    "M": ("stomach and gut", 11.0, 5.0),
    "P": ("bones and joints", 10.0, 6.5),
    "S": ("injuries", 13.0, 3.0),
}
DEADLY = {"B": 4.0, "K": 2.5, "L": 2.5, "A": 2.0, "S": 0.6, "P": 0.2, "H": 0.05, "F": 0.3}
"""How deadly a chapter is, where not as deadly as the rest."""


class Dice:
    """Draws that are the same for everyone."""

    def __init__(self, seed: int) -> None:
        self.uniform = Random(seed).random

    def whole(self, least: int, most: int) -> int:
        """Return a whole number between two, both included."""
        return least + int(self.uniform() * (most - least + 1))

    def heavy(self, spread: float) -> float:
        """Return a weight of a long-tailed law, about 1."""
        return math.exp(spread * (sum(self.uniform() for _ in range(12)) - 6))

    def pick(self, below: Sequence[float]) -> int:
        """Return a position by weights that were added up."""
        return min(bisect(below, self.uniform() * below[-1]), len(below) - 1)


def places(dice: Dice) -> list[tuple[str, str, str]]:
    """Return region, district and town of every town."""
    rows = []
    for region in REGIONS:
        for district in range(1, dice.whole(3, 5) + 1):
            code = f"{region[0]}{district}"
            rows += [(region, code, f"{code}{town:02}") for town in range(1, dice.whole(3, 6) + 1)]
    return rows


def diagnoses(dice: Dice) -> list[tuple[str, str, str, str, str]]:
    """Return the tree, a finest code a row, and what its chapter is about; many categories have no subcategory."""
    rows = []
    for chapter, (about, *_) in CHAPTERS.items():
        for block in range(dice.whole(3, 8)):
            for category in range(dice.whole(3, 9)):
                code = f"{chapter}{block}{category}"
                finer = range(dice.whole(2, 8)) if dice.uniform() < 0.45 else ()
                rows += [
                    (chapter, code[:2], code, leaf, about) for leaf in [f"{code}.{digit}" for digit in finer] or [""]
                ]
    return rows


def leaf_of(path: Sequence[str]) -> str:
    """Return the finest code of a branch."""
    return next(code for code in reversed(path[:4]) if code)


def patients(
    dice: Dice, towns: Sequence[Sequence[str]], tree: Sequence[Sequence[str]]
) -> list[tuple[str, str, str, str, str]]:
    """Return town, diagnosis, age, sex and outcome of every patient."""
    by_town = list(accumulate(dice.heavy(0.9) for _ in towns))
    in_chapter = {chapter: sum(path[0] == chapter for path in tree) for chapter in CHAPTERS}
    common = [CHAPTERS[path[0]][1] / in_chapter[path[0]] * dice.heavy(1.1) for path in tree]
    # Some blocks are commoner in one region than elsewhere, and most are commoner in one sex.
    blocks = sorted({path[1] for path in tree})
    more = {(region, block): dice.heavy(0.4) for region in REGIONS for block in blocks}
    female = {block: 0.2 + 0.6 * dice.uniform() for block in blocks}
    by_leaf = {
        region: list(accumulate(w * more[region, path[1]] for w, path in zip(common, tree, strict=True)))
        for region in REGIONS
    }
    by_age = {
        chapter: list(accumulate(math.exp(-(((band - peak) / 2.5) ** 2)) + 0.03 for band in range(len(AGES))))
        for chapter, (_, _, peak) in CHAPTERS.items()
    }
    people = []
    for _ in range(PATIENTS):
        town = towns[dice.pick(by_town)]
        path = tree[dice.pick(by_leaf[town[0]])]
        age = dice.pick(by_age[path[0]])
        sex = SEXES[dice.uniform() >= female[path[1]]]
        away = dice.uniform() / (0.3 + 0.12 * age)
        people.append((town[2], path, age, sex, "care" if away < 0.08 else "moved" if away < 0.13 else "home"))
    dead = set(_who_died(dice, people))
    return [
        (town, leaf_of(path), AGES[age], sex, "died" if number in dead else outcome)
        for number, (town, path, age, sex, outcome) in enumerate(people)
    ]


def _who_died(dice: Dice, people: Sequence[tuple[str, Sequence[str], int, str, str]]) -> Iterator[int]:
    """Choose a fixed number, the old and those with deadly diagnoses first (Efraimidis and Spirakis, 2006)."""
    keys = []
    for number, (_, path, age, _, _) in enumerate(people):
        weight = DEADLY.get(path[0], 1.0) * math.exp(0.55 * age)
        keys.append((math.log(1 - dice.uniform()) / weight, number))
    return (number for _, number in sorted(keys, reverse=True)[:DEATHS])


def as_csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """Return a table as text."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def tables() -> dict[str, bytes]:
    """Return the three files, unpacked."""
    towns, tree = places(Dice(1)), diagnoses(Dice(2))
    return {
        "places.csv": as_csv(("region", "district", "town"), towns),
        "diagnoses.csv": as_csv(("chapter", "block", "category", "subcategory", "about"), tree),
        "patients.csv": as_csv(("place", "diagnosis", "age", "sex", "outcome"), patients(Dice(3), towns, tree)),
    }


if __name__ == "__main__":
    here = Path(__file__).parent
    made = tables()
    private = made.pop("patients.csv")
    (here / "patients.csv.gz").write_bytes(gzip.compress(private, mtime=0))
    for file, content in made.items():
        (here / file).write_bytes(content)
