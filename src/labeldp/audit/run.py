"""`audit` and `audit_pipeline`: draw, choose events, test them on fresh samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp._values import Labels, parse_number
from labeldp.audit.bounds import best_case, loss_at_least
from labeldp.audit.events import DiscriminantLens, Lens, QuantileLens, View, fit_view, standard_lenses
from labeldp.audit.power import Rehearsal
from labeldp.audit.result import Audit, EventResult
from labeldp.audit.samplers import LabelSampler, PipelineSampler, Sampler
from labeldp.errors import ParameterError
from labeldp.mechanisms.base import Mechanism
from labeldp.randomness import WordSource, resolve_source

CHUNK = 1 << 17
MOST_RANKED = 1 << 20
"""More than this many samples for each label teach the ranking nothing; memory stays flat."""

Progress = Callable[[int], None]


def audit(
    randomizer: Mechanism | Callable[[NDArray[np.float64]], ArrayLike],
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
    choose events that tell the labels apart, the other half tests them; Clopper–Pearson bounds hold for all
    tested events together.

    Parameters
    ----------
    randomizer : Mechanism, or function
        A function takes an array of labels and returns an array of outputs, one for each, independently.
    labels : array-like, optional
        Labels to tell apart: synthetic ones, never private ones, for the report names them. By default for a
        mechanism: both ends of its range, and two labels a hundredth of it apart.
    samples : int
        Outputs for each label.
    confidence : float
        The bound is right with this probability: an honest randomiser is convicted with what is left, at most.
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
    >>> result.convicted, 0.8 < result.epsilon < 1.0 < result.showable < 1.4
    (False, True)
    >>> leaking = lambda y: y + np.random.default_rng().laplace(0, 4.0, y.size)
    >>> ldp.audit(leaking, labels=[0, 5], epsilon=1.0, samples=100_000).convicted    # 5 / 4 > 1
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
    chosen = (
        default_labels(randomizer) if labels is None else np.unique(Labels.parse(labels).values.astype(np.float64))
    )
    if chosen.ndim != 1 or chosen.size < 2:
        raise ParameterError("an audit needs at least two different labels")
    plan = _Plan.make(samples, confidence, epsilon, delta, least=100)
    sampler = LabelSampler(function, tuple(chosen.tolist()))
    used = standard_lenses() if lenses is None else tuple(lenses)
    result = _run(sampler, plan, used, proven, progress)
    if not isinstance(randomizer, Mechanism) or result.limit is None or QuantileLens() not in used:
        return result
    level = (1 - result.confidence) / len(result.tested)
    rehearsal = Rehearsal(randomizer, sampler.labels, plan.parts(), result.limit, result.delta, level)
    return replace(result, rehearsal=rehearsal)


def audit_pipeline(
    function: Callable[[NDArray[np.float64]], ArrayLike],
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
        Everything that leaves the safe room, or what of it tells most: a prediction, the released label, where
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
    >>> ldp.audit_pipeline(clip, neighbours=pair, epsilon=1.0, samples=200).convicted      # bounds of the data
    True
    """
    first, second = (Labels.parse(side).values.astype(np.float64) for side in neighbours)
    if first.shape != second.shape:
        raise ParameterError("neighbours must have the same rows: only a label may differ")
    rows = (first != second).reshape(len(first), -1).any(axis=1)
    if np.count_nonzero(rows) != 1:
        raise ParameterError("neighbours must differ in the label of exactly one row")
    plan = _Plan.make(samples, confidence, epsilon, delta, least=20)
    used = standard_lenses() if lenses is None else tuple(lenses)
    return _run(PipelineSampler(function, (first, second), executor), plan, used, None, progress)


def default_labels(randomizer: object) -> NDArray[np.float64]:
    """Return labels at both ends, and two that are close: their floats differ, and their noise hardly does."""
    if not isinstance(randomizer, Mechanism):
        raise ParameterError("say which labels to tell apart: labels=(lo, hi), synthetic ones")
    channel: Any = randomizer.channel
    if not (hasattr(channel, "low") and hasattr(channel, "high")):
        raise ParameterError("this mechanism's channel has no range of labels: name the labels to use")
    return np.asarray(channel.low + (channel.high - channel.low) * np.array([0.0, 0.20, 0.21, 1.0]))


