"""Histograms of labels under which counts of released values are likely: smoothed expectation maximisation."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import Array, Counts
from labeldp.exact.proof import Channel

POINTS_PER_BIN = 16
"""Labels of a bin over which the channel is averaged."""

MAX_STEPS = 2000
"""Steps of expectation maximisation."""

FULL_SMOOTHING = 0.25
"""The share of a bin that each step gives to each neighbour: the weights 1, 2, 1 of Li and others."""

SMOOTHINGS = (0.0, 0.001, 0.01, 0.05, FULL_SMOOTHING)
"""Shares to choose from, by how well the histogram of half of the values explains the other half."""


SIMULATIONS = 40
"""Simulated surveys, of which some have errors several times those of others."""

_TINY = 1e-9
"""Added to the counts of a half, which may be empty."""


def label_likelihood(channel: Channel, nodes: Array, cuts: Array) -> Array:
    """Return the probability of each range of outputs, given that the label is in a bin.

    Parameters
    ----------
    channel : Channel
    nodes : array of k + 1 floats
        Edges of the labels' bins. A bin's labels are anywhere in it: the channel is averaged over several points.
    cuts : array of m − 1 floats
        Between the ranges of outputs; the first and the last range are open.

    Returns
    -------
    array, m × k
    """
    fractions = (np.arange(POINTS_PER_BIN) + 0.5) / POINTS_PER_BIN
    points = nodes[:-1, None] + np.diff(nodes)[:, None] * fractions
    below = np.array([channel.cumulative(point, cuts) for point in points.ravel().tolist()])
    shares = np.diff(below, axis=1, prepend=0.0, append=1.0)
    return np.asarray(shares.reshape(*points.shape, -1).mean(axis=1).T)


def smoothed_em(likelihood: Array, observed: Array, smoothing: ArrayLike = FULL_SMOOTHING) -> Array:
    """Return the masses that explain the observed frequencies, smoothed after every step.

    Frequencies may be columns of several samples, each with its smoothing: so are the masses.
    """
    smoothing = np.asarray(smoothing)
    masses = np.full((likelihood.shape[1], *observed.shape[1:]), 1 / likelihood.shape[1])
    for _ in range(MAX_STEPS):
        expected = likelihood @ masses
        step = masses * (likelihood.T @ (observed / np.maximum(expected, 1e-300)))
        padded = np.concatenate([step[:1], step, step[-1:]])
        step = smoothing * (padded[:-2] + padded[2:]) + (1 - 2 * smoothing) * step
        step /= step.sum(axis=0)
        if np.abs(step - masses).sum(axis=0).max() < 1e-7:
            break
        masses = step
    return masses


def deconvolve(likelihood: Array, counts: Counts) -> Array:
    """Return the masses that explain counts, as smooth as lets each half of the values explain the other best.

    Parameters
    ----------
    likelihood : array, m × k
    counts : array of m counts, or m × samples

    Returns
    -------
    array of k masses, or k × samples

    Examples
    --------
    >>> import numpy as np
    >>> likelihood = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    >>> deconvolve(likelihood, np.array([8000, 1000, 1000])).round(2).tolist()
    [1.0, 0.0, 0.0]
    """
    half = np.random.default_rng(0).binomial(counts, 0.5)  # of released values: this is no noise for privacy
    halves = (half, counts - half)
    scores = np.array([_cross_likelihood(likelihood, halves, smoothing) for smoothing in SMOOTHINGS])
    best = len(SMOOTHINGS) - 1 - np.argmax(scores[::-1], axis=0)
    return smoothed_em(likelihood, counts / counts.sum(axis=0), np.array(SMOOTHINGS)[best])


def simulated_errors(likelihood: Array, masses: Array, size: int, bins: int) -> Array:
    """Return the root mean squared error of each bin's share, over simulated surveys of labels with these masses.

    The seed is fixed, and no label is in it.

    Parameters
    ----------
    likelihood : array, m × k
    masses : array of k floats
    size : int
        Values of a survey.
    bins : int
        Divides k.
    """
    frequencies = likelihood @ masses
    samples = np.random.default_rng(0).multinomial(size, frequencies / frequencies.sum(), SIMULATIONS)
    errors = deconvolve(likelihood, samples.T) - masses[:, None]
    of_bins = errors.reshape(bins, -1, SIMULATIONS).sum(axis=1)
    return np.asarray(np.sqrt((of_bins**2).mean(axis=1)))


def _cross_likelihood(likelihood: Array, halves: tuple[Counts, Counts], smoothing: float) -> Array:
    """Return the log likelihood of each half under the masses of the other."""
    score = np.zeros(halves[0].shape[1:])
    for fitted, held_out in permutations(halves):
        masses = smoothed_em(likelihood, (fitted + _TINY) / (fitted + _TINY).sum(axis=0), smoothing)
        score += (held_out * np.log(np.maximum(likelihood @ masses, 1e-300))).sum(axis=0)
    return score
