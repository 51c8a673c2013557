"""`audit` and `audit_pipeline`: draw outputs, choose events that distinguish them, test these on fresh outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import permutations, repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import Array, Counts, Delta, Labels, Numbers, parse_integer, parse_number
from labeldp.errors import ParameterError, Setting
from labeldp.evidence.audit_result import Audit, EventResult
from labeldp.evidence.lenses import LENSES, View, fit_views
from labeldp.evidence.loss_bounds import detectable_loss, loss_at_least, parse_confidence
from labeldp.exact.word_sources import RandomState, resolve_source
from labeldp.mechanisms.base import Mechanism

_CHUNK = 1 << 17
"""Outputs drawn at a time."""

_MAX_RANKED = 1 << 20
"""The most samples for each label that the ranking learns from: more teach it nothing, and memory stays flat."""

_LARGEST_INTEGER = 1 << 53
"""The largest integer below which different integers are different floats."""

Randomizer = Callable[[Array], ArrayLike]


def audit(
    randomizer: Mechanism | Randomizer,
    *,
    labels: ArrayLike | None = None,
    samples: int = 1_000_000,
    confidence: float = 0.999999,
    epsilon: float | None = None,
    delta: float | None = None,
    lenses: Sequence[str] = tuple(LENSES),
    random_state: RandomState = None,
) -> Audit:
    """Measure a lower bound on the ε of a randomiser, from samples alone.

    The outputs of each pair of labels are compared, by their size and by their last bits. Half of the samples
    choose events that distinguish the labels, the other half tests them; Clopper–Pearson bounds hold for all
    tested events together.

    Parameters
    ----------
    randomizer : Mechanism, or function
        A function takes an array of labels and returns an array of outputs, one for each, independently.
    labels : array-like, optional
        Labels to distinguish: synthetic ones, never private ones, for the report names them. By default for a
        mechanism: both ends of its range, and two labels a hundredth of it apart.
    samples : int
        Outputs for each label.
    confidence : float
        The probability that the bound is right: a false alarm has probability 1 − ``confidence`` at most.
    epsilon, delta : float, optional
        The claim. By default a mechanism's own; a function without one is measured and not judged. A mechanism
        is compared with its proof too.
    lenses : sequence of str
        What to look at: the size of an output, or its bits. To look at something else, let the function return it.
    random_state : None, int or source of words
        For mechanisms, to repeat an audit.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np
    >>> import labeldp as ldp
    >>> result = ldp.audit(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0), samples=20_000)
    >>> result.detected, 0.8 < result.epsilon < 1.0 < result.detectable < 1.4
    (False, True)
    >>> leaking = lambda y: y + np.random.default_rng().laplace(0, 4.0, y.size)
    >>> ldp.audit(leaking, labels=[0, 5], epsilon=1.0, samples=100_000).detected    # 5 / 4 > 1
    True
    """
    proven = None
    if isinstance(randomizer, Mechanism):
        proof = randomizer.verify()
        epsilon = randomizer.epsilon if epsilon is None else epsilon
        delta = proof.delta if delta is None else delta
        if parse_number(delta, "delta") >= proof.delta:
            proven = proof.epsilon  # a proof says nothing of a smaller δ than its own
        labels = default_labels(randomizer) if labels is None else labels
        function: Any = partial(randomizer.randomize, random_state=resolve_source(random_state))
    elif callable(randomizer) and random_state is None and labels is not None:
        function = randomizer
    else:
        raise ParameterError(
            "audit takes a Mechanism, or a function from labels to outputs with ",
            Setting("labels"),
            ", synthetic ones, and without ",
            Setting("random_state"),
        )
    cases = np.unique(Labels.parse(labels).values)
    if cases.size < 2:
        raise ParameterError(Setting("labels"), " must be at least two different labels")

    def draw(case: int, size: int) -> Numbers:
        outputs = _as_floats(function(np.full(size, cases[case], dtype=np.float64)))
        if outputs.size != size:
            raise ParameterError(f"the function must return one output for each label: {size}, not {outputs.size}")
        return outputs[:, None]

    settings = Settings.parse(samples, confidence, epsilon, delta, lenses)
    return _measure(draw, [f"{label:.6g}" for label in cases], settings, proven)


def audit_pipeline(
    function: Randomizer,
    *,
    neighbours: tuple[ArrayLike, ArrayLike],
    samples: int = 1000,
    confidence: float = 0.999999,
    epsilon: float | None = None,
    delta: float = 0.0,
    lenses: Sequence[str] = tuple(LENSES),
    executor: Executor | None = None,
) -> Audit:
    """Measure a lower bound on the ε of a whole pipeline, from samples of its outputs.

    Parameters
    ----------
    function : from the labels of a data set to a number, or to a list of numbers
        Everything that is released, or what of it depends most on labels: a prediction, the released label, where
        labels were clipped. It must draw fresh noise at every call.
    neighbours : pair of array-like
        Two data sets that differ in one row's label. Take synthetic ones, at their worst: an extreme label in a
        row with extreme features.
    samples : int
        Calls for each data set.
    confidence : float
        The bound is right with this probability.
    epsilon, delta : float, optional
        The claim; without one the pipeline is measured and not judged.
    lenses : sequence of str
        What to look at: the size of an output, or its bits. To look at something else, let the function return it.
    executor : concurrent.futures.Executor, optional
        Where to call; the function must then be one that can be sent there.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np
    >>> import labeldp as ldp
    >>> pair = (np.zeros(30), np.r_[5.0, np.zeros(29)])
    >>> clip = lambda y: ldp.TwoPoint(bounds=(0, max(1, y.max())), epsilon=1.0).randomize(y).max()
    >>> ldp.audit_pipeline(clip, neighbours=pair, epsilon=1.0, samples=200).detected      # bounds of the data
    True
    """
    data = [Labels.parse(side).values.astype(np.float64) for side in neighbours]
    if data[0].shape != data[1].shape:
        raise ParameterError(Setting("neighbours"), " must have the same rows: only a label may differ")
    differs = (data[0] != data[1]).reshape(len(data[0]), -1).any(axis=1)
    if np.count_nonzero(differs) != 1:
        raise ParameterError(Setting("neighbours"), " must differ in the label of exactly one row")
    widths: set[int] = set()

    def draw(case: int, size: int) -> Numbers:
        calls = repeat(data[case], size)
        answers = executor.map(function, calls) if executor else map(function, calls)
        outputs = [_as_floats(answer) for answer in answers]
        widths.update(row.size for row in outputs)
        if len(widths) != 1:
            raise ParameterError("the function must return as many numbers each time")
        return np.stack(outputs)

    settings = Settings.parse(samples, confidence, epsilon, delta, lenses)
    return _measure(draw, ("one data set", "the other"), settings)


def default_labels(mechanism: Mechanism) -> Array:
    """Return labels at both ends, and two that are close: their floats differ, and their noise hardly does."""
    low, high = mechanism.domain
    return low + (high - low) * np.array([0.0, 0.20, 0.21, 1.0])


# ---- choosing and testing --------------------------------------------------------------------------------


Draw = Callable[[int, int], Numbers]
"""A function from the number of a label or data set, and a size, to fresh outputs: size × columns."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Parsed arguments of an audit; the claim is None for no claim, and for ε = ∞."""

    samples: int
    confidence: float
    claim: float | None
    delta: float
    lenses: tuple[str, ...]

    @classmethod
    def parse(
        cls, samples: int, confidence: float, epsilon: float | None, delta: float | None, lenses: Sequence[str]
    ) -> Settings:
        """Return settings, or raise `ParameterError`."""
        claim = math.inf if epsilon is None else parse_number(epsilon, "epsilon")
        if claim < 0:
            raise ParameterError(Setting("epsilon"), f" must not be negative, got {epsilon}")
        if not lenses or set(lenses) - LENSES.keys():
            raise ParameterError(Setting("lenses"), f" must be some of {', '.join(LENSES)}")
        return cls(
            samples=parse_integer(samples, "samples", 20),
            confidence=parse_confidence(confidence),
            claim=None if math.isinf(claim) else claim,
            delta=Delta(delta or 0.0),
            lenses=tuple(lenses),
        )

    @property
    def ranking(self) -> int:
        """Samples of each case that rank outputs."""
        return min(self.samples // 4, _MAX_RANKED)

    @property
    def cutting(self) -> int:
        """Samples of each case that choose the size of events."""
        return self.samples // 2 - self.ranking

    @property
    def testing(self) -> int:
        """Samples of each case that test events."""
        return self.samples - self.samples // 2

    def audit(self, events: list[EventResult], proven: float | None, level: float) -> Audit:
        """Return the result of an audit with these settings, from tested events, the worst first."""
        detectable = None
        if self.claim is not None:
            limit = self.claim if proven is None else min(self.claim, proven)
            detectable = detectable_loss(self.testing, limit, self.delta, level)
        return Audit(
            epsilon=events[0].epsilon,
            claimed=self.claim,
            proven=proven,
            delta=self.delta,
            detectable=detectable,
            confidence=self.confidence,
            samples=self.samples,
            tested=tuple(events),
        )


def _measure(draw: Draw, names: Sequence[str], settings: Settings, proven: float | None = None) -> Audit:
    """Rank outputs, cut events and test them, each on fresh outputs."""
    cases = range(len(names))
    ranked = [np.concatenate(list(_chunks(draw, case, settings.ranking))) for case in cases]
    views = fit_views(settings.lenses, ranked)
    pairs = list(permutations(cases, 2))
    level = (1 - settings.confidence) / (len(pairs) * len(views))
    cuts = _counts(draw, views, settings.cutting)
    tests = _counts(draw, views, settings.testing)
    events = []
    for view, cut, test in zip(views, cuts, tests, strict=True):
        for likely, unlikely in pairs:
            event = view.event(likely, unlikely, cut, settings.cutting, settings.delta, level)
            hits = int(test[likely][event].sum())
            false_hits = int(test[unlikely][event].sum())
            bound = float(loss_at_least(hits, false_hits, settings.testing, settings.delta, level))
            events.append(EventResult((names[likely], names[unlikely]), view.name, hits, false_hits, bound))
    events.sort(key=lambda event: (-event.epsilon, event.false_hits - event.hits))
    return settings.audit(events, proven, level)


def _chunks(draw: Draw, case: int, size: int) -> Iterator[Numbers]:
    """Yield fresh outputs, as many at a time as fit into memory."""
    for start in range(0, size, _CHUNK):
        yield draw(case, min(_CHUNK, size - start))


def _counts(draw: Draw, views: Sequence[View], size: int) -> list[Counts]:
    """Return for each view the counts of its codes in fresh outputs: cases × codes."""
    counts = [np.zeros_like(view.ranking) for view in views]
    for case in range(len(counts[0])):
        for outputs in _chunks(draw, case, size):
            for view, total in zip(views, counts, strict=True):
                total[case] += view.count(outputs)
    return counts


def _as_floats(values: Any) -> Numbers:
    """Return outputs as floats that differ wherever the outputs do, or refuse: a conversion could hide a leak."""
    columns = values if isinstance(values, list | tuple) else [values]
    joined = np.concatenate([np.zeros(0, dtype=np.bool_), *map(_number_array, columns)])
    is_short = joined.dtype.kind == "f" and joined.dtype.itemsize <= 4
    return joined.astype(np.float32 if is_short else np.float64, copy=False)


def _number_array(column: Any) -> Numbers:
    """Return a flat array of numbers that a float can hold, or refuse."""
    array = np.asarray(column)
    is_nested = isinstance(column, list | tuple | np.ma.MaskedArray)
    if is_nested or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise ParameterError(
            "outputs must be booleans, integers or floats of at most 64 bits, in an array or a list of them, "
            "not masked: a conversion could hide a leak; encode them as such numbers"
        )
    if array.dtype.kind in "iu" and ((array > _LARGEST_INTEGER) | (array < -_LARGEST_INTEGER)).any():
        raise ParameterError("outputs are integers above 2^53, which floats cannot hold: return two parts")
    return array.reshape(-1)
