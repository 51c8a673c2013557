"""Randomisers with a known flaw, each a function of labels, for audits to detect.

The one of diffprivlib 0.6.6 is written as its source draws it, in NumPy for speed: that package does not
import with the scikit-learn used here. `benchmarks/audit.py` audits the package itself.
"""

import math

import numpy as np

from labeldp.mechanisms import staircase as true_staircase

EPSILON = 1.0


def on_a_grid(z, step=2.0**-10):
    """Round outputs, so that their last bits say nothing: what is left is their size."""
    return np.rint(z / step) * step


# ---- sizes that tell too much -----------------------------------------------------------------------------


def laplace(part, seed):
    """Laplace noise for a range of 1, of which only ``part`` is added."""
    rng = np.random.default_rng(seed)
    return lambda y: on_a_grid(y + rng.laplace(0.0, part / EPSILON, y.size))


def staircase(bits, seed, grid=True):
    """Staircase noise X = S[(1−B)(G+γU) + B(G+γ+(1−γ)U)]; the published code draws B from {−1, 1}."""
    rng = np.random.default_rng(seed)
    b, gamma = math.exp(-EPSILON), true_staircase.optimal_tread(EPSILON, "absolute")

    def randomize(y):
        sign = np.where(rng.random(y.size) < 0.5, -1.0, 1.0)
        period = rng.geometric(1 - b, y.size) - 1
        place = rng.random(y.size)
        bit = np.where(rng.random(y.size) < gamma / (gamma + (1 - gamma) * b), *map(float, bits))
        z = y + sign * ((1 - bit) * (period + gamma * place) + bit * (period + gamma + (1 - gamma) * place))
        return on_a_grid(z) if grid else z

    return randomize


def rr_on_bins(keep, seed, bins=8):
    """Randomised response over bins of [0, 1] that keeps the own bin with probability ``keep``."""
    rng = np.random.default_rng(seed)

    def randomize(y):
        own = np.minimum((y * bins).astype(np.int64), bins - 1)
        other = (own + rng.integers(1, bins, y.size)) % bins
        return np.where(rng.random(y.size) < keep, own, other).astype(np.float64)

    return randomize


def right_keep(bins=8):
    return math.exp(EPSILON) / (math.exp(EPSILON) + bins - 1)


def coin(p, q, seed):
    """A coin that says 1 with probability p for label 1, and q for label 0."""
    rng = np.random.default_rng(seed)
    return lambda y: (rng.random(y.size) < np.where(y > 0.5, p, q)).astype(float)


# ---- bits that tell too much ------------------------------------------------------------------------------


def float_rp(seed, zeta=0.5, epsilon=EPSILON):
    """RPWithPrior on [0, 1] in plain float64: uniform in the window, or in what is around it."""
    rng = np.random.default_rng(seed)
    gamma = 2 * zeta + math.exp(-epsilon)

    def randomize(y):
        near = y - zeta + 2 * zeta * rng.random(y.size)
        around = rng.random(y.size) - zeta
        around = np.where(around < y - zeta, around, around + 2 * zeta)
        return np.where(rng.random(y.size) < 2 * zeta / gamma, near, around)

    return randomize


def diffprivlib_laplace(seed):
    rng = np.random.default_rng(seed)

    def randomize(y):
        u = rng.random((4, y.size))
        noise = np.log(1 - u[0]) * np.cos(np.pi * u[1]) + np.log(1 - u[2]) * np.cos(np.pi * u[3])
        return y - noise / EPSILON

    return randomize
