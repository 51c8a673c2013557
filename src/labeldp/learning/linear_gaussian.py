"""One linear Gaussian model: z = Aθ + e, with independent weights θ ~ N(0, V) and errors e ~ N(0, I).

Noisy sums and private labels are values z, features are the design A. Values and rows of the design are whitened:
divided by the standard deviation of their error. The same posterior has two forms:

- `PrimalGaussian`, in the dimension of features: precision Λ = V⁻¹ + AᵀA, mean μ = Λ⁻¹Aᵀz, covariance Σ = Λ⁻¹, and
  the log evidence −½(log|V| + log|Λ| + zᵀz − zᵀAμ).
- `DualGaussian`, in the dimension of values: C = I + AVAᵀ, μ = VAᵀC⁻¹z, Σ = V − VAᵀC⁻¹AV, and the log evidence
  −½(log|C| + zᵀC⁻¹z).

The second one is faster if there are fewer values than features. To either log evidence comes −½ log|N|, for
errors that had the covariance N before; the constant −½ log 2π of each value is left out. docs/method.md has the
equations of a whole fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import get_lapack_funcs
from scipy.sparse import csc_array

from labeldp._values import Array, Index, Mask, Numbers, Small

_NONE: Numbers = np.zeros((0, 0))

_JITTERS = (0.0, 1e-6, 1e-4, 1e-2, 1.0)
"""Fractions of the diagonal that are added to it, in turn, until the factorisation succeeds."""


def factorise(matrix: Numbers) -> Numbers:
    """Return the lower Cholesky factor; a fit that is already charged must not fail by rounding errors."""
    for jitter in _JITTERS:
        padded = matrix.copy(order="F")
        padded[np.diag_indices_from(matrix)] *= 1 + jitter
        with suppress(np.linalg.LinAlgError):
            return np.asarray(cholesky(padded, lower=True, check_finite=False, overwrite_a=True))
    return np.diag(np.sqrt(np.diag(matrix)))


def _solve(factor: Numbers, values: Numbers, *, transposed: bool = False) -> Numbers:
    """Return L⁻¹ times the values for a Cholesky factor L, or (Lᵀ)⁻¹ times them."""
    solution: Numbers = solve_triangular(factor, values, lower=True, trans=int(transposed), check_finite=False)
    return solution


def _log_determinant(factor: Numbers) -> float:
    """Return the log determinant of a matrix with this Cholesky factor."""
    return 2 * float(np.log(np.diag(factor).astype(np.float64)).sum())


@dataclass(frozen=True, slots=True)
class Observation:
    """Values with errors of one variance: private labels of rows, or scaled sums over rows.

    Attributes
    ----------
    gram, moment : arrays
        AᵀA and Aᵀz, with z measured from the middle of the labels' range.
    square : float
        zᵀz.
    count : int
        The number of values.
    rows : float
        The factor of the residual variance of a row in the variance of a value: 1 for rows, the mean factor for
        scaled sums.
    noise_variance : float
        The known variance of the privacy noise.
    design, values : arrays or None
        A and z, if there are few values.
    """

    gram: Small
    moment: Array
    square: float
    count: int
    rows: float
    noise_variance: float
    design: Small | None = None
    values: Array | None = None

    @classmethod
    def of_few(cls, design: Small, values: Array, rows: float, noise_variance: float) -> Observation:
        """Return a few values with their design."""
        moment = (design.T @ values.astype(np.float32)).astype(np.float64)
        square = float(values @ values)
        return cls(design.T @ design, moment, square, values.size, rows, noise_variance, design, values)

    @classmethod
    def of_sums(
        cls,
        features: Small,
        scale: Array,
        values: Array,
        rows: Array,
        noise: Array | float,
        residual_variance: float,
    ) -> Observation:
        """Return sums over rows, each divided by the standard deviation of its error.

        Parameters
        ----------
        features : array, sums × features
        scale : array
            The factors of features: the number of rows where they are means, 1 where they are sums.
        values : array
        rows, noise : arrays
            A sum has the variance rows · residual_variance + noise around what features explain.
        residual_variance : float
        """
        variance = rows * residual_variance + noise
        root = 1 / np.sqrt(variance)
        design = (features * (scale * root)[:, None]).astype(np.float32)
        mean_rows, mean_noise = float(np.mean(rows / variance)), float(np.mean(noise / variance))
        return cls.of_few(design, values * root, mean_rows, mean_noise)

    @classmethod
    def pool(cls, observations: Sequence[Observation], residual_variance: float) -> list[Observation]:
        """Return observations as one, or as none: values weighted by their precision, of their mean variance.

        Weights have the mean 1, so that the sums of products of equally noisy observations add up as they are.
        """
        if len(observations) < 2:
            return list(observations)
        precision = np.array([1 / item.variance(residual_variance) for item in observations])
        counts = np.array([item.count for item in observations], dtype=np.float64)
        weights = precision * (counts.sum() / (counts @ precision))
        shares = weights * counts / counts.sum()
        gram, moment, square = np.zeros_like(observations[0].gram), np.zeros_like(observations[0].moment), 0.0
        for weight, item in zip(weights.tolist(), observations, strict=True):
            gram += np.float32(weight) * item.gram
            moment += weight * item.moment
            square += weight * item.square
        rows = float(shares @ [item.rows for item in observations])
        noise_variance = float(shares @ [item.noise_variance for item in observations])
        return [cls(gram, moment, square, int(counts.sum()), rows, noise_variance)]

    def without(self, held_out: Observation) -> Observation:
        """Return the observation without some of its values."""
        return replace(
            self,
            gram=self.gram - held_out.gram,
            moment=self.moment - held_out.moment,
            square=self.square - held_out.square,
            count=self.count - held_out.count,
            design=None,
            values=None,
        )

    def variance(self, residual_variance: float) -> float:
        """Return the variance of the error of a value: an element of the diagonal of N."""
        return self.rows * residual_variance + self.noise_variance


class LinearGaussian(ABC):
    """The posterior of weights, given a prior and values.

    Parameters
    ----------
    variances : array
        The prior variance of each weight: the diagonal of V.
    design : array, values × features
        A, whitened.
    log_noise : float
        log|N|, with the covariance N of errors before they were whitened.
    """

    def __init__(self, variances: Array, design: Numbers, log_noise: float) -> None:
        self.variances, self.design, self.log_noise = variances, design, log_noise

    @property
    @abstractmethod
    def coefficients(self) -> Numbers:
        """The posterior mean μ of the weights."""

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """The log evidence."""

    @property
    @abstractmethod
    def covariance(self) -> Numbers:
        """The posterior covariance Σ of the weights."""

    @abstractmethod
    def strength_gradient(self) -> Array:
        """Return the derivatives of the log evidence in log v, v the prior variance of each weight."""

    @abstractmethod
    def design_gradient(self, features: slice) -> Array:
        """Return the derivatives of the log evidence in some columns of the design."""

    def risk(self, gram: Array) -> float:
        """Return tr(GΣ): the expected squared error of predictions, for rows whose mean products are G."""
        return float(np.einsum("ij,ij->", gram, self.covariance))

    def risk_gradient(self, gram: Array) -> Array:
        """Return the derivatives −2AΣGΣ of the risk in the design."""
        return -2 * self.design @ (self.covariance @ gram @ self.covariance)


class PrimalGaussian(LinearGaussian):
    """The posterior in the dimension of features, with the precision of numbers that the gram has.

    Parameters
    ----------
    variances, design, log_noise : as in `LinearGaussian`
        The design, and values, are needed for gradients only.
    gram, moment, square : arrays, float
        AᵀA, Aᵀz and zᵀz.
    values : array
        z, whitened.

    Examples
    --------
    >>> design, values = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 2.0, 3.0])
    >>> model = PrimalGaussian(np.full(2, 1e6), design.T @ design, design.T @ values, values @ values)
    >>> model.coefficients.round(3).tolist()
    [1.0, 1.0]
    """

    def __init__(
        self,
        variances: Array,
        gram: Numbers,
        moment: Numbers,
        square: float,
        *,
        design: Numbers = _NONE,
        values: Numbers = _NONE,
        log_noise: float = 0.0,
    ) -> None:
        super().__init__(variances, design, log_noise)
        self.values, self.square = values, square
        precision = gram.T.copy(order="F")
        precision[np.diag_indices_from(precision)] += 1 / variances
        self.factor = factorise(precision)
        self.half = _solve(self.factor, moment.astype(gram.dtype))

    @cached_property
    def coefficients(self) -> Numbers:
        """The posterior mean μ."""
        return _solve(self.factor, self.half, transposed=True)

    @cached_property
    def log_evidence(self) -> float:
        """The log evidence."""
        log_determinants = self.log_noise + float(np.log(self.variances).sum()) + _log_determinant(self.factor)
        return -0.5 * (log_determinants + self.square - float(self.half.astype(np.float64) @ self.half))

    @cached_property
    def covariance(self) -> Numbers:
        """The posterior covariance Σ = Λ⁻¹."""
        (invert,) = get_lapack_funcs(("potri",), (self.factor,))
        inverse: Numbers = invert(self.factor, lower=True)[0]
        inverse += np.tril(inverse, -1).T
        return inverse

    def strength_gradient(self) -> Array:
        """Return ½((μ² + diag Σ)/v − 1)."""
        return np.asarray(0.5 * ((self.coefficients**2 + np.diag(self.covariance)) / self.variances - 1))

    def design_gradient(self, features: slice) -> Array:
        """Return (z − Aμ)μᵀ − AΣ."""
        kind = self.design.dtype  # which may be single where the gram is double
        coefficients = self.coefficients.astype(kind)
        residuals = (self.values - self.design @ coefficients).astype(kind)
        spread = self.design @ self.covariance[:, features].astype(kind)
        return np.asarray(np.outer(residuals, coefficients[features]) - spread)


class DualGaussian(LinearGaussian):
    """The posterior in the dimension of values.

    Parameters
    ----------
    variances, design, log_noise : as in `LinearGaussian`
    values : array
        z, whitened.
    products : array, optional
        AVAᵀ, if it is known.

    Examples
    --------
    >>> design, values = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 2.0, 3.0])
    >>> DualGaussian(np.full(2, 1e6), design, values).coefficients.round(3).tolist()
    [1.0, 1.0]
    """

    def __init__(
        self,
        variances: Array,
        design: Numbers,
        values: Numbers,
        *,
        products: Numbers | None = None,
        log_noise: float = 0.0,
    ) -> None:
        super().__init__(variances, design, log_noise)
        covariance = (design * variances) @ design.T if products is None else products
        self.factor = factorise(covariance + np.eye(len(values)))
        self.half = _solve(self.factor, values)

    @cached_property
    def residuals(self) -> Numbers:
        """C⁻¹z."""
        return _solve(self.factor, self.half, transposed=True)

    @cached_property
    def coefficients(self) -> Numbers:
        """The posterior mean μ."""
        return np.asarray(self.variances * (self.residuals @ self.design))

    @cached_property
    def log_evidence(self) -> float:
        """The log evidence."""
        return -0.5 * (self.log_noise + _log_determinant(self.factor) + float(self.half @ self.half))

    @cached_property
    def half_design(self) -> Numbers:
        """L⁻¹A, with the Cholesky factor L of C."""
        return _solve(self.factor, self.design)

    @cached_property
    def covariance(self) -> Numbers:
        """The posterior covariance Σ = V − VAᵀC⁻¹AV."""
        scaled = self.half_design * self.variances
        return np.diag(self.variances) - scaled.T @ scaled

    def strength_gradient(self) -> Array:
        """Return ½v((Aᵀ C⁻¹z)² − diag AᵀC⁻¹A)."""
        slopes = (self.residuals @ self.design) ** 2 - np.einsum("ij,ij->j", self.half_design, self.half_design)
        return np.asarray(0.5 * self.variances * slopes)

    def design_gradient(self, features: slice) -> Array:
        """Return C⁻¹zμᵀ − C⁻¹AV."""
        spread = _solve(self.factor, self.half_design[:, features], transposed=True)
        return np.outer(self.residuals, self.coefficients[features]) - spread * self.variances[features]


@dataclass(frozen=True, slots=True)
class GroupRisk:
    """The Bayes risk of a model with unit prior variances, if one noisy sum is measured for each group of rows.

    Attributes
    ----------
    rows : array, rows × features
        A sample of the rows.
    weight : float
        The number of rows that each of them stands for.
    gram : array
        Mean products of their features.
    precision : array
        AᵀA of earlier measurements.
    noise_variance, residual_variance : float
        Variance of the noise of a sum, and of a label that features do not explain.
    """

    rows: Small
    weight: float
    gram: Array
    precision: Array
    noise_variance: float
    residual_variance: float

    def assess(self, group: Index, count: int) -> tuple[float, Array]:
        """Return the risk of so many groups, and its descent where a row joins a group, features × groups."""
        ones = np.ones(group.size, dtype=np.float32)
        members = csc_array((ones, group, np.arange(group.size + 1)), shape=(count, group.size))
        sums = np.asarray(members @ self.rows, dtype=np.float64)
        sizes = self.weight * np.bincount(group, minlength=count)
        root = 1 / np.sqrt(self.noise_variance + sizes * self.residual_variance)
        design = self.weight * sums * root[:, None]
        gram = self.precision + design.T @ design
        model = PrimalGaussian(np.ones(len(gram)), gram, np.zeros(len(gram)), 0.0, design=design)
        return model.risk(self.gram), -root * model.risk_gradient(self.gram).T


def solve_priors(
    observations: Sequence[Observation],
    owner: Index,
    strengths: Array,
    block_variances: Array,
    residual_variance: float,
) -> tuple[Array, Array]:
    """Return the log evidence of each prior, and the posterior mean of the weights, priors × features.

    The posterior is in the dimension of values if all values have a design and are far fewer than features.

    Parameters
    ----------
    observations : sequence of Observation
    owner : array
        The block of each feature, with the constant.
    strengths : array
        The prior variance of the weight of each feature over that of its block.
    block_variances : array, priors × blocks
        The prior variance of weights of each block. Weights of blocks whose variance is 0 are 0.
    residual_variance : float
    """
    count = sum(item.count for item in observations)
    is_few = all(item.design is not None for item in observations) and 3 * count < owner.size
    reached = (np.count_nonzero(block_variances, axis=0) > 0)[owner]
    whitened = (_WhitenedValues if is_few else _WhitenedProducts)(observations, residual_variance, reached)
    log_evidence, weights = np.zeros(len(block_variances)), np.zeros((len(block_variances), owner.size))
    for k, by_block in enumerate(block_variances):
        is_used = np.asarray(by_block[owner] > 0)
        model = whitened.condition((by_block[owner] * strengths)[is_used], is_used[reached])
        log_evidence[k], weights[k, is_used] = model.log_evidence, model.coefficients
    return log_evidence, weights


class _WhitenedValues:
    """A few values and their design for some features, divided by the standard deviations of their errors."""

    def __init__(self, observations: Sequence[Observation], residual_variance: float, features: Mask) -> None:
        noise = np.concatenate([np.full(item.count, item.variance(residual_variance)) for item in observations])
        root = 1 / np.sqrt(noise)
        design = np.concatenate([item.design for item in observations if item.design is not None])
        values = np.concatenate([item.values for item in observations if item.values is not None])
        self.design, self.values, self.log_noise = (
            design[:, features] * root[:, None],
            values * root,
            float(np.log(noise).sum()),
        )

    def condition(self, variances: Array, is_used: Mask) -> LinearGaussian:
        """Return the model of item weights for their prior variances; others are 0."""
        return DualGaussian(variances, self.design[:, is_used], self.values, log_noise=self.log_noise)


class _WhitenedProducts:
    """Products of values and of their design for some features, divided by the variances of their errors."""

    def __init__(self, observations: Sequence[Observation], residual_variance: float, features: Mask) -> None:
        pairs = [(item, item.variance(residual_variance)) for item in observations]
        size = np.count_nonzero(features)
        self.gram: Small = np.zeros((size, size), dtype=np.float32)
        for item, variance in pairs:
            self.gram += _submatrix(item.gram, features) / np.float32(variance)
        self.moment: Array = np.sum([item.moment[features] / variance for item, variance in pairs], axis=0)
        self.square = float(sum(item.square / variance for item, variance in pairs))
        self.log_noise = float(sum(item.count * np.log(variance) for item, variance in pairs))

    def condition(self, variances: Array, is_used: Mask) -> LinearGaussian:
        """Return the model of item weights for their prior variances; others are 0."""
        gram = _submatrix(self.gram, is_used)
        return PrimalGaussian(variances, gram, self.moment[is_used], self.square, log_noise=self.log_noise)


def _submatrix(matrix: Small, is_used: Mask) -> Small:
    """Return the rows and columns of used features, copied by runs of neighbouring features."""
    edges = np.flatnonzero(np.diff(is_used, prepend=False, append=False))
    runs = [slice(*edge) for edge in edges.reshape(-1, 2).tolist()]
    if len(runs) == 1:
        return matrix[runs[0], runs[0]]
    return np.concatenate([np.concatenate([matrix[rows, columns] for columns in runs], axis=1) for rows in runs])


def explained_risk(spectrum: Array, signal: float, noise: float | Array) -> Array:
    """Return the risk Σ sv/(s + v) for orthogonal features: the sum of posterior variances of their weights.

    Parameters
    ----------
    spectrum : array
        The eigenvalues of the mean products of features.
    signal : float
        The prior variance of a weight; s is an eigenvalue times this.
    noise : float or array
        v: the variance of the error of a row, over the number of rows. Of an array, there is a risk for each.

    Examples
    --------
    >>> explained_risk(np.array([1.0, 3.0]), 1.0, np.array([1.0, 0.0])).tolist()
    [1.25, 0.0]
    """
    strength, variance = spectrum * signal, np.asarray(noise)[..., None]
    return np.asarray((strength * variance / (strength + variance)).sum(axis=-1))
