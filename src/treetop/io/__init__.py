"""Tables from files, databases and Arrow streams, batch by batch; nothing here knows the meaning of a column.

These are the formats that there are; another one is added with `treetop.io.source.register_format`.
"""

from treetop.io._csv_file import CSV
from treetop.io.database import DUCKDB, POSTGRESQL, SQLITE
from treetop.io.excel import EXCEL, PARQUET
from treetop.io.fixed_width import FIXED
from treetop.io.source import register_format

for _format in (CSV, FIXED, PARQUET, EXCEL, SQLITE, DUCKDB, POSTGRESQL):
    register_format(_format)
