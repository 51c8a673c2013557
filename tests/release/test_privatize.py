"""`privatize`: the paper's algorithms to the letter, unbiased labels, exact charges, no word of labels."""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import labeldp as ldp
from helpers import built_in_choices, seeded
from labeldp import card_format
from labeldp.mechanisms.base import fingerprint
from mechanism_cases import ALPHA, kolmogorov, rp_cdf

RNG = np.random.default_rng(0)
LABELS = np.minimum(RNG.gamma(3.0, 0.65, 3000), 5.0) + math.pi * 1e-9
PRIOR = ldp.Histogram.from_sample(LABELS, (0, 5), bins=24)
NAMES = [name for name in built_in_choices() if name != "auto"]
UNBIASED = [name for name in NAMES if name != "rr-on-bins"]
DELTA = {"gaussian": 1e-5}
each_name = pytest.mark.parametrize("name", NAMES)


def release(labels=LABELS, *, seed=1, **how):
    how = {"epsilon": 1.0, "bounds": (0, 5), "random_state": seeded(seed)} | how
    return ldp.privatize(labels, delta=DELTA.get(how.get("mechanism"), 0.0), **how)


# ---- the paper's algorithms --------------------------------------------------------------------------


def test_algorithm_2_is_a_known_prior_with_zeta():
    made = release(prior=PRIOR, zeta=0.6)
    interval = ldp.optimal_interval(PRIOR, epsilon=1.0, zeta=0.6)
    by_hand = ldp.RPWithPrior(interval=interval, zeta=0.6, epsilon=1.0)
    assert made.mechanism == by_hand
    assert np.array_equal(made.labels, by_hand.randomize(LABELS, random_state=seeded(1)))
    assert made.prior is PRIOR
    assert [charge.what for charge in made.charges] == ["labels"]
    assert made.cost == ldp.Budget(1.0)


@pytest.mark.parametrize("label", [0.0, 1.7, 4.9])
def test_algorithm_2_releases_the_papers_density(label):
    """200,000 releases of a label show a gap of 0.0074 in the distribution."""
    made = release(np.full(200_000, label), prior=PRIOR, zeta=0.6)
    interval = made.mechanism.interval
    assert kolmogorov(lambda x: rp_cdf(x, label, interval, 0.6, 1.0), made.labels) > ALPHA
    assert kolmogorov(lambda x: rp_cdf(x, label, interval, 0.6, 1.1), made.labels) < ALPHA


def test_algorithm_4_is_the_papers_parts_in_a_row():
    made = release(trust="local", method="laplace", epsilon_prior=0.3, zeta=0.6, seed=2)
    source = seeded(2)
    prior = ldp.estimate_prior(
        LABELS, epsilon=0.3, bounds=(0, 5), trust="local", method="laplace", random_state=source
    )
    interval = ldp.optimal_interval(prior, epsilon=0.7, zeta=0.6)
    by_hand = ldp.RPWithPrior(interval=interval, zeta=0.6, epsilon=0.7)
    assert made.prior == prior
    assert made.mechanism == by_hand
    assert np.array_equal(made.labels, by_hand.randomize(LABELS, random_state=source))
    spent = {charge.what: charge.budget for charge in made.charges}
    assert spent == {"labels": ldp.Budget(0.7), "prior (local)": ldp.Budget(0.3)}


@pytest.mark.parametrize(("method", "kind"), [("laplace", ldp.Laplace), ("square-wave", ldp.RPWithPrior)])
def test_without_a_curator_the_design_depends_on_reports_only(method, kind, monkeypatch):
    reports = RNG.uniform(0, 5, 500)
    monkeypatch.setattr(kind, "randomize", lambda self, labels, *, random_state: reports)
    how = {"trust": "local", "method": method, "mechanism": "rp"}
    one, other = (release(labels, **how) for labels in (LABELS[:500], np.full(500, 4.0)))
    assert one.prior == other.prior
    assert one.mechanism == other.mechanism


# ---- what is released --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"prior": PRIOR}, {}, {"trust": "local"}], ids=["known", "curator", "local"])
@pytest.mark.parametrize("name", [*UNBIASED, "auto"])
def test_debiased_labels_average_to_the_clipped_labels(name, how):
    """20,000 releases of five labels: a bias of 7 % of the deviation is found with probability 0.999."""
    truth = np.array([0.0, 0.9, 2.2, 4.4, 7.5])
    made = release(np.tile(truth, 20_000), mechanism=name, **how)
    mechanism = made.mechanism
    clipped = np.clip(truth, *getattr(mechanism, "interval", None) or mechanism.bounds)
    errors = made.debiased.reshape(-1, 5) - clipped
    assert (np.abs(errors.mean(axis=0)) < 5.5 * errors.std(axis=0) / math.sqrt(len(errors))).all()
    assert np.array_equal(made.debiased, mechanism.debias(made.labels))


