"""Reading plan files: what they mean, and how mistakes are reported."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from treetop import read_plan
from treetop.errors import (
    HierarchyError,
    IncompletePlan,
    LossError,
    PlanError,
    PlanFileError,
    SpineError,
    TreetopError,
    UnitError,
)
from treetop.plan.file import describe_plan
from treetop.plan.resolution import Resolution

Write = Callable[[str], Path]

SEX = """
[attributes.sex]
values = ["f", "m"]
[unit]
entity = "person"
contributions = 1
neighbours = "add-remove"
[loss]
rho = 0.1
"""


def without(text: str, start: str) -> str:
    """Leave out the lines that start so."""
    return "\n".join(line for line in text.splitlines() if not line.startswith(start))


def refused(path: Path, kind: type[TreetopError] = PlanFileError) -> str:
    with pytest.raises(kind) as caught:
        read_plan(path)
    assert type(caught.value) is kind
    message = str(caught.value)
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def test_the_example_of_the_design_is_read_as_it_says(write: Write, design: str) -> None:
    file = read_plan(write(design))
    plan = file.plan
    assert plan.title == "Commuting in Italy, 2011"
    assert plan.spine.splits[:3] == ("destination.region", "origin.region", "destination.province")
    assert plan.spine.attributes["origin"] is plan.spine.attributes["destination"]
    assert (plan.unit.entity, plan.unit.contributions, plan.unit.neighbours) == ("trip", 1, "replace")
    assert (plan.loss.epsilon, plan.loss.delta) == (Fraction(1), Fraction(1, 10**8))
    assert dict(file.columns) == {"origin": "home", "destination": "work"}
    assert (file.source, file.query, file.count, file.period) == (None, None, None, None)
    assert file.text == design


def test_numbers_are_read_exactly_as_they_are_written(write: Write) -> None:
    plan = read_plan(write(SEX.replace("rho = 0.1", "epsilon = 0.1000000000000000000001\ndelta = 1e-9"))).plan
    assert plan.loss.epsilon == Fraction(Decimal("0.1000000000000000000001"))


def test_a_fraction_may_be_written_as_text(write: Write) -> None:
    assert read_plan(write(SEX.replace("0.1", '"293764/114921"'))).plan.loss.rho == Fraction(293764, 114921)


def test_everything_about_the_private_table_is_kept(write: Write, design: str) -> None:
    data = 'source = "trips.csv"\nquery = "select 1"\ncount = "n"\nperiod = "2011"\n'
    data += 'delimiter = ";"\nencoding = "latin-1"'
    path = write(f'description = "At length"\n{design}\n{data}')
    file = read_plan(path)
    assert file.source == str(path.parent / "trips.csv")
    assert (file.query, file.count, file.period) == ("select 1", "n", "2011")
    assert (file.delimiter, file.encoding, file.description) == (";", "latin-1", "At length")


@pytest.mark.parametrize("source", ["postgresql://host/db", "sqlite:///trips.db", "-", "/data/trips-*.parquet"])
def test_a_url_standard_input_and_an_absolute_path_stay_as_they_are(write: Write, design: str, source: str) -> None:
    assert read_plan(write(f'{design}\nsource = "{source}"')).source == source


def test_one_attribute_needs_no_order(write: Write) -> None:
    assert read_plan(write(SEX)).plan.spine.splits == ("sex.value",)


def test_a_flat_list_may_name_its_level(write: Write) -> None:
    plan = read_plan(write(SEX.replace('["f", "m"]', '["f", "m"]\nlevels = ["code"]'))).plan
    assert plan.spine.splits == ("sex.code",)


def test_prefix_codes_are_cut_from_a_column(write: Write) -> None:
    path = write(SEX.replace('values = ["f", "m"]', 'hierarchy = "c.csv"\ncodes = "fips"\nwidths = [2]'))
    (path.parent / "c.csv").write_text("fips\n01001\n01003\n02013\n")
    assert read_plan(path).plan.spine.trees[0].sizes == (2, 3)


def test_prefix_codes_may_be_listed_in_the_plan(write: Write) -> None:
    plan = read_plan(write(SEX.replace('["f", "m"]', '["aa", "ab"]\nwidths = [1]\nlevels = ["a", "b"]'))).plan
    assert plan.spine.splits == ("sex.a", "sex.b")


def test_a_parent_list_is_read_with_names_for_its_levels(write: Write) -> None:
    fields = 'hierarchy = "p.csv"\nchild = "code"\nparent = "up"\nlevels = ["region", "town"]\nragged = "repeat"'
    path = write(SEX.replace('values = ["f", "m"]', fields))
    (path.parent / "p.csv").write_text("code,up\nN,\nn1,N\nS,\n")
    assert read_plan(path).plan.spine.trees[0].sizes == (2, 2)


def test_the_columns_that_exports_use_come_with_the_hierarchy_file(write: Write, design: str) -> None:
    columns = 'name = "town"\nlatitude = "lat"\nlongitude = "lon"\n\n[attributes.dest'
    path = write(design.replace("\n[attributes.dest", columns))
    lookup = read_plan(path).lookups["destination"]
    assert (lookup.file, lookup.code) == (path.parent / "comuni.csv", "municipality")
    assert (lookup.name, lookup.latitude, lookup.longitude) == ("town", "lat", "lon")


def test_repair_and_split_and_caps_and_unknown_codes_reach_the_plan(write: Write) -> None:
    more = """
