"""Tables in, from files, databases and Arrow streams, batch by batch; nothing here knows what a column means.

These are the formats that there are; another one is added with `treetop.tables.source.register_format`.
"""

from treetop.tables.csv_file import CSV
from treetop.tables.database import DUCKDB, POSTGRESQL, SQLITE
from treetop.tables.fixed import FIXED
from treetop.tables.parquet import PARQUET
from treetop.tables.source import register_format

for _format in (CSV, FIXED, PARQUET, SQLITE, DUCKDB, POSTGRESQL):
    register_format(_format)