@each_name
def test_every_mechanism_is_had_by_name(name):
    made = release(mechanism=name)
    assert made.mechanism.name == name
    assert made.mechanism.verify().epsilon <= float(made.charges[0].budget.exact_epsilon)
    assert (made.prior is not None) == type(made.mechanism).needs_prior
    assert made.cost.exact_epsilon == 1
    assert made.cost.delta == DELTA.get(name, 0.0)
    if name == "rr-on-bins":
        with pytest.raises(ldp.NotUnbiasedError):
            _ = made.debiased


@each_name
def test_without_a_prior_the_whole_range_is_kept(name):
    made = release(mechanism=name, epsilon_prior=0)
    assert made.prior is None
    parameters = made.mechanism.parameters()
    ends = parameters.get("interval") or parameters.get("bounds") or parameters["edges"]
    assert (ends[0], ends[-1]) == (0.0, 5.0)


FEW, TABLE = LABELS[:60], LABELS[:60].reshape(20, 3)
ARRAYS = [FEW, FEW[:, None], TABLE, np.asfortranarray(TABLE), np.arange(60) % 6, FEW.astype(np.float32)]
OTHERS = [FEW.tolist(), TABLE.tolist(), pd.Series(FEW, index=range(60, 0, -1)), pd.DataFrame(TABLE)]


@pytest.mark.parametrize("labels", [*ARRAYS, *OTHERS], ids=lambda labels: type(labels).__name__)
def test_the_release_has_the_shape_of_the_labels(labels):
    shape = np.shape(labels)
    columns = 1 if len(shape) == 1 else shape[1]
    bounds = (0, 5) if columns == 1 else [(0, 5)] * columns
    for name in ("rp", "two-point", "rr-on-bins", "laplace"):
        made = release(labels, mechanism=name, bounds=bounds)
        assert made.labels.shape == shape
        assert np.isfinite(made.labels).all()
        assert len(made.mechanisms) == len(made.priors) == columns


def test_columns_have_mechanisms_of_their_own_and_share_the_budget():
    labels = np.column_stack([LABELS, 1000 * LABELS, -LABELS])
    bounds = [(0, 5), (0, 5000), (-5, 0)]
    made = release(labels, bounds=bounds, mechanism="rp", epsilon=0.75, seed=3)
    assert made.charges[2].what == "labels, column 2"
    assert made.charges[3].what == "prior (curator), column 0"
    assert made.cost.exact_epsilon == Fraction(3, 4)
    for column, (mechanism, (low, high)) in enumerate(zip(made.mechanism, bounds, strict=True)):
        assert low <= mechanism.domain[0] < mechanism.domain[1] <= high
        assert made.debiased[:, column] == pytest.approx(mechanism.debias(made.labels[:, column]))


# ---- what it costs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1 / 3, 1.0, 7.0])
@pytest.mark.parametrize("trust", ["curator", "local"])
def test_prior_and_labels_cost_epsilon_together_exactly(trust, epsilon):
    made = release(trust=trust, epsilon=epsilon, mechanism="rp")
    labels, prior = made.charges
    assert labels.budget.exact_epsilon + prior.budget.exact_epsilon == Fraction(repr(epsilon))
    assert labels.mechanism == fingerprint(made.mechanism.channel)
    assert Fraction(repr(made.mechanism.epsilon)) <= labels.budget.exact_epsilon
    assert 0 < prior.budget.exact_epsilon <= labels.budget.exact_epsilon / 3


def test_a_person_with_several_rows_is_charged_for_all_of_them():
    ledger = ldp.Ledger(limit=ldp.Budget(3.0))
    made = release(rows_per_person=3, ledger=ledger)
    assert made.cost == ledger.total == ldp.Budget(3.0)
    assert "up to 3 rows" in made.summary()
    with pytest.raises(ldp.BudgetError):
        release(rows_per_person=1, ledger=ledger)
    assert ledger.total == ldp.Budget(3.0)


def test_a_refused_release_spends_nothing_and_draws_no_noise():
    class Never:
        def fill(self, words):
            raise AssertionError("noise was drawn")

    ledger = ldp.Ledger(limit=ldp.Budget(0.99))
    with pytest.raises(ldp.BudgetError):
        release(ledger=ledger, random_state=Never())
    assert ledger.charges == ()


def test_a_fine_prior_serves_every_mechanism():
    prior = ldp.Histogram.from_counts(np.ones(5000), (0, 5))
    for name in NAMES[::-1]:
        assert release(mechanism=name, prior=prior).mechanism.name == name


