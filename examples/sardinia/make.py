"""Make the files of `docs/commuting.md` from public sources: `python make.py DATA`, where DATA is their folder.

The table is the 2001 census commuting matrix of ISTAT as packaged in LabourMarketAreas 3.4; names, codes and labour
market areas are from ISTAT's list of municipalities, outlines from Openpolis and ISTAT (CC BY 4.0).
"""

import csv
import gzip
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

PROVINCES = {"090": "Sassari", "091": "Nuoro", "092": "Cagliari", "095": "Oristano"}


def main(data: Path) -> None:
    """Write the private table, the two public hierarchies and the public outlines to the current folder."""
    towns = [row for row in pq.read_table(data / "lookup_it/comuni_2011.parquet").to_pylist() if row["reg"] == "20"]
    towns.sort(key=lambda town: town["pop2001"])

    flows = pq.read_table(data / "od_it_istat/od_comune_sardinia_2001.parquet").to_pylist()
    head = ["residenza", "località di lavoro", "pendolari"]
    write("pendolari_2001.csv", head, (list(row.values()) for row in flows), delimiter=";", encoding="latin-1")

    # An area is a labour market area inside one province; it is named after its largest town, which comes last.
    area = {(town["com_103"][:3], town["sll"]): town["com_name"] for town in towns}
    market = {town["sll"]: town["com_name"] for town in towns}
    places = (
        [PROVINCES[town["com_103"][:3]], area[town["com_103"][:3], town["sll"]], town["com_103"], town["com_name"]]
        for town in towns
    )
    write("comuni.csv", ["province", "area", "municipality", "name"], places)
    write("markets.csv", ["market", "municipality"], ([market[town["sll"]], town["com_103"]] for town in towns))

    # The outlines are today's, under the codes that the municipalities had then.
    codes = pq.read_table(data / "lookup_it/crosswalk_2011_2021.parquet").to_pylist()
    later = {row["com_2011"]: row["com_2021"] for row in codes}
    with gzip.open(data / "bounds_it/comuni_simplified.geojson.gz") as file:
        outlines = {feature["properties"]["com"]: feature["geometry"] for feature in json.load(file)["features"]}
    features = [
        {
            "type": "Feature",
            "properties": {"istat": town["com_103"], "name": town["com_name"]},
            "geometry": outlines[later[town["com"]]],
        }
        for town in towns
    ]
    with gzip.open("comuni.geojson.gz", "wt") as text:
        json.dump({"type": "FeatureCollection", "features": features}, text)


def write(
    name: str, head: list[str], rows: Iterable[list[str]], *, delimiter: str = ",", encoding: str = "utf-8"
) -> None:
    """Write a CSV file."""
    with Path(name).open("w", encoding=encoding, newline="") as file:
        out = csv.writer(file, delimiter=delimiter)
        out.writerow(head)
        out.writerows(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
