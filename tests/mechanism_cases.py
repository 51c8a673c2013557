"""Formulas that mechanisms are held to, and two tests of fit.

Each test of fit has a false-alarm rate of `ALPHA`; there are fewer than a thousand of them in all files,
so honest mechanisms fail anywhere with probability 1e-6 at most. Seeds are fixed all the same.
"""

import math
import signal
from contextlib import contextmanager

import numpy as np
from scipy import stats

import helpers
import labeldp as ldp
from helpers import seeded

ALPHA = 1e-9
LOW, HIGH = BOUNDS = (1.0, 4.0)
WIDTH = HIGH - LOW
ZETA = WIDTH / 2
LABELS = {"high end": 4.0, "off the grid": 1.23456789, "outside": 37.0}


def make(name, epsilon):
    """Return the mechanism on bounds that do not start at zero, built once."""
    return helpers.make(name, epsilon, BOUNDS)


def listed(mechanism):
    """Return the outputs of a mechanism that has a few, or None."""
    return getattr(mechanism.channel, "values", None)


def draw(mechanism, label, size, seed):
    """Return ``size`` releases of one label."""
    return mechanism.randomize(np.full(size, label), random_state=seeded(seed))


def output_range(mechanism):
    """Return the least and the largest value that the mechanism can release, up to rounding."""
    if isinstance(mechanism, ldp.RPWithPrior):
        return mechanism.interval[0] - mechanism.zeta, mechanism.interval[1] + mechanism.zeta
    if listed(mechanism) is not None:
        return min(listed(mechanism)), max(listed(mechanism))
    low, high = mechanism.bounds
    beyond = mechanism.channel.margin * (high - low) / mechanism.channel.steps
    return low - beyond, high + beyond


# ---- tests of fit ---------------------------------------------------------------------------------


def chi_square(mechanism, label, z, bins=48):
    """Return the p-value of ``z`` against the exact bin probabilities that `cumulative` gives.

    Power at 400,000 draws: a bin of one half is found off by 1.5 %, and one of 48 bins by 15 %, with
    probability above 0.999.
    """
    values = np.unique(z)
    if values.size > 500:
        pilot = np.quantile(draw(mechanism, label, 20_000, seed=99), [0.002, 0.998])
        inner = np.linspace(*pilot, bins + 1) + 1e-4 * math.pi / bins  # off the grid of outputs
    else:
        inner = (values[1:] + values[:-1]) / 2
    edges = np.concatenate([[-1e9], inner, [1e9]])
    share = np.diff(mechanism.channel.cumulative(label, edges))
    seen = np.bincount(np.searchsorted(edges, z, side="left") - 1, minlength=share.size)
    rare = share * z.size < 25
    expected = np.append(share[~rare], share[rare].sum()) * z.size
    counted = np.append(seen[~rare], seen[rare].sum())
    if expected[-1] < 25:
        expected, counted = expected[:-1], counted[:-1]
    if expected.size < 2:
        return 1.0 if abs(expected[0] - counted[0]) < 25 else 0.0
    return stats.chi2.sf(((counted - expected) ** 2 / expected).sum(), expected.size - 1)


def kolmogorov(cumulative, z):
    """Return a bound on the p-value of the largest gap between ``z`` and its distribution function.

    Massart's inequality 2 exp(−2nD²), good for any distribution: a million draws show a gap of 0.0033.
    """
    points, counts = np.unique(z, return_counts=True)
    gap = np.abs(np.cumsum(counts) / z.size - cumulative(points)).max()
    return min(1.0, 2 * math.exp(-2 * z.size * gap**2))


def less_noise(mechanism, label, z):
    """Return ``z`` with 5 % less noise: drawn to the label, or replaced by the likeliest output."""
    values, counts = np.unique(z, return_counts=True)
    if values.size > 500:
        centre = float(mechanism.mean([label])[0])
        return centre + 0.95 * (z - centre)
    replaced = np.random.default_rng(5).random(z.size) < 0.05
    return np.where(replaced, values[counts.argmax()], z)


# ---- formulas of METHODS §1 and of the literature --------------------------------------------------


def rp_share(width, zeta, epsilon):
    """Return ρ, the weight of the window in RPWithPrior as a mixture."""
    return 2 * zeta * -math.expm1(-epsilon) / (2 * zeta + math.exp(-epsilon) * width)


def rp_cdf(x, label, interval, zeta, epsilon, outside="project"):
    """Integrate the paper's density: 1/γ within ζ of the label, e^(−ε)/γ elsewhere."""
    a1, a2 = interval
    gamma = 2 * zeta + math.exp(-epsilon) * (a2 - a1)
    start, end = a1 - zeta, a2 + zeta
    if outside == "uniform" and not a1 <= label <= a2:
        return np.clip((x - start) / (end - start), 0, 1)
    p = min(max(label, a1), a2)
    corners = [start, p - zeta, p + zeta, end]
    pieces = np.diff(corners) * np.array([math.exp(-epsilon), 1.0, math.exp(-epsilon)]) / gamma
    return np.interp(x, corners, np.concatenate([[0.0], np.cumsum(pieces)]))


def staircase_gamma(epsilon, minimise):
    """Return γ as METHODS gives it, without tricks against cancellation."""
    if minimise == "absolute":
        return 1 / (1 + math.exp(epsilon / 2))
    b = math.exp(-epsilon)
    return -b / (1 - b) + (b - 2 * b**2 + 2 * b**4 - b**5) ** (1 / 3) / (2 ** (1 / 3) * (1 - b) ** 2)


def staircase_sizes(epsilon, minimise):
    """Return corners and masses of the pieces on which |noise|, in label ranges, is uniform."""
    gamma = staircase_gamma(epsilon, minimise)
    k = np.arange(math.ceil(45 / epsilon))
    corners = np.append(np.column_stack([k, k + gamma]).ravel(), k.size)
    own = gamma / (gamma + (1 - gamma) * math.exp(-epsilon))
    whole = -math.expm1(-epsilon) * np.exp(-epsilon * k)
    return corners, np.column_stack([whole * own, whole * (1 - own)]).ravel()


def staircase_cdf(x, epsilon, minimise):
    """Return P(noise ≤ x) for a label range of 1."""
    corners, masses = staircase_sizes(epsilon, minimise)
    size = np.interp(np.abs(x), corners, np.concatenate([[0.0], np.cumsum(masses)]))
    return (1 + np.sign(x) * size) / 2


class TooSlowError(BaseException):
    """Not an `Exception`: nothing that turns errors into others may swallow it."""


@contextmanager
def at_most(seconds):
    """Fail if the block takes more processor time; refusing bad input must not take forever."""

    def stop(*_):
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
