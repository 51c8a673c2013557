"""Both forms of the linear Gaussian model, against dense formulas, finite differences and samples."""

import numpy as np
import pytest

from labeldp.learning.linear_gaussian import DualGaussian, Observation, PrimalGaussian, explained_risk, factorise

SHAPES = [(1, 1), (3, 8), (8, 3), (12, 12), (40, 7)]
each_shape = pytest.mark.parametrize("shape", SHAPES)
each_seed = pytest.mark.parametrize("seed", range(4))


def example(shape, seed):
    """Return prior variances over six orders of magnitude, a design and values."""
    rng = np.random.default_rng(seed)
    design = rng.normal(size=shape) * 10.0 ** rng.uniform(-1, 1, shape[1])
    return 10.0 ** rng.uniform(-4, 2, shape[1]), design, 3 * rng.normal(size=shape[0])


def primal(variances, design, values):
    return PrimalGaussian(
        variances, design.T @ design, design.T @ values, values @ values, design=design, values=values
    )


FORMS = {"primal": primal, "dual": DualGaussian}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@each_form
@each_shape
@each_seed
def test_both_forms_are_the_conditional_normal_distribution(form, shape, seed):
    """By the joint distribution of weights and values, with a matrix inverse."""
    variances, design, values = example(shape, seed)
    model = form(variances, design, values)
    joint = design * variances @ design.T + np.eye(len(values))
    gain = (design * variances).T @ np.linalg.inv(joint)
    np.testing.assert_allclose(model.coefficients, gain @ values, rtol=1e-7, atol=1e-9)
    covariance = np.diag(variances) - gain @ design * variances
    np.testing.assert_allclose(model.covariance, covariance, rtol=1e-6, atol=1e-8 * variances.max())
    evidence = -0.5 * (np.linalg.slogdet(joint)[1] + values @ np.linalg.solve(joint, values))
    assert model.log_evidence == pytest.approx(evidence, rel=1e-9, abs=1e-9)


@each_shape
def test_the_log_evidence_is_that_of_the_values_before_they_were_whitened(shape):
    variances, design, values = example(shape, 9)
    deviations = np.random.default_rng(1).uniform(0.1, 9, len(values))
    joint = design * variances @ design.T + np.diag(deviations**2)
    expected = -0.5 * (np.linalg.slogdet(joint)[1] + values @ np.linalg.solve(joint, values))
    whitened, scaled = design / deviations[:, None], values / deviations
    log_noise = 2 * np.log(deviations).sum()
    dual = DualGaussian(variances, whitened, scaled, log_noise=log_noise)
    gram, moment = whitened.T @ whitened, whitened.T @ scaled
    for model in (dual, PrimalGaussian(variances, gram, moment, scaled @ scaled, log_noise=log_noise)):
        assert model.log_evidence == pytest.approx(expected, rel=1e-9)


def differences(function, point):
    """Return central differences of a function in each element of an array."""
    result = np.zeros(point.shape)
    for index in np.ndindex(point.shape):
        step = 1e-5 * max(1.0, abs(point[index]))
        for sign in (1, -1):
            moved = point.copy()
            moved[index] += sign * step
            result[index] += sign * function(moved) / (2 * step)
    return result


@each_form
@each_shape
@each_seed
def test_gradients_are_finite_differences(form, shape, seed):
    variances, design, values = example(shape, seed)
    model, gram = form(variances, design, values), np.cov(np.random.default_rng(3).normal(size=(shape[1], 99)))
    gram = np.atleast_2d(gram)

    by_strength = differences(lambda logs: form(np.exp(logs), design, values).log_evidence, np.log(variances))
    np.testing.assert_allclose(model.strength_gradient(), by_strength, rtol=1e-4, atol=1e-4)

    by_design = differences(lambda moved: form(variances, moved, values).log_evidence, design)
    np.testing.assert_allclose(model.design_gradient(slice(None)), by_design, rtol=1e-4, atol=1e-4)
    last = slice(shape[1] // 2, None)
    np.testing.assert_allclose(model.design_gradient(last), by_design[:, last], rtol=1e-4, atol=1e-4)

    by_design = differences(lambda moved: form(variances, moved, values).risk(gram), design)
    np.testing.assert_allclose(model.risk_gradient(gram), by_design, rtol=1e-4, atol=1e-4 * variances.max())


@pytest.mark.statistical
@each_form
def test_the_risk_is_the_mean_squared_error_of_predictions(form):
    """Of 20,000 draws of weights and errors: a mean of squares is off by 5 standard errors once in 1.7e6 runs."""
    rng = np.random.default_rng(7)
    variances, design, _ = example((6, 4), 2)
    gram = design.T @ design / len(design)
    model = form(variances, design, np.zeros(6))
    weights = rng.normal(size=(20_000, 4)) * np.sqrt(variances)
    values = weights @ design.T + rng.normal(size=(20_000, 6))
    estimates = values @ np.array([form(variances, design, one).coefficients for one in np.eye(6)])
    errors = np.einsum("ij,jk,ik->i", weights - estimates, gram, weights - estimates)
    assert abs(errors.mean() - model.risk(gram)) < 5 * errors.std() / np.sqrt(errors.size)
    assert abs(errors.mean() - 1.2 * model.risk(gram)) > 5 * errors.std() / np.sqrt(errors.size), "it has power"


def test_the_risk_by_eigenvalues_is_that_of_orthogonal_features():
    rng = np.random.default_rng(4)
    rows, spectrum = 50, rng.uniform(0, 3, 6)
    axes = np.linalg.qr(rng.normal(size=(rows, 6)))[0] * np.sqrt(rows * spectrum)
    model = primal(np.full(6, 0.7), axes / np.sqrt(2.0), np.zeros(rows))
    assert explained_risk(spectrum, 0.7, 2.0 / rows) == pytest.approx(model.risk(axes.T @ axes / rows))


def test_an_observation_without_some_of_its_values_is_one_of_the_others():
    rng = np.random.default_rng(5)
    design, values = rng.normal(size=(9, 3)).astype(np.float32), rng.normal(size=9)
    whole, some, others = (
        Observation.of_few(design[k], values[k], 1.0, 0.2) for k in (slice(9), slice(4), slice(4, 9))
    )
    left = whole.without(some)
    np.testing.assert_allclose(left.gram, others.gram, atol=1e-5)
    np.testing.assert_allclose(left.moment, others.moment, atol=1e-5)
    assert (left.count, left.variance(2.0)) == (5, 2.2)
    assert left.square == pytest.approx(others.square)


@pytest.mark.parametrize("matrix", [np.ones((3, 3)), np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros((2, 2)) + 1e-30])
def test_a_matrix_that_rounding_errors_made_singular_has_a_factor(matrix):
    factor = factorise(matrix)
    assert np.isfinite(factor).all()
    assert (np.diag(factor) > 0).all()
