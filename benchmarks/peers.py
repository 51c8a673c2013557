"""Times other libraries on request, in their own environment (``.venv-peers``).

`benchmarks.speed` starts this file and talks to it in lines of JSON, so that the peers' turns fall
between ours and the machine's moods hit everyone. A request ``{"name": …}`` is answered with
``{"seconds": …}``; each library gets its input in the form that it likes best, made beforehand.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

import diffprivlib.mechanisms as dpl
import numpy as np
import opendp.prelude as dp

WIDTH = 5.0
EPSILON = 1.0
DELTA = 1e-5
SIGMA = 3.7306 * WIDTH
"""The analytic Gaussian's deviation for this ε and δ."""

GRID = -20
"""OpenDP rounds to multiples of 2^GRID here. Its default, the finest grid there is, is slower."""

Call = Callable[[list[float]], object]


def one_by_one(mechanism: dpl.base.DPMechanism) -> Call:
    return lambda labels: [mechanism.randomise(label) for label in labels]


def vectors(size: int | None) -> dp.Domain:
    return dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)


def peers(size: int) -> dict[str, Call]:
    taxicab, euclid = dp.l1_distance(T=float), dp.l2_distance(T=float)
    scale = WIDTH / EPSILON
    return {
        "diffprivlib Laplace": one_by_one(dpl.Laplace(epsilon=EPSILON, sensitivity=WIDTH)),
        "diffprivlib Gaussian": one_by_one(dpl.GaussianAnalytic(epsilon=EPSILON, delta=DELTA, sensitivity=WIDTH)),
        "diffprivlib Staircase": one_by_one(dpl.Staircase(epsilon=EPSILON, sensitivity=WIDTH)),
        "OpenDP Laplace": dp.m.make_laplace(vectors(None), taxicab, scale=scale),
        "OpenDP Laplace, grid": dp.m.make_laplace(vectors(size), taxicab, scale=scale, k=GRID),
        "OpenDP Gaussian": dp.m.make_gaussian(vectors(None), euclid, scale=SIGMA),
        "OpenDP Gaussian, grid": dp.m.make_gaussian(vectors(size), euclid, scale=SIGMA, k=GRID),
    }


def main(size: int) -> None:
    dp.enable_features("contrib")
    calls = peers(size)
    labels = np.random.default_rng(0).uniform(0.0, WIDTH, size).tolist()
    versions = {name: version(name) for name in ("diffprivlib", "opendp")}
    print(json.dumps({"names": list(calls), "versions": versions}), flush=True)
    for line in sys.stdin:
        call = calls[json.loads(line)["name"]]
        start = time.process_time()
        call(labels)
        print(json.dumps({"seconds": time.process_time() - start}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
