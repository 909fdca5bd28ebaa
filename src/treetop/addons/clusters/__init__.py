"""Clusters: the engines that run the tasks of a release on Spark or Dask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from treetop.addons.clusters.dask import Dask, client
from treetop.addons.clusters.spark import Spark, session
from treetop.engine.engine import Engine, EngineKind, Machine
from treetop.engine.staging import staging
from treetop.errors import EngineError


@contextmanager
def _spark(engine: Engine) -> Iterator[Machine]:
    engine.refuse_own_staging(engine.master is None or not engine.master.startswith("local["))
    with session(engine.master) as running, staging(engine.staging) as folder:
        spark = Spark(running, folder)
        spark.prove()
        yield Machine(spark, folder, engine.bytes, spark.files)


@contextmanager
def _dask(engine: Engine) -> Iterator[Machine]:
    engine.refuse_own_staging(elsewhere=True)
    if engine.master is None:
        raise EngineError("name the scheduler of the Dask cluster, such as `master=tls://HOST:PORT`")
    with client(engine.master) as running, staging(engine.staging) as folder:
        dask = Dask(running, folder)
        dask.prove()
        yield Machine(dask, folder, engine.bytes)


SPARK = EngineKind("spark", "On a Spark cluster, with counts in a private folder that all its executors see.", _spark)
DASK = EngineKind("dask", "On a Dask cluster, with counts in a private folder that all its workers see.", _dask)
