"""The example with many attributes: its data, its draft, its deaths, and the report about its synthetic records."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import treetop as tt
from examples.patients import make, quality
from tests.commands import said

EXAMPLE = Path(__file__).parents[1] / "examples" / "patients"
PLAN = EXAMPLE / "plan.toml"
TOP_DOWN = EXAMPLE / "top_down.toml"
DEATHS = 1_240
ANSWERS = {"entity": '"patient"', "contributions": "1", "neighbours": '"replace"', "epsilon": "1.0", "delta": "1e-8"}
VALUES = {"age": make.AGES, "sex": make.SEXES, "outcome": make.OUTCOMES}


def release(plan: Path, key: int) -> tt.Release:
    file = tt.read_plan(plan)
    return tt.make_release(
        file.plan, str(file.source), tt.RunOptions(columns=file.columns, testing_key=bytes([key] * 32))
    )


def noise_of(plan: Path, margin: str) -> float:
    rows = {row.title: row.noise for row in tt.read_plan(plan).plan.accuracy().margins}
    return rows[margin]


def without_margins(folder: Path) -> Path:
    text = TOP_DOWN.read_text(encoding="utf-8").replace('margins = "each"', 'margins = "none"')
    for file in ("places.csv", "diagnoses.csv", "patients.csv.gz"):
        text = text.replace(f'"{file}"', f'"{(EXAMPLE / file).as_posix()}"')
    plan = folder / "none.toml"
    plan.write_text(text, encoding="utf-8")
    return plan


def test_the_generator_makes_the_files_that_are_there() -> None:
    made = make.tables()
    assert {name for name, content in made.items() if name != "patients.csv"} == {"places.csv", "diagnoses.csv"}
    assert made["places.csv"] == (EXAMPLE / "places.csv").read_bytes()
    assert made["diagnoses.csv"] == (EXAMPLE / "diagnoses.csv").read_bytes()
    private = gzip.decompress((EXAMPLE / "patients.csv.gz").read_bytes())
    assert made["patients.csv"] == private
    assert (private.count(b"\n") - 1, private.count(b",died\n")) == (make.PATIENTS, DEATHS)


@pytest.mark.parametrize("key", range(4))
def test_deaths_are_within_three_standard_deviations_of_the_noise_of_their_margin(key: int) -> None:
    released = release(PLAN, key)
    assert abs(released.query(outcome="died") - DEATHS) <= 3 * noise_of(PLAN, "outcome")
    lower, upper = released.interval(outcome="died")
    assert upper - lower <= 3 * noise_of(PLAN, "outcome")


def test_without_margins_deaths_are_several_times_too_many(tmp_path: Path) -> None:
    assert release(without_margins(tmp_path), 0).query(outcome="died") > 3 * DEATHS


def test_the_draft_becomes_the_plan_by_answering_its_questions(tmp_path: Path) -> None:
    out = tmp_path / "draft.toml"
    files = [word for file in ("places.csv", "diagnoses.csv") for word in ("--hierarchy", EXAMPLE / file)]
    assert said(["inspect", EXAMPLE / "patients.csv.gz", *files, "--out", out]).code == 0
    text = out.read_text(encoding="utf-8").replace('title = "patients"', f'title = "{tt.read_plan(PLAN).plan.title}"')
    lines, attribute = [], ""
    for line in text.splitlines():
        attribute = line[len("[attributes.") : -1] if line.startswith("[attributes.") else attribute
        field = line.removeprefix("# ").partition(" = ")[0]
        if line.startswith("# values = "):
            listed = ", ".join(f'"{value}"' for value in VALUES[attribute])
            lines.append(f"values = [{listed}]")
        elif line.startswith(f"# {field} = ") and field in ANSWERS:
            lines.append(f"{field} = {ANSWERS[field]}")
        else:
            lines.append(line)
    out.write_text("\n".join(lines), encoding="utf-8")
    assert tt.read_plan(out).plan.digest == tt.read_plan(PLAN).plan.digest


def report(records: Path) -> dict[str, list[str]]:
    lines = quality.main(str(PLAN), str(records)).splitlines()[2:]
    return {cells[0].replace(" × ", " * "): cells[1:] for cells in (split_row(line) for line in lines)}


def split_row(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_the_report_finds_nothing_wrong_with_the_truth_itself() -> None:
    told = report(EXAMPLE / "patients.csv.gz")
    assert len(told) == 27
    assert {row[2] for row in told.values()} == {"0.0%"}
    assert {row[1] for row in told.values()} == {"0.0"}


def test_the_report_tells_how_far_records_are_off(tmp_path: Path) -> None:
    released = release(PLAN, 1)
    records = released.records()
    pq.write_table(records, tmp_path / "records.parquet")
    told = report(tmp_path / "records.parquet")
    truth = {"home": 86_580, "care": 7_565, "moved": 4_615, "died": DEATHS}
    off = [abs(released.query(outcome=outcome) - count) for outcome, count in truth.items()]
    assert told["outcome"] == ["4", f"{sum(off) / 4:,.1f}", f"{sum(off) / 2 / make.PATIENTS:.1%}"]
    # Two attributes go together as they truly do; a town's diagnoses are too many cells for so few patients.
    related = {table: [float(share.rstrip("%")) for share in row[2:]] for table, row in told.items() if " * " in table}
    assert related["diagnosis.chapter * age"][0] < related["diagnosis.chapter * age"][1] / 5
    assert related["place.town * diagnosis.subcategory"][0] > related["place.town * diagnosis.subcategory"][1]


def test_the_report_knows_a_plan_that_stops_above_the_finest_codes(tmp_path: Path) -> None:
    plan = without_margins(tmp_path)
    lines = plan.read_text(encoding="utf-8").splitlines()
    plan.write_text("\n".join(line for line in lines if "category" not in line or "levels" in line), encoding="utf-8")
    pq.write_table(release(plan, 0).records(), tmp_path / "records.parquet")
    told = [split_row(line) for line in quality.main(str(plan), str(tmp_path / "records.parquet")).splitlines()[2:]]
    cells = {row[0]: row[1] for row in told}
    assert (cells["diagnosis.block"], cells["place.district × diagnosis.block"]) == ("66", "1,188")
    assert "diagnosis.subcategory" not in cells


def test_the_report_needs_a_plan_that_names_its_table(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[attributes.sex]\nvalues = ["f", "m"]\n[unit]\nentity = "p"\ncontributions = 1\n'
                    'neighbours = "replace"\n[loss]\nepsilon = 1.0\n', encoding="utf-8")  # fmt: skip
    with pytest.raises(SystemExit, match="does not name its source"):
        quality.main(str(plan), "records.parquet")
