"""The relaxation of group sizes by a generic solver, in an environment of its own: Clarabel through CVXPY.

Reads a file with the measurements and the tree, and prints the seconds that it took and the least cost. Direct sizes
are not negative and have the total; cumulative ones rise to it.
"""

from __future__ import annotations

import json
import sys
import time

import cvxpy as cp  # type: ignore[import-not-found]
import numpy as np
from scipy import sparse


def main(path: str, cumulative: bool) -> None:
    given = np.load(path)
    y, parent, total = given["y"].astype(float), given["parent"], float(given["total"])
    nodes, sizes = y.shape
    children = np.arange(1, nodes)
    inner = np.unique(parent[1:])
    row = {node: i for i, node in enumerate(inner.tolist())}
    start = time.perf_counter()
    rows = np.concatenate([[row[int(p)] for p in parent[1:]], np.arange(len(inner))])
    columns = np.concatenate([children, inner])
    signs = np.concatenate([np.ones(len(children)), -np.ones(len(inner))])
    sums = sparse.csr_matrix((signs, (rows, columns)), (len(inner), nodes))
    # The change of the measurements, not the counts themselves: those are too large for the solver's tolerances.
    change = cp.Variable((nodes, sizes))
    limits = [sums @ change == -(sums @ y)]
    if cumulative:
        rises = change[:, 1:] - change[:, :-1] >= -np.diff(y, axis=1)
        limits += [change[:, 0] >= -y[:, 0], rises, change[0, -1] == total - y[0, -1]]
    else:
        limits += [change >= -y, cp.sum(change[0]) == total - y[0].sum()]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(change)), limits)
    problem.solve(solver=cp.CLARABEL)
    seconds = time.perf_counter() - start
    print(
        json.dumps(
            {
                "seconds": seconds,
                "solver_seconds": problem.solver_stats.solve_time,
                "cost": float(problem.value),
                "status": problem.status,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "cumulative")
