"""What people are told of ε is rounded up: nowhere less than it is, on any way out."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeldp as ldp
from command_line import run
from labeldp._values import as_fraction
from labeldp.accounts.budget import float_at_least, rounded_up
from labeldp.app.report.card_report import render_report

EPSILON = 1.0000049
"""With six digits 1, to the nearest; and with four."""
LABELS = np.linspace(1, 4, 200)
FEATURES = LABELS[:, None] + np.array([[0.0, 1.0]])
AMOUNTS = st.fractions(min_value=0, max_value=10**30) | st.floats(1e-300, 1e300).map(as_fraction)


@given(AMOUNTS, st.sampled_from([3, 4, 6, 9]))
def test_an_amount_for_people_is_not_less_than_it_is_and_close(amount, digits):
    told = Fraction(rounded_up(amount, digits))
    assert amount <= told <= amount * (1 + Fraction(1, 10 ** (digits - 1)))


@given(AMOUNTS)
def test_an_amount_as_a_float_is_not_less_than_it_is_and_the_closest(amount):
    told = float_at_least(amount)
    assert as_fraction(told) >= amount
    assert amount == 0 or as_fraction(float(np.nextafter(told, 0))) < amount


# ---- every way out ------------------------------------------------------------------------------------

LESS = re.compile(
    r"(?:ε|epsilon|e\^)\s*[=≤]?\s*1(?![.\d])"  # ε = 1, e^1
    r"|(?<![\d.])1 for (?:labels|scores?)"  # 1 for labels
    r"|<b>1</b>|labels</td><td>1</td>",  # the tiles of a page, and the table of its charges
)


def texts(release):
    """Yield all that is told of a release, by where it is told."""
    card = release.to_card()
    yield "card", card.partition('"guarantee":')[2].partition('","')[0]
    yield "summary", release.summary()
    yield "cost", f"{release.cost} {release.cost!r}"
    yield "charges", " ".join(map(str, release.charges))
    told = ldp.accounts.Card.parse(card).explain()
    yield "explanation", " ".join(sum(told.sections.values(), told.warnings))
    yield "verification", " ".join(check.detail for check in ldp.verify_card(card).checks)
    yield "report", render_report(card)


def test_the_search_finds_what_is_rounded_down():
    less = ("ε = 1 in all", "epsilon = 1: odds", "a factor e^1;", "  1 for labels", "<b>1</b>ε")
    assert all(map(LESS.search, less))
    for right in ("ε = 1.00001", "e^1.1", "11 for labels", "ε ≤ 1.0000049"):
        assert not LESS.search(right), right


@pytest.mark.parametrize("kind", ["release", "rows"])
def test_no_way_out_tells_less_epsilon_than_was_spent(kind):
    if kind == "rows":
        model = ldp.LabelReleaseRegressor(epsilon=EPSILON, bounds=(0, 5), trust="local").fit(FEATURES, LABELS)
        release = model.release_
        assert not LESS.search(model.summary())
        assert "1.00001" in model.summary()
    else:
        release = ldp.privatize(LABELS, epsilon=EPSILON, bounds=(0, 5), ledger=ldp.Ledger(), mechanism="two-point")
    for where, text in texts(release):
        assert not LESS.search(text), (where, LESS.search(text))
        if where not in ("cost", "report"):
            assert "1.00001" in text, where


def test_the_commands_tell_no_less_either(tmp_path):
    book = tmp_path / "book"
    ledger = ldp.Ledger.open(book, limit=ldp.Budget(EPSILON))
    release = ldp.privatize(LABELS, epsilon=EPSILON, bounds=(0, 5), mechanism="two-point", ledger=ledger)
    card = tmp_path / "card.json"
    card.write_text(release.to_card())
    for command in (["ledger", book], ["explain", card], ["verify", card]):
        shown = run(*command).output
        assert "1.00001" in shown, command
        assert not LESS.search(shown), (command, LESS.search(shown))
    with pytest.raises(ldp.BudgetError, match=re.escape("ε = 1.00001")):
        ledger.charge("more", epsilon=EPSILON)
