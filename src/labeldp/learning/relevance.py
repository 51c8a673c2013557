"""How strongly each column takes part in interactions, learnt from noisy sums and private labels."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, vstack

from labeldp._values import Array, Index
from labeldp.learning.bayes import Posterior
from labeldp.learning.ensemble import PrivateRows
from labeldp.learning.feature_table import FeatureTable
from labeldp.learning.features import even_rows
from labeldp.learning.groups import NoisySums
from labeldp.learning.label_units import Limits
from labeldp.learning.length_evidence import Averages, Evidence, Relevance, first_lengths

MOST_COLUMNS = 60
"""With more columns lengths are not learnt: there would be too many for what is known of labels."""

_SUMS_ROWS, _LABELS_ROWS = 2048, 4096
"""Public rows at most, evenly spread, that stand for all rows of their groups, or whose labels are looked at."""

_FIRST_STEPS, _FURTHER_STEPS = 20, 12
"""Steps of the search at first, and where it goes on from lengths found before."""

_UNSEEN = 0.3
"""The part of the spread that interactions are expected to explain: sums over groups made for others hide it."""

_LEAST_STRENGTH, _LEAST_SHARE = 1e-7, 0.03
"""Expected strength of a block at least: in squared widths of the range, and of what all blocks explain."""


def can_learn(table: FeatureTable) -> bool:
    """Return whether the table has columns whose lengths can be learnt."""
    return 2 <= table.columns <= MOST_COLUMNS


def learn_lengths(
    table: FeatureTable,
    linear: Posterior,
    limits: Limits,
    sums: list[NoisySums],
    labels: list[PrivateRows],
    *,
    spread: float = 0.0,
    known: Relevance | None = None,
) -> Relevance:
    """Return the lengths of most evidence.

    Parameters
    ----------
    table : FeatureTable
    linear : Posterior
        The model so far.
    limits : Limits
        Where labels lie.
    sums, labels : lists
        What was released.
    spread : float
        Variance of labels around the model so far, where it was measured.
    known : Relevance, optional
        Where to start from. Else from equal lengths, and then from lengths that are short for columns that matter
        alone: of both results the more likely one.
    """
    evidence = gather_evidence(table, linear, limits, sums, labels, spread)
    if known is not None:
        return evidence.climb(known.center, known.point, _FURTHER_STEPS)[1]
    origin = np.zeros(1 + table.columns)
    equal = evidence.climb(np.log(first_lengths(table.columns)), origin, _FIRST_STEPS)
    other = evidence.climb(evidence.lengths_of_columns_alone(equal[1]), origin, _FIRST_STEPS)
    return max(equal, other, key=lambda found: found[0])[1]


def gather_evidence(
    table: FeatureTable,
    linear: Posterior,
    limits: Limits,
    sums: list[NoisySums],
    labels: list[PrivateRows],
    spread: float,
) -> Evidence:
    """Return the evidence of what was released; parameters are those of `learn_lengths`."""
    rest = min(linear.rest, spread or linear.rest)
    averages = _averages_of(table, limits, sums, labels, rest)
    return Evidence(table, averages, _expected_strengths(linear, spread, limits.width))


def _averages_of(
    table: FeatureTable, limits: Limits, sums: list[NoisySums], labels: list[PrivateRows], rest: float
) -> Averages:
    """Return what was released as averages; ``rest`` is the variance of labels around what features explain."""
    rows = even_rows(table.rows, _LABELS_ROWS if labels else _SUMS_ROWS)
    position = np.full(table.rows, -1)
    position[rows] = np.arange(rows.size)
    matrices, values, variances = [], [], []
    for each in sums:
        matrix, used = _group_averages(each.groups.group[rows], each.groups.sizes.size)
        sizes = each.groups.sizes[used]
        matrices.append(matrix)
        values.append(each.sums[used] / sizes)
        variances.append((rest + each.noise / sizes) / sizes)
    for some in labels:
        at = position[some.rows]
        here = at >= 0
        matrices.append(_single_rows(at[here], rows.size))
        values.append(some.labels[here] - limits.middle)
        variances.append(np.full(np.count_nonzero(here), rest + some.noise))
    root = (limits.width / np.sqrt(np.concatenate(variances))).astype(np.float32)
    return Averages(rows, vstack(matrices, format="csr"), np.concatenate(values) / limits.width, root[:, None])


def _group_averages(group: Index, groups: int) -> tuple[csr_array, Index]:
    """Return a matrix that averages rows by groups, and which groups have rows here."""
    sizes = np.bincount(group, minlength=groups)
    used = np.flatnonzero(sizes)
    share = 1 / sizes[group].astype(np.float32)
    matrix = csr_array((share, (group, np.arange(group.size))), shape=(groups, group.size))
    return matrix[used], used


def _single_rows(at: Index, rows: int) -> csr_array:
    """Return a matrix that picks rows."""
    return csr_array((np.ones(at.size, dtype=np.float32), (np.arange(at.size), at)), shape=(at.size, rows))


def _expected_strengths(linear: Posterior, spread: float, width: float) -> Array:
    """Return the logarithms of what each block is expected to explain, in squared widths."""
    blocks = np.array(linear.blocks) / width**2
    interactions = max(blocks[2:].sum(), _UNSEEN * spread / width**2)
    expected = np.array([blocks[0], blocks[1], interactions])
    least = max(_LEAST_STRENGTH, _LEAST_SHARE * blocks.sum())
    return np.asarray(np.log(np.maximum(expected, least)))
