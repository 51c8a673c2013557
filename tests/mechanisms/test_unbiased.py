"""The optimal unbiased randomiser: unbiased to the last word, private, and the best there is."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

import labeldp as ldp

pytestmark = pytest.mark.slow

UNIFORM = ldp.Histogram([0, 1], [1])
PRIORS = {
    "uniform": UNIFORM,
    "slope": ldp.Histogram(np.linspace(0, 1, 9), np.arange(1, 9)),
    "one spike": ldp.Histogram([0, 0.3, 0.31, 1], [0, 1, 0]),
    "two spikes": ldp.Histogram([0, 0.01, 0.99, 1], [1, 0, 1]),
    "heavy tail": ldp.Histogram(np.linspace(0, 1, 41), np.arange(1.0, 41) ** -2),
    "hardly any mass": ldp.Histogram([0, 0.5, 1], [1, 1e-14]),
}
each_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS.keys())


@cache
def design(epsilon, size, prior=UNIFORM):
    return ldp.Unbiased.design(prior, epsilon, size=size)


def labels_of(prior, many=4000):
    """Return labels that stand for the prior: its quantiles at the middle of equal shares."""
    total = np.concatenate([[0.0], np.cumsum(prior.masses)])
    return np.interp((np.arange(many) + 0.5) / many, total / total[-1], prior.nodes)


def row_masses(prior, size):
    """Return the shares of rows 0 … size − 1 after labels are rounded to a neighbour at random."""
    place = labels_of(prior, 40_000) * (size - 1)
    hat = np.maximum(0.0, 1 - np.abs(place[:, None] - np.arange(size)[None, :]))
    return hat.mean(axis=0)


# ---- unbiased -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.001, 1.0, 20.0])
@each_prior
def test_every_row_averages_to_its_label_and_satisfies_epsilon(prior, epsilon):
    mechanism = design(epsilon, 12, prior)
    rows = np.linspace(0, 1, 12)
    exact = [
        math.fsum(n / 2**64 * o for n, o in zip(row, mechanism.outputs, strict=True)) for row in mechanism.counts
    ]
    reach = max(abs(o) for o in mechanism.outputs)
    assert exact == pytest.approx(rows, rel=0, abs=1e-12 + 1e-15 * reach)
    assert mechanism.mean(rows) == pytest.approx(rows, rel=0, abs=1e-12 + 1e-14 * reach)
    counts = np.array(mechanism.counts, dtype=object)
    assert set(counts.sum(axis=1)) == {2**64}
    assert (counts > 0).all(), "an output that some label cannot give would tell that label apart"
    ratios = counts.max(axis=0) / counts.min(axis=0)
    assert max(math.log(ratio) for ratio in ratios) <= epsilon * (1 + 1e-9)


# ---- optimal --------------------------------------------------------------------------------------------


def plain_programme(rows, masses, outputs, epsilon):
    """Return the least expected variance by METHODS' programme: t_o ≤ M_yo ≤ e^ε t_o, nothing clever."""
    n, k = rows.size, outputs.size
    square = (outputs[None, :] - rows[:, None]) ** 2
    lower = np.hstack([-np.eye(n * k), np.tile(np.eye(k), (n, 1))])
    upper = np.hstack([np.eye(n * k), -math.exp(epsilon) * np.tile(np.eye(k), (n, 1))])
    sums = np.hstack([np.kron(np.eye(n), np.ones(k)), np.zeros((n, k))])
    means = np.hstack([np.kron(np.eye(n), outputs), np.zeros((n, k))])
    result = linprog(
        np.concatenate([(masses[:, None] * square).ravel(), np.zeros(k)]),
        A_ub=np.vstack([lower, upper]),
        b_ub=np.zeros(2 * n * k),
        A_eq=np.vstack([sums, means]),
        b_eq=np.concatenate([np.ones(n), rows]),
    )
    assert result.status == 0
    return result.fun


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@each_prior
def test_variance_is_the_optimum_of_the_plain_programme(prior, epsilon):
    rows = np.linspace(0, 1, 12)
    masses, mechanism = row_masses(prior, 12), design(epsilon, 12, prior)
    best = plain_programme(rows, masses, np.array(mechanism.outputs), epsilon)
    ours = masses @ mechanism.variance(rows)
    assert ours == pytest.approx(best, rel=1e-3)
    assert ours >= best * (1 - 1e-5), "better than the optimum: something is not private or not unbiased"


HALF = 2**63


@pytest.mark.parametrize(
    ("outputs", "counts"),
    [
        ((0.5,), ((2**64,), (2**64,))),
        ((0, 1), ((HALF, HALF),)),
        ((0, 1), ((HALF, HALF), (HALF, HALF, 0))),
        ((0, math.inf), ((HALF, HALF), (HALF, HALF))),
        ((), ((), ())),
        *(((0, 1), bad) for bad in (5, None, [["a", "b"]] * 2)),
        ((0, 1), [[2.0**63 + 0.5, 2.0**63]] * 2),
    ],
    ids=repr,
)
def test_tables_of_wrong_shape_are_refused(outputs, counts):
    with pytest.raises(ldp.LabelDPError):
        ldp.Unbiased(bounds=(0, 1), outputs=outputs, counts=counts, epsilon=1.0)
