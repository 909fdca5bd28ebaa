"""Tables in, from files, databases and Arrow streams, batch by batch; nothing here knows what a column means.

These are the formats that there are; another one is added with `treetop.sources.source.register_format`.
"""

from treetop.sources.csv_file import CSV
from treetop.sources.database import DUCKDB, POSTGRESQL, SQLITE
from treetop.sources.excel import EXCEL
from treetop.sources.fixed import FIXED
from treetop.sources.parquet import PARQUET
from treetop.sources.source import register_format

for _format in (CSV, FIXED, PARQUET, EXCEL, SQLITE, DUCKDB, POSTGRESQL):
    register_format(_format)
