"""What an audit found, as a value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from labeldp.audit.bounds import POWER
from labeldp.audit.power import Rehearsal


@dataclass(frozen=True, slots=True)
class EventResult:
    """One event that was tested, on samples that had no part in its choice.

    Attributes
    ----------
    pair : (str, str)
        The label that it speaks for, and the one that it was tested against.
    lens : str
        What about the output it looks at.
    hits, others : int
        How often it happened under each.
    epsilon : float
        What ε must at least be because of it; 0 if it shows nothing.

    Examples
    --------
    >>> import labeldp as ldp
    >>> result = ldp.audit(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0), samples=10_000)
    >>> worst = result.worst
    >>> worst.pair in [("0", "5"), ("5", "0")], worst.hits > worst.others
    (True, True)
    """

    pair: tuple[str, str]
    lens: str
    hits: int
    others: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Audit:
    """A lower bound on ε, measured from samples, beside what is claimed and proven.

    Attributes
    ----------
    epsilon : float
        With probability ``confidence`` the true ε is at least this. An honest randomiser is convicted with
        probability 1 − ``confidence`` at most, all events together.
    claimed : float or None
        The ε that is claimed. None if nothing was claimed, or ε = ∞, which claims nothing.
    proven : float or None
        An upper bound from an exact proof, where there is one for ``delta``. A randomiser whose bound is above it
        does not draw from the counts that were proven, whatever it claims.
    delta : float
        The δ that was allowed for.
    best_case : float or None
        What ε must at least be, to be convicted with probability 0.8 through one event: that of the best
        probability, if the randomiser has it. Most have not. None if nothing was claimed.
    confidence : float
        With what probability the bound is right.
    samples : int
        Outputs drawn for each label or data set; half of them to choose events, half to test.
    tested : tuple of EventResult
        All events that were tested, the worst first; the confidence is split among them.
    rehearsal : Rehearsal or None
        For a mechanism: what `showable` is computed from.

    Examples
    --------
    >>> import labeldp as ldp
    >>> import numpy as np
    >>> weak = lambda y: y + np.random.default_rng().laplace(0, 2.0, y.size)        # 5 / 2 is more than 1
    >>> result = ldp.audit(weak, labels=[0, 5], epsilon=1.0, samples=20_000)
    >>> result.verdict, result.refuted
    ('CONVICTED', 'claim')
    >>> print(result.summary())
    CONVICTED: epsilon is at least ...; that is wrong with probability 1e-06 at most
      20,000 samples each; ... events, tested on the half that did not choose
      worst: ...
    """

    epsilon: float
    claimed: float | None
    proven: float | None
    delta: float
    best_case: float | None
    confidence: float
    samples: int
    tested: tuple[EventResult, ...] = field(repr=False)
    rehearsal: Rehearsal | None = field(default=None, repr=False, compare=False)

    @property
    def limit(self) -> float | None:
        """The ε above which the bound convicts, which is the claim, or the proof where that is less."""
        if self.claimed is None:
            return None
        return self.claimed if self.proven is None else min(self.claimed, self.proven)

    @property
    def convicted(self) -> bool:
        """Whether the claim or the proof is refuted, because the bound is above it."""
        return self.limit is not None and self.epsilon > self.limit

    @property
    def refuted(self) -> str:
        """What is refuted, one of "claim", "proof", "claim and proof" and "nothing"."""
        above = [
            name
            for name, limit in (("claim", self.claimed), ("proof", self.proven))
            if self.claimed is not None and limit is not None and self.epsilon > limit
        ]
        return " and ".join(above) or "nothing"

    @property
    def showable(self) -> float | None:
        """The smallest violation of this mechanism that this many samples could have shown.

        Built for this ε, and otherwise the same, the mechanism would have been convicted with probability 0.8:
        computed on first access, from its exact counts. Infinite if nothing could have shown. None
        for functions and pipelines, whose probabilities nobody knows: then there is only the best case.
        """
        return None if self.rehearsal is None else self.rehearsal.showable

    @property
    def worst(self) -> EventResult:
        """The event with the largest bound."""
        return self.tested[0]

    @property
    def verdict(self) -> str:
        """The verdict in a word or two."""
        if self.claimed is None:
            return "nothing claimed"
        return "CONVICTED" if self.convicted else "acquitted"

    def summary(self) -> str:
        """Return the verdict and what it rests on, for people."""
        at = f" (delta {self.delta:.3g})" if self.delta else ""
        worst = self.worst
        lines = [
            f"{self.verdict}: epsilon is at least {self.epsilon:.4g}{at}; "
            f"that is wrong with probability {1 - self.confidence:.2g} at most",
            f"  {self.samples:,} samples each; {len(self.tested)} events, tested on the half that did not choose",
            f"  worst: {worst.lens}, {worst.pair[0]} against {worst.pair[1]}: {worst.hits:,} and {worst.others:,} "
            f"of {self.samples - self.samples // 2:,}",
        ]
        if self.rehearsal is None:
            lines.append("  assumed: each output is drawn independently of all others")
        if self.claimed is not None:
            lines.append(f"  claimed {self.claimed:.6g}")
        if self.proven is not None:
            lines.append(f"  proven {self.proven:.6g} at most")
        if self.convicted:
            lines.append(f"  refuted: the {self.refuted}")
            if self.refuted == "proof":
                lines.append("  the claim may hold, but outputs are not drawn from the counts that were proven")
        elif self.claimed is not None:
            lines.append(f"  {self._could_have()}")
        return "\n".join(lines)

    def _could_have(self) -> str:
        least = self.showable
        if least is not None:
            return (
                f"this mechanism, built for epsilon {least:.4g}, would be convicted with probability {POWER:g}"
                if math.isfinite(least)
                else "no violation of this mechanism could have shown: take more samples, or other labels"
            )
        if self.best_case is None or math.isinf(self.best_case):
            return "no violation could have shown: take more samples"
        return (
            f"at best an epsilon of {self.best_case:.4g} could have shown with probability {POWER:g}: "
            "if there is an event of the best probability"
        )
