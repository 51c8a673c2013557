"""A release in words, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from labeldp._validation import rounded_up
from labeldp.histogram import Histogram
from labeldp.mechanisms.base import Mechanism
from labeldp.release.numbers import number

if TYPE_CHECKING:
    from labeldp.release.terms import Terms

__all__ = ["describe_release", "expectations"]


def describe_release(release: Terms) -> str:
    """Return what was done, what it cost, and what to expect of it."""
    cost = release.cost
    delta = f" and delta = {rounded_up(cost.delta, 3)}" if cost.delta else ""
    who = "a curator" if release.trust == "curator" else "nobody"
    lines = []
    if not release.secure:
        lines.append("NOT PRIVATE: the noise came from a seed. For tests and experiments only.")
    lines.append(
        f"{release.rows:,} labels released for epsilon = {rounded_up(cost.epsilon)}{delta} in all; {who} saw the "
        "true ones."
    )
    lines += [f"  {charge}" for charge in release.charges]
    for k, (mechanism, prior) in enumerate(zip(release.mechanisms, release.priors, strict=True)):
        name = "" if len(release.mechanisms) == 1 else f"column {k}: "
        proof = mechanism.verify()
        lines.append(
            f"  {name}{type(mechanism).__name__}, proven to keep epsilon = {rounded_up(proof.epsilon, 9)}"
        )
        lines += [f"  {line}" for line in expectations(mechanism, prior, release.bounds[k], release.rows)]
    people = max(c.rows_per_person for c in release.charges)
    if people > 1:
        lines.append(f"  The cost covers persons with up to {people} rows (group privacy).")
    lines.append("Releasing the same labels again would cost again: keep this release and reuse it.")
    return "\n".join(lines)


def expectations(
    mechanism: Mechanism, prior: Histogram | None, bounds: tuple[float, float], rows: int | None
) -> list[str]:
    """Return where labels are clipped and how large the noise is, by the private prior: free to say.

    Without a number of rows, nothing is said of their mean.
    """
    low, high = getattr(mechanism, "interval", getattr(mechanism, "bounds", bounds))
    lines = []
    if prior is not None and _at_an_end(prior, bounds):
        lines.append("nearly all labels are at one of the bounds: check the unit, and the bounds")
    elif (low, high) != bounds:
        lines.append(f"labels are clipped to ({number(low)}, {number(high)})" + _share(prior, low, high))
    try:
        places = np.linspace(low, high, 65) if prior is None else prior.centers
        weights = np.full(65, 1 / 65) if prior is None else prior.masses
        noise = float(np.sqrt(weights @ mechanism.unbiased_variance(places)))
    except ValueError:
        return [*lines, "its outputs are biased by design: see mechanism.bias"]
    mean = "" if rows is None else f", their mean ±{number(noise / np.sqrt(rows))}"
    return [*lines, f"one private label carries noise of about ±{number(noise)}{mean}"]


def _share(prior: Histogram | None, low: float, high: float) -> str:
    if prior is None:
        return ""
    below, above = prior.cumulative([low, high])
    return f"; about {100 * (below + 1 - above):.0f} % of them lie outside, by the private prior"


def _at_an_end(prior: Histogram, bounds: tuple[float, float]) -> bool:
    edge = 0.01 * (bounds[1] - bounds[0])
    inner = prior.cumulative([bounds[0] + edge, bounds[1] - edge])
    return bool(max(inner[0], 1 - inner[1]) > 0.9)
