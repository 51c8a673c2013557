"""What several test files need: repeatable words, chosen words, and the one list of mechanisms."""

import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pytest
from scipy import stats

import labeldp as ldp
from labeldp.accounts.budget import new_charge
from labeldp.release.label_access import LabelAccess

posix_only = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no forks, and other signals and rights"
)
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc and files without a name")

FALSE_ALARM = 1e-6
"""A statistical test that is right fails at most this often, over all seeds."""

PATIENCE = 300
"""Seconds after which a process counts as deadlocked."""

WORDS = 1 << 64
HALF = np.uint64(0x8000000080000000)
"""As rounding bits, twice one half: a label on the grid stays where it is."""


def seeded(seed):
    """Return repeatable words, without the warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
        return ldp.exact.SeededWords(seed)


class NoNoise:
    """A source whose words make every coin show tails: all noise is 0."""

    def fill(self, words):
        words[:] = np.iinfo(np.uint64).max


class Chosen:
    """A source that gives the words it was told, and then ``rounding``."""

    def __init__(self, words, rounding=HALF):
        self.words = np.array(words, dtype=np.uint64)
        self.rounding = rounding

    def fill(self, words):
        words[: self.words.size] = self.words
        words[self.words.size :] = self.rounding


def respond(channel, label, words, rounding=HALF):
    """Return what ``channel`` releases for one label under each of ``words``."""
    out = np.empty(len(words))
    with np.errstate(all="ignore"):
        channel.sample(np.full(len(words), label), Chosen(words, rounding), out)
    return out


def measure(channel, label):
    """Return {released value: exact number of words that lead to it}, found by asking the sampler.

    Words are probed on a fine grid, and close to every multiple of 2^58; wherever two neighbouring
    probes differ, bisection finds the last word before the change. Nothing about the sampler is
    assumed but that it changes at most once between two probes.
    """
    corners = [(k << 58) + d for k in range(65) for d in (-2, -1, 0, 1)]
    probes = sorted({k << 52 for k in range(1 << 12)} | {w for w in corners if 0 <= w < WORDS} | {WORDS - 1})
    answers = respond(channel, label, probes)
    change = np.flatnonzero(answers[1:] != answers[:-1])
    left = np.array([probes[i] for i in change], dtype=np.uint64)
    right = np.array([probes[i + 1] for i in change], dtype=np.uint64)
    while (right - left > 1).any():
        middle = left + (right - left) // np.uint64(2)
        same = respond(channel, label, middle) == answers[change]
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    edges = [0, *right.tolist(), WORDS]
    counts: dict[float, int] = {}
    for value, start, end in zip(answers[[*change, -1]].tolist(), edges[:-1], edges[1:], strict=True):
        counts[value] = counts.get(value, 0) + end - start
    return counts


# ---- the one list of mechanisms ---------------------------------------------------------------------------


def points(bounds, *shares):
    """Return the points at these shares of the way through bounds."""
    return tuple(bounds[0] + share * (bounds[1] - bounds[0]) for share in shares)


MAKERS = {
    "rp": lambda e, b: ldp.RPWithPrior(interval=b, zeta=(b[1] - b[0]) / 2, epsilon=e),
    "rp, uniform outside": lambda e, b: ldp.RPWithPrior(
        interval=b, zeta=(b[1] - b[0]) / 2, epsilon=e, outside="uniform"
    ),
    "laplace": lambda e, b: ldp.Laplace(bounds=b, epsilon=e),
    "staircase": lambda e, b: ldp.Staircase(bounds=b, epsilon=e),
    "staircase, squared": lambda e, b: ldp.Staircase(bounds=b, epsilon=e, minimise="squared"),
    "gaussian": lambda e, b: ldp.Gaussian(bounds=b, epsilon=e, delta=1e-5),
    "two-point": lambda e, b: ldp.TwoPoint(bounds=b, epsilon=e),
    "rr-on-bins": lambda e, b: ldp.RROnBins(
        edges=points(b, 0.0, 0.205, 0.5, 1.0), outputs=points(b, 0.1, 0.3, 0.7), epsilon=e
    ),
    "unbiased": lambda e, b: ldp.Unbiased.design(
        ldp.Histogram(points(b, 0.0, 0.25, 0.5, 0.75, 1.0), [4, 3, 2, 1]), e, size=16
    ),
}
"""How each mechanism is made for ε and bounds: tests of promises, cards, attacks and audits walk through this."""

EVERY = tuple(MAKERS)
NAMES = tuple(name for name in MAKERS if "," not in name)
"""One of each: those with a comma are variants."""
PURE = tuple(name for name in NAMES if name != "gaussian")
"""Those of pure ε, which labels are released with."""


@cache
def make(name, epsilon, bounds=(0.0, 1.0)):
    """Return the mechanism, built once."""
    return MAKERS[name](epsilon, bounds)


@cache
def mechanisms(epsilon):
    """Return one of each private mechanism on the bounds (0, 1), by name."""
    return {name: make(name, epsilon) for name in NAMES}


def most_successes(trials, chance):
    """Return what a count of successes exceeds with probability `FALSE_ALARM` at most."""
    return int(stats.binom.isf(FALSE_ALARM, trials, chance))


def python(code, *arguments, check, **options):
    """Run a script in a process of its own."""
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=check, timeout=900, **options)  # noqa: S603


def built_in_choices():
    """Return "auto" and the names of the library's mechanisms of pure ε: other tests register some of theirs."""
    classes = {name: ldp.mechanisms.mechanism_class(name) for name in ldp.mechanisms.mechanism_names()}
    own = [
        name for name, each in classes.items() if each.__module__.startswith("labeldp.") and not each.needs_delta
    ]
    return ["auto", *own]


def paid_access(labels, epsilon, source, kind=LabelAccess, **options):
    """Return access to labels of which measurements for ε are paid."""
    access = kind(np.asarray(labels), source, **options)
    access.charge(ldp.Ledger(), [new_charge("test", ldp.Budget(epsilon), purpose="other")], epsilon=epsilon)
    return access
