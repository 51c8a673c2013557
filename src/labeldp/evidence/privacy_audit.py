"""`audit` and `audit_pipeline`: draw outputs, choose events that distinguish them, test these on fresh outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp._values import Delta, Labels, parse_integer, parse_number
from labeldp.errors import ParameterError
from labeldp.evidence.audit_result import Audit, EventResult
from labeldp.evidence.lenses import DiscriminantLens, Lens, View, fit_view, standard_lenses
from labeldp.evidence.loss_bounds import detectable_loss, loss_at_least
from labeldp.exact.word_sources import WordSource, resolve_source
from labeldp.mechanisms.base import Mechanism

CHUNK = 1 << 17
MOST_RANKED = 1 << 20
"""More than this many samples for each label teach the ranking nothing; memory stays flat."""

Progress = Callable[[int], None]
Randomizer = Callable[[NDArray[np.float64]], ArrayLike]


def audit(
    randomizer: Mechanism | Randomizer,
    *,
    labels: ArrayLike | None = None,
    samples: int = 1_000_000,
    confidence: float = 0.999999,
    epsilon: float | None = None,
    delta: float | None = None,
    lenses: Sequence[Lens] | None = None,
    random_state: int | WordSource | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Measure from samples alone what ε a randomiser cannot be below.

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
        The bound is right with this probability: a false alarm has what is left, at most.
    epsilon, delta : float, optional
        The claim. By default a mechanism's own; a function without one is measured and not judged. A mechanism
        is compared with its proof too.
    lenses : sequence of Lens, optional
        What to look at; `standard_lenses` by default.
    random_state : None, int or source of words
        For mechanisms, to repeat an audit.
    progress : function, optional
        Is called with the number of samples just drawn; ``samples`` for each label in all.

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
        if math.isfinite(proof.epsilon) and parse_number(delta, "delta") >= proof.delta:
            proven = proof.epsilon  # a proof says nothing of a smaller δ than its own
        function: Any = partial(randomizer.randomize, random_state=resolve_source(random_state))
    elif callable(randomizer):
        function = randomizer
        if random_state is not None:
            raise ParameterError("random_state is for mechanisms; a function brings its own randomness")
    else:
        raise ParameterError("audit takes a Mechanism, or a function from labels to outputs")
    chosen = default_labels(randomizer) if labels is None else np.unique(Labels.parse(labels).values)
    if chosen.ndim != 1 or chosen.size < 2:
        raise ParameterError("an audit needs at least two different labels")

    def draw(case: int, size: int) -> NDArray[Any]:
        outputs = _as_floats(function(np.full(size, chosen[case], dtype=np.float64)))
        if outputs.shape != (size,):
            raise ParameterError(
                f"the function must return one output for each label: {size}, not {outputs.shape}"
            )
        return outputs[:, None]

    plan = _Plan.parse(samples, confidence, epsilon, delta, lenses, least=100)
    return plan.run(draw, tuple(f"{label:.6g}" for label in chosen), proven, progress)


def audit_pipeline(
    function: Randomizer,
    *,
    neighbours: tuple[ArrayLike, ArrayLike],
    samples: int = 1000,
    confidence: float = 0.999999,
    epsilon: float | None = None,
    delta: float = 0.0,
    lenses: Sequence[Lens] | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Measure from samples what ε a whole pipeline cannot be below, as a function of its data set.

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
    lenses : sequence of Lens, optional
        What to look at; `standard_lenses` by default.
    progress : function, optional
        Is called with the number of calls just made; ``samples`` for each data set in all.
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
    first, second = (Labels.parse(side).values.astype(np.float64) for side in neighbours)
    if first.shape != second.shape:
        raise ParameterError("neighbours must have the same rows: only a label may differ")
    rows = (first != second).reshape(len(first), -1).any(axis=1)
    if np.count_nonzero(rows) != 1:
        raise ParameterError("neighbours must differ in the label of exactly one row")
    plan = _Plan.parse(samples, confidence, epsilon, delta, lenses, least=20)
    widths: set[int] = set()

    def draw(case: int, size: int) -> NDArray[Any]:
        calls = repeat((first, second)[case], size)
        answers = executor.map(function, calls) if executor else map(function, calls)
        rows = [_as_floats(answer).reshape(-1) for answer in answers]
        widths.update(row.size for row in rows)
        if len(widths) != 1:
            raise ParameterError("the function must return as many numbers each time")
        return np.stack(rows)

    return plan.run(draw, ("one data set", "the other"), None, progress)


def default_labels(randomizer: object) -> NDArray[np.float64]:
    """Return labels at both ends, and two that are close: their floats differ, and their noise hardly does."""
    if not isinstance(randomizer, Mechanism):
        raise ParameterError("say which labels to distinguish: labels=(lo, hi), synthetic ones")
    channel: Any = randomizer.channel
    if not (hasattr(channel, "low") and hasattr(channel, "high")):
        raise ParameterError("this mechanism's channel has no range of labels: name the labels to use")
    return np.asarray(channel.low + (channel.high - channel.low) * np.array([0.0, 0.20, 0.21, 1.0]))


# ---- choosing and testing --------------------------------------------------------------------------------


Draw = Callable[[int, int], NDArray[Any]]
"""From the number of a label or data set, and a size, to fresh outputs: size × columns."""


@dataclass(frozen=True, slots=True)
class _Plan:
    samples: int
    confidence: float
    epsilon: float | None
    delta: float
    lenses: tuple[Lens, ...]

    @classmethod
    def parse(
        cls, samples: Any, confidence: Any, epsilon: Any, delta: Any, lenses: Sequence[Lens] | None, *, least: int
    ) -> _Plan:
        sure = parse_number(confidence, "confidence")
        if not 0.5 <= sure < 1:
            raise ParameterError(f"confidence must be at least 0.5 and below 1, got {sure}")
        claim = math.inf if epsilon is None else parse_number(epsilon, "epsilon")
        if not claim >= 0:
            raise ParameterError(f"epsilon must not be negative, got {claim}")
        used = standard_lenses() if lenses is None else tuple(lenses)
        if not used:
            raise ParameterError("an audit needs a lens to look through")
        size = parse_integer(samples, "samples", least)
        return cls(size, sure, claim if math.isfinite(claim) else None, Delta(delta or 0.0), used)

    def run(self, draw: Draw, names: tuple[str, ...], proven: float | None, progress: Progress | None) -> Audit:
        """Rank outputs, cut events and test them, each on outputs of its own."""
        tick = progress or (lambda _: None)
        ranking = min(self.samples // 4, MOST_RANKED)
        cutting, testing = self.samples // 2 - ranking, self.samples - self.samples // 2
        cases = range(len(names))
        first = [np.concatenate(list(_chunks(draw, case, ranking, tick))) for case in cases]
        views = self._views(first)
        cut, test = (_counts(draw, views, len(cases), size, tick) for size in (cutting, testing))
        pairs = [(case, other) for case in cases for other in cases if case != other]
        level = (1 - self.confidence) / (len(pairs) * len(views))
        tested = []
        for view, cuts, tests in zip(views, cut, test, strict=True):
            for case, other in pairs:
                event = view.event(case, other, cuts, cutting, self.delta, level)
                hits, others = int(tests[case][event].sum()), int(tests[other][event].sum())
                bound = float(loss_at_least(hits, others, testing, self.delta, level))
                tested.append(EventResult((names[case], names[other]), view.name, hits, others, bound))
        tested.sort(key=lambda event: (-event.epsilon, event.others - event.hits))
        limit = self.epsilon if self.epsilon is None or proven is None else min(self.epsilon, proven)
        return Audit(
            epsilon=tested[0].epsilon,
            claimed=self.epsilon,
            proven=proven,
            delta=self.delta,
            detectable=None if limit is None else detectable_loss(testing, limit, self.delta, level),
            confidence=self.confidence,
            samples=self.samples,
            tested=tuple(tested),
        )

    def _views(self, first: list[NDArray[Any]]) -> list[View]:
        """Return outputs through each lens, column by column; several columns of two cases together, too."""
        columns = range(first[0].shape[1])
        views = [
            fit_view(lens, column, lens.name if len(columns) == 1 else f"number {column + 1}, {lens.name}", first)
            for column in columns
            for lens in self.lenses
        ]
        if len(columns) > 1 and len(first) == 2:
            views.append(fit_view(DiscriminantLens(), None, DiscriminantLens.name, first))
        return views


def _chunks(draw: Draw, case: int, size: int, tick: Progress) -> Iterator[NDArray[Any]]:
    for start in range(0, size, CHUNK):
        outputs = draw(case, min(CHUNK, size - start))
        tick(len(outputs))
        yield outputs


def _counts(draw: Draw, views: list[View], cases: int, size: int, tick: Progress) -> list[NDArray[np.int64]]:
    """Return, for each lens, how often each case gave each number in fresh outputs."""
    counts = [np.zeros(view.ranking.shape, dtype=np.int64) for view in views]
    for case in range(cases):
        for outputs in _chunks(draw, case, size, tick):
            for view, total in zip(views, counts, strict=True):
                total[case] += view.count(outputs)
    return counts


def _as_floats(values: ArrayLike) -> NDArray[Any]:
    """Return outputs as floats that differ wherever the outputs do, or refuse: a conversion could hide a leak."""
    parts: Sequence[Any] = values if isinstance(values, list | tuple) else [values]
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.empty(0, dtype=object)
    for one in (array, *map(np.asarray, parts)):
        if one.dtype.kind not in "biuf" or one.dtype.itemsize > 8:
            raise ParameterError(
                f"outputs must be booleans, integers or floats of at most 64 bits, not {one.dtype}: a "
                "conversion could hide a leak; encode them as such numbers"
            )
        if one.dtype.kind in "iu" and ((one > _LARGEST_INTEGER) | (one < -_LARGEST_INTEGER)).any():
            raise ParameterError("outputs are integers above 2^53, which floats cannot hold: return two parts")
    if any(isinstance(part, np.ma.MaskedArray | list | tuple) for part in (array, *parts)):
        raise ParameterError("outputs must not be masked or in lists of lists: return numbers, or arrays of them")
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    return array.astype(np.float64 if array.dtype.itemsize == 8 else np.float32, copy=False)


_LARGEST_INTEGER = 1 << 53
"""Integers up to this one have a float of their own each."""
