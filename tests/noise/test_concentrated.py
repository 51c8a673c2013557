"""From concentrated privacy to (ε, δ): the bound is one, in 60 digits, and the ρ found is close to the largest."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

import labeldp as ldp
from labeldp.noise.concentrated import _best, delta_upper, rho_for

DIGITS = Context(prec=60, Emin=-(10**6), Emax=10**6)


def decimal(x):
    return DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))


def exact(rho, epsilon, alpha):
    """Return e^((α−1)(αρ−ε)) · (1 − 1/α)^α / (α − 1), to 60 digits or nearly."""
    power = DIGITS.exp(decimal((alpha - 1) * (alpha * rho - epsilon)))
    rest = DIGITS.exp(DIGITS.multiply(decimal(alpha), DIGITS.ln(decimal(1 - 1 / alpha))))
    return Fraction(DIGITS.multiply(power, rest)) / (alpha - 1)


BUDGETS = [(Fraction(e), Fraction(d)) for e in ("1/20", "1", "8") for d in ("1/10000", "1/1000000000")]


@pytest.mark.parametrize("alpha", ["4", "5/2", "50", "200001/1000"])
@pytest.mark.parametrize("rho", ["1/1000", "1/50"])
@pytest.mark.parametrize("epsilon", ["1/20", "1", "4"])
def test_delta_is_bounded_from_above_and_closely(rho, epsilon, alpha):
    rho, epsilon, alpha = Fraction(rho), Fraction(epsilon), Fraction(alpha)
    true = exact(rho, epsilon, alpha)
    assert true < delta_upper(rho, epsilon, alpha) < true * (1 + Fraction(1, 1 << 39))


@pytest.mark.parametrize("rho", ["7/10", "1", "2"])
def test_a_bound_around_one_or_above_is_as_close(rho):
    """Exponents of 0.01, 0.6 and 2.6."""
    rho, epsilon, alpha = Fraction(rho), Fraction(0), Fraction(2)
    true = exact(rho, epsilon, alpha)
    assert true < delta_upper(rho, epsilon, alpha) < true * (1 + Fraction(1, 1 << 39))


@pytest.mark.parametrize("alpha", ["101/100", "11/10", "3/2"])
def test_delta_is_bounded_from_above_where_the_series_is_slow(alpha):
    alpha = Fraction(alpha)
    assert delta_upper(Fraction(1, 10), Fraction(1), alpha) > exact(Fraction(1, 10), Fraction(1), alpha)


def log_delta(rho, epsilon, alpha):
    return (alpha - 1) * (alpha * rho - epsilon) + alpha * np.log1p(-1 / alpha) - np.log(alpha - 1)


ALPHAS = 1 + np.geomspace(0.01, 1e7, 200_001)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS, ids=str)
def test_rho_keeps_delta_and_is_close_to_the_largest_that_does(epsilon, delta):
    rho = rho_for(epsilon, delta)
    alpha = Fraction(float(ALPHAS[log_delta(float(rho), float(epsilon), ALPHAS).argmin()])).limit_denominator(1000)
    assert exact(rho, epsilon, alpha) <= delta
    assert log_delta(1.003 * float(rho), float(epsilon), ALPHAS).min() > math.log(delta)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS, ids=str)
def test_the_continuous_gaussian_of_this_rho_keeps_the_budget_too(epsilon, delta):
    e, sigma = float(epsilon), float(1 / (2 * rho_for(epsilon, delta))) ** 0.5
    true = norm.cdf(0.5 / sigma - e * sigma) - math.exp(e) * norm.cdf(-0.5 / sigma - e * sigma)
    assert 0.001 * float(delta) < true <= float(delta)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("rho", [1e-5, 0.01, 1.0, 20.0])
def test_the_best_alpha_is_that_of_a_fine_grid(rho, epsilon):
    least, alpha = _best(rho, epsilon)
    assert least == pytest.approx(log_delta(rho, epsilon, alpha), rel=1e-9, abs=1e-9)
    assert least <= log_delta(rho, epsilon, ALPHAS).min() + 1e-9 * abs(least)


def test_budgets_that_make_no_sense_are_refused():
    for epsilon, delta in ((1, 0), (1, 1), (1, -1), (1, 2), (0, Fraction(1, 9)), (-1, Fraction(1, 9))):
        with pytest.raises(ldp.ParameterError, match="needs epsilon"):
            rho_for(Fraction(epsilon), Fraction(delta))
    for alpha in (Fraction(1), Fraction(1, 2), Fraction(-3)):
        with pytest.raises(ldp.ParameterError, match="above 1"):
            delta_upper(Fraction(1), Fraction(1), alpha)
    assert delta_upper(Fraction(1), Fraction(1), Fraction(10**9 + 1, 10**9)) > 1


def test_a_budget_that_no_noise_keeps_is_refused():
    with pytest.raises(ldp.ParameterError, match="no noise"):
        rho_for(Fraction(1, 10**13), Fraction(1, 10**9))