@pytest.mark.parametrize("columns", [2, 3, 5, 6])
def test_delta_split_over_columns_fits_into_the_limit(columns):
    ledger = ldp.Ledger(limit=ldp.Budget(1.0, 1e-5))
    labels, bounds = LABELS[:60].reshape(-1, columns), [(0, 5)] * columns
    made = release(labels, bounds=bounds, mechanism="gaussian", ledger=ledger)
    assert made.cost.exact_delta <= Fraction("1e-5")


# ---- what it tells -----------------------------------------------------------------------------------


def test_summary_and_card_tell_everything_but_labels():
    made = release()
    summary, card = made.summary(), made.to_card()
    for word in ("3,000 labels", "prior (curator)", type(made.mechanism).__name__, "cost again"):
        assert word in summary
    content = card_format.parse(card, "labeldp.release")
    assert content["rows"] == 3000
    assert ldp.load_mechanism(content["mechanisms"][0]) == made.mechanism
    assert ldp.read_release_card(card)["cost"] == {"epsilon": 1.0, "delta": 0.0}
    assert "NOT PRIVATE" in content["words"], "the tests' releases come from a seed"
    assert "NOT PRIVATE" in summary
    assert sum(Fraction(c["budget"][0]) for c in content["charges"]) == 1
    assert not any(f"{label:.8f}"[:-1] in summary + card for label in LABELS)
    with pytest.raises(ldp.CardError):
        card_format.parse(card.replace('"rows":3000', '"rows":3001'), "labeldp.release")
    with pytest.raises(ldp.CardError):
        ldp.load_mechanism(card)


@pytest.mark.parametrize("bounds", [(0, 5), (1e9, 1e9 + 5000)])
@pytest.mark.parametrize("mechanism", ["auto", "rp"])
def test_no_error_charge_or_shape_depends_on_labels(bounds, mechanism):
    low, high = bounds
    spread = RNG.uniform(low, high, 20_000)
    neighbour = spread.copy()
    neighbour[0] = 1e308
    same, outside = np.full(20_000, low + 0.25 * (high - low)), np.full(20_000, -1e308)
    seen = set()
    for labels in (spread, neighbour, same, outside, np.where(spread > low, 5e-324, high)):
        made = release(labels, bounds=bounds, mechanism=mechanism)
        seen.add((made.labels.shape, tuple((c.what, c.budget) for c in made.charges)))
        assert np.isfinite(made.labels).all()
    assert len(seen) == 1


LOCAL = {"trust": "local", "mechanism": "rp"}
ALGORITHM_4 = LOCAL | {"method": "laplace", "epsilon_prior": 0.1, "zeta": 0.6}


@pytest.mark.parametrize("how", [{}, LOCAL, ALGORITHM_4], ids=str)
def test_memory_stays_below_twenty_bytes_a_label(how):
    labels = RNG.uniform(0, 5, 2_000_000)
    tracemalloc.start()
    try:
        release(labels, **how)
        assert tracemalloc.get_traced_memory()[1] <= 20 * labels.size
    finally:
        tracemalloc.stop()


# ---- bad arguments -----------------------------------------------------------------------------------

BAD = {
    "epsilon": [0, -1.0, math.nan, math.inf, "1", None, 21.0, 0.0009],
    "bounds": [None, (1, 1), (0, math.inf), 5, [(0, 5)] * 2, (0, 5, 6)],
    "mechanism": ["no-privacy", "NoPrivacy", ldp.NoPrivacy(), None, "RP", ""],
    "prior": ["gamma", [1, 2], 3],
    "trust": ["nobody", None],
    "method": ["laplace", "square-wave", "mean"],
    "epsilon_prior": [-0.1, 1.0, 2.0, 0.9995, 0.0001, math.nan, "x"],
    "zeta": [0, -1.0, math.nan, "wide"],
    "rows_per_person": [0, -1, 2.5, True],
    "random_state": [np.random.default_rng(0), "seed", True],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]], ids=str)
def test_bad_arguments_are_refused_before_anything_is_charged(name, value):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.ParameterError):
        release(ledger=ledger, **{name: value})
    assert ledger.charges == ()


def test_an_infinite_part_for_the_prior_is_refused():
    with pytest.raises(ldp.ParameterError):
        release(epsilon_prior=math.inf)


@pytest.mark.parametrize("labels", [[], [[]], 3.0, [[[1.0]]], [math.nan], ["a"], [None], [1, [2, 3]]], ids=str)
def test_what_is_no_column_of_labels_is_refused(labels):
    with pytest.raises(ldp.LabelError):
        release(labels)
