"""Seven raw tables that nobody has prepared, in small: line list, workbook, Latin-1, and so on."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

STATES = ("Johor", "Negeri Sembilan", "Perak", "Sabah")
REGIONS: Mapping[str, Sequence[str]] = {
    "Andalucía": ("04", "11", "14"),
    "Castilla y León": ("05", "09"),
    "País": ("01",),
}
CARS = ("Fiat", "Ford", "Seat")


def _days(rng: random.Random, number: int) -> list[date]:
    return [date(2020, 3, 1) + timedelta(rng.randrange(600)) for _ in range(number)]


def deaths(folder: Path) -> None:
    """A line list with dates, ages, blanks that mean something, and 0/1 codes."""
    rng = random.Random(1)
    rows = [
        f"{day},{rng.choice(STATES)},{rng.randint(0, 101)},{rng.randint(0, 1)},{rng.choice(['AZ', 'Pfizer', ''])}"
        for day in _days(rng, 3000)
    ]
    _write(folder / "deaths.csv", ["date,state,age,male,brand1", *rows])


def orders(folder: Path) -> None:
    """A workbook with three sheets, customers with many rows, and measures."""
    import xlsxwriter

    rng = random.Random(2)
    with xlsxwriter.Workbook(str(folder / "orders.xlsx")) as book:
        sheet = book.add_worksheet("Orders")
        names = ["Row ID", "Order Date", "Customer ID", "Segment", "State", "Sales", "Profit"]
        sheet.write_row(0, 0, names)
        dated = book.add_format({"num_format": "yyyy-mm-dd"})
        for row, day in enumerate(_days(rng, 2500), 1):
            own = [rng.choice(["Consumer", "Corporate"]), rng.choice(STATES)]
            sheet.write_row(row, 2, [f"C{rng.randrange(300):05}", *own, rng.random() * 900, rng.random() * 90 - 20])
            sheet.write_number(row, 0, row)
            sheet.write_datetime(row, 1, day, dated)
        book.add_worksheet("Returns").write_row(0, 0, ["Order", "Returned"])
        book.add_worksheet("People").write_row(0, 0, ["Person", "Region"])


def beds(folder: Path) -> None:
    """Semicolons, Latin-1, lost zeros, decimal commas, and a count; the public list has the zeros."""
    rng = random.Random(3)
    codes = [code for own in REGIONS.values() for code in own]
    rows = []
    for day in _days(rng, 1500):
        code = rng.choice(codes)
        kind = rng.choice(["Hospitalización", "Críticas"])
        rows.append(f"{day:%d/%m/%Y};{kind};{int(code)};{rng.randint(1, 9)},0;{rng.random():.2f}".replace(".", ","))
    _write(folder / "beds.csv", ["Fecha;Unidad;Cód. Provincia;Ocupadas;Índice", *rows], "latin-1")
    lines = [f"{region};{code};P{code}" for region, own in REGIONS.items() for code in own]
    _write(folder / "provinces.csv", ["Región;Cód. Provincia;Nombre", *lines], "latin-1")


def nine(folder: Path) -> None:
    """Nine attributes of few values, and an address."""
    rng = random.Random(4)
    rows = [
        ",".join([f"{rng.randrange(9999)} Long Street", *(rng.choice("abc"[: 2 + k % 2]) for k in range(9))])
        for _ in range(4000)
    ]
    _write(folder / "survey.csv", [",".join(["address", *(f"q{k}" for k in range(1, 10))]), *rows])


def trips(folder: Path) -> None:
    """Origins and destinations with coordinates; the public list of towns."""
    rng = random.Random(5)
    towns = [(f"{'NS'[n % 2]}", f"T{n:02}", 40 + n / 10, -3 - n / 7) for n in range(12)]
    rows = []
    for _ in range(4000):
        one, other = rng.choice(towns), rng.choice(towns)
        rows.append(f"{one[1]},{one[2]:.4f},{one[3]:.4f},{other[1]},{other[2]:.4f},{other[3]:.4f}")
    _write(folder / "trips.csv", ["from_town,from_lat,from_lon,to_town,to_lat,to_lon", *rows])
    lines = [f"{region},{town},{latitude:.4f},{longitude:.4f}" for region, town, latitude, longitude in towns]
    _write(folder / "towns.csv", ["region,town,latitude,longitude", *lines])


def police(folder: Path) -> None:
    """No line of names, returns alone between lines, blanks behind codes, years of two digits, a time of day."""
    rng = random.Random(6)
    rows = [
        f"{rng.randint(1, 12)}/{rng.randint(1, 28)}/06 {rng.randint(0, 23)}:00,{rng.randrange(9999)} OAK AVE,"
        f"{rng.randint(1, 6)}  ,{rng.choice(['BURGLARY', 'THEFT', 'FRAUD'])},{38 + rng.random():.6f}"
        for _ in range(2000)
    ]
    (folder / "police.csv").write_bytes("\r".join([*rows, ""]).encode())


def hospitals(folder: Path) -> None:
    """A region code that overlaps a province code: small integers in common, which mean nothing."""
    rng = random.Random(7)
    places = [(n % 6 + 1, n + 1) for n in range(30)]
    rows = [f"{region},{province},{rng.choice(CARS)}" for region, province in rng.choices(places, k=4000)]
    _write(folder / "stays.csv", ["COD_REGION,COD_PROVINCE,car", *rows])
    lines = [f"{region},{province}" for region, province in places]
    _write(folder / "places.csv", ["region,province", *lines])


def _write(path: Path, lines: Sequence[str], encoding: str = "utf-8") -> None:
    path.write_text("\n".join([*lines, ""]), encoding=encoding)


TABLES: Mapping[str, Callable[[Path], None]] = {
    "deaths.csv": deaths, "orders.xlsx": orders, "beds.csv": beds, "survey.csv": nine, "trips.csv": trips,
    "police.csv": police, "stays.csv": hospitals,
}  # fmt: skip
"""By file name, what writes it, and the public lists beside it."""
