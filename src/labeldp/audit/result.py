"""What an audit found, as a value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from labeldp.audit.bounds import POWER

__all__ = ["Audit", "Tested"]


@dataclass(frozen=True, slots=True)
class Tested:
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
    showable : float
        The smallest ε above the claim that it would have shown with probability 0.8 or more, at the probability
        that it had under the second label; infinite if none, or if nothing was claimed.
    """

    pair: tuple[str, str]
    lens: str
    hits: int
    others: int
    epsilon: float
    showable: float


@dataclass(frozen=True, slots=True)
class Audit:
    """A lower bound on ε, measured from samples, beside what is claimed and proven.

    Attributes
    ----------
    epsilon : float
        With probability ``confidence`` the true ε is at least this. An honest randomiser is convicted with
        probability 1 − ``confidence`` at most, all events together.
    claimed : float or None
        The ε it was held to.
    proven : float or None
        An upper bound from an exact proof, where there is one.
    delta : float
        The δ that was allowed for.
    showable : float or None
        The smallest violation that this many samples could have shown: a randomiser whose true ε is this, in an
        event of the best probability q under one label and e^showable · q + δ under the other, is convicted with
        probability 0.8 or more when that event is tested. A smaller violation is convicted less often, whatever
        its event. ``worst.showable`` is the same for the worst event at its own probability. None if nothing was
        claimed.
    confidence : float
    samples : int
        Outputs drawn for each label or data set; half of them to choose events, half to test.
    tested : tuple of Tested
        All events that were tested, the worst first; the confidence is split among them.
    """

    epsilon: float
    claimed: float | None
    proven: float | None
    delta: float
    showable: float | None
    confidence: float
    samples: int
    tested: tuple[Tested, ...] = field(repr=False)

    @property
    def convicted(self) -> bool:
        """Whether the claim is refuted: the bound is above it."""
        return self.claimed is not None and self.epsilon > self.claimed

    @property
    def worst(self) -> Tested:
        """The event with the largest bound."""
        return self.tested[0]

    def summary(self) -> str:
        """Return the verdict and what it rests on, for people."""
        at = f" (delta {self.delta:.3g})" if self.delta else ""
        worst = self.worst
        lines = [
            f"{self.verdict}: epsilon is at least {self.epsilon:.4g}{at}, at confidence {self.confidence:.9g}",
            f"  {self.samples:,} samples each; {len(self.tested)} events, tested on the half that did not choose",
            f"  worst: {worst.lens}, {worst.pair[0]} against {worst.pair[1]}: {worst.hits:,} and {worst.others:,} "
            f"of {self.samples - self.samples // 2:,}",
        ]
        if self.claimed is not None:
            lines.append(f"  claimed {self.claimed:.6g}")
        if self.proven is not None:
            lines.append(f"  proven {self.proven:.6g} at most")
        if self.showable is not None and not self.convicted:
            lines.append(
                f"  an epsilon of {self.showable:.4g} could have shown with probability {POWER:g}; "
                f"in the worst event, one of {worst.showable:.4g}"
                if math.isfinite(self.showable)
                else "  no violation could have shown: take more samples"
            )
        return "\n".join(lines)

    @property
    def verdict(self) -> str:
        """The verdict in a word or two."""
        if self.claimed is None:
            return "nothing claimed"
        return "CONVICTED" if self.convicted else "acquitted"
