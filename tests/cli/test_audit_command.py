"""``labeldp audit``: a verdict on a card, and an exit code that scripts can trust."""

from dataclasses import dataclass

import numpy as np
import pytest
from typer.testing import CliRunner

import labeldp as ldp
from helpers import NAMES, mechanisms
from labeldp.channels import Promise, TableChannel
from labeldp.cli import app
from labeldp.mechanisms import register
from labeldp.mechanisms.base import Mechanism, channel_field

WIDE = {"COLUMNS": "160"}
LABELS = np.random.default_rng(1).uniform(0, 5, 500)
X = np.random.default_rng(2).normal(size=(500, 2))


def run(card, *options, tmp_path):
    file = tmp_path / "card.json"
    file.write_text(card, encoding="utf-8")
    return CliRunner().invoke(app, ["audit", str(file), "--samples", "4000", *options], env=WIDE)


@pytest.mark.parametrize("name", NAMES)
def test_the_card_of_every_mechanism_is_acquitted(name, tmp_path):
    shown = run(mechanisms(1.0)[name].to_json(), tmp_path=tmp_path)
    assert shown.exit_code == 0, shown.output
    assert "acquitted" in shown.output
    assert "CONVICTED" not in shown.output


def test_the_card_of_a_release_is_audited_and_says_what_it_leaves_out(tmp_path):
    card = ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), mechanism="rp").to_card()
    shown = run(card, "--confidence", "0.99999999", tmp_path=tmp_path)
    assert shown.exit_code == 0, shown.output
    assert "a card of a release" in shown.output
    assert "prior" in shown.output.split("Not sampled")[1]
    assert "1e-08" in shown.output
    assert "probability 0.8" in shown.output


def test_the_card_of_a_row_release_is_audited_once_for_each_different_mechanism(tmp_path):
    model = ldp.LabelReleaseRegressor(epsilon=2.0, bounds=(0, 5)).fit(X, LABELS)
    shown = run(model.release_.to_card(), tmp_path=tmp_path)
    assert shown.exit_code == 0, shown.output
    assert shown.output.count("acquitted") == len(set(model.release_.mechanisms))


@register("test-audit-leak")
@dataclass(frozen=True, slots=True, kw_only=True)
class Leak(Mechanism):
    """Counts that are proven, and a `randomize` that does not use them."""

    epsilon: float
    channel: TableChannel = channel_field()

    def _build(self):
        half = 1 << 63
        return TableChannel.from_counts(
            0.0, 1.0, [0.0, 1.0], [[half, half], [half, half]], Promise.of(self.epsilon)
        )

    def randomize(self, labels, *, random_state=None):
        return np.rint(np.clip(labels, 0.0, 1.0))


def test_a_mechanism_that_samples_something_else_than_its_counts_ends_with_code_4(tmp_path):
    shown = run(Leak(epsilon=1.0).to_json(), tmp_path=tmp_path)
    assert shown.exit_code == 4
    assert "CONVICTED, claim and proof" in shown.output


def test_the_confidence_is_said_as_what_it_is(tmp_path):
    card = mechanisms(1.0)["two-point"].to_json()
    shown = run(card, "--confidence", "0.999999999999", tmp_path=tmp_path)
    assert shown.exit_code == 0, shown.output
    assert "1e-12" in shown.output
    assert run(card, "--confidence", "0.999999999999999", tmp_path=tmp_path).exit_code == 2
    told = CliRunner().invoke(app, ["audit", "--help"], env=WIDE).output
    assert "no claim is refuted which is true" in told
    assert "all verdicts are right" not in told


@pytest.mark.parametrize(("card", "code"), [("{}", 4), ("no card", 4)])
def test_what_is_no_card_is_refused(card, code, tmp_path):
    shown = run(card, tmp_path=tmp_path)
    assert shown.exit_code == code
    assert "Traceback" not in shown.output


def test_a_missing_file_and_a_models_card_are_explained(tmp_path):
    assert CliRunner().invoke(app, ["audit", str(tmp_path / "none.json")]).exit_code == 2
    model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5)).fit(X[:60], LABELS[:60])
    shown = run(model.to_card(), tmp_path=tmp_path)
    assert shown.exit_code == 2
    assert "audit_pipeline" in shown.output