# ---- choosing and testing --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plan:
    samples: int
    confidence: float
    epsilon: float | None
    delta: float

    @classmethod
    def make(cls, samples: Any, confidence: Any, epsilon: Any, delta: Any, *, least: int) -> _Plan:
        if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < least:
            raise ParameterError(f"samples must be an integer, {least} or more, got {samples!r}")
        sure = parse_number(confidence, "confidence")
        if not 0.5 <= sure < 1:
            raise ParameterError(f"confidence must be at least 0.5 and below 1, got {sure}")
        claim = None if epsilon is None else parse_number(epsilon, "epsilon")
        if claim is not None and not claim >= 0:
            raise ParameterError(f"epsilon must not be negative, got {claim}")
        if claim == math.inf:
            claim = None
        slack = 0.0 if delta is None else parse_number(delta, "delta")
        if not 0 <= slack < 1:
            raise ParameterError(f"delta must be at least 0 and below 1, got {slack}")
        return cls(int(samples), sure, claim, slack)

    def parts(self) -> tuple[int, int, int]:
        """Return how many samples rank numbers, cut events, and test them."""
        ranking = min(self.samples // 4, MOST_RANKED)
        return ranking, self.samples // 2 - ranking, self.samples - self.samples // 2


def _run(
    sampler: Sampler, plan: _Plan, used: tuple[Lens, ...], proven: float | None, progress: Progress | None
) -> Audit:
    tick = progress or (lambda _: None)
    if not used:
        raise ParameterError("an audit needs a lens to look through")
    ranking, cutting, testing = plan.parts()
    cases = range(len(sampler.names))
    first = [_draw(sampler, case, ranking, tick) for case in cases]
    columns = range(first[0].shape[1])
    views = [
        fit_view(lens, column, lens.name if len(columns) == 1 else f"number {column + 1}, {lens.name}", first)
        for column in columns
        for lens in used
    ]
    if len(columns) > 1 and len(cases) == 2:
        views.append(fit_view(DiscriminantLens(), None, DiscriminantLens.name, first))
    cut, test = (_counts(sampler, views, size, tick) for size in (cutting, testing))
    pairs = [(case, other) for case in cases for other in cases if case != other]
    level = (1 - plan.confidence) / (len(pairs) * len(views))
    tested = []
    for view, cuts, tests in zip(views, cut, test, strict=True):
        for case, other in pairs:
            event = view.event(case, other, cuts, cutting, plan.delta, level)
            hits, others = int(tests[case][event].sum()), int(tests[other][event].sum())
            bound = float(loss_at_least(hits, others, testing, plan.delta, level))
            pair = (sampler.names[case], sampler.names[other])
            tested.append(EventResult(pair, view.name, hits, others, bound))
    tested.sort(key=lambda event: (-event.epsilon, event.others - event.hits))
    limit = plan.epsilon if plan.epsilon is None or proven is None else min(plan.epsilon, proven)
    return Audit(
        epsilon=tested[0].epsilon,
        claimed=plan.epsilon,
        proven=proven,
        delta=plan.delta,
        best_case=None if limit is None else best_case(testing, limit, plan.delta, level)[0],
        confidence=plan.confidence,
        samples=plan.samples,
        tested=tuple(tested),
    )


def _draw(sampler: Sampler, case: int, size: int, tick: Progress) -> NDArray[Any]:
    parts = []
    for start in range(0, size, CHUNK):
        parts.append(sampler.draw(case, min(CHUNK, size - start)))
        tick(len(parts[-1]))
    return np.concatenate(parts)


def _counts(sampler: Sampler, views: list[View], size: int, tick: Progress) -> list[NDArray[np.int64]]:
    """Return, for each lens, how often each case gave each number in fresh outputs."""
    counts = [np.zeros(view.ranking.shape, dtype=np.int64) for view in views]
    for case in range(len(sampler.names)):
        for start in range(0, size, CHUNK):
            outputs = sampler.draw(case, min(CHUNK, size - start))
            for view, total in zip(views, counts, strict=True):
                total[case] += view.count(outputs)
            tick(len(outputs))
    return counts
