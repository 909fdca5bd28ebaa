"""What tests of several folders share: processes, a PostgreSQL server, examples, and the table of deliberate faults.

What holds of every test stands in tests/plugins: its noise is the same in every run, it leaves nothing
behind, and no kernel is compiled twice.
"""

from __future__ import annotations

import gc
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.processes import Server, served

pytest_plugins = ["tests.plugins.fixed_noise", "tests.plugins.nothing_left", "tests.plugins.compiled_once"]

# The examples are the same in every run, and no time decides. TREETOP_AUDIT=deep looks for new ones.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None,
                          suppress_health_check=[HealthCheck.too_slow])  # fmt: skip
settings.register_profile("deep", settings.get_profile("fixed"), derandomize=False, print_blob=True)
settings.load_profile("deep" if os.environ.get("TREETOP_AUDIT") == "deep" else "fixed")

# The tests are spread over the cores already: a product of matrices is not to wait for a core that another test has.
for threads in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 2**31:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # a disk takes longer than most tests

LONG = (
    *("benchmarks", "estimates", "evaluate", "experiments", "mechanisms", "parts", "real"),
    *("data/test_export_browser.py", "planning/test_expected.py"),
    *("studio/test_browser.py", "studio/test_browser_raw.py"),
    *("test_site.py", "test_wheel.py"),
)
"""What takes long and guards no promise of docs/guarantees.md: `make test` leaves it to `make test-long`."""

SECRET = "hunter2"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: left to make test-long")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_long(item.path):
            item.add_marker("long")


def is_long(path: Path) -> bool:
    """Whether a file of tests is left to `make test-long`."""
    return any(path.is_relative_to(Path(__file__).parent / long) for long in LONG)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the collector of garbage pass over what all tests have in common: a fifth of the time went into that."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


@pytest.fixture
def trips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the everyday plan as `plan.toml`, its hierarchy and six hundred trips; we are in it."""
    from tests import everyday

    monkeypatch.chdir(everyday.write(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def processes() -> Iterator[Server]:
    """Start processes of their own that need not import Treetop."""
    with served() as server:
        yield server


def _as_server_user(*command: str, cwd: Path) -> None:
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    subprocess.run([*prefix, *command], cwd=cwd, check=True, capture_output=True, timeout=300)


def _start(control: list[str], folder: Path, attempts: int = 5) -> int:
    """Start a server at a free port; where another process takes that first, at the next one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
    try:
        _as_server_user(*control, "-o", options, "start", cwd=folder)
    except subprocess.CalledProcessError:
        if attempts == 1:
            raise
        return _start(control, folder, attempts - 1)
    return port


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    if os.geteuid() == 0 and not shutil.which("runuser"):
        pytest.skip("PostgreSQL does not run as root, and there is no runuser")
    folder = Path(tempfile.mkdtemp(prefix="treetop-pg-", dir="/tmp"))  # the server's user cannot enter pytest's own
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        data, bin_folder = folder / "data", programs[-1].parent
        secret = folder / "secret"
        secret.write_text(SECRET, encoding="utf-8")
        secret.chmod(0o644)
        options = ["-A", "scram-sha-256", "-U", "ann", f"--pwfile={secret}", "--no-sync"]
        _as_server_user(str(bin_folder / "initdb"), "-D", str(data), *options, cwd=folder)
        control = [str(bin_folder / "pg_ctl"), "-D", str(data), "-w", "-t", "240", "-l", str(folder / "log")]
        port = _start(control, folder)
        try:
            yield f"postgresql://ann:{SECRET}@127.0.0.1:{port}/postgres"
        finally:
            _as_server_user(*control, "-m", "immediate", "stop", cwd=folder)
    finally:
        shutil.rmtree(folder)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which deliberate faults (tests/privacy/faults.py) were found, by which audits.

    It stands here, and not beside those tests: where several processes share them out, the one that prints reads only
    this file.
    """
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    found = [value for report in reports for name, value in getattr(report, "user_properties", []) if name == "fault"]
    if not found:
        return
    terminalreporter.section("deliberate faults and the audits that found them")
    for fault, audits in found:
        verdict = "caught" if audits else "NOT CAUGHT"
        terminalreporter.line(f"{verdict:>10}  {fault:<60} {'; '.join(audits)}")
