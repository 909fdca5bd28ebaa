"""A standalone cluster of Spark on addresses of this machine alone: its workers pass for machines, and can be lost."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.engines.sparks import ROOT, Place, skip_without_spark, started

SETTINGS = """
spark.authenticate true
spark.authenticate.secret {secret}
spark.network.crypto.enabled true
spark.io.encryption.enabled true
spark.executor.memory 512m
spark.executor.cores 1
"""


@dataclass
class Node:
    """A worker with all processes that it has started."""

    process: subprocess.Popen[bytes]

    @property
    def processes(self) -> list[int]:
        """The worker, its executors, and their Python."""
        parents: dict[int, int] = {}
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError):
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        own = [self.process.pid]
        for one in own:
            own += [child for child, parent in parents.items() if parent == one]
        return own

    def lose(self) -> None:
        """Have the machine gone, with all that runs on it."""
        for one in self.processes:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        self.process.wait(60)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


@dataclass
class Cluster:
    """A master and its workers."""

    folder: Path
    nodes: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("conf", "daemons"):
            (self.folder / name).mkdir(mode=0o700)
        settings = self.folder / "conf" / "spark-defaults.conf"
        settings.touch(mode=0o600)
        settings.write_text(SETTINGS.format(secret=secrets.token_hex(32)))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))  # workers find these modules
        return {
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": paths,
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "SPARK_DAEMON_MEMORY": "256m",
        }

    def start(self) -> None:
        self._run("master.Master", "127.0.0.1", {}, "--port", str(self.port))

    def add(self, host: str, **environment: str) -> Node:
        """Start a worker on a machine of its own, as far as Spark can tell."""
        room = ["--cores", "1", "--memory", "600m", "--work-dir", str(self.folder / "work")]
        return self._run("worker.Worker", host, environment, *room, self.master)

    def _run(self, name: str, host: str, environment: dict[str, str], *words: str) -> Node:
        import pyspark

        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        command += ["--host", host, "--webui-port", "0", *words]
        own: dict[str, Any] = {"env": {**os.environ, **self.environment, "SPARK_LOCAL_IP": host, **environment}}
        with (self.folder / "daemons" / f"{len(self.nodes)}.txt").open("wb") as log:
            node = Node(subprocess.Popen(command, stdout=log, stderr=log, **own))
        self.nodes.append(node)
        return node

    def stop(self) -> None:
        for node in reversed(self.nodes):
            node.stop()


@contextmanager
def cluster(folder: Path, **settings: str) -> Iterator[tuple[Cluster, Place]]:
    """Run a master, and a session on it; workers are to be added."""
    skip_without_spark()
    made = Cluster(folder)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        try:
            made.start()
            with started(folder, made.master, **settings) as place:
                yield made, place
        finally:
            made.stop()
