"""All measurements as one table: `make bench`."""

from __future__ import annotations

import os
import platform

from benchmarks import groups, italy, margins, noise, reference, startup
from treetop.plan.workload import text_table


def main() -> None:
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}")
    rows = [("measurement", "treetop", "beside", "ratio")]
    for measure in (
        noise.rows,
        reference.rows,
        italy.overhead,
        italy.full_detail,
        margins.rows,
        startup.rows,
        groups.rows,
    ):
        rows += measure()
    print(text_table(rows, left=(0, 2)))


if __name__ == "__main__":
    main()
