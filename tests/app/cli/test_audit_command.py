"""``labeldp audit``: a verdict on a card, and an exit code that scripts can trust."""

import json
import shutil
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from command_line import homes, run, said
from forged_cards import forged
from helpers import mechanisms
from labeldp.app import learnt_rows
from labeldp.errors import LabelError

LABELS = np.random.default_rng(1).uniform(0, 5, 500)
X = np.random.default_rng(2).normal(size=(500, 2))


@pytest.fixture
def audit(tmp_path):
    """Return what the audit of a card says."""

    def say(card, *options, code=0):
        (tmp_path / "card.json").write_text(card, encoding="utf-8")
        return said("audit", tmp_path / "card.json", "--samples", 4000, *options, code=code)

    return say


def test_the_card_of_a_mechanism_passes(audit):
    shown = audit(mechanisms(1.0)["two-point"].to_json(), "--confidence", 0.999999999999)
    assert "none detected" in shown
    assert "VIOLATION" not in shown
    assert "1e-12" in shown


def test_the_card_of_a_release_is_audited_and_says_what_it_leaves_out(audit):
    shown = audit(ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), mechanism="rp").to_card())
    assert "a card of a release" in shown
    assert "prior" in shown.split("Not sampled")[1]
    assert "probability 0.8" in shown


@pytest.mark.slow
def test_the_card_of_a_row_release_is_audited_once_for_each_different_mechanism(audit):
    release = ldp.LabelReleaseRegressor(epsilon=2.0, bounds=(0, 5)).fit(X, LABELS).release_
    assert audit(release.to_card()).count("none detected") == len(set(release.terms.mechanisms))


@ldp.mechanisms.register("test-audit-leak")
@dataclass(frozen=True, slots=True, kw_only=True)
class Leak(ldp.mechanisms.Mechanism):
    """Counts that are proven, and a `randomize` that does not use them."""

    epsilon: float
    channel: ldp.exact.TableChannel = ldp.mechanisms.channel_field()

    def _build(self):
        half = 1 << 63
        return ldp.exact.TableChannel.from_counts(
            0.0, 1.0, [0.0, 1.0], [[half, half], [half, half]], ldp.exact.Promise.of(self.epsilon)
        )

    def randomize(self, labels, *, random_state=None):
        return np.rint(np.clip(labels, 0.0, 1.0))


def test_a_mechanism_that_samples_something_else_than_its_counts_ends_with_code_4(audit):
    shown = audit(Leak(epsilon=1.0).to_json(), code=4)
    assert "VIOLATION" in shown
    assert "refuted: the claim and proof" in shown


def test_what_cannot_be_audited_is_refused(audit, tmp_path):
    run("audit", tmp_path / "none.json", code=2)
    for card in ("{}", "no card"):
        audit(card, code=4)
    audit(mechanisms(1.0)["two-point"].to_json(), "--confidence", 1.0, code=2)
    model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5)).fit(X[:60], LABELS[:60])
    assert "audit_pipeline" in audit(model.to_card(), code=2)
    table = ldp.private_ols(np.linspace(0, 1, 400)[:, None], np.linspace(0, 5, 400), epsilon=1.0, bounds=(0, 5))
    for options in ((), (tmp_path / "canaries.csv", "--canaries")):
        assert "predicts no canaries" in " ".join(audit(table.to_card(), *options, code=2).split())


# ---- one fit, by canaries and by true labels -------------------------------------------------------------------

WHAT = ("--label", "price", "--bounds", 0, 5)


@pytest.fixture(scope="module")
def canaries(tmp_path_factory):
    """Return a folder with a table whose last rows are canaries, and a private table of its labels."""
    folder = tmp_path_factory.mktemp("canaries")
    pq.write_table(homes(600), folder / "homes.parquet")
    done = run("canaries", folder / "homes.parquet", *WHAT, "--rows", 200, "-o", folder / "canaries.parquet")
    assert "A score of that fit" in done.output
    assert "too large for the other rows" in " ".join(done.output.split())
    both = pa.concat_tables([pq.read_table(folder / name) for name in ("homes.parquet", "canaries.parquet")])
    pq.write_table(both, folder / "all.parquet")
    private = ("--mechanism", "two-point", "--drop", "id,area,town,lift", "-o", folder / "private.parquet")
    run("privatize", folder / "all.parquet", *WHAT, "--epsilon", 1, *private)
    return folder


def test_canaries_have_the_columns_of_the_table_public_values_from_it_and_bounds_as_labels(canaries):
    table, made = (pq.read_table(canaries / name) for name in ("homes.parquet", "canaries.parquet"))
    assert made.schema.names == table.schema.names
    assert set(made["price"].to_pylist()) == {0.0, 5.0}
    for name in ("id", "town", "lift"):
        assert set(made[name].to_pylist()) <= set(table[name].to_pylist())
    pairs = [set(zip(rows["id"].to_pylist(), rows["town"].to_pylist(), strict=True)) for rows in (table, made)]
    assert not pairs[1] <= pairs[0]  # no canary stands for a person of the table


