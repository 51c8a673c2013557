"""`audit_fit`: a lower bound on ε of one fit or release, from labels that it learnt and labels that it did not.

The theorems are in ``docs/proofs/one_run.md``.

References
----------
Steinke, Nasr, Jagielski. Privacy Auditing with One (1) Training Run. NeurIPS 2023.
Kalemaj, Melis, Boucher, Mironov, Mahloujifar. Observational Auditing of Label Privacy. 2025, arXiv:2511.14084.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import Array, Interval, LabelBounds, Labels, parse_integer, parse_number
from labeldp.accounts.budget import rounded_up
from labeldp.errors import ParameterError, Setting
from labeldp.evidence.audit_result import verdict_line
from labeldp.evidence.loss_bounds import parse_confidence, share_at_least
from labeldp.exact.word_sources import RandomState, resolve_source

SHARES = 0.5 ** np.arange(5)
"""Shares of the pairs that are guessed, the clearest first: few clear guesses may show more than all."""


@dataclass(frozen=True, slots=True)
class FitAudit:
    """A lower bound on the ε of one fit or release.

    Attributes
    ----------
    epsilon : float
        With probability ``confidence`` the true ε is at least this.
    claimed : float or None
    confidence : float
    pairs : int
        Pairs of a label and an alternative on which something can be guessed.
    guesses, right : int
        The guesses whose bound is the largest, and the right ones among them.
    largest : float
        The bound if all guesses had been right: no more can be shown by so many pairs.

    Examples
    --------
    >>> import numpy as np
    >>> import labeldp as ldp
    >>> y = np.linspace(0, 5, 200)
    >>> result = ldp.audit_fit(y, y, y[::-1], epsilon=1.0)          # labels released in the clear
    >>> print(result.summary())
    VIOLATION: epsilon is at least 3.76; that is wrong with probability 0.05 at most
      200 of 200 guesses are right; chance gives 100
      200 pairs show epsilon 3.76 at most
      claimed 1
    """

    epsilon: float
    claimed: float | None
    confidence: float
    pairs: int
    guesses: int
    right: int
    largest: float

    @property
    def detected(self) -> bool:
        """True if the bound is above the claim."""
        return self.claimed is not None and self.epsilon > self.claimed

    def summary(self) -> str:
        """Return the bound and its basis, as text."""
        lines = [
            verdict_line(
                "VIOLATION" if self.detected else "none detected", f"{self.epsilon:.4g}", self.confidence
            ),
            f"  {self.right:,} of {self.guesses:,} guesses are right; chance gives {self.guesses / 2:,.0f}",
            f"  {self.pairs:,} pairs show epsilon {self.largest:.4g} at most",
        ]
        if self.claimed is not None:
            lines.append(f"  claimed {rounded_up(self.claimed)}")
        return "\n".join(lines)


def audit_fit(
    released: ArrayLike,
    labels: ArrayLike,
    alternatives: ArrayLike | None = None,
    *,
    epsilon: float | None = None,
    confidence: float = 0.95,
) -> FitAudit:
    """Measure a lower bound on the ε of one fit or release, without another fit.

    For each row the released number guesses which of two labels was learnt. Under ε-label-DP a guess is right
    with probability e^ε / (1 + e^ε) at most, if both labels are of the same distribution given all public columns:
    true for canaries, an assumption for others. The result follows from ``labels``: of true labels it is for the
    owner's eyes, of canaries it may be published.

    Parameters
    ----------
    released : array-like
        For each row a prediction of the model, or the released label.
    labels : array-like
        The labels that were learnt or randomised in these rows: those of canaries, or true ones.
    alternatives : array-like, optional
        For each row a label that could as well have been learnt there. By default the other of the two labels that
        `canary_labels` draws from.
    epsilon : float, optional
        The claim.
    confidence : float
        The bound is right with this probability; with alternatives of your own, as far as they have the
        distribution of the labels.

    Returns
    -------
    FitAudit

    Examples
    --------
    >>> import numpy as np
    >>> import labeldp as ldp
    >>> from labeldp.evidence import canary_labels
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> coins = canary_labels(500, bounds=(0, 5))
    >>> release = ldp.privatize(coins, epsilon=1.0, bounds=(0, 5), mechanism="two-point", ledger=ldp.Ledger())
    >>> ldp.audit_fit(release.labels, coins, epsilon=0.1).detected       # ε = 1 is more than 0.1
    True
    >>> ldp.audit_fit(coins, coins, epsilon=1.0).detected
    True

    True labels, where a model did not learn from some rows: an alternative is its prediction with the error of
    such a row.

    >>> X, y = np.arange(400.0).reshape(400, 1), np.random.default_rng(0).uniform(0, 5, 400)
    >>> nearest = KNeighborsRegressor(1).fit(X[::2], y[::2])
    >>> learnt, held_out = nearest.predict(X[::2]), nearest.predict(X[1::2])
    >>> ldp.audit_fit(learnt, y[::2], learnt + (y[1::2] - held_out), epsilon=1.0).detected
    True
    """
    learnt = Labels.parse(labels).values.astype(np.float64)
    unlearnt = _other_canaries(learnt) if alternatives is None else Labels.parse(alternatives).values
    numbers = Labels.parse(released).values.astype(np.float64)
    if not learnt.shape == unlearnt.shape == numbers.shape == (learnt.size,):
        raise ParameterError("an audit takes one released number, one label and one alternative for each row")
    expected = numbers.mean() if alternatives is None else learnt / 2 + unlearnt / 2
    evidence = (learnt - unlearnt) * (numbers - expected)
    evidence = evidence[evidence != 0]
    order = np.argsort(-np.abs(evidence), kind="stable")
    right = np.append(0, np.cumsum(evidence[order] > 0))
    guesses = np.unique(np.ceil(evidence.size * SHARES).astype(np.int64))
    level = (1 - parse_confidence(confidence)) / guesses.size  # the largest of several bounds counts
    shares = share_at_least(right[guesses], np.maximum(guesses, 1), level)
    best = int(np.argmax(shares))
    return FitAudit(
        epsilon=_loss(float(shares[best])),
        claimed=None if epsilon is None else parse_number(epsilon, "epsilon"),
        confidence=confidence,
        pairs=evidence.size,
        guesses=int(guesses[best]),
        right=int(right[guesses[best]]),
        largest=_loss(level ** (1 / max(evidence.size, 1))),
    )


def _loss(share: float) -> float:
    """Return the ε of randomised response that keeps a label with a probability; 0 for less than one half."""
    return math.log(share / (1 - share)) if share > 0.5 else 0.0


def _other_canaries(labels: Array) -> Array:
    values = np.unique(labels)
    if values.size != 2:
        raise ParameterError("canaries have two different labels: for other labels give ", Setting("alternatives"))
    return np.asarray(np.where(labels == values[0], values[1], values[0]))


def canary_labels(count: int, bounds: Interval, random_state: RandomState = None) -> Array:
    """Return labels of canaries: each is one of the two bounds, by a fair coin.

    Canaries are rows that the owner adds to a table before the fit, and nobody's data. `audit_fit` bounds ε from
    their labels alone, without an assumption, and its result may be published.

    Parameters
    ----------
    count : int
        Number of canaries: a thousand show ε up to about 5.
    bounds : (lo, hi)
        The bounds of the fit.
    random_state : None, int or source of words
        To repeat a test.

    Examples
    --------
    >>> from labeldp.evidence import canary_labels
    >>> sorted(set(canary_labels(100, bounds=(0, 5)).tolist()))
    [0.0, 5.0]
    """
    words = np.empty(parse_integer(count, "count"), dtype=np.uint64)
    resolve_source(random_state).fill(words)
    low, high = LabelBounds(bounds)
    return np.where(words & np.uint64(1), high, low)
