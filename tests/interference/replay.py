"""Channels and noise held still: what they gave out for one input is given out again for another.

All measurements pass `LabelAccess._draw`, and the public map of each must be the same in both runs. Below it
noise is drawn by a channel's ``sample`` and by `DiscreteLaplace.release`, as where a user draws from a
mechanism without a release. These two are replaced while a way out runs. The first run keeps what they gave
out; the second gets the same values in the same order, whatever its labels are. All else that could differ
between two runs is held still as well: the words of the secure source, the clock, random names; memory that
nobody wrote differs between the two runs on purpose.
"""

import datetime
import hashlib
import itertools
import os
import secrets
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from unittest import mock

import numpy as np
import rich.console

import labeldp as ldp
from interference.outputs import pickled
from labeldp import exact
from labeldp.release.label_access import LabelAccess

CHANNELS = (exact.WindowChannel, exact.TableChannel, exact.ShiftChannel)
"""Every class whose ``sample`` turns labels into cells; `test_seams.py` checks that there is no other."""

NOW = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
UNWRITTEN = (0xA5, 0x5A)
"""The bytes of memory that was asked for and not written, in the first run and in the second."""


class MismatchError(AssertionError):
    """The second input asks channels or noise for something else than the first did."""


@dataclass
class Tape:
    """What went through the seams in one run; a seam is the class and all parameters of a channel or of noise."""

    calls: list = field(default_factory=list)  # (seam, size) and (measurement, public map), in order
    given: dict = field(default_factory=lambda: defaultdict(list))  # by seam, what was given out
    inside: list = field(default_factory=list)  # words drawn in each call; none where values are replayed
    outside: int = 0  # words drawn elsewhere
    mismatch: str | None = None
    spent: list = field(default_factory=list)  # (ε, size) of each call of a channel of pure ε-DP
    exact: list = field(default_factory=list)  # (noise, integers) of each sum that got noise
    charged: list = field(default_factory=list)  # the budgets of all charges
    unpaid: bool = False  # whether anything was drawn before there was a charge

    def overspent(self, other, rows, changed):
        """Return whether noise was drawn before it was paid for, or more was spent than was charged.

        Channels spend on all rows, on average. Sums spend by how far they moved from this run to its replay, where
        the labels of some rows are changed.
        """
        spent = sum(epsilon * size for epsilon, size in self.spent) / Fraction(rows)
        for (noise, one), (_, two) in zip(self.exact, other.exact, strict=True):
            spent += Fraction(sum(abs(int(step)) for step in one - two), changed) / noise.scale
        return self.unpaid or spent > sum(budget.exact_epsilon for budget in self.charged)


class _Run:
    """One run: writes its own tape, and reads from that of the run before if there was one."""

    def __init__(self, before):
        self.tape = Tape()
        self._left = None
        if before is not None:
            self._left = {seam: np.concatenate(values) for seam, values in before.given.items()}
        self._here = threading.local()
        self._lock = threading.RLock()
        self._inside, self._outside = (np.random.Generator(np.random.Philox(key=k)) for k in (1, 2))

    def pass_through(self, seam, size, draw):
        """Return ``size`` values of a seam: drawn anew, or those of the run before."""
        if getattr(self._here, "depth", 0):
            return draw()
        with self._lock:
            self.tape.calls.append((seam, size))
            self.tape.unpaid |= not self.tape.charged
            self.tape.inside.append(0)
            values = self._drawn(draw) if self._left is None else self._replayed(seam, size)
            self.tape.given[seam].append(values)
            return values.copy()

    def _drawn(self, draw):
        self._here.depth = 1
        try:
            return np.array(draw())
        finally:
            self._here.depth = 0

    def _replayed(self, seam, size):
        left = self._left.get(seam, np.zeros(0))
        if len(left) < size:
            self.tape.mismatch = f"call {len(self.tape.calls)}: {seam}, {size} values, and {len(left)} are left"
            raise MismatchError(self.tape.mismatch)
        self._left[seam] = left[size:]
        return left[:size]

    def fill(self, words):
        """Fill in repeatable words; those for a seam and those for other uses do not depend on each other."""
        with self._lock:
            if getattr(self._here, "depth", 0):
                self.tape.inside[-1] += words.size
                source = self._inside
            else:
                self.tape.outside += words.size
                source = self._outside
            words[...] = source.integers(0, 1 << 64, size=words.shape, dtype=np.uint64)


