"""The fields common to all plan files; graphs and group sizes add their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, get_args

from treetop._util.choices import nearest
from treetop.domain.branches import Ragged
from treetop.domain.constraints import INVARIANT
from treetop.domain.marginal import DEFAULT_MARGINS
from treetop.domain.spine import RESERVED, Spine
from treetop.domain.standards import STANDARDS
from treetop.domain.unit import Neighbours
from treetop.io.source import BlankLines
from treetop.noise import LAWS
from treetop.plan.fields.field import (
    DATES,
    DEGREES,
    DELIMITER,
    ENCODING,
    FAMILIES,
    FILE,
    FLAG,
    GROUPS,
    KEEP,
    LABELS,
    NAME,
    NOUN,
    NUMBER,
    NUMBERS,
    OPEN,
    POSITIONS,
    RECORDS,
    TEXT,
    TEXTS,
    WHOLE,
    WHOLES,
    Field,
    Kind,
    Ran,
    Section,
    Values,
    choice,
    either,
    table,
)
from treetop.plan.mechanism import JointMechanism
from treetop.plan.resolution import PREFERENCES, Resolution
from treetop.plan.splits import SPLITS
from treetop.plan.workload import CONFIDENCE, as_confidence
from treetop.privacy.accountant import is_exact_by_default
from treetop.privacy.loss import Accounting, Loss
from treetop.repair import REPAIRS, Order

ATTRIBUTE = "attributes.NAME"
"""The section of an attribute, as declared."""
FACT = "facts.TABLE"
"""The field of one table under `[facts]`, as declared."""
ORDERS: Mapping[str, Callable[..., Spine]] = {
    "destination-first": Spine.destination_first,
    "origin-first": Spine.origin_first,
    "merged": Spine.merged,
    "bottom-up": lambda **trees: Spine.bottom_up(trees),
    "joint": lambda **trees: Spine.bottom_up(trees),
}
"""Named orders of a spine; all but the last two need attributes called origin and destination."""
ANY_ATTRIBUTES = ("bottom-up", JointMechanism.name)
"""Orders for attributes of any name."""
TOP_DOWN = REPAIRS.named(lambda repair: not repair.again)
"""Repairs that keep the counts of the descent."""
ELSEWHERE = "elsewhere"
"""Treatment of unknown codes that counts them under an added leaf of every hierarchy, and that leaf's code."""
UNKNOWN = ("error", "drop", ELSEWHERE)
"""Treatments of unknown codes, beside counting them under a named leaf."""


SOURCES = ("hierarchy", "same_as", "values", "bands", "dates", "standard", "labels")
"""The fields that say what the hierarchy of an attribute is; labels do if there is no other."""


def always(_: Values) -> bool:
    """The field is always required."""
    return True


def _order(section: Section, key: str) -> str | None:
    order: str | None = TEXT.read(section, key)
    if order is not None and order not in ORDERS:
        section.refuse(key, f"{_either(ORDERS)} or a list of levels{nearest(order, ORDERS)}")
    return order


def _named_split(example: str, known: Mapping[str, object]) -> Kind:
    def read(section: Section, key: str) -> str | None:
        name = section.get(key)
        if name is not None and not (isinstance(name, str) and name in known):
            hint = nearest(name, known) if isinstance(name, str) and len(known) > 1 else ""
            section.refuse(key, f"{_either(known)} or a table of weights, such as split = {example}{hint}")
        return name

    return either(dict, table(NUMBER), Kind(read, {"enum": list(known)}))


def _resolve(section: Section, key: str) -> Resolution | None:
    value = section.get(key)
    if isinstance(value, dict):
        limits = section.table(key).only(("fdr", "sigmas"))
        value = {name: NUMBER.read(limits, name) for name in limits.values}
    elif value is not None and value != "full":
        section.refuse(key, '"full", { fdr = 0.05 } or { sigmas = 3 }')
    with section.located():
        return Resolution.of(value)


def _confidence(section: Section, key: str) -> float | None:
    value = NUMBER.read(section, key)
    with section.located():
        return None if value is None else as_confidence(value)


