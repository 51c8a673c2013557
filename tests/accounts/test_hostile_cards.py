"""A card costs its reader little time. What is counted is the work of a proof: no busy machine changes that."""

import json
from fractions import Fraction

import pytest

import labeldp as ldp
from card_cases import card
from forged_cards import forged

Card = ldp.accounts.Card
BOUNDS = (0.0, 5.0)
SEVERAL = 4


def hostile_card():
    """Return a card with several distinct Gaussians of the finest grid."""
    content = json.loads(card("release"))
    sigma = ldp.Gaussian(bounds=BOUNDS, epsilon=0.5, delta=1e-5).sigma
    many = [
        ldp.Gaussian(bounds=BOUNDS, epsilon=0.5, delta=1e-5, sigma=sigma * (1 + k / 1000)).as_data()
        for k in range(SEVERAL)
    ]
    return forged({**content, "mechanisms": many, "parts": list(range(SEVERAL))})


def test_a_card_of_many_gaussians_makes_few_exact_sums(monkeypatch):
    """Each is proven as it is built, and once more; of its 253 shifts a few need exact sums over all outputs."""
    made, exact = [], ldp.exact.shift._hockey_stick
    monkeypatch.setattr(ldp.exact.shift, "_hockey_stick", lambda *given: (made.append(1), exact(*given))[1])
    with pytest.raises(ldp.errors.CardError, match="contradicts itself"):  # only now: all are proven by then
        Card.parse(hostile_card())
    assert SEVERAL <= len(made) <= 16 * SEVERAL


# ---- exact amounts --------------------------------------------------------------------------------------------


def card_with_amounts(amounts):
    """Return a release's card with further charges of these amounts."""
    content = json.loads(card("release"))
    extra = [{**content["charges"][0], "budget": amount, "purpose": "other"} for amount in amounts]
    return forged({**content, "charges": [*content["charges"], *extra]})


def primes(count, digits):
    """Return fractions whose denominators have hardly a factor in common: their sums only grow."""
    return [f"1/{10**digits + 2 * k + 1}" for k in range(count)]


def test_amounts_with_no_short_exact_sum_are_refused_before_their_sum_grows():
    """400 amounts of 4,000 digits took 218 s: the work for each charge must not grow with their number."""
    verification = ldp.verify_card(card_with_amounts(primes(400, 390)))
    assert verification.verdict == "does not hold"
    assert "needs more than 8192 bits" in verification.checks[-1].detail


@pytest.mark.parametrize(
    ("epsilon", "people"), [(0.12345678901234566, 50), (19.123456789012345, 2), (2.2250738585072014e-308, 1)]
)
def test_every_amount_that_a_release_can_cost_fits(epsilon, people):
    cost = ldp.Ledger().charge("labels", epsilon=epsilon, rows_per_person=people).budget
    assert ldp.Budget.from_data(cost.as_data()) == cost


def test_an_amount_that_no_card_could_hold_is_refused_before_it_is_charged():
    ledger = ldp.Ledger()
    with pytest.raises(ldp.errors.ParameterError, match="lowest terms"):
        ledger.charge("labels", epsilon=Fraction(1, 10**500 + 1))
    assert ledger.charges == ()


def test_a_card_nested_at_any_depth_is_an_error_of_a_card():
    """Whichever of the JSON reader and writer gives up first."""
    for depth in (10, *range(200, 1200, 50), 100_000):
        for start, end in (("[", "]"), ('{"a":', "}")):
            nested = start * depth + "1" + end * depth
            with pytest.raises(ldp.errors.CardError):
                Card.parse(f'{{"schema":"labeldp.mechanism","version":1,"x":{nested}}}')