def fingerprint_of(public_map):
    """Return a hash of what a measurement reads of a label."""
    return hashlib.sha256(pickled(public_map)).hexdigest()


@contextmanager
def replaced(*replacements):
    """Replace attributes for a while, each given as (owner, name, new value)."""
    with ExitStack() as stack:
        for owner, name, new in replacements:
            stack.enter_context(mock.patch.object(owner, name, new))
        yield


@contextmanager
def seams(before=None):
    """Replace the seams, and the words of the secure source; yield the tape of this run.

    With the tape of a run before, its values are given out again; without it they are drawn.
    """
    run = _Run(before)

    def sampling(original):
        def sample(self, labels, source, out):
            def draw():
                drawn = np.zeros(out.shape, dtype=out.dtype)
                original(self, labels, source, drawn)
                return drawn

            if labels.shape != out.shape or out.ndim != 1:
                raise MismatchError(f"labels of shape {labels.shape} for {out.shape} outputs")
            if self.promise is not None:
                run.tape.spent.append((self.promise.epsilon, out.size))
            out[...] = run.pass_through(ldp.mechanisms.base.fingerprint(self), out.size, draw)

        return "sample", sample

    release, charge_all, draw = exact.DiscreteLaplace.release, ldp.Ledger.charge_all, LabelAccess._draw

    def drawing(self, public_map, noise, labels):
        run.tape.calls.append((f"measurement by {type(noise).__name__}", fingerprint_of(public_map)))
        return draw(self, public_map, noise, labels)

    def releasing(self, sums, source):
        seam = f"{type(self).__name__}: {self!r}"
        run.tape.exact.append((self, sums.copy()))
        return run.pass_through(seam, sums.size, lambda: release(self, sums, source)).reshape(sums.shape)

    def charging(self, charges, *more, **named):
        charges = list(charges)
        places = charge_all(self, charges, *more, **named)
        run.tape.charged += [charge.budget for charge in charges]
        return places

    with replaced(
        (LabelAccess, "_draw", drawing),
        (ldp.Ledger, "charge_all", charging),
        (exact.DiscreteLaplace, "release", releasing),
        (exact.SecureWords, "fill", lambda _, words: run.fill(words)),
        *((channel, *sampling(channel.sample)) for channel in CHANNELS),
    ):
        yield run.tape


# ---- what else differs from run to run ----------------------------------------------------------------------


class Still(datetime.datetime):
    """A clock that stands."""

    @classmethod
    def now(cls, tz=None):
        return NOW.astimezone(tz)

    utcnow = today = now


def _numbered():
    """Return a function that gives as many bytes as asked for, others each time."""
    numbers = itertools.count()
    return lambda size: hashlib.shake_256(str(next(numbers)).encode()).digest(size)


def _unwritten(original, byte):
    """Return `numpy.empty`, or its like, with the same byte all over what it returns."""

    def empty(*args, **kwargs):
        array = original(*args, **kwargs)
        if type(array) is np.ndarray and array.size and not array.dtype.hasobject:
            array.ravel(order="K").view(np.uint8)[...] = byte
        return array

    return empty


@contextmanager
def stillness(unwritten):
    """Hold clock and random names still; fill memory that nobody wrote with a byte of this run."""
    names = (f"still{number:04d}" for number in itertools.count())
    urandom, token = _numbered(), _numbered()  # each with a count of its own: imports draw some for themselves

    clocks = [
        (module, name, Still)
        for module in [m for name, m in sys.modules.items() if name.partition(".")[0] == "labeldp"]
        for name, value in list(vars(module).items())
        if value is datetime.datetime
    ]
    with replaced(
        *clocks,
        (time, "time", NOW.timestamp),
        (time, "time_ns", lambda: int(NOW.timestamp()) * 10**9),
        (rich.console, "monotonic", NOW.timestamp),  # for how long a bar was shown
        (os, "urandom", urandom),
        (secrets, "token_hex", lambda size=32: token(size).hex()),
        (secrets, "token_bytes", lambda size=32: token(size)),
        (tempfile, "_get_candidate_names", lambda: names),
        (np, "empty", _unwritten(np.empty, unwritten)),
        (np, "empty_like", _unwritten(np.empty_like, unwritten)),
    ):
        yield
