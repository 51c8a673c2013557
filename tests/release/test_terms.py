"""Terms: their card says all of them, and their words leave nobody out. Cards that lie are in tests/cards."""

import numpy as np

import labeldp as ldp

explain = ldp.accounts.explanation.explain
Budget = ldp.Budget
WHEN = "2026-01-01T00:00:00+00:00"
STRONG = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
PRIOR = ldp.Histogram([0, 1, 5], [1, 3])


def charge(epsilon, *, purpose="labels", people=1):
    return ldp.accounts.Charge(purpose, Budget(epsilon), WHEN, None, people, purpose)


def terms(*charges, mechanisms=(STRONG,), trust="local", secure=True, **more):
    bounds = ((0.0, 5.0),) * len(mechanisms)
    priors = (None,) * (len(mechanisms) - 1) + (PRIOR,)
    return ldp.accounts.Terms(70, mechanisms, priors, charges, bounds, trust, secure, **more)


ONE = terms(charge(1), charge(0.5, purpose="prior"))


def test_whoever_counted_labels_for_a_prior_saw_them_also_where_noise_was_added_without_a_curator():
    y, shared = np.linspace(0, 5, 500), {"epsilon": 1.0, "bounds": (0, 5), "ledger": ldp.Ledger()}
    for trust, seen in (("curator", "only the curator"), ("local", "nobody")):
        prior = ldp.estimate_prior(y, trust=trust, **shared)
        words = explain(ldp.privatize(y, prior=prior, trust="local", **shared).terms).sections
        assert seen in words["What was done"][0]
        assert seen in words["What stays private"][0]


def test_what_is_not_private_says_so_first_and_promises_nothing():
    seeded = explain(terms(charge(1), charge(0.5, purpose="prior"), secure=False))
    assert not seeded.private
    assert seeded.text().startswith("NOT PRIVATE: the noise came from a seed.")
    assert seeded.sections["What it means"] == ("Nothing is promised to anyone whose label is in it.",)
    assert "raise their odds" not in seeded.text()
    assert explain(ONE).private
    assert "NOT PRIVATE" not in explain(ONE).text()


def test_text_in_a_notebook_is_escaped_and_says_first_that_it_is_not_private():
    hostile = '<script>alert(1)</script> & "quoted"'
    text = ONE.html("model", code=hostile, model=hostile)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    seeded = terms(charge(1), secure=False).html()
    assert seeded.removeprefix('<pre style="white-space:pre-wrap">').startswith("NOT PRIVATE")
