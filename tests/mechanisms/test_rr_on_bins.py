"""RR-on-Bins: its bins are the best there are, among partitions and among all mechanisms."""

import itertools
import math

import numpy as np
import pytest

import labeldp as ldp
from labeldp.mechanisms.rr_on_bins import optimal_partition

TRAP = np.array([11.0, 17, 23, 26, 27]), np.array([0.85124, 0.08087, 0.00851, 0.00404, 0.05533]) / 0.99999


def loss_of(values, masses, starts, outputs, epsilon):
    """Return the expected loss of answering with the own bin's output with odds e^ε."""
    bins = np.searchsorted(starts, np.arange(values.size), side="right") - 1
    keep = np.full((values.size, outputs.size), 1.0)
    keep[np.arange(values.size), bins] = math.exp(epsilon)
    keep /= math.exp(epsilon) + outputs.size - 1
    return float(masses @ (keep * (values[:, None] - outputs[None, :]) ** 2).sum(axis=1))


def brute_force(values, masses, epsilon):
    """Return the least loss over all partitions into consecutive bins, each with its best output."""
    n, gain, best = values.size, math.expm1(epsilon), math.inf
    bins = {}
    for i, j in itertools.combinations(range(n + 1), 2):
        weight = masses.copy()
        weight[i:j] *= 1 + gain
        output = weight @ values / weight.sum()
        bins[i, j] = weight @ (values - output) ** 2
    for many in range(n):
        for cuts in itertools.combinations(range(1, n), many):
            cost = sum(bins[pair] for pair in itertools.pairwise((0, *cuts, n)))
            best = min(best, cost / (gain + many + 1))
    return best


def random_instance(rng):
    """Return labels and masses; masses are even, spiky, tiny, or tied."""
    n = int(rng.integers(1, 8))
    values = np.sort(rng.choice(60, n, replace=False)).astype(float)
    masses = rng.random(n) ** rng.choice([0, 1, 5, 40, 300])
    masses = np.maximum(masses, 1e-300)
    return values, masses / masses.sum()


@pytest.mark.parametrize("seed", range(2))
def test_partition_is_as_good_as_brute_force_over_all_partitions(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        values, masses = random_instance(rng)
        epsilon = float(rng.choice([0.001, 0.1, 0.5, 1, 2, 4, 8, 12, 20]))
        partition = optimal_partition(values, masses, epsilon)
        best = brute_force(values, masses, epsilon)
        true = loss_of(values, masses, partition.starts, partition.outputs, epsilon)
        assert true <= best * (1 + 1e-7) + 1e-13
        assert partition.loss == pytest.approx(true, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("order", [1, -1])
def test_partition_does_not_fall_into_the_trap_of_monotone_cuts(order):
    values, masses = TRAP
    values, masses = order * values[::order], masses[::order]
    assert optimal_partition(values, masses, 4.0).loss == pytest.approx(4.0133, abs=1e-4)
    assert brute_force(values, masses, 4.0) == pytest.approx(4.0133, abs=1e-4)


# ---- the mechanism -----------------------------------------------------------------------------------


def own_bin(mechanism, labels):
    """Return the likeliest output of each label; outputs are the numbers of the bins."""
    return np.rint(mechanism.mean(labels)).astype(int)


def test_edges_may_be_as_close_as_a_millionth_of_the_range_and_no_closer():
    """Of 2^20 look-up pieces, 1.5 lie between the two inner edges, or 0.7."""
    close = [0, 0.5, 0.5 + 1.5 / 2**20, 1]
    mechanism = ldp.RROnBins(edges=close, outputs=range(3), epsilon=20)
    assert own_bin(mechanism, np.array([0.5, close[2], np.nextafter(close[2], 0), 0.4])).tolist() == [1, 2, 1, 0]
    with pytest.raises(ldp.errors.ParameterError, match="closer than a millionth"):
        ldp.RROnBins(edges=[0, 0.5, 0.5 + 0.7 / 2**20, 1], outputs=range(3), epsilon=20)
