"""fit_and_score: rows that the library holds out itself, both costs in the ledger, and the split on the card."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

import labeldp as ldp
from helpers import seeded

ROWS = 800
X = np.random.default_rng(3).normal(size=(ROWS, 2))
Y = np.clip(2.5 + X[:, 0], 0, 5)
BOUNDS = (0.0, 5.0)


def regressor(**options):
    return ldp.ModelReleaseRegressor(**{"epsilon": 1.0, "bounds": BOUNDS, **options})


def both(model, X=X, y=Y, **options):
    return ldp.fit_and_score(model, X, y, **{"epsilon": 0.5, **options})


class Spy(ldp.ModelReleaseRegressor):
    """Keeps the rows that it learns from."""

    def fit(self, X, y):
        self.learnt = X
        return super().fit(X, y)


def test_both_are_charged_and_no_row_is_both_learnt_from_and_scored():
    ledger = ldp.Ledger(limit=ldp.Budget(1.5))
    model, score = both(given := Spy(epsilon=1.0, bounds=BOUNDS, ledger=ledger), test_size=0.25)
    assert model is given
    assert model.terms_.rows == 600
    assert [charge.purpose for charge in ledger.charges] == ["sums", "score"]
    assert score.cost == ldp.Budget(0.5)
    train, test = score.split.indices()
    assert np.array_equal(model.learnt, X[train])
    assert np.array_equal(np.sort([*train, *test]), np.arange(ROWS))
    assert score.rows == len(test) == 200
    truth = np.abs(model.predict(X[test]) - Y[test]).mean()
    assert abs(score.mae - truth) < 6 * score.figures["mae"].standard_error


def test_the_split_follows_from_random_words_and_never_from_labels():
    splits = [both(regressor(), y=y, random_state=seeded(5))[1].split for y in (Y.copy(), 5 - Y)]
    assert splits[0] == splits[1]
    assert both(regressor(), y=Y.copy())[1].split != both(regressor(), y=Y.copy())[1].split, "fresh by default"


FRAME = pd.DataFrame(X, columns=["a", "b"], index=np.arange(ROWS)[::-1])
KINDS = {
    "arrays": (X, Y),
    "lists": (X.tolist(), Y.tolist()),
    "pandas": (FRAME, pd.Series(Y, index=FRAME.index)),
    "polars": (pl.DataFrame(X, schema=["a", "b"]), pl.Series("price", Y)),
    "arrow": (pa.table({"a": X[:, 0], "b": X[:, 1]}), pa.array(Y)),
    "sparse": (sparse.coo_array(X), Y),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_table_that_a_regressor_takes_can_be_split(kind):
    model, score = both(regressor(), *KINDS[kind], epsilon=2.0)
    assert (model.terms_.rows, score.rows) == (720, 80)


BAD = {
    "got Ridge": {"model": Ridge()},
    "epsilon": {"epsilon": 0.0},
    "would say nothing": {"epsilon": 0.01},
    "test_size": {"test_size": 1.0},
    "800 rows of X": {"y": Y[:-1]},
    "label": {"y": np.where(np.arange(ROWS) == 3, np.nan, Y)},
    "60 rows are too few": {"X": X[:60], "y": Y[:60]},
    "random_state": {"random_state": "now"},
    "nothing was spent": {"epsilon": 2.1},
}


@pytest.mark.parametrize("says", BAD)
def test_what_cannot_be_scored_is_refused_before_anything_is_charged(says):
    ledger = ldp.Ledger(limit=ldp.Budget(3))
    with pytest.raises(ldp.LabelDPError, match=says):
        both(**{"model": regressor(ledger=ledger), **BAD[says]})
    assert ledger.charges == ()


@pytest.mark.parametrize(("people", "epsilon", "cost"), [(1, 0.5, 1.0), (1, 2.0, 2.0), (2, 0.5, 3.0)])
def test_only_with_a_split_of_this_library_is_the_larger_cost_enough_for_a_card(people, epsilon, cost, tmp_path):
    """The same model and score, with and without the split: then both count, as the ledger charged."""
    model, score = both(regressor(rows_per_person=people), epsilon=epsilon)
    ldp.save_model(model, tmp_path / "split", quality=score)
    card = json.loads((tmp_path / "split" / "card.json").read_text())
    assert card["cost"]["epsilon"] == cost
    rows = {"train_rows": 720, "test_rows": 80}
    assert card["split"] == {"method": "shuffled", "seed": score.split.seed, **rows}
    fresh = np.random.default_rng(4).normal(size=(100, 2))
    options = {"epsilon": epsilon, "bounds": BOUNDS, "rows_per_person": people}
    given = ldp.private_score(model, fresh, np.clip(2.5 + fresh[:, 0], 0, 5), **options)
    ldp.save_model(model, tmp_path / "given", quality=given)
    card = json.loads((tmp_path / "given" / "card.json").read_text())
    assert card["cost"]["epsilon"] == people * (1.0 + epsilon)
    assert "split" not in card
