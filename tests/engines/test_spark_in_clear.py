"""The search for traces finds a key where it is: in a session without encryption, which is refused for that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engines.sparks import SOCKETS, started, written
from treetop.addons.clusters.spark import Spark
from treetop.errors import EngineError
from treetop.noise import Key

KEY = Key(bytes.fromhex("9b7d04c1aa3e58f26602b19dc4e7f05381d6fa2e4b90c87715e3ad6c22f89b54"))


@pytest.mark.skipif(os.environ.get("TREETOP_AUDIT") != "deep", reason="it takes a session, with TREETOP_AUDIT=deep")
@pytest.mark.filterwarnings(SOCKETS)
@pytest.mark.parametrize("encrypted", ["false", "true"])
def test_without_encryption_a_key_in_a_broadcast_variable_is_on_disk(encrypted: str, tmp_path: Path) -> None:
    settings = {"spark.io.encryption.enabled": encrypted, "spark.broadcast.compress": "false"}
    with started(tmp_path, "local[1]", **settings) as place:
        broadcast = place.running.sparkContext.broadcast(KEY.secret)
        assert broadcast.value == KEY.secret
        assert bool(place.holding(*written(KEY))) == (encrypted == "false")
        if encrypted == "false":
            with pytest.raises(EngineError, match="--conf spark.io.encryption.enabled=true"):
                Spark(place.running, place.staging)
