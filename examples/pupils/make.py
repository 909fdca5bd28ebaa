"""Makes the pupils of this example: made up from fixed numbers, so that everybody gets the same files."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
TOWNS = {
    "North": {"Alder": 420, "Birch": 260, "Cedar": 90},
    "South": {"Elm": 510, "Fir": 150, "Hazel": 60, "Larch": 35},
    "West": {"Maple": 330, "Oak": 240, "Pine": 45, "Rowan": 20},
}
"""By region and town, about how many pupils there are."""
GRADES = [str(grade) for grade in range(1, 11)]
FIRST_VOCATIONAL = 8
SEAT_STEP = 30
"""Seats come in classes."""


def write(name: str, head: list[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table beside this file."""
    with (HERE / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def main() -> None:
    """Make up the pupils, and what is public of them."""
    rng = random.Random(20)
    region_of = {town: region for region, towns in TOWNS.items() for town in towns}
    pupils = []
    for towns in TOWNS.values():
        for town, about in towns.items():
            for _ in range(rng.randint(about * 9 // 10, about * 11 // 10)):
                grade = rng.choice(GRADES)
                vocational = int(grade) >= FIRST_VOCATIONAL and rng.random() < 0.3
                pupils.append((town, grade, "vocational" if vocational else "general"))
    rng.shuffle(pupils)
    by_town = Counter(town for town, _, _ in pupils)
    by_region = Counter(region_of[town] for town, _, _ in pupils)
    write("pupils.csv", ["town", "grade", "track"], pupils)
    write("places.csv", ["region", "town"], [(region, town) for town, region in region_of.items()])
    write("enrolment.csv", ["region", "count"], by_region.items())
    seats = {town: -(-(number + 5) // SEAT_STEP) * SEAT_STEP for town, number in by_town.items()}
    write("seats.csv", ["town", "count"], [(town, seats[town]) for town in region_of])
    too_young = [(grade, "vocational") for grade in GRADES if int(grade) < FIRST_VOCATIONAL]
    write("too_young.csv", ["grade", "track"], too_young)


if __name__ == "__main__":
    main()
