"""Result of an audit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from labeldp.accounts.budget import rounded_up
from labeldp.evidence.loss_bounds import POWER


def verdict_line(verdict: str, bound: str, confidence: float) -> str:
    """Return a verdict, its bound, and the probability that the bound is wrong, as a line of text."""
    return f"{verdict}: epsilon is at least {bound}; that is wrong with probability {1 - confidence:.2g} at most"


@dataclass(frozen=True, slots=True)
class EventResult:
    """One event, tested on samples that were not used to choose it.

    Attributes
    ----------
    pair : (str, str)
        The label under which it is likely, and the one that it was tested against.
    lens : str
        The lens through which it looks at outputs.
    hits, false_hits : int
        Its counts under the first and under the second.
    epsilon : float
        The lower bound on ε that follows from it; 0 if it shows nothing.

    Examples
    --------
    >>> import labeldp as ldp
    >>> result = ldp.audit(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0), samples=10_000)
    >>> worst = result.worst
    >>> worst.pair in [("0", "5"), ("5", "0")], worst.hits > worst.false_hits
    (True, True)
    """

    pair: tuple[str, str]
    lens: str
    hits: int
    false_hits: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Audit:
    """A lower bound on ε, measured from samples, beside the claimed and the proven ε.

    Attributes
    ----------
    epsilon : float
        With probability ``confidence`` the true ε is at least this. For a randomiser whose claim is true, the
        probability of a false alarm is at most 1 − ``confidence``, over all events together.
    claimed : float or None
        The ε that is claimed. None if nothing was claimed, or ε = ∞, which claims nothing.
    proven : float or None
        An upper bound from an exact proof, where there is one for ``delta``. A randomiser whose bound is above it
        does not draw from the counts that were proven, whatever it claims.
    delta : float
        The δ that was allowed for.
    detectable : float or None
        The smallest ε that would have been detected with probability 0.8 at best: through an event of the best
        probability, which most randomisers do not have. None if nothing was claimed.
    confidence : float
        The probability that the bound is right.
    samples : int
        Outputs drawn for each label or data set; half of them to choose events, half to test.
    tested : tuple of EventResult
        All events that were tested, the worst first; the confidence is split among them.

    Examples
    --------
    >>> import labeldp as ldp
    >>> import numpy as np
    >>> weak = lambda y: y + np.random.default_rng().laplace(0, 2.0, y.size)        # 5 / 2 is more than 1
    >>> result = ldp.audit(weak, labels=[0, 5], epsilon=1.0, samples=20_000)
    >>> result.verdict, result.refuted
    ('VIOLATION', 'claim')
    >>> print(result.summary())
    VIOLATION: epsilon is at least ... at delta 0; that is wrong with probability 1e-06 at most
      20,000 samples each; ... events, tested on the half that did not choose
      worst: ...
    """

    epsilon: float
    claimed: float | None
    proven: float | None
    delta: float
    detectable: float | None
    confidence: float
    samples: int
    tested: tuple[EventResult, ...] = field(repr=False)

    @property
    def refuted(self) -> str:
        """The refuted statement: "claim", "proof", "claim and proof", or empty text."""
        if self.claimed is None:
            return ""
        limits = {"claim": self.claimed, "proof": self.proven}
        return " and ".join(name for name, limit in limits.items() if limit is not None and self.epsilon > limit)

    @property
    def detected(self) -> bool:
        """True if the bound is above the claim or the proof: a violation."""
        return bool(self.refuted)

    @property
    def worst(self) -> EventResult:
        """The event with the largest bound."""
        return self.tested[0]

    @property
    def verdict(self) -> str:
        """The verdict in a word or two."""
        if self.claimed is None:
            return "nothing claimed"
        return "VIOLATION" if self.detected else "none detected"

    def summary(self) -> str:
        """Return the verdict and its basis, as text."""
        worst = self.worst
        lines = [
            verdict_line(self.verdict, f"{self.epsilon:.4g} at delta {self.delta:.3g}", self.confidence),
            f"  {self.samples:,} samples each; {len(self.tested)} events, tested on the half that did not choose",
            f"  worst: {worst.lens}, {worst.pair[0]} against {worst.pair[1]}: {worst.hits:,} and "
            f"{worst.false_hits:,} of {self.samples - self.samples // 2:,}",
            "  assumed: each output is drawn independently of all others",
        ]
        if self.claimed is not None:
            lines.append(f"  claimed {rounded_up(self.claimed)}")
        if self.proven is not None:
            lines.append(f"  proven {rounded_up(self.proven)} at most")
        if self.refuted == "proof":
            lines.append("  refuted: the proof; the claim may hold, but outputs are not drawn from these counts")
        elif self.detected:
            lines.append(f"  refuted: the {self.refuted}")
        elif self.detectable == math.inf:
            lines.append("  no violation could have been detected: take more samples")
        elif self.detectable is not None:
            lines.append(f"  detectable with probability {POWER:g}, at best: epsilon {self.detectable:.4g}")
        return "\n".join(lines)
