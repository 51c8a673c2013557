"""A saved model of any content: used, or refused by an error of this package."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeldp as ldp
import model_cases
from forged_cards import put
from fuzzing import LONG, places, tries, values
from helpers import python

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved model."""
    return model_cases.saved(model_cases.released(), tmp_path_factory.mktemp("saved") / "model")


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """Where a copy of it is changed."""
    return tmp_path_factory.mktemp("changed") / "model"


def restored(folder, changed):
    shutil.copytree(folder, changed, dirs_exist_ok=True)


def used(path):
    """Load and use a model; return whether it was accepted."""
    try:
        predicted = ldp.load_model(path).predict(model_cases.table())
    except ldp.LabelDPError:
        return False
    assert ((predicted >= 0) & (predicted <= 5)).all()
    return True


def test_a_model_that_was_sealed_again_is_taken(folder, changed):
    restored(folder, changed)
    model_cases.resealed(changed)
    assert used(changed)


@pytest.mark.parametrize("name", ["card.json", "columns.json", "model.npz", "release.npz"])
@tries(25)
@given(data=st.data())
def test_a_model_with_bytes_changed_is_refused(folder, changed, name, data):
    restored(folder, changed)
    whole = (folder / name).read_bytes()
    at, gone = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 4))
    now = whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + gone :]
    (changed / name).write_bytes(now)
    assert used(changed) <= (now == whole or name == "card.json")


@tries(60)
@given(data=st.data())
def test_columns_with_any_value_replaced_and_the_hash_forged_are_used_or_refused(folder, changed, data):
    restored(folder, changed)
    content = json.loads((folder / "columns.json").read_text())
    for _ in range(data.draw(st.integers(1, 2))):
        content = put(content, data.draw(st.sampled_from(places(content) or [("more",)])), data.draw(values))
    (changed / "columns.json").write_text(json.dumps(content))
    model_cases.resealed(changed)
    used(changed)


def mutate(first, count, before=""):
    """Load models with their arrays changed, in a process of its own; return it once it ended."""
    script = (
        f"import sys; sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]}\n"
        "import faulthandler, model_mutations; from labeldp.learning import models\n"
        f"{before}\nmodel_mutations.main({first}, {count})"
    )
    return python(script, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("part", range(100 if LONG else 1))
def test_arrays_with_anything_changed_are_refused_or_predict_inside_the_bounds(part):
    """1,000 of them here, 100,000 in a long run: no crash, no endless loop, no error but labeldp's own."""
    done = mutate(1_000 * part, 1_000)
    assert done.returncode == 0, done.stderr[-2000:]
    accepted, refused = (int(word) for word in done.stdout.split() if word.isdigit())
    assert min(accepted, refused) > 100  # neither is the rule


BROKEN = {
    "a crash": "models.read_model_arrays = lambda *given: faulthandler._sigabrt()",
    "an endless loop": "model_mutations.HANG = 1; models.read_model_arrays = lambda *given: any(iter(bool, None))",
    "another error": "models.SavedModel.predict_numbers = lambda self, X: 1 // 0",
    "a prediction outside": "models.SavedModel.predict_numbers = lambda self, X: X[:, 0] + 9",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_the_fuzzer_would_notice(fault):
    assert mutate(0, 50, BROKEN[fault]).returncode != 0
