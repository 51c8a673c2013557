"""What a prior is asked for: any labels and units, one charge before any noise, and clear refusals."""

import math

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded

estimate_prior = ldp.estimate_prior
METHODS = [("curator", None), ("local", None), ("local", "laplace")]
each_method = pytest.mark.parametrize(("trust", "method"), METHODS)


@each_method
@pytest.mark.parametrize("scale", [1e-130, 1.0, 1e130])
def test_any_labels_in_any_unit_give_a_prior(trust, method, scale):
    for labels in ([2.0], [3] * 100, [9e107, -1e108, 2.0], np.float32([1, 7, 2]), [[1], [2]]):
        given = np.asarray(labels, dtype=np.float64) * scale
        prior = estimate_prior(given, epsilon=1.0, bounds=(0, 5 * scale), trust=trust, method=method)
        assert prior.masses.sum() == pytest.approx(1.0)
        if method != "laplace":
            assert prior.bounds == (0, 5 * scale)


@each_method
def test_no_labels_and_missing_ones_are_refused(trust, method):
    for labels in ([], [math.nan, 1.0], [math.inf]):
        with pytest.raises(ldp.errors.LabelError):
            estimate_prior(labels, epsilon=1.0, bounds=(0, 5), trust=trust, method=method)


BAD = [
    *({"trust": "nobody"}, {"method": "laplace"}, {"sigma": 0}, {"epsilon": 0}),
    *({"trust": "local", "method": method} for method in ("counts", "", 0)),
    *({"bounds": (1, 1)}, {"ledger": "ledger.jsonl"}),
    *({"labels": labels} for labels in (3.0, [[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]], [[[1.0]], [[2.0]]])),
]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_arguments_are_refused_before_anything_is_charged(bad):
    ledger = ldp.Ledger()
    how = {"labels": [1.0], "epsilon": 1.0, "bounds": (0, 5), "ledger": ledger} | bad
    with pytest.raises((ldp.errors.ParameterError, ldp.errors.LabelError)):
        estimate_prior(how.pop("labels"), **how)
    assert ledger.charges == ()


@pytest.mark.parametrize("trust", ["curator", "local"])
def test_a_charge_for_a_prior_says_so_and_counts_every_row_of_a_person(trust):
    ledger = ldp.Ledger()
    how = {"epsilon": 0.3, "bounds": (0, 5), "trust": trust, "ledger": ledger}
    estimate_prior([1.0, 2.0], **how)
    estimate_prior([1.0, 2.0], rows_per_person=3, **how)
    assert all("prior" in charge.description for charge in ledger.charges)
    assert [charge.rows_per_person for charge in ledger.charges] == [1, 3]
    assert ledger.total == ldp.Budget(1.2)


@pytest.mark.parametrize("sigma", [None, 0.7])
def test_a_single_report_is_in_the_middle_of_a_bin_as_wide_as_the_bounds(sigma):
    how = {"epsilon": 1.0, "bounds": (1.0, 6.0)}
    report = float(ldp.Laplace(**how).randomize([2.0], random_state=seeded(3))[0])
    prior = estimate_prior([2.0], trust="local", method="laplace", sigma=sigma, random_state=seeded(3), **how)
    assert prior.nodes.tolist() == [report - 2.5, report + 2.5]


def test_bins_that_would_be_too_many_are_refused():
    how = {"epsilon": 1.0, "bounds": (0, 5), "trust": "local", "method": "laplace", "sigma": 1e-9}
    with pytest.raises(ldp.errors.ParameterError, match="larger one") as caught:
        estimate_prior([1, 2, 3], **how)
    assert caught.value.option == "sigma"