split = { total = 1, sex = 3 }
[repair]
method = "euclidean"
order = "descending"
[data]
unknown = { sex = "m" }
"""
    text = (SEX + more).replace("contributions = 1", 'contributions = 4\nid = "who"\nper_node = { sex = 2 }')
    plan = read_plan(write(text)).plan
    assert [level.share for level in plan.levels] == [Fraction(1, 4), Fraction(3, 4)]
    assert (plan.repair, plan.order, plan.unknown) == ("euclidean", "descending", {"sex": "m"})
    assert (plan.unit.id, dict(plan.unit.per_node)) == ("who", {"sex": 2})


def test_a_hierarchy_that_is_named_by_its_hash_must_be_that_tree(write: Write) -> None:
    digest = read_plan(write(SEX)).plan.spine.trees[0].digest
    pinned = SEX.replace("[unit]", f'hierarchy_sha256 = "{digest}"\n[unit]')
    assert read_plan(write(pinned)).plan.spine.trees[0].digest == digest
    changed = refused(write(pinned.replace('"m"', '"x"')))
    assert "[attributes.sex]" in changed
    assert "made for another tree" in changed


def test_broken_toml_is_reported_with_line_and_column(write: Write) -> None:
    assert "line 2, column 11" in refused(write('title = "a"\nepsilon = = 1'))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = " + "[" * 5000, "nested too deeply"),
        ("a = " + "9" * 5000, "too many digits"),
        ("a = 1e99999999999999999999", "too many digits"),
    ],
    ids=["deep", "long", "huge"],
)
def test_toml_that_the_parser_cannot_take_is_refused_like_broken_toml(write: Write, text: str, why: str) -> None:
    assert why in refused(write(text))


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "none.toml")
    assert "cannot be read" in refused(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"title = '\xff'")
    assert "not UTF-8" in refused(tmp_path / "bytes.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[loss]", "[los]", "los is not a field of a plan file (did you mean 'loss'?)"),
        ("epsilon =", "epsilom =", "[loss] epsilom is not a field of a plan file (did you mean 'epsilon'?)"),
        ("title =", "neighbours =", "neighbours is not a field of a plan file (it belongs under [unit])"),
        ('column = "home"', 'colunm = "home"', "[attributes.origin] colunm is not a field"),
        (
            "contributions = 1",
            'contributions = "one"',
            '[unit] contributions must be a whole number, 1 or more, but is the text "one"',
        ),
        ("contributions = 1", "contributions = true", "contributions must be a whole number, 1 or more, but is true"),
        ("contributions = 1", "contributions = 0", "1 or more, but is the number 0"),
        ("contributions = 1", "contributions = 1.5", "1 or more, but is the number 1.5"),
        (
            'entity = "trip"',
            "entity = 3",
            '[unit] entity must be a text in quotes, as in entity = "3", but is the number 3',
        ),
        (
            'neighbours = "replace"',
            'neighbours = "replce"',
            '"replace" or "add-remove" (did you mean \'replace\'?), but is the text "replce"',
        ),
        ("epsilon = 1.0", 'epsilon = "1"', '[loss] epsilon must be a number, without quotes, but is the text "1"'),
        ("epsilon = 1.0", "epsilon = 1e999999999", "a number of moderate size"),
        ("delta = 1e-8", 'accounting = "exat"', '[loss] accounting must be "zcdp" or "exact" (did you mean'),
        ('split = "uniform"', 'split = "top"', '[loss] split must be "uniform", "top-heavy", '),
        ('order = "destination-first"', 'order = "destination_first"', "did you mean 'destination-first'?"),
        ('order = "destination-first"', 'order = ["a", 1]', "one of them is the number 1"),
        ('levels = ["region", "province", "municipality"]', 'levels = "region"', "must be a list of texts"),
        ("[spine]", "[[spine]]", "spine must be a section, [spine], but is a list"),
        ("[data]", "[data]\nperiod = 2011-01-01", "but is the date or time 2011-01-01"),
        ("[data]", '[data]\ndelimiter = "::"', "[data] delimiter must be one character"),
        ("[data]", '[data]\nencoding = "latin-99"', "must be the name of an encoding"),
        ("[data]", '[data]\nunknown = "dorp"', "did you mean 'drop'?"),
        ("[data]", "[data]\nunknown = { orign = 'x' }", "'orign' is not an attribute (did you mean 'origin'?)"),
        (
            "[data]",
            "[data]\nunknown = { origin = 'x', destination = 'NA1' }",
            "the leaf 'x' is not in the hierarchy of origin",
        ),
        ("[data]", '[repair]\nmethod = "chebishev"\n[data]', "did you mean 'chebyshev'?"),
        ('same_as = "origin"', 'same_as = "orign"', "not an attribute (did you mean 'origin'?)"),
        ('same_as = "origin"', 'same_as = "destination"', "same_as names itself"),
        ('same_as = "origin"', 'same_as = "origin"\nvalues = ["a"]', "both same_as and values"),
        ('same_as = "origin"', 'same_as = "origin"\nlevels = ["a"]', "levels belongs to the hierarchy"),
        ('same_as = "origin"', 'hierarchy = "comuni.csv"\ncodes = "a"', "widths is missing"),
        ('same_as = "origin"', 'hierarchy = "comuni.csv"\nchild = "a"', "needs both child and parent"),
        ('same_as = "origin"', 'values = ["a"]\nchild = "a"\nparent = "b"', "values needs none"),
        ("[attributes.destination]", "[attributes.count]", "cannot be called 'count'"),
        ("[attributes.destination]", "[attributes.work]", "two attributes called origin and destination"),
        ("[data]", '[data]\nsource = "comuni.csv"', "hierarchy is the private table itself"),
        ("[data]", '[data]\nsource = "x/../comuni.csv"', "hierarchy is the private table itself"),
    ],
)
def test_a_mistake_is_named_with_its_field(write: Write, design: str, old: str, new: str, message: str) -> None:
    assert old in design
    assert message in refused(write(design.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "kind", "message"),
    [
        ('"comuni.csv"', '"comune.csv"', HierarchyError, "[attributes.origin] hierarchy: .*comune.csv: no such file"),
        ('"comuni.csv"', '"' + "x" * 300 + '"', HierarchyError, "[attributes.origin] hierarchy: cannot be read"),
        ('["region", ', '["regoin", ', HierarchyError, "no column 'regoin' (did you mean 'region'?)"),
        ('["region", ', '["region", "region", ', HierarchyError, "level name 'region' is given twice"),
        ('"destination-first"', '["origin.region", "origin.provnce"]', SpineError, "[spine] 'origin.provnce'"),
        ('"destination-first"', '["origin.region"]', SpineError, "'destination' is never refined"),
        ("delta = 1e-8", "delta = 2", LossError, "[loss] delta is 2"),
        ("delta = 1e-8", "rho = 1", LossError, "[loss] The loss has both epsilon and rho"),
        ("epsilon = 1.0", "epsilon = nan", LossError, "[loss] epsilon is NaN"),
        ("delta = 1e-8", 'accounting = "exact"', LossError, "[loss] The loss is stated as epsilon alone"),
        ('split = "uniform"', "split = { origin = 1 }", LossError, "[loss] The split names the level 'origin'"),
        ("contributions = 1", "contributions = 1\nper_node = { x = 2 }", UnitError, "[unit] The unit's per_node cap"),
        ("contributions = 1", "contributions = 1\nper_node = { x = 1 }", PlanError, "[unit] the unit caps"),
    ],
)
def test_what_the_engine_refuses_is_named_with_file_and_section(
    write: Write, design: str, old: str, new: str, kind: type[TreetopError], message: str
) -> None:
    pattern = re.escape(message).replace(r"\.\*", ".*")
    assert re.search(pattern, refused(write(design.replace(old, new)), kind))


def test_all_open_questions_are_named_at_once(write: Write) -> None:
    message = refused(write("[attributes.a]\n[attributes.b]\nwidths = [2]"), IncompletePlan)
    named = re.findall(r"^  ([\w.]+): ", message, re.MULTILINE)
    assert named == [
        "attributes.a.hierarchy",
        "attributes.a.levels",
        "attributes.b.hierarchy",
        "attributes.b.codes",
        "spine.order",
        "unit.entity",
        "unit.contributions",
        "unit.neighbours",
        "loss.epsilon",
    ]


@pytest.mark.parametrize("field", ["entity", "contributions", "neighbours", "epsilon"])
@pytest.mark.parametrize("left", ["out", "open"])
def test_a_question_without_a_safe_default_is_refused_by_name(write: Write, design: str, field: str, left: str) -> None:
    text = without(design, f"{field} =")
    if left == "open":
        text = re.sub(rf"^{field} = .*$", f'{field} = "?"', design, flags=re.MULTILINE)
    message = refused(write(text), IncompletePlan)
    assert f".{field}: " in message
    assert "a question open" in message


def test_an_empty_file_is_incomplete_and_not_broken(write: Write) -> None:
    assert "attributes: Which columns" in refused(write(""), IncompletePlan)


def test_epsilon_without_delta_is_the_pure_guarantee(write: Write, design: str) -> None:
    assert read_plan(write(without(design, "delta"))).plan.loss.definition == "pure"


def test_a_plan_with_a_byte_order_mark_and_windows_line_ends_is_read(write: Write, design: str) -> None:
    path = write(design)
    path.write_bytes(b"\xef\xbb\xbf" + design.replace("\n", "\r\n").encode())
    assert read_plan(path).plan.title == tomllib.loads(design)["title"]


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("top-heavy", [Fraction(2**power, 15) for power in (3, 2, 1, 0)]),
        ("bottom-heavy", [Fraction(2**power, 15) for power in range(4)]),
    ],
)
def test_a_split_that_has_a_name_is_read_as_its_exact_weights(
    write: Write, design: str, name: str, shares: list[Fraction]
) -> None:
    plan = read_plan(write(design.replace('split = "uniform"', f'split = "{name}"'))).plan
    assert isinstance(plan.split, Mapping)
    left = 1 - sum(part.share for part in plan.margin_parts)
    assert [level.share / left for level in plan.levels if level.is_measured] == shares


def test_a_split_by_nodes_gives_levels_with_more_nodes_more(write: Write, design: str) -> None:
    text = design.replace('split = "uniform"', 'split = "by-nodes"')
    file = read_plan(write(text))
    measured = [level for level in file.plan.levels if level.is_measured]
    for one, other in pairwise(measured):
        # Gaussian noise: shares as the roots of the numbers of nodes, to the six digits that are kept.
        assert float(other.share / one.share) == pytest.approx((other.nodes / one.nodes) ** 0.5, rel=1e-4)
    again = tomllib.loads(describe_plan(file))["loss"]["split"]
    assert {name: Fraction(weight, sum(again.values())) for name, weight in again.items()} == {
        part.name: part.share for part in file.plan.workload if part.is_measured
    }


def test_a_stand_in_serves_only_a_loss_that_is_left_open(write: Write, design: str) -> None:
    stated = read_plan(write(design), stand_in=7)
    assert (stated.plan.loss.epsilon, stated.loss_is_open) == (Fraction(1), False)
    path = write(design.replace("epsilon = 1.0", 'epsilon = "?"'))
    file = read_plan(path, stand_in=7)
    assert (file.plan.loss.epsilon, file.plan.loss.delta, file.loss_is_open) == (Fraction(7), Fraction(1, 10**8), True)
    assert "loss.epsilon" in refused(path, IncompletePlan)


# `[release] resolve` in a plan file: read exactly, written back, and refused in one message that names it.


def with_resolve(design: str, text: str) -> str:
    return f"{design}\n[release]\nresolve = {text}\n"


@pytest.mark.parametrize(
    ("text", "resolution"),
    [
        ("{ fdr = 0.05 }", Resolution(fdr=Fraction(1, 20))),
        ('{ fdr = "1/3" }', Resolution(fdr=Fraction(1, 3))),
        ("{ sigmas = 3 }", Resolution(sigmas=Fraction(3))),
        ("{ sigmas = 2.5 }", Resolution(sigmas=Fraction(5, 2))),
    ],
)
def test_a_resolution_is_read_exactly_and_written_back(
    text: str, resolution: Resolution, write: Write, design: str
) -> None:
    file = read_plan(write(with_resolve(design, text)))
    assert file.plan.resolve == resolution
    described = describe_plan(file)
    again = read_plan(write(described))
    assert again.plan.resolve == resolution
    assert again.plan.digest == file.plan.digest
    assert describe_plan(again) == described


def test_full_is_the_default_and_is_not_written(write: Write, design: str) -> None:
    default = read_plan(write(design)).plan
    full = read_plan(write(with_resolve(design, '"full"')))
    assert full.plan.resolve == default.resolve == "full"
    assert full.plan.digest == default.digest
    assert "resolve" not in tomllib.loads(describe_plan(full)).get("release", {})


def test_another_resolution_is_another_plan(write: Write, design: str) -> None:
    texts = ('"full"', "{ fdr = 0.05 }", "{ fdr = 0.01 }", "{ sigmas = 3 }")
    assert len({read_plan(write(with_resolve(design, text))).plan.digest for text in texts}) == len(texts)


@pytest.mark.parametrize(
    "text",
    [
        "{ fdr = 2 }",
        "{ fdr = 1 }",
        "{ fdr = 0 }",
        "{ fdr = -0.1 }",
        "{ fdr = nan }",
        '{ fdr = "some" }',
        "{ fdr = 0.05, sigmas = 3 }",
        "{ sigmas = 0 }",
        "{ sigmas = -3 }",
        "{ sigmas = inf }",
        "{ sigma = 3 }",
        "{}",
        '"some"',
        "0.05",
        "true",
        "[0.05]",
    ],
)
def test_what_is_no_resolution_is_refused_in_one_message_that_names_it(text: str, write: Write, design: str) -> None:
    with pytest.raises(TreetopError) as refused:
        read_plan(write(with_resolve(design, text)))
    message = str(refused.value)
    assert "plan.toml: [release" in message and "resolve" in message
    assert "[loss]" not in message and "[unit]" not in message
    assert "\n" not in message
    assert "Decimal" not in message
