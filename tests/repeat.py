"""Run the tests again and again, part by part, and print a table of runs and failures: `make repeat RUNS=20`.

A part is a folder of tests, a file beside them, or the examples in the source. Every part runs once before any runs
again, at low priority. What a run printed is kept where it failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass
class Part:
    """A part of the tests, and what came of its runs."""

    name: str
    runs: int = 0
    failed_runs: int = 0
    seconds: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)

    def run(self, logs: Path, options: list[str]) -> None:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, self.name]
        started = time.monotonic()
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        self.runs += 1
        self.seconds += time.monotonic() - started
        if done.returncode:
            self.failed_runs += 1
            self.failures.update(FAILED.findall(done.stdout) or [f"exit code {done.returncode}"])
            logs.mkdir(parents=True, exist_ok=True)
            name = f"{self.name.replace('/', '-')}.{self.runs}.txt"
            (logs / name).write_text(done.stdout, encoding="utf-8")

    def __str__(self) -> str:
        mean = self.seconds / max(self.runs, 1)
        text = f"{self.name:<32}{self.runs:>6}{self.failed_runs:>10}{mean:>12.1f}"
        return "\n".join([text, *(f"    {count} times {test}" for test, count in self.failures.most_common())])


def all_parts() -> list[str]:
    folders = sorted(path for path in HERE.iterdir() if path.is_dir() and any(path.glob("test_*.py")))
    files = sorted(HERE.glob("test_*.py"))
    return [*(str(path.relative_to(ROOT)) for path in [*folders, *files]), "src/treetop"]


def table(parts: list[Part]) -> str:
    return "\n".join([f"{'part':<32}{'runs':>6}{'failed':>10}{'seconds':>12}", *map(str, parts)])


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=20, help="how often every part is run")
    arguments.add_argument("--logs", type=Path, default=ROOT / ".repeat", help="where failed runs leave their output")
    arguments.add_argument("--options", default="", help="options of pytest")
    arguments.add_argument("parts", nargs="*", default=all_parts(), help="all of them unless named")
    chosen = arguments.parse_args()
    os.nice(19)
    parts = [Part(name) for name in chosen.parts]
    for run in range(chosen.runs):
        for part in parts:
            part.run(chosen.logs, chosen.options.split())
        sys.stdout.write(f"\nafter {run + 1} of {chosen.runs} runs\n{table(parts)}\n")
        sys.stdout.flush()
    return int(any(part.failed_runs for part in parts))


if __name__ == "__main__":
    sys.exit(main())