def _either(choices: Mapping[str, object]) -> str:
    return ", ".join(f'"{one}"' for one in choices)


def _accounting(ran: Ran) -> Accounting | None:
    """Return how a loss is accounted, if there is a choice; the written plan then keeps its meaning."""
    plan = ran.plan
    open_loss = Loss(epsilon=plan.loss.epsilon, delta=plan.loss.delta, rho=plan.loss.rho, noise=plan.loss.noise)
    return plan.accounting if plan.accounting == "exact" or is_exact_by_default(plan.unit, open_loss) else None


def _margins(section: Section, key: str) -> str | None:
    name: str | None = TEXT.read(section, key)
    if name is not None and name not in ("each", "pairs", "none"):
        section.refuse(
            key, '"each", "pairs", "none" or a list of tables, such as ["origin.district", "place.state * sex"]'
        )
    return name


def _stated_order(ran: Ran) -> Any:
    """Return the order of refinement, or the word for a plan that has none."""
    return JointMechanism.name if JointMechanism.runs(ran.plan) else list(ran.plan.spine.splits)


def _stated_margins(ran: Ran) -> Any:
    margins = ran.plan.margins
    if len(ran.plan.spine.attributes) == 1:
        return None
    return margins if isinstance(margins, str) else list(margins)


def _stated_facts(ran: Ran) -> Any:
    """Return the facts with their file names; facts given in memory are left open."""
    return {
        fact.name: {
            **{kind: True if kind == INVARIANT else fact.places.get(kind) or OPEN for kind in fact.kinds},
            **({"unchecked": True} if fact.unchecked else {}),
            **({"sha256": fact.sha256} if fact.sha256 else {}),
        }
        for fact in ran.plan.public_facts
    }


def _weights(ran: Ran) -> Any:
    measured = {part.name: part.share for part in ran.plan.workload if part.is_measured}
    if ran.plan.split == "uniform" or not measured:
        return "uniform"
    whole = math.lcm(*(share.denominator for share in measured.values()))
    return {name: int(share * whole) for name, share in measured.items()}


def _resolution(ran: Ran) -> Any:
    resolve = ran.plan.resolve
    if not isinstance(resolve, Resolution):
        return None
    return resolve.stated


def _has_intervals(ran: Ran) -> bool:
    return ran.plan.confidence is not None


def _stated_confidence(ran: Ran) -> Any:
    confidence = ran.plan.confidence
    return None if confidence is None or confidence == CONFIDENCE else Fraction(str(confidence))


def _unknown(ran: Ran) -> Any:
    """Return the treatment of unknown codes as in the plan file: an added leaf is in no hierarchy file."""
    return ELSEWHERE if ran.file is not None and ran.file.elsewhere else ran.plan.unknown


def _top_down(ran: Ran, value: str) -> str | None:
    """Return the value, if the plan is repaired from the top down."""
    return None if JointMechanism.runs(ran.plan) or REPAIRS[ran.plan.repair].again else value


def _cuts_lists(read: Values) -> bool:
    """Whether contribution bounds cut lists of edges that are counted at other people."""
    graph = read["graph"]
    return graph["relation"] == "user-out" and graph["degree"] in ("in", "total")


def _declare(section: str, made: str, told: str, name: str, kind: Kind, help: str, **more: Any) -> Field:
    """Declare a field with the same name in its section, in the object made from it, and in the digest."""
    places = {"at": made and f"{made}.{name}", "digest": told and f"{told}.{name}"}
    return Field(section, name, kind, help, **{**places, **more})


_top = partial(_declare, "", "", "", families=FAMILIES)
_attribute = partial(_declare, ATTRIBUTE, "", "", families=FAMILIES)
_fact = partial(_declare, FACT, "", "", since="0.4", place=None)
_unit = partial(_declare, "unit", "plan.unit", "unit")
_loss = partial(_declare, "loss", "plan.loss", "loss", families=FAMILIES)
_repair = partial(_declare, "repair", "", "", always=True)
_release = partial(_declare, "release", "", "", since="0.2")
_data = partial(_declare, "data", "file", "", families=FAMILIES)

