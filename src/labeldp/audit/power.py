"""What an audit of a mechanism could have shown, from exact counts: the same mechanism, built for a larger ε.

The mechanism is built for growing ε', its outputs' exact probabilities are read off its channel, and the audit is
rehearsed with them: events are ranked and cut on random counts, as in an audit, and the chance that the event
convicts is computed.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np

from labeldp._arrays import Array
from labeldp.audit.bounds import POWER, best_case, loss_at_least, power
from labeldp.audit.events import QuantileLens, View
from labeldp.channels import Channel, TableChannel
from labeldp.channels.proof import WORDS, Promise
from labeldp.errors import LabelDPError
from labeldp.mechanisms.base import Mechanism
from labeldp.randomness.word_sources import simulation_words

CHOICES = 24
"""Events to choose, on counts of their own, for each ε' that is tried."""

HALVINGS = 4
MOST = 64.0
"""No violation larger than this many times the best case's is looked for."""

ENOUGH = 4096
"""So many outputs of each label place the bins as well as more would."""


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """An audit of a mechanism, to be rehearsed with more ε than it may have.

    ``parts`` are the samples that rank, cut and test, ``limit`` is the ε above which it is convicted, and
    ``level`` the chance of an error that one event is allowed.
    """

    mechanism: Mechanism
    labels: tuple[float, ...]
    parts: tuple[int, int, int]
    limit: float
    delta: float
    level: float

    @cached_property
    def showable(self) -> float | None:
        """The smallest ε' at which the mechanism is convicted with probability 0.8, by the size of its outputs.

        A sixteenth of its excess too large at most, and infinite if there is none. None if the mechanism cannot be
        built for another ε.
        """
        least = best_case(self.parts[2], self.limit, self.delta, self.level)[0]
        if math.isinf(least):
            return math.inf
        excess = least - self.limit
        low, high = 0.0, 1.0
        while (chance := self.conviction(self.limit + high * excess)) is not None and chance < POWER:
            low, high = high, 2 * high
            if high > MOST:
                return math.inf
        if chance is None:
            return None if low == 0 else math.inf
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            chance = self.conviction(self.limit + middle * excess)
            low, high = (low, middle) if chance is not None and chance >= POWER else (middle, high)
        return self.limit + high * excess

    def conviction(self, epsilon: float) -> float | None:
        """Return the probability that the mechanism, built for this ε, is convicted through its best labels.

        A lower bound: other pairs, and other lenses, may convict where this one does not.
        """
        channel = sharper_channel(self.mechanism, epsilon)
        if channel is None:
            return None
        ranking, cutting, testing = self.parts
        masses = self._masses(channel, min(ranking, ENOUGH))
        case, other = max(
            permutations(range(len(masses)), 2), key=lambda pair: self._expected_bound(*masses[list(pair)])
        )
        rng = np.random.default_rng(0)
        numbers = np.arange(masses.shape[1] - 1, dtype=np.uint64)
        chances = []
        for _ in range(CHOICES):
            ranks, cut = (rng.multinomial(size, masses[[case, other]]) for size in (ranking, cutting))
            view = View("size", 0, lambda z: z, numbers, ranks)
            event = view.event(0, 1, cut, cutting, self.delta, self.level)
            p, q = float(masses[case][event].sum()), float(masses[other][event].sum())
            chances.append(float(power(min(p, 1.0), min(q, 1.0), testing, self.limit, self.delta, self.level)))
        return float(np.mean(chances))

    def _masses(self, channel: Channel, size: int) -> Array:
        """Return the exact probability of each bin that the lens on sizes would make, label by label."""
        words = simulation_words(0)  # the same audit says the same
        outputs = [np.full(size, np.nan) for _ in self.labels]
        with np.errstate(all="ignore"):
            for label, out in zip(self.labels, outputs, strict=True):
                channel.sample(np.full(size, label), words, out)
        below = np.nextafter(QuantileLens().edges(outputs), -np.inf)
        shares = [np.diff(channel.cumulative(label, below), prepend=0.0, append=1.0) for label in self.labels]
        return _to_shares(np.maximum(np.array(shares), 0.0))

    def _expected_bound(self, one: Array, other: Array) -> float:
        """Return the largest bound that counts as expected would give."""
        testing = self.parts[2]
        order = np.argsort(-one / np.maximum(other, 1e-300), kind="stable")
        hits, others = (np.rint(testing * np.cumsum(masses[order])).astype(np.int64) for masses in (one, other))
        return float(loss_at_least(hits, others, testing, self.delta, self.level).max())


def sharper_channel(mechanism: Mechanism, epsilon: float) -> Channel | None:
    """Return the channel of the same mechanism for a larger ε, or None if there is no saying what that is.

    The parameters with another ``epsilon``, and what is derived from it anew, if that is what then is proven. A
    table that was designed keeps its counts whatever ε is claimed: its odds are raised to the power that gives ε.
    """
    promise = mechanism.channel.promise
    try:
        fields = dataclasses.fields(mechanism)  # type: ignore[arg-type]
        derived = {field.name: None for field in fields if field.init and field.default is None}
        other: Mechanism = dataclasses.replace(mechanism, epsilon=epsilon, **derived)  # type: ignore[type-var]
        proof = other.verify()
        if promise and 0.999 * epsilon <= proof.epsilon <= epsilon and proof.delta >= 0.99 * float(promise.delta):
            return other.channel
    except (LabelDPError, TypeError, ValueError):
        pass
    channel = mechanism.channel
    return _sharpen(channel, epsilon) if isinstance(channel, TableChannel) else None


def _to_shares(masses: Array) -> Array:
    return np.asarray(masses / masses.sum(axis=1, keepdims=True))


def _sharpen(channel: TableChannel, epsilon: float) -> TableChannel | None:
    """Return the table with its odds raised to the power that gives ε."""
    with np.errstate(divide="ignore"):
        odds = np.log(channel.counts().astype(np.float64)[:, channel.counts().any(axis=0)])

    def raise_odds(power: float) -> Array:
        logs = odds * power
        return _to_shares(np.exp(logs - logs.max(axis=1, keepdims=True)))

    def loss(power: float) -> float:
        shares = raise_odds(power)
        return float(np.log(shares.max(axis=0) / shares.min(axis=0)).max())

    if not 0 < loss(1.0) < epsilon:
        return None
    low, high = 1.0, 2.0
    while loss(high) < epsilon and high < MOST:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle) < epsilon else (low, middle)
    counts = [[max(1, int(share * WORDS)) for share in row] for row in raise_odds(low).tolist()]
    for row in counts:
        row[row.index(max(row))] += WORDS - sum(row)
    values = channel.values[channel.counts().any(axis=0)]
    return TableChannel.from_counts(channel.low, channel.high, values, counts, Promise.of(1.001 * epsilon))
