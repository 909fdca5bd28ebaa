"""The wheel: it is built, installed into an empty environment, and its command runs there on the data it ships."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

import treetop

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def built(folder: Path) -> Path:
    """Build the wheel without a network: what builds it is one of the packages for tests."""
    if find_spec("hatchling") is None or find_spec("pip") is None:
        pytest.skip("a wheel is built by pip and hatchling, and they are not installed here")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
        "--wheel-dir", folder, ROOT, cwd=folder)  # fmt: skip
    (wheel,) = folder.glob("treetop_dp-*.whl")
    return wheel


def test_the_wheel_installs_into_an_empty_environment_and_runs_on_what_it_ships(tmp_path: Path) -> None:
    wheel = built(tmp_path)
    with ZipFile(wheel) as packed:
        names = set(packed.namelist())
    assert {
        "treetop/py.typed",
        "treetop/card/sentences.toml",
        "treetop/plan/fields.toml",
        "treetop/plan/file/draft.toml.jinja",
    } <= names
    assert {"treetop/examples/flights/plan.toml", "treetop/examples/flights/flights.csv"} <= names
    pages = {
        f"treetop/addons/{name}"
        for name in ("site/page.html", "site/guarantee.html", "map/script/paint.js", "pages/head.html")
    }
    pages |= {"treetop/exporting/words/en.toml", "treetop/exporting/words/de.toml"}
    pages |= {f"treetop/addons/studio/pages/{name}" for name in ("base.html", "studio.css", "studio.js")}
    assert pages <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests/", "src/"))]

    empty = tmp_path / "empty"
    venv.create(empty, with_pip=False, symlinks=os.name != "nt")
    scripts = empty / ("Scripts" if os.name == "nt" else "bin")
    run(sys.executable, "-m", "pip", "--python", scripts / "python", "install", "--quiet", "--no-deps", "--no-index",
        wheel, cwd=tmp_path)  # fmt: skip
    own = Path(
        run(scripts / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip()
    )
    # The libraries that it needs are lent to it: they cannot be had without a network. Its own code is not.
    (own / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")

    where = run(scripts / "python", "-c", "import treetop; print(treetop.__file__, treetop.__version__)", cwd=tmp_path)
    assert where.split() == [str(own / "treetop" / "__init__.py"), treetop.__version__]
    said = run(scripts / "treetop", "plan", own / "treetop" / "examples" / "flights" / "plan.toml", cwd=tmp_path)
    assert said.startswith("Flights between US airports")
    assert "demo" in run(scripts / "treetop", "--help", cwd=tmp_path)
    installed = "from importlib.metadata import version; print(version('treetop-dp'))"
    assert run(scripts / "python", "-c", installed, cwd=tmp_path).strip() == treetop.__version__
