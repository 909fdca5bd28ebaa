"""The networks of the study: a made-up one like Pokec, and two real ones that are read where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import treetop as tt
from experiments.kit.pokec_like import SocialNetwork, pokec_like
from treetop.counts.cleaning import Cleaning
from treetop.counts.graph_reader import Graph
from treetop.domain.unit import Policies


@dataclass(frozen=True, eq=False)
class Network:
    """One network, with what its study takes as public."""

    name: str
    title: str
    nodes: pa.Table
    """id, and the column `group` with the leaf group."""
    edges: pa.Table
    """source and target, each edge once."""
    directed: bool
    groups: tt.Hierarchy
    most: int
    """How many out-edges of a list count under "user-out"."""
    bound: int
    """The promise under "node": no more edges in all. A public limit of the site, in a real case; here a round number
    above the truth, which a real steward must not look up."""

    def graph(self, relation: str) -> Graph:
        """Return the graph under a relation; lists of edges without direction hold each edge at both ends."""
        directed, edges = self.directed, self.edges
        if relation == "user-out" and not directed:
            turned = edges.select([1, 0]).rename_columns(["source", "target"])
            directed, edges = True, pa.concat_tables([edges, turned])
        return Graph(
            self.nodes,
            edges,
            relation,
            directed=directed,
            contributions=self.most if relation == "user-out" else None,
            degree_bound=self.bound if relation == "node" else None,
            policies=Policies(self_loops="drop", repeated="drop"),
            cleaning={"group": Cleaning()},
        )


def networks(data: Path, quick: bool = False) -> Iterator[Network]:
    """Yield the networks; the real ones only where they are."""
    yield _pokec(pokec_like(1_000, 10_000) if quick else pokec_like())
    if (data / "graph_twitch").is_dir():
        yield _twitch(data / "graph_twitch")
    if (data / "graph_lastfm_asia").is_dir():
        yield _lastfm(data / "graph_lastfm_asia")


def _pokec(network: SocialNetwork) -> Network:
    nodes = pa.table({"id": network.nodes["id"], "group": network.nodes["town"]})
    groups = tt.Hierarchy.from_table(SocialNetwork.places(), ["region", "town"])
    size = f"{network.nodes.num_rows:,} people, {network.edges.num_rows:,} friendships"
    return Network("pokec-like", f"Pokec-like ({size})", nodes, network.edges, True, groups, 20, 1_000)


def _twitch(folder: Path) -> Network:
    people, edges = pq.read_table(folder / "nodes.parquet"), pq.read_table(folder / "edges.parquet")
    languages = people["lang"].cast(pa.string())
    kind = pa.array(
        [
            f"{language} {'partner' if partner else 'no partner'}, {'mature' if mature else 'all ages'}"
            for language, partner, mature in zip(
                languages.to_pylist(), people["partner"].to_pylist(), people["mature"].to_pylist(), strict=True
            )
        ]
    )
    nodes = pa.table({"id": _joined(languages, people["node"]), "group": kind})
    nodes = nodes.group_by("id", use_threads=False).aggregate([("group", "first")]).rename_columns(["id", "group"])
    ends = {
        name: _joined(edges["lang"].cast(pa.string()), edges[column])
        for name, column in (("source", "u"), ("target", "v"))
    }
    # Public: the six languages of the site and the two marks of a channel.
    listed = [
        (language, f"{language} {partner}, {mature}")
        for language in sorted(set(languages.to_pylist()))
        for partner in ("partner", "no partner")
        for mature in ("mature", "all ages")
    ]
    table = pa.table({"language": [one for one, _ in listed], "kind": [one for _, one in listed]})
    groups = tt.Hierarchy.from_table(table, ["language", "kind"])
    title = f"Twitch ({nodes.num_rows:,} people, {edges.num_rows:,} edges)"
    return Network("twitch", title, nodes, pa.table(ends), False, groups, 20, 10_000)


def _lastfm(folder: Path) -> Network:
    people, edges = pq.read_table(folder / "nodes.parquet"), pq.read_table(folder / "edges.parquet")
    nodes = pa.table({"id": people["node"], "group": people["country"].cast(pa.string())})
    groups = tt.Hierarchy.flat([str(code) for code in range(18)], level="country")
    title = f"LastFM Asia ({nodes.num_rows:,} people, {edges.num_rows:,} edges)"
    return Network("lastfm", title, nodes, edges.rename_columns(["source", "target"]), False, groups, 20, 500)


def _joined(language: pa.ChunkedArray, number: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(language, number.cast(pa.string()), ":")


def town_counts(network: Network) -> list[np.ndarray]:
    """Return the people of each group, by the nodes of the level above it: for the study of rebalancing."""
    leaf = network.groups.encode(pc.fill_null(network.nodes["group"].cast(pa.string()), "missing").combine_chunks())
    count = np.bincount(leaf[leaf >= 0], minlength=network.groups.sizes[-1])
    first = network.groups.first[-1]
    return [count[start:stop] for start, stop in pairwise(first) if stop - start > 1]
