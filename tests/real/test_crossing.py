"""Margins that cross, on real taxi trips: they are not kept, and the errors to expect of them are stated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

import treetop as tt
from treetop.advice import expected_errors


def trips(folder: Path) -> dict[str, list[str]]:
    """Pickup and dropoff borough, weekday, part of the day, party and payment of every trip."""
    table, zones = pq.read_table(folder / "trips_sample_360k.parquet"), csv.read_csv(folder / "taxi_zone_lookup.csv")
    borough = dict(zip(zones["LocationID"].to_pylist(), zones["Borough"].to_pylist(), strict=True))
    payment = {1: "card", 2: "cash", 3: "free", 4: "dispute"}
    people = np.nan_to_num(table["passenger_count"].to_numpy(zero_copy_only=False)).astype(np.int64)
    return {
        **{
            end: [borough.get(zone) or "Unknown" for zone in table[f"{end}_location_id"].to_pylist()]
            for end in ("pickup", "dropoff")
        },
        "weekday": [str(day) for day in pc.day_of_week(table["pickup_datetime"]).to_pylist()],
        "daypart": [str(hour // 4) for hour in pc.hour(table["pickup_datetime"]).to_pylist()],
        "party": np.array(["0", "1", "2", "3-4", "3-4", "5+"])[np.minimum(people, 5)].tolist(),
        "payment": [payment.get(way, "unknown") for way in table["payment_type"].to_pylist()],
    }


def test_the_expected_error_of_a_margin_that_is_not_kept_is_not_that_of_its_measurement(data: Path) -> None:
    columns = trips(data / "od_nyc_taxi")
    trees = {name: tt.Hierarchy.flat(sorted(set(codes))) for name, codes in columns.items()}
    spine, unit = tt.Spine(list(trees), trees), tt.Unit("trip", neighbours="replace")
    plan = tt.Plan(spine, unit, tt.Loss(rho=0.01922), margins=["daypart * payment", "party * payment"])
    table = tt.make_release(plan, pa.table(columns), tt.RunOptions(testing_key=bytes(32))).margins[-1]
    assert table.margin.name == "party * payment" and not table.exact
    party, payment = (np.searchsorted(sorted(set(codes)), codes) for codes in (columns["party"], columns["payment"]))
    true = np.bincount(party * len(set(columns["payment"])) + payment, minlength=len(table.count))
    error = np.abs(table.count - true).mean()
    (expected,) = expected_errors(plan, [table.margin.depths])
    assert true.sum() == 360_000 and 20 * plan.margin_parts[-1].deviation < error < 2 * expected.error
