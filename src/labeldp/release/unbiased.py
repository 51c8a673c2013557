"""Whether a mechanism has unbiased labels, decided before anything is spent."""

from __future__ import annotations

from labeldp.errors import NotUnbiasedError, ParameterError
from labeldp.histogram import Histogram
from labeldp.release.stream import Order

__all__ = ["refuse_biased"]


def refuse_biased(order: Order) -> None:
    """Refuse a mechanism that has no unbiased labels, by a trial that needs no data."""
    if order.mechanism == "auto":  # it chooses among those that have some
        return
    plan = order.plan(1000)
    try:
        flat = Histogram(order.bounds, [1.0]) if plan.for_prior else None
        trial = plan.design(plan.priors[0] or flat, order.bounds)
        trial.debias(trial.mean([order.bounds[0]]))
        return
    except NotUnbiasedError:
        name = order.mechanism if isinstance(order.mechanism, str) else type(order.mechanism).__name__
    raise ParameterError(
        f"{name} has no unbiased labels, and a model trained on biased ones is wrong: choose another mechanism, "
        'or take its labels as they are with debiased="no" if you know how to use them'
    )