_LISTED = Kind(lambda section, key: section.table(key).values or None, {})
_SPLIT = _named_split('{ "place.state" = 2, "place.town" = 1 }', SPLITS)
_GROUP_SPLIT = _named_split('{ size = 1, "place.state" = 2 }', {"uniform": SPLITS["uniform"]})
_DEGREE_SPLIT = _named_split('{ degree = 1, "place.state" = 2 }', {"uniform": SPLITS["uniform"]})
_SPLITS = "; ".join(f'`"{name}"`: {one.words}' for name, one in SPLITS.items())
DELTA = (
    "The chance left to exceed epsilon: well below one in the number of records, such as 1e-8. Without it, the "
    "guarantee is pure, with Laplace noise."
)

FIELDS = (
    _top("title", TEXT, "What the release is about, for the card", default="", at="plan.title", digest="title",
         always=True),
    _top("description", TEXT, "The same at length", default="", at="said.description"),
    _top("attributes", _LISTED, "One section per attribute; `NAME` is the column of the release. It is "
         f"none of {', '.join(f'`{name}`' for name in RESERVED)}, in capitals or not; no two names differ only in "
         "capitals", families=(RECORDS,), asked=always, place=None,
         question="Which columns of the table are published? Give each a section, such as [attributes.place]."),
    _top("attributes", _LISTED, "The place of the groups", families=(GROUPS,), asked=always, place=None,
         question="Which column says where a group is? Give it a section, such as [attributes.place]."),
    _top("attributes", _LISTED, "Of degrees: the place of the people, a column of the node table; left out, those of "
         "the whole graph are counted", families=(DEGREES,), since="0.3", place=None),
    _top("facts", _LISTED, 'What is public and must stay true, by table: `"place.state" = "population.csv"` is short '
         'for `{ exact = "population.csv" }`. A table is named as margins are, in quotes: `"place.state"`, '
         '`"age.band * status"`', families=(RECORDS,), since="0.4", default={}, take=_stated_facts),

    _fact("exact", FILE, "A public file with the counts of all cells of the table: a column for each attribute, called "
          "as it or as the level, and `count`. They are released as they are, and cost nothing"),
    _fact("at_least", FILE, "A file with the least that some cells have"),
    _fact("at_most", FILE, "A file with the most that some cells have"),
    _fact("possible", FILE, 'A file of the cells that there can be, and no others; or `"same"`: those whose codes are '
          "equal"),
    _fact("impossible", FILE, 'A file of cells that there cannot be, or `"same"`'),
    _fact("invariant", FLAG, "`true`: the private table's own counts are published exactly, and are not protected",
          default=False),
    _fact("unchecked", FLAG, "`true`: the private table is not compared with it before anything is spent; the release "
          "keeps it all the same", default=False),
    _fact("sha256", NAME, "Refuses other contents; the plan of a release has it"),

    _attribute("column", NAME, "Its column in the private table; `NAME` when left out"),
    _attribute("hierarchy", FILE, "A public CSV, Parquet or Excel file",
               question="Which public file lists all its codes? It must come from a public source, never from the "
               "private table: which codes occur there is private.",
               asked=lambda own: all(own[key] is None for key in SOURCES[1:])),
    _attribute("levels", either(dict, table(NAME), TEXTS), "Its columns, coarse to fine (with `child` and `parent`, or "
               "`widths`: their names; of dates, some of `year`, `quarter`, `month`, `week` and `day`). "
               '`{ region = "Cód. CCAA" }` renames them: level = column',
               question="Which columns of the hierarchy file are its levels, coarse to fine?",
               asked=lambda own: all(own[key] is None for key in (*SOURCES[1:], "widths", "child"))),
    _attribute("same_as", NAME, "Instead of a file: the hierarchy of another attribute"),
    _attribute("values", TEXTS, "Instead of a file: a flat list of codes"),
    _attribute("labels", LABELS, 'What codes are called: `{ "0" = "female", "1" = "male" }`, of the finest level, or '
               'by level, `{ region = { "N" = "North" } }`. Alone, they list the codes, too. Queries, sites and '
               "exports show them", since="0.4"),
    _attribute("bands", either(dict, table(NUMBERS), NUMBERS), "Instead of a file: the column holds numbers, counted "
               'in bands which begin at these, `[0, 18, 65]`: `"0-17"`, `"18-64"` and `"65+"`. By level, coarse to '
               "fine: `{ adult = [0, 18], age = [0, 10, 18, 65] }`. What is below the first is an unknown code",
               since="0.4"),
    _attribute("dates", DATES, 'Instead of a file: the column holds dates, from a public first to a public last day, '
               '`{ first = "2020-03-01", last = "2022-12-31", format = "dd/mm/yyyy" }`, counted by `levels`. Times of '
               "day are cut off; `yyyy-mm-dd` is always read. Other days are unknown codes", since="0.4"),
    _attribute("standard", choice(STANDARDS), "Instead of a file: a hierarchy that many tables have. " +
               "; ".join(f'`"{name}"`: {one.words}, {" > ".join(one.levels)}' for name, one in STANDARDS.items()) +
               '. `levels` chooses among these. `"nuts"` and `"eu-grid"` cut the `values`, or the `codes` of a file',
               since="0.4"),
    _attribute("unknown", NAME, "What happens to its unknown codes, if not what `[data] unknown` says: `\"error\"`, "
               '`"drop"`, `"elsewhere"`, or a leaf that there is', since="0.4", families=(RECORDS,)),
    _attribute("blank", NAME, "The code of a record without a value, `\"not vaccinated\"`; the hierarchy gets it if it "
               "has not. Otherwise a missing value is an unknown code", since="0.4"),
    _attribute("widths", WHOLES, "Codes of one length are cut into levels after so many characters, `[2, 5]`"),
    _attribute("codes", NAME, "The column of these codes, instead of `levels`",
               question="Which column of the hierarchy file holds the codes that widths cut into levels?",
               asked=lambda own: own["widths"] is not None and own["same_as"] is None and own["values"] is None),
    _attribute("child", NAME, "Instead of `levels`, of a list of parents: the column of the codes"),
    _attribute("parent", NAME, "The column of their parents"),
    _attribute("ragged", choice(get_args(Ragged)), '`"repeat"` carries the last code down if a branch ends early',
               default="error"),
    _attribute("names", either(dict, table(NAME), NAME), 'By level, the column of the hierarchy file with the names of '
               'its codes: `{ region = "region_name", town = "town_name" }`; one column alone is that of the finest '
               "level or, of a list of parents, of all codes. Folders carry them, queries find them, exports show them",
               since="0.4"),
    _attribute("name", NAME, "The column with the names of the leaves, kept if they have coordinates"),
    _attribute("latitude", NAME, "The column with their latitudes"),
    _attribute("longitude", NAME, "The column with their longitudes"),
    _attribute("delimiter", DELIMITER, "Of the hierarchy file, as under `[data]`", since="0.2"),
    _attribute("encoding", ENCODING, "Of the hierarchy file, as under `[data]`", since="0.2"),
    _attribute("keep", KEEP, 'Of the hierarchy file, as under `[data]`: `{ level = "3" }` takes the '
               "finest of a list that has all levels", since="0.2"),
    _attribute("drop", KEEP, "Of the hierarchy file, as under `[data]`", since="0.4"),
    _attribute("sheet", NAME, "Of the hierarchy file, as under `[data]`", since="0.4"),
    _attribute("hierarchy_sha256", NAME, "Refuses another tree; the plan of a release has it"),

    _declare("spine", "", "", "order", either(list, TEXTS, Kind(_order, {"enum": list(ORDERS)})),
             '`"destination-first"`, `"origin-first"`, `"merged"` (both ends at once), `"bottom-up"` (leaves alone are '
             'measured, for any attributes), `"joint"` (no order: the margins are measured, and one table is fitted to '
             'all of them; the default with three or more attributes), or a list of `"attribute.level"`, in which '
             '`"origin.region * destination.region"` refines several at once, and `"place.state > place.town"` goes '
             "past a level; asked with two attributes",
             question='In which order are the attributes refined? "destination-first", "origin-first" or "merged" for '
             'two ends, or a list such as ["place.state", "sex", "place.county"].',
             asked=lambda read: len(read["attributes"]) == 2, take=_stated_order),
    _declare("spine", "", "", "margins", either(list, TEXTS, Kind(_margins, {"enum": ["each", "pairs", "none"]})),
             'Tables that are measured beside the spine: `"each"`, of every attribute alone at all its levels; '
             '`"pairs"`, these and those of every two attributes (the default of a joint fit); `"none"`; or a list '
             'such as `["origin.district", "place.state * sex"]`. From the top down, a table that crosses one before '
             "it is measured and not kept; `treetop plan` says which. Their shares are stated in `[loss] split` as "
             "`margins`, all together (not of a joint fit), or one by one as `\"margin origin.district\"`",
             default=DEFAULT_MARGINS, at="plan.margins", take=_stated_margins, since="0.4"),

    _unit("entity", NOUN, "What is protected, a noun", families=FAMILIES, asked=always, sketch='"trip"', always=True,
          question='Who or what is protected? Name one of them: "trip", "person", "household".'),
    _unit("contributions", WHOLE, "The most records of one of them", asked=always, sketch="1", always=True,
          question="How many records can one of them have at most? More records need more noise; a limit that is too "
          "low leaves those above it less protected."),
    _unit("contributions", WHOLE, 'Of in-degrees and of all edges under `"user-out"`: how many edges of a list count; '
          "of longer ones so many are kept, at random", families=(DEGREES,), since="0.4", asked=_cuts_lists,
          take=lambda ran: ran.plan.unit.contributions if ran.plan.unit.contributions > 1 else None,
          question="How many edges of one list count? Longer ones are cut to so many, at random. More need more noise. "
          "Take it from public knowledge, never from the graph."),
    _unit("neighbours", choice(get_args(Neighbours)), '`"replace"` or `"add-remove"`', asked=always, always=True,
          families=(RECORDS, DEGREES),
          question='What must stay hidden? "replace" hides what the records of one of them say; with one record each '
          'the number of records is then public and exact. "add-remove" also hides whether one of them is in the data '
          "at all, and the total gets noise.", sketch='"replace"  # or "add-remove"'),
    _unit("id", NAME, "The column that identifies one; with it the limit is enforced: so many records of each are kept "
          "at random", always=True,
          question="Optional: the column that identifies one of them. With it the limit is enforced, not declared. Ids "
          "that are spelt differently are different ones, but for what id_clean takes away."),
    _unit("id", NAME, "Of people in groups: one who stands twice is refused", families=(GROUPS,),
          take=lambda ran: ran.plan.unit.stated_id,
          always=True),
    _unit("id_clean", TEXTS, 'What does not tell ids apart, a list of `"trim"` (blanks at the ends), `"nfc"` (Unicode '
          'form) and `"casefold"` (case); without it every spelling is a unit of its own. The card says it',
          default=(), since="0.3"),
    _unit("per_node", table(WHOLE), "By level, a declared cap on the records of one unit in one node", default={},
          always=True),
    _unit("distinct", FLAG, "`true` if the records of one unit in one leaf count as one, as trips that are all "
          "different: enforced by `id`, and the finest level has less noise if `contributions` is above 1",
          default=False, since="0.4"),
    _unit("population", WHOLE, "How many of them there are at least, if that is public: a `delta` of one in so many or "
          "more is then asked about", families=FAMILIES, since="0.3"),
    _unit("may_be_missing", FLAG, "`true` if something on the way may drop records: under `replace` with one record "
          "each, the total is then measured. `keep`, `drop`, a query, a `source` that is a database or a workbook, and "
          "a graph's edges set it by themselves; a database or workbook that is named on the command line alone asks "
          "for it", default=False, since="0.3"),

    _loss("epsilon", NUMBER, "With `delta` for Gaussian noise, alone for pure differential privacy and Laplace noise; "
          "asked unless there is `rho`", asked=lambda read: read["loss"]["rho"] is None, sketch="1.0", always=True,
          question="How much may the release tell about one of them? epsilon limits how far anyone's odds about one of "
          "them can move: by a factor of 2.7 for 1, 1.1 for 0.1, 150 for 5. Give epsilon and delta, or rho, or epsilon "
          "alone for the stricter pure guarantee."),
    _loss("delta", NUMBER, "The chance left to exceed epsilon: well below one in the number of records", always=True,
          question=DELTA, sketch="1e-8"),
    _loss("rho", NUMBER, "Instead: zero-concentrated differential privacy; `delta` then only says at which delta to "
          "report", always=True),
    _loss("split", _SPLIT, f"{_SPLITS}; or a table `level = weight`", families=(RECORDS,), default="uniform",
          at="", digest="", take=_weights, place=1, always=True),
    _loss("split", _GROUP_SPLIT, 'Of group sizes: `"uniform"`, or weights of `size` and the levels of the place',
          families=(GROUPS,), default="uniform", at="", digest="", take=_weights, place=1, always=True),
    _loss("split", _DEGREE_SPLIT, 'Of degrees by place: `"uniform"`, or weights of `degree` and the place\'s levels',
          families=(DEGREES,), since="0.3", default="uniform", at="", digest="", take=_weights, place=1, always=True),
    _loss("accounting", choice(get_args(Accounting)), 'How epsilon and delta are kept. `"exact"`, the default if each '
          'unit has one record: about 5 % less noise at epsilon 1. `"zcdp"`, the default otherwise: through rho',
          since="0.2", settled="plan.accounting",
          unsaid="zcdp", take=_accounting),
    _loss("noise", choice(LAWS), "The law of noise; `\"discrete Laplace\"` if the loss is pure and `\"discrete "
          "Gaussian\"` otherwise, if left out", since="0.4"),
    _loss("large_delta", FLAG, "`true`: you mean a `delta` of one in the number of units, or more. Without it, such a "
          "plan or release is refused if that number is public. It holds for `treetop ask` too, which is not "
          "refused because of an exact total, which it does not publish", default=False, since="0.3"),

    _repair("method", choice(TOP_DOWN), 'Instead of `prefer`, the repair itself: `"chebyshev"` or `"euclidean"`',
            default="chebyshev", at="plan.repair", digest="repair", take=lambda ran: _top_down(ran, ran.plan.repair)),
    _repair("order", choice(get_args(Order)), 'What it lowers first: `"ascending"`, the small ones, or `"descending"`',
            default="ascending", at="plan.order", digest="order", take=lambda ran: _top_down(ran, ran.plan.order)),

    _release("prefer", choice(PREFERENCES), 'What estimates favour: `"fewer-invented"` (the default), `"fewer-lost"` '
             'or `"lower-error"` ([estimates](estimates.md))', at="plan.prefer",
             take=lambda ran: ran.plan.preference if REPAIRS[ran.plan.repair].again else None),
    _release("resolve", Kind(_resolve, {"anyOf": [{"const": "full"}, table(NUMBER).schema]}),
             '`"full"`: every count down to the leaves; or `{ fdr = 0.05 }`, `{ sigmas = 3 }`: only nodes that the '
             "measurements show to be there, the rest stays unresolved at coarser nodes. `fdr` is the expected "
             "proportion of empty nodes among those that one release names at a level ([resolution](resolution.md))",
             sketch="{ fdr = 0.05 }", question="Optional: which counts are named? Left out, every count goes down to "
             "the leaves, and of the smallest most are noise. With this, only what the measurements show to be there "
             "is named, and the rest stays at coarser nodes.",
             default="full", at="plan.resolve", digest="resolve", take=_resolution),
    _release("confidence", Kind(_confidence, NUMBER.schema), "The confidence of the [noise intervals](intervals.md)",
             default=CONFIDENCE, at="plan.confidence", digest="confidence", take=_stated_confidence,
             families=FAMILIES),
    _release("intervals", FLAG, "`false` leaves the intervals out", default=True, families=FAMILIES,
             take=_has_intervals),
    _release("keep_measurements", FLAG, "`true` keeps all that was measured in the folder, for later estimates at no "
             "cost in privacy", default=False, at="file.keep_measurements", place=None, families=FAMILIES),

    _data("source", FILE, "The private table, if it is not named on the command line", place=None),
    _data("query", NAME, "The query, if it is a database", place=None),
    _data("count", NAME, "The column that says how many records a row stands for", at="said.count",
          question="Does a row stand for several records, as many as a column says? Then name it: one row counts so "
          "often. If a row is one record, leave this out: a column that says something else about a record is no "
          "count."),
    _data("unknown", either(dict, table(TEXT), choice(UNKNOWN)), '`"error"` stops the release, `"drop"` leaves the '
          'row out, `"elsewhere"` counts it in an extra category, which every attribute gets; or by '
          'attribute, `{ home = "elsewhere", age = "drop", sex = "not known" }`, one of these or a leaf that there is. '
          "How many there were is told on the terminal, never in "
          "the release", default="error", at="plan.unknown", digest="unknown", place=-1, always=True, take=_unknown),
    _data("records", WHOLE, "About how many records there are, as public knowledge, for a verdict before anything is "
          "spent: which tables will be readable, and which mostly noise", at="file.records", families=(RECORDS,),
          sketch="10000", since="0.4",
          question="Optional: about how many records are there? A round number that may be known to everybody, for a "
          "verdict before anything is spent."),
    _data("period", NAME, "The time that the data are about, for the card", at="said.period"),
    _data("delimiter", DELIMITER, "Of a CSV file; found from its header when left out", place=None),
    _data("encoding", ENCODING, "Of a text file; UTF-8 when left out", place=None),
    _data("fields", POSITIONS, "The table is fixed-width text: of each field the first and last character, counted "
          "from 1, `home = [8, 13]`; one character, `record = 1`; or pieces to be joined, `home = [[5, 7], [9, 11]]`",
          since="0.2", place=1),
    _data("keep", KEEP, 'Values that a row must have, `{ record = "S", year = ["2007", "2008"] }`: the data set is '
          "these rows, and the others are no part of it. Card and plan say so. The total is then always measured",
          since="0.2", at="said.keep"),
    _data("drop", KEEP, 'The opposite: values that leave a row out, `{ status = ["test", "void"] }`. A row without a '
          "value stays", since="0.4", at="said.drop"),
    _data("sheet", NAME, "The sheet of an Excel workbook, if it has several. The total of a sheet is always "
          "measured, since empty rows at its end are not there", since="0.4", place=None),
    _data("trim", either(list, TEXTS, FLAG), "Columns of text whose blanks at both ends do not count, or `true` for "
          "all. This and the next four are rules that the card states; a column goes through them in this order",
          since="0.4"),
    _data("missing", TEXTS, 'Texts that stand for a missing value, `["NA", "?"]`', since="0.4"),
    _data("thousands", table(TEXT), "By column of numbers, such as the count, what stands between their thousands: "
          '`{ flow = "," }` reads `1,234` as 1234. What is not written so is no number. `9465.0` is a count anyway',
          since="0.4"),
    _data("replace", table(FILE), "By column, a public file of two columns: codes, and what each is counted as, "
          'such as those of merged districts, `{ home = "merged.csv" }`', since="0.4"),
    _data("pad", table(WHOLE), "By column, how long codes are: shorter ones get zeros in front, `{ home = 5 }`",
          since="0.4"),
    _data("header", FLAG, "Of a CSV file: `false` if it has no line of names. When left out, the first line holds "
          "the names, and a column whose name is a code of its hierarchy, a number, a date or a mark like `NA` is "
          "refused; `true` vouches for it. `inspect` also compares the first line with the rows below it, and vouches "
          "for it in its draft if it has a public hierarchy to compare with", since="0.3"),
    _data("comment", NAME, 'Of a CSV file: the character with which lines above the table begin that are none of its '
          'rows, `"#"`. A record may then vanish, so the total is then measured', since="0.4"),
    _data("names", TEXTS, 'With `header = false`: all columns in order, `["origin", "destination"]`', since="0.3"),
    _data("blank_lines", choice(get_args(BlankLines)), '`"record"`: a blank line is a record in which everything is '
          'missing; or `"skip"`: it is nothing. A record may then vanish, so the total is then measured',
          default="record", since="0.3"),
)  # fmt: skip
