"""Standard hierarchies: ages, countries, ICD-10-CM, NUTS and the European grid, named in a plan."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import treetop as tt
from treetop.domain.standard_hierarchies import STANDARDS
from treetop.errors import DataError, HierarchyError, PlanFileError

PLAN = """
[attributes.age]
standard = "ages-5"
[attributes.born]
standard = "countries"
levels = ["continent", "country"]
[attributes.diagnosis]
standard = "icd-10-cm"
levels = { chapter = "chapter", "ICD block" = "block" }
blank = "none"
[attributes.home]
standard = "nuts"
hierarchy = "nuts.csv"
codes = "NUTS_ID"
names = { nuts3 = "NAME" }
[attributes.cell]
standard = "eu-grid"
values = ["1kmN2684E4332", "1kmN2684E4333", "1kmN2699E4332"]
levels = ["10km", "1km"]
[spine]
order = ["age.age10", "born.continent", "home.country > home.nuts1 > home.nuts2 > home.nuts3", "cell.10km > cell.1km",
  "diagnosis.chapter", "born.country", "age.age5", "diagnosis.ICD block"]
margins = "none"
[unit]
entity = "person"
contributions = 1
neighbours = "replace"
[loss]
rho = 1
[data]
source = "people.csv"
"""


def _read(tree: tt.Hierarchy, *texts: str | None) -> list[str | None]:
    codes: list[str | None] = tree.read(pa.array(texts, pa.string()), "x").to_pylist()
    return codes


def test_a_plan_names_standards_and_reads_raw_codes(tmp_path: Path) -> None:
    (tmp_path / "nuts.csv").write_text("NUTS_ID,NAME\nDE211,Ingolstadt\nDE212,München\nITC11,Torino\n")
    rows = ["7,IT,A04.72,DE211,1kmE4332N2684", "99,deu,,itc11,CRS3035RES1000mN2699000E4332000"] * 20
    (tmp_path / "people.csv").write_text("\n".join(["age,born,diagnosis,home,cell", *rows, ""]))
    (tmp_path / "plan.toml").write_text(PLAN)
    file = tt.read_plan(tmp_path / "plan.toml")
    expected = pa.table(
        {
            "age": ["5-9", "85+"] * 20,
            "born": ["IT", "DE"] * 20,
            "diagnosis": ["A00-A09", "none"] * 20,
            "home": ["DE211", "ITC11"] * 20,
            "cell": ["1kmN2684E4332", "1kmN2699E4332"] * 20,
        }
    )
    counts = tt.read_true_counts(file.plan, file.table(str(file.source)))
    assert counts.digest == tt.read_true_counts(file.plan, expected).digest
    tt.publish(file, options=tt.RunOptions(testing_key=bytes(32)), out=tmp_path / "out")
    assert all(verdict.verified for verdict in tt.check(tmp_path / "out"))
    release = tt.Release.load(tmp_path / "out")
    assert "codes of born are read as countries of ISO 3166" in release.card["data"]["prepared"]
    assert release.query(home="München") == release.query(home="DE212")
    assert release.query(born="Italy") > 15 and release.query(born="Europe") == release.total
    assert release.query(**{"diagnosis.ICD block": "Intestinal infectious diseases"}) > 15


def test_ages_and_countries_have_all_their_codes() -> None:
    ages = tt.Hierarchy.standard("ages-5")
    assert ages.levels == ("age10", "age5") and ages.codes[-1].to_pylist()[-1] in ("85+", "80-84")
    assert tt.Hierarchy.standard("ages-10").levels == ("age10",)
    assert tt.Hierarchy.standard("ages-5", ["age10"]).digest == tt.Hierarchy.standard("ages-10").digest
    countries = tt.Hierarchy.standard("countries", {"part": "continent", "land": "country"})
    assert countries.levels == ("part", "land") and countries.sizes == (7, 249)
    assert _read(countries, "DE", "deu", " fr ", "NA", "XX") == ["DE", "DE", "FR", "NA", "XX"]
    assert _read(tt.Hierarchy.standard("countries", ["continent"]), "NZL", "NA") == ["Oceania", "Africa"]


def test_diagnoses_are_counted_by_chapter_block_or_category() -> None:
    blocks = tt.Hierarchy.standard("icd-10-cm")
    assert blocks.sizes == (22, 284)
    assert _read(blocks, "A04.72", "a0472", "C4A0", "U09.9", "A00-A09") == [
        "A00-A09", "A00-A09", "C43-C44", "U00-U49", "A00-A09",
    ]  # fmt: skip
    assert _read(tt.Hierarchy.standard("icd-10-cm", ["chapter"]), "Z3A.01", "U09") == ["Z00-Z99", "U00-U85"]
    categories = tt.Hierarchy.standard("icd-10-cm", ["chapter", "block", "category"])
    assert categories.sizes[-1] == 1911 and _read(categories, "I21.4", "nothing") == ["I21", "nothing"]


def test_nuts_and_grid_cells_are_cut_by_the_arithmetic_of_their_codes() -> None:
    regions = tt.Hierarchy.standard("nuts", codes=["DE21", "DE22", "ITC1"])
    assert regions.levels == ("country", "nuts1", "nuts2") and regions.sizes == (2, 2, 3)
    assert _read(regions, "DE21H", "itc1", "FR10") == ["DE21", "ITC1", "FR10"]
    cells = tt.Hierarchy.standard("eu-grid", codes=["1kmN2684E4332", "1kmE4333N2684", "1kmN2699E4332"])
    assert cells.sizes == (1, 2, 3) and cells.codes[1].to_pylist() == ["10kmN268E433", "10kmN269E433"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('standard = "age-5"', "did you mean 'ages-5'"),
        ('standard = "nuts"', r"\[attributes.x\] standard 'nuts' cuts codes of a public list"),
        ('standard = "ages-5"\nvalues = ["1"]', "standard 'ages-5' has its own codes"),
        ('standard = "countries"\nlevels = ["town"]', "has no level 'town'; it has continent, country"),
        ('standard = "nuts"\nvalues = ["DE21", "ITC11"]', "must all be of one level"),
        ('standard = "eu-grid"\nvalues = ["1kmN2684"]', "'1kmN2684' is no grid cell of 1 km"),
        ('standard = "nuts"\nhierarchy = "nuts.csv"', "name their column, as in codes"),
        ('standard = "ages-5"\nbands = [0, 1]', "both bands and standard say"),
        ('standard = "ages-5"\nencoding = "latin-1"', "encoding is about a hierarchy file, but standard needs none"),
    ],
)
def test_mistakes_name_the_field_and_the_next_step(tmp_path: Path, lines: str, message: str) -> None:
    rest = '[unit]\nentity = "a"\ncontributions = 1\nneighbours = "replace"\n[loss]\nrho = 1\n'
    text = f"[attributes.x]\n{lines}\n{rest}"
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises((PlanFileError, HierarchyError), match=message):
        tt.read_plan(tmp_path / "plan.toml")


def test_a_code_that_is_none_is_named_with_an_example() -> None:
    plan = tt.Plan(
        tt.Spine(["x.country"], {"x": tt.Hierarchy.standard("countries")}),
        tt.Unit("person", neighbours="replace"),
        tt.Loss(rho=1),
    )
    with pytest.raises(DataError, match="'XX' is not .* none of countries of ISO 3166, such as DE or DEU"):
        tt.read_true_counts(plan, pa.table({"x": ["XX"]}))


def test_the_files_of_the_package_are_small() -> None:
    folder = Path(tt.__file__).parent / "domain" / "data"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 50_000
    assert set(STANDARDS) == {"ages-5", "ages-10", "countries", "icd-10-cm", "nuts", "eu-grid"}
