"""Run the tests again and again and print a table of runs and failures, part by part: `make repeat RUNS=20`.

A part is a folder of tests, a file beside them, or the examples in the source. A run is one run of pytest over all of
them, on all cores and at low priority: a process for each part would import everything anew each time. What a run
printed is kept where it failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).parent
ROOT = HERE.parent
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
SOURCE = "src/treetop"
ELSEWHERE = "no test by itself"
"""The part that a run failed in where no test did: it broke off, or left processes behind."""


@dataclass
class Part:
    """A part of the tests, and what came of its runs."""

    name: str
    runs: int = 0
    failed_runs: int = 0
    seconds: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)

    def add(self, seconds: float, failures: list[str]) -> None:
        """Note one run."""
        self.runs += 1
        self.seconds += seconds
        self.failed_runs += bool(failures)
        self.failures.update(failures)

    def __str__(self) -> str:
        mean = self.seconds / max(self.runs, 1)
        text = f"{self.name:<32}{self.runs:>6}{self.failed_runs:>10}{mean:>12.1f}"
        return "\n".join([text, *(f"    {count} times {test}" for test, count in self.failures.most_common())])


def all_parts() -> list[str]:
    folders = sorted(path for path in HERE.iterdir() if path.is_dir() and any(path.glob("test_*.py")))
    files = sorted(HERE.glob("test_*.py"))
    return [*(str(path.relative_to(ROOT)) for path in [*folders, *files]), SOURCE]


def part_of(test: str, names: list[str]) -> str:
    """Return the part that a test is in, by the path that its name begins with."""
    path = test.partition("::")[0]
    inside = [name for name in names if path == name or path.startswith(f"{name.removesuffix('.py')}/")]
    return max(inside, key=len, default=ELSEWHERE)


def run(names: list[str], options: list[str]) -> tuple[int, str, dict[str, float]]:
    """Run the parts once; return how pytest ended, what it printed, and the seconds that the tests of each took."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "auto", "--dist", "worksteal"]
        command += [f"--junit-xml={report}", *options, *names]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # tests are compiled in the first run only
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=environment
        )
        cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
        seconds = dict.fromkeys([*names, ELSEWHERE], 0.0)
        for case in cases:
            path = case.get("classname", "").replace(".", "/")
            own = f"{path}.py" if f"{path}.py" in seconds else path
            seconds[part_of(own, names)] += float(case.get("time", 0))
    return done.returncode, done.stdout, seconds


def table(parts: list[Part]) -> str:
    return "\n".join([f"{'part':<32}{'runs':>6}{'failed':>10}{'seconds':>12}", *map(str, parts)])


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=20, help="how often all parts are run")
    arguments.add_argument("--logs", type=Path, default=ROOT / ".repeat", help="where failed runs leave their output")
    arguments.add_argument("--options", default="", help="options of pytest")
    arguments.add_argument("parts", nargs="*", default=all_parts(), help="all of them unless named")
    chosen = arguments.parse_args()
    os.nice(19)
    parts = {name: Part(name) for name in [*chosen.parts, ELSEWHERE]}
    for number in range(1, chosen.runs + 1):
        started = time.monotonic()
        code, printed, seconds = run(chosen.parts, shlex.split(chosen.options))
        failures: dict[str, list[str]] = {name: [] for name in parts}
        for test in FAILED.findall(printed) if code else ():
            failures[part_of(test, chosen.parts)].append(test)
        if code and not any(failures.values()):
            failures[ELSEWHERE].append(f"exit code {code}")
        for name, part in parts.items():
            part.add(seconds[name], failures[name])
        if code:
            chosen.logs.mkdir(parents=True, exist_ok=True)
            (chosen.logs / f"run-{number}.txt").write_text(printed, encoding="utf-8")
        took = time.monotonic() - started
        shown = [part for part in parts.values() if part.name != ELSEWHERE or part.failures]
        sys.stdout.write(f"\nafter {number} of {chosen.runs} runs, the last in {took:.0f} s\n{table(shown)}\n")
        sys.stdout.flush()
    return int(any(part.failed_runs for part in parts.values()))


if __name__ == "__main__":
    sys.exit(main())
