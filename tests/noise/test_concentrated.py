"""From concentrated privacy to (ε, δ): the bound is one, in 60 digits, and ρ is close to the largest."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

import labeldp as ldp
from labeldp.noise.concentrated import delta_upper, rho_for

DIGITS = Context(prec=60, Emin=-(10**6), Emax=10**6)


def decimal(x):
    return DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))


def exact(rho, epsilon, alpha):
    """Return e^((α−1)(αρ−ε)) · (1 − 1/α)^α / (α − 1), to 60 digits or nearly."""
    power = DIGITS.exp(decimal((alpha - 1) * (alpha * rho - epsilon)))
    rest = DIGITS.exp(DIGITS.multiply(decimal(alpha), DIGITS.ln(decimal(1 - 1 / alpha))))
    return Fraction(DIGITS.multiply(power, rest)) / (alpha - 1)


BUDGETS = [(Fraction(e), Fraction(d)) for e in ("1/20", "1", "8") for d in ("1/10000", "1/1000000000")]


@pytest.mark.parametrize("alpha", ["101/100", "3/2", "2", "5/2", "50", "200001/1000"])
@pytest.mark.parametrize("rho", ["1/1000", "1/50"])
@pytest.mark.parametrize("epsilon", ["0", "1/20", "4"])
def test_delta_is_bounded_from_above_and_closely(rho, epsilon, alpha):
    """The series behind the bound is slow for α near 1: there it is a bound, and no more."""
    rho, epsilon, alpha = Fraction(rho), Fraction(epsilon), Fraction(alpha)
    true = exact(rho, epsilon, alpha)
    bound = delta_upper(rho, epsilon, alpha)
    assert true < bound
    assert bound < true * (1 + Fraction(1, 1 << 39)) or alpha < 2


@pytest.mark.parametrize("rho", ["7/10", "1", "2"])
def test_a_bound_of_one_or_above_is_as_close(rho):
    test_delta_is_bounded_from_above_and_closely(rho, "0", "2")


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


def test_budgets_that_no_noise_keeps_are_refused():
    for epsilon, delta in ((1, 0), (1, 1), (1, -1), (1, 2), (0, Fraction(1, 9)), (-1, Fraction(1, 9))):
        with pytest.raises(ldp.ParameterError, match="epsilon must be positive"):
            rho_for(Fraction(epsilon), Fraction(delta))
    for alpha in (Fraction(1), Fraction(1, 2), Fraction(-3)):
        with pytest.raises(ldp.ParameterError, match="above 1"):
            delta_upper(Fraction(1), Fraction(1), alpha)
    assert delta_upper(Fraction(1), Fraction(1), Fraction(10**9 + 1, 10**9)) > 1
    with pytest.raises(ldp.ParameterError, match="no noise"):
        rho_for(Fraction(1, 10**13), Fraction(1, 10**9))
