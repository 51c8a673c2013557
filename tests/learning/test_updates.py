"""Models that learn on: what an update costs, keeps, adds and refuses."""

import json

import numpy as np
import pandas as pd
import pytest

import labeldp as ldp
from forged_cards import forged
from labeldp import errors
from labeldp.accounts.budget import missing_charges
from labeldp.learning import model_regressor, updates
from labeldp.learning.linear_gaussian import Observation

BOUNDS = (0.0, 5.0)
ROWS = 900


def table(seed, rows=ROWS):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": random.normal(size=rows), "town": random.choice(["York", "Bath"], rows)})
    return frame, np.clip(2.5 + frame["size"] + (frame["town"] == "York"), 0, 5).rename("price")


def regressor(ledger=None, **options):
    return ldp.ModelReleaseRegressor(**{"epsilon": 1.0, "bounds": BOUNDS, "ledger": ledger, **options})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the folder of a model of May, and the ledger that was charged."""
    place = tmp_path_factory.mktemp("models")
    ledger = ldp.Ledger.open(place / "ledger.db", limit=ldp.Budget(1.0))
    ldp.save_model(regressor(ledger).fit(*table(0), segment="May"), place / "model")
    return place / "model", ledger


def state_of(model):
    """Return what an update may change."""
    return model.to_card(), model.predict(table(9)[0]).tolist(), model.measurements.rows


def test_a_loaded_model_learns_on_from_new_rows_that_cost_only_themselves(saved, tmp_path):
    folder, ledger = saved
    model = ldp.load_model(folder).update(*table(1), epsilon=1.0, ledger=ledger, segment="June")
    ldp.save_model(model, tmp_path / "model")
    again = ldp.load_model(tmp_path / "model")
    assert (ledger.total, again.terms_.cost, again.terms_.rows) == (ldp.Budget(1.0), ldp.Budget(1.0), 2 * ROWS)
    X, y = table(9)
    before, after = (np.mean((one.predict(X) - y) ** 2) for one in (ldp.load_model(folder), again))
    assert after < before
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-6)


def test_measurements_of_an_earlier_fit_are_not_saved_with_a_model_of_reports(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(300, 1)), np.linspace(*BOUNDS, 300)
    mechanism = ldp.Unbiased.for_bounds(BOUNDS, 1.0)
    model = ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X, y)
    model.fit_reports(X, ldp.Reports(mechanism.randomize(y), mechanism))
    ldp.save_model(model, tmp_path / "model")
    assert not (tmp_path / "model" / "measurements.npz").exists()


def test_without_segments_charges_add_up_on_the_ledger_and_the_card():
    ledger = ldp.Ledger()
    model = regressor(ledger).fit(*table(0)).update(*table(1))
    assert ledger.total == model.terms_.cost == model.terms_.label_cost == ldp.Budget(2.0)


def test_an_update_of_one_row_is_learnt_and_keeps_trees():
    X = np.random.default_rng(0).normal(size=(ROWS, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, *BOUNDS[::-1])
    model = regressor(epsilon=8.0).fit(X, y)
    trees = model.public_model()[1].trees
    model.update(X[:1], y[:1])
    assert trees is not None
    assert model.public_model()[1].trees is trees
    assert model.terms_.rows == ROWS + 1


def test_measurements_are_kept_and_on_the_card_if_learning_fails_after_the_charge(tmp_path, monkeypatch):
    ledger = ldp.Ledger()
    model = regressor(ledger).fit(*table(0), segment="May")
    before, X = model.predict(table(9)[0]), table(9)[0]
    with monkeypatch.context() as context:
        context.setattr(model_regressor, "ensemble_of", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.update(*table(1), segment="June")
    np.testing.assert_array_equal(model.predict(X), before)
    assert not missing_charges(ledger.charges, model.terms_.charges)
    assert (model.terms_.rows, model.measurements.rows) == (2 * ROWS, 2 * ROWS)
    ldp.save_model(model, tmp_path / "model")
    again = ldp.load_model(tmp_path / "model").regressor(epsilon=1.0)
    assert not np.array_equal(again.predict(X), before)


def test_the_summary_of_an_updated_model_says_what_was_counted_and_what_the_owner_declares():
    people = np.arange(ROWS) // 2
    model = regressor(rows_per_person=3).fit(*table(0), segment="May").set_params(rows_per_person=1)
    lines = model.update(*table(1), segment="June", person=people).summary().splitlines()
    said = [line.strip() for line in lines if "One label" in line or "A person in" in line]
    assert said == [
        "One label: ε = 1.",
        "A person in all 2 fits: ε = 5.",
        "Fit 1: One label: ε = 1. A person with up to 3 rows: ε = 3 (the owner declares).",
        "Fit 2: One label: ε = 1. A person with up to 2 rows: ε = 2 (the rows of each were counted).",
    ]


FULL = {"MAX_FITS": 2, "MAX_TEXT": 9_000, "MAX_SUMS": 2}


@pytest.mark.parametrize("limit", FULL)
def test_an_update_that_the_folder_might_not_hold_is_refused_before_the_charge(limit, monkeypatch):
    ledger = ldp.Ledger()
    model = regressor(ledger).fit(*table(0), segment="May").update(*table(1), segment="June")
    monkeypatch.setattr(updates, limit, FULL[limit])
    with pytest.raises(errors.ParameterError, match="no place for a further update"):
        model.update(*table(2), segment="July")
    assert len(ledger.charges) == 2


def test_people_pay_for_every_fit_and_labels_for_their_segment():
    ledger, people = ldp.Ledger(), np.arange(ROWS) // 2
    model = regressor(ledger).fit(*table(0), segment="May", person=people)
    model.update(*table(1), segment="June", person=people // 2)
    assert model.terms_.stated_cost == {"epsilon": 6.0, "label": 1.0}
    assert "up to 2, 4 rows in its 2 fits" in model.terms_.guarantee
    assert ldp.verify_card(model.to_card()).verdict == "valid"


def test_rows_of_an_earlier_segment_are_refused_by_their_ids(tmp_path):
    ledger, ids = ldp.Ledger.open(tmp_path / "ledger.db"), np.arange(ROWS)
    model = regressor(ledger).fit(*table(0), segment="May", id=ids)
    before = state_of(model)
    with pytest.raises(errors.ParameterError, match="id"):
        model.update(*table(1), segment="June", id=ids + ROWS - 1)
    assert state_of(model) == before
    assert len(ledger.charges) == 1


REFUSED = {
    "other columns": (lambda X, y: (X[["size"]], y), {}, "town"),
    "another label": (lambda X, y: (X, y.rename("rent")), {}, "rent"),
    "fewer labels": (lambda X, y: (X, y[:-1]), {}, "inconsistent"),
    "other bounds": (lambda X, y: (X, y), {"bounds": (0.0, 6.0)}, "bounds"),
    "another transform": (lambda X, y: (X, y), {"label_transform": "sqrt"}, "label_transform"),
    "weights": (lambda X, y: (X, y), {"sample_weight": np.ones(ROWS)}, "weights"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_belong_to_the_model_is_refused_before_the_charge(case):
    change, options, message = REFUSED[case]
    ledger = ldp.Ledger()
    model = regressor(ledger).fit(*table(0), segment="May")
    before = state_of(model)
    rows = {name: value for name, value in options.items() if name == "sample_weight"}
    parameters = {name: value for name, value in options.items() if name not in rows}
    with pytest.raises((ValueError, errors.LabelDPError), match=message):
        model.set_params(**parameters).update(*change(*table(1)), segment="June", **rows)
    assert (state_of(model), len(ledger.charges)) == (before, 1)


def test_a_new_epsilon_for_an_update_is_set_before_it():
    ledger = ldp.Ledger()
    model = regressor(ledger).fit(*table(0), segment="May")
    with pytest.raises(errors.ParameterError, match=r"set_params\(epsilon="):
        model.update(*table(1), segment="June", epsilon=0.5)
    assert len(ledger.charges) == 1


def test_segments_of_a_ledger_that_lacks_the_charges_of_the_model_are_refused(saved):
    other = ldp.Ledger()
    with pytest.raises(errors.ParameterError, match="lacks its charges"):
        ldp.load_model(saved[0]).update(*table(1), epsilon=1.0, ledger=other, segment="June")
    assert not other.charges


def test_an_update_beyond_the_limit_changes_nothing(saved):
    folder, ledger = saved
    model = ldp.load_model(folder).regressor(epsilon=1.0, ledger=ledger)
    before = state_of(model)
    with pytest.raises(errors.BudgetError):
        model.update(*table(1), segment="May")
    assert state_of(model) == before


def test_a_new_level_of_a_category_is_predicted_and_learnt_from_as_a_row_without_a_level():
    (X, y), (others, labels) = table(0), table(1)
    model = regressor().fit(X, y).update(others.assign(town="Leeds"), labels)
    assert np.isfinite(model.predict(others.assign(town="Hull"))).all()


def test_measurements_are_the_same_after_a_file_with_rows_only_by_option(saved, tmp_path):
    model = regressor(epsilon=2.0).fit(*table(0)).update(*table(1))
    for keep_rows in (False, True):
        ldp.save_model(model, tmp_path / "model", keep_rows=keep_rows, force=True)
        read = ldp.load_model(tmp_path / "model").measurements()
        known = model.measurements
        assert read.rows == known.rows == 2 * ROWS
        assert (read.label_rows is not None) == keep_rows
        np.testing.assert_array_equal(read.sums.values, known.sums.values)
        (labels,), (known_labels,) = read.labels, known.labels
        np.testing.assert_array_equal(np.triu(labels.gram), np.triu(known_labels.gram))
        assert labels.variance(0.5) == known_labels.variance(0.5)


def test_a_changed_file_of_measurements_is_refused(saved, tmp_path):
    folder = tmp_path / "model"
    ldp.save_model(ldp.load_model(saved[0]).regressor(epsilon=1.0), folder)
    path = folder / "measurements.npz"
    arrays = dict(np.load(path))
    np.savez(path, **{**arrays, "sums_values": arrays["sums_values"] * 2})
    with pytest.raises(errors.CardError, match="changed or mixed up"):
        ldp.load_model(folder).update(*table(1), epsilon=1.0)


@pytest.mark.parametrize("name", ["fit_strengths", "sums_values", "labels_gram", "rows_codes"])
def test_measurements_of_another_model_are_refused(name, tmp_path):
    from labeldp.learning.measurement_files import read_measurements, save_measurements

    model = regressor(epsilon=2.0).fit(*table(0))
    save_measurements(model.measurements, tmp_path / "measurements.npz", keep_rows=True)
    arrays = dict(np.load(tmp_path / "measurements.npz"))
    np.savez(tmp_path / "measurements.npz", **{**arrays, name: arrays[name][1:]})
    with pytest.raises(errors.CardError):
        read_measurements(tmp_path / "measurements.npz", model.public_model()[0])


def test_pooled_observations_add_up_where_they_are_equally_noisy():
    random = np.random.default_rng(0)
    design, values = random.normal(size=(40, 3)).astype(np.float32), random.normal(size=40)
    whole = Observation.of_few(design, values, 1.0, 0.3)
    halves = [Observation.of_few(design[part], values[part], 1.0, 0.3) for part in np.split(np.arange(40), 2)]
    (pooled,) = Observation.pool(halves, 0.2)
    np.testing.assert_allclose(pooled.gram, whole.gram, rtol=1e-5)
    np.testing.assert_allclose(pooled.moment, whole.moment, rtol=1e-5)
    assert (pooled.count, pooled.variance(0.7)) == (40, pytest.approx(whole.variance(0.7)))


FORGED = {
    "a cheaper total": lambda card: card["cost"].update(epsilon=0.5, label=0.5),
    "fewer rows": lambda card: card.update(rows=ROWS),
    "an update less": lambda card: card.update(fits=card["fits"][:1]),
    "an update twice": lambda card: card["fits"].append(card["fits"][0]),
    "another segment": lambda card: card["fits"][1]["charges"][0]["segments"].update(names=["July"]),
    "other bounds": lambda card: card["fits"][1].update(bounds=[[0.0, 6.0]]),
}


@pytest.mark.parametrize("case", FORGED)
def test_cards_that_understate_what_updates_cost_are_refused(case):
    ledger = ldp.Ledger()
    card = json.loads(regressor(ledger).fit(*table(0), segment="May").update(*table(1), segment="May").to_card())
    assert card["cost"] == {"epsilon": 2.0, "label": 2.0}
    FORGED[case](card)
    assert ldp.verify_card(forged(card)).verdict == "not valid"


def charged_for_itself(ledger):
    """Update a model, and return whether the ledger has all charges that the model states."""
    model = regressor(ledger).fit(*table(0), segment="May").update(*table(1), segment="June")
    return not missing_charges(model.terms_.charges, ledger.charges)


def test_every_update_is_charged():
    assert charged_for_itself(ldp.Ledger())


def test_an_update_that_is_not_charged_would_be_found(monkeypatch):
    charge_all, charged = ldp.Ledger.charge_all, []

    def forget(ledger, charges, scope=None):
        if not charged:
            charge_all(ledger, charges, scope)
        charged.extend(charges)

    monkeypatch.setattr(ldp.Ledger, "charge_all", forget)
    assert not charged_for_itself(ldp.Ledger())
