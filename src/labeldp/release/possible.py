"""Which numbers a mechanism can have given out: others are no private labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeldp._arrays import Array
from labeldp.mechanisms.base import Mechanism

TOLERANCE = 1e-12
"""Of the largest possible label: as near as a sheet of Excel writes a number."""


def is_possible(
    labels: Array,
    mechanism: Mechanism,
    *,
    debiased: bool,
    offset: Array | float = 0.0,
    scale: Array | float = 1.0,
) -> NDArray[np.bool_]:
    """Return for each label whether it is offset + scale · an output of the mechanism, up to rounding.

    Parameters
    ----------
    labels : array
    mechanism : Mechanism
    debiased : bool
        Whether outputs were debiased.
    offset, scale : floats or arrays
        The public map of each label; a scale is not negative.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> from labeldp.release.possible import is_possible
    >>> mechanism = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    >>> released = mechanism.randomize([1.0, 4.0])
    >>> is_possible(np.array([*released, 2.5, np.nan]), mechanism, debiased=False)
    array([ True,  True, False, False])
    """
    channel = mechanism.channel

    def forward(outputs: Array) -> Array:
        return channel.debias(outputs) if debiased else outputs

    zero, one = forward(np.array([0.0, 1.0]))
    with np.errstate(all="ignore"):
        unmapped = np.where(np.equal(scale, 0), zero, (labels - offset) / scale)
        nearest = offset + scale * forward(channel.nearest_output((unmapped - zero) / (one - zero)))
        largest = np.abs(forward(channel.nearest_output(np.array([-np.inf, np.inf])))).max()
        return np.asarray(np.abs(labels - nearest) <= TOLERANCE * (np.abs(offset) + np.abs(scale) * largest))
