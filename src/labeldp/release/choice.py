"""Which mechanism: by name, or the one whose unbiased label serves a learner best under the prior."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from labeldp.errors import ParameterError
from labeldp.histogram import Histogram
from labeldp.mechanisms import Mechanism, mechanism_class, mechanism_names
from labeldp.mechanisms.clipping import noise_weight

__all__ = ["design", "expected_risk", "mechanism_choices"]


def mechanism_choices() -> list[str]:
    """Return the names that ``mechanism`` may have: "auto", and every mechanism registered."""
    return ["auto", *mechanism_names()]


def expected_risk(mechanism: Mechanism, prior: Histogram, rows: int | None = None) -> float:
    """Return bias² + variance · d/n of the unbiased label, on average under the prior.

    Parameters
    ----------
    mechanism : Mechanism
    prior : Histogram
    rows : int, optional
        For a learner on n rows, with d = 20; by default for a single label.
    """
    fine = np.linspace(*prior.bounds, 1025)
    points = np.unique(np.concatenate([fine, prior.nodes])) if prior.nodes.size < 4096 else fine
    mass = np.diff(prior.cumulative(points))
    labels = (points[:-1] + points[1:]) / 2
    mean = mechanism.debias(mechanism.mean(labels))
    risk = (mean - labels) ** 2 + noise_weight(rows) * mechanism.unbiased_variance(labels)
    return float(mass @ risk)


def design(
    name: str,
    prior: Histogram | None,
    *,
    bounds: tuple[float, float],
    epsilon: float,
    rows: int | None = None,
    **options: Any,
) -> Mechanism:
    """Return the mechanism called ``name``, designed for the prior, or for the whole range without one.

    The prior is public by now, so that choosing is free. Without one, nothing is clipped.
    """
    if name != "auto":
        cls = mechanism_class(name)
        if prior is None:
            return cls.for_bounds(bounds, epsilon, **options)
        return cls.design(prior, epsilon, rows=rows, **options)
    known, rows = (Histogram(bounds, [1.0]), None) if prior is None else (prior, rows)
    candidates: list[Mechanism] = []
    for cls in map(mechanism_class, mechanism_names()):
        if cls.in_auto:
            with suppress(ParameterError):  # a linear programme may find no table; the others always exist
                fits = (
                    cls.for_bounds(bounds, epsilon)
                    if prior is None
                    else cls.design(prior, epsilon, rows=rows or 1)
                )
                candidates.append(fits)
    return min(candidates, key=lambda mechanism: expected_risk(mechanism, known, rows))