def test_columns_that_are_left_out_are_empty_in_canaries_and_keep_their_place(canaries, tmp_path):
    out = tmp_path / "canaries.parquet"
    run("canaries", canaries / "homes.parquet", *WHAT, "--rows", 20, "--drop", "id,lift", "-o", out)
    made = pq.read_table(out)
    assert made.schema.names == pq.read_schema(canaries / "homes.parquet").names
    empty = {name for name in made.schema.names if made[name].null_count == 20}
    assert empty == {"id", "lift"}
    run("canaries", canaries / "homes.parquet", *WHAT, "--drop", "none", "-o", tmp_path / "other.parquet", code=2)
    run("canaries", canaries / "homes.parquet", *WHAT, "-o", out, code=2)


def test_private_labels_pass_by_canaries_and_true_ones_end_with_code_4(canaries, tmp_path):
    words = ("audit", canaries / "private.parquet", canaries / "canaries.parquet", "--canaries")
    shown = said(*words)
    assert "none detected" in shown
    assert "may be published" in shown
    assert "claimed 1" in shown
    for name in ("private.parquet", "private.parquet.card.json"):
        shutil.copy(canaries / name, tmp_path)
    labels = pq.read_table(canaries / "all.parquet").select(["price"])
    pq.write_table(labels, tmp_path / "private.parquet")
    assert "VIOLATION" in said("audit", tmp_path / "private.parquet", *words[2:], code=4)


def test_another_private_column_of_a_table_of_canaries_has_true_labels(canaries, tmp_path):
    out = tmp_path / "private.parquet"
    what = ("--label", "lift", "--bounds", 0, 1, "--epsilon", 1, "--mechanism", "two-point", "--drop", "price")
    run("privatize", canaries / "all.parquet", *what, "-o", out)
    words = ("audit", out, canaries / "canaries.parquet", "--canaries")
    assert "another label than 'lift'" in said(*words, code=2)
    assert "another label" in said(*words, "--label", "area", code=2)


@pytest.mark.slow
def test_a_saved_model_is_audited_by_canaries_and_by_its_held_out_rows(canaries, tmp_path):
    run("fit", canaries / "all.parquet", *WHAT, "--epsilon", 1, "--score", 1, "-o", tmp_path / "model")
    shown = said("audit", tmp_path / "model", canaries / "canaries.parquet", "--canaries")
    assert "none detected" in shown
    shown = said("audit", tmp_path / "model", canaries / "all.parquet", "--for-owner")
    assert "none detected" in shown
    assert "keep it to yourself" in shown
    wrong = ("audit", tmp_path / "model", canaries / "homes.parquet", "--for-owner")
    assert "800" in said(*wrong, code=2)
    made = tmp_path / "lift.parquet"
    run("canaries", canaries / "homes.parquet", "--label", "lift", "--bounds", 0, 1, "-o", made)
    content = json.loads((tmp_path / "model" / "card.json").read_text())
    (tmp_path / "model" / "lift.card.json").write_text(forged({**content, "label": "lift"}))
    words = ("audit", tmp_path / "model" / "lift.card.json", made, "--canaries")
    with mock.patch.object(learnt_rows, "FileJob", side_effect=LabelError("read")) as job:
        run(*words, code=2)
    assert job.call_args.kwargs["labels"] == ("lift",)  # beside canaries of it are true prices


def test_true_labels_are_read_for_a_terminal_or_at_the_owners_word_alone(canaries, tmp_path):
    words = ("audit", canaries / "private.parquet", canaries / "all.parquet")
    with mock.patch.object(learnt_rows, "read_learnt", side_effect=AssertionError("labels were read")):
        assert "no terminal shows it" in said(*words, code=2)
    shown = said(*words, "--for-owner")
    assert "keep it to yourself" in shown


def test_true_labels_decide_no_exit_code(canaries, tmp_path):
    shutil.copy(canaries / "private.parquet.card.json", tmp_path)
    pq.write_table(pq.read_table(canaries / "all.parquet").select(["price"]), tmp_path / "private.parquet")
    shown = said("audit", tmp_path / "private.parquet", canaries / "all.parquet", "--for-owner", code=0)
    assert "VIOLATION" in shown


def test_what_one_fit_cannot_show_is_refused(canaries, tmp_path):
    private, table = canaries / "private.parquet", canaries / "all.parquet"
    with mock.patch.object(learnt_rows, "read_learnt", side_effect=AssertionError("labels were read")):
        assert "labeldp canaries" in said("audit", private, table, "--canaries", code=2)
    assert "600" in said("audit", private, canaries / "homes.parquet", "--for-owner", code=2)
    for name, options in (("shuffled", ["--shuffle"]), ("means", ["--mechanism", "auto"])):
        out = tmp_path / f"{name}.parquet"
        drop = ["--drop", "id,area,town,lift"] if name == "shuffled" else []
        run("privatize", table, *WHAT, "--epsilon", 1, *drop, *options, "-o", out)
        run("audit", out, table, "--for-owner", code=2)
