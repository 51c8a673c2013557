"""Three verdicts: a card is valid, is not valid, or cannot be verified; and the noise of sums again."""

import contextlib
import dataclasses
import json
import sys
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from card_cases import TERMS, card, of_terms, other, refuse
from command_line import run, said
from forged_cards import forged
from labeldp.accounts import Card, Statistic
from labeldp.accounts.terms import fit_times
from labeldp.errors import CardError, UncheckableError

plain = ldp.mechanisms.typed_data.plain
Budget = ldp.Budget
verify_card = ldp.verify_card
FROM_SUMS = ("row-release", "model", "model of sums")
LISTED = json.loads(card("model of sums"))["statistics"]
OPEN = "cannot verify"


def with_statistic(**changes):
    """Return a card whose charge bought something else than its noise was computed for."""
    entries = [{**LISTED[0], **changes}, *LISTED[1:]]
    return card("model of sums", statistics=entries)


def test_a_verdict_that_is_not_valid_raises_and_is_false():
    good = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json()
    assert verify_card(good)
    assert verify_card(good).raise_for_verdict().kind == "mechanism"
    with pytest.warns(ldp.InsecureRandomnessWarning):
        seeded = ldp.privatize([2.0] * 1000, epsilon=1.0, bounds=(0, 5), random_state=0).to_card()
    later = forged({**json.loads(good), "version": 7})
    for text, error in ((good[:-1], CardError), (seeded, CardError), (later, UncheckableError)):
        assert not verify_card(text)
        with pytest.raises(error):
            verify_card(text).raise_for_verdict()


# ---- the noise of sums ---------------------------------------------------------------------------------------


LIES = {
    "a smaller sensitivity, and noise for it": {"sensitivity": 1, "scale": "25"},
    "fewer steps, and the same sensitivity": {"steps": 2},
    "another kind, by the same noise": {"kind": "largest count"},
    "a reason": {"because": "labels are few"},
    "more integers than the largest of counts": {"kind": "largest count", "sensitivity": 1, "scale": "25"},
    "sums of few steps": {"kind": "sums", "sensitivity": 1, "scale": "25"},
    "weighted sums of few steps": {"kind": "weighted sums", "steps": 1 << 26, "scale": str(25 << 26)},
    "weighted sums of less sensitivity": {"kind": "weighted sums", "steps": 1 << 32, "sensitivity": 1 << 31},
    "a score of as many sums": {"kind": "score", "steps": 1 << 36, "sensitivity": 1 << 36, "scale": str(25 << 36)},
    "no epsilon": {"epsilon": "0"},
    "no integers": {"size": 0},
}
"""What agrees with itself; single fields are changed in `test_lies`."""


@pytest.mark.parametrize("case", LIES)
def test_noise_that_does_not_follow_from_what_was_summed_does_not_hold(case):
    refuse(with_statistic(**LIES[case]), r"statistics\[0\]")
    assert verify_card(with_statistic(**LIES[case])).verdict == "not valid"


@pytest.mark.parametrize("kind", FROM_SUMS)
def test_statistics_that_cost_more_than_is_charged_do_not_hold(kind):
    dear = plain(Statistic("counts", "counts", 4, 1, Fraction(1, 10**9)))
    for entries in (
        [*LISTED, dear],
        [{**dear, "purpose": "score"}, *LISTED],
        [{**dear, "purpose": "labels or so"}],
    ):
        refuse(card(kind, statistics=entries), "its statistics cost more than it charges for")


@pytest.mark.parametrize(("kind", "purpose"), [("model", "labels"), ("release", "labels"), ("release", "prior")])
def test_what_labels_or_a_prior_cost_does_not_pay_for_statistics_too(kind, purpose):
    more = plain(Statistic("counts", "counts", 4, 1, Fraction(1, 10**9), purpose))
    listed = [] if kind == "release" else LISTED
    refuse(card(kind, statistics=[*listed, more]), f"charges for {purpose}")


def test_statistics_are_charged_for_each_row_of_a_person():
    for people, epsilon, verdict in ((3, 0.3, "valid"), (3, 0.1, "not valid"), (1, 0.1, "valid")):
        paid = dataclasses.replace(other("sums"), budget=Budget(epsilon), rows_per_person=people)
        text = of_terms("model", dataclasses.replace(TERMS["model of sums"], charges=(paid,)))
        assert verify_card(text).verdict == verdict


# ---- cards that this version cannot verify -----------------------------------------------------------------


def open_because(text, why):
    """Return whether the verdict is open, for a reason."""
    verification = verify_card(text)
    reasons = [check.detail for check in verification.checks if check.holds is None and check.needed]
    return (verification.verdict, verification.holds) == (OPEN, False) and any(why in one for one in reasons)


@pytest.mark.parametrize("kind", FROM_SUMS)
def test_a_card_that_does_not_say_what_a_charge_bought_cannot_be_checked(kind):
    charges = json.loads(card(kind))["charges"]
    unnoted = [charge | ({"mechanism": None} if charge["purpose"] == "sums" else {}) for charge in charges]
    for entries in ([], LISTED[:1]):
        text = card(kind, statistics=entries, charges=unnoted)
        assert open_because(text, "charged for sums, and the card lists statistics for")
    assert verify_card(card(kind, statistics=LISTED[:1])).verdict == "not valid"


def test_a_statistic_or_noise_of_a_kind_that_is_not_known_cannot_be_checked():
    for unknown in ({"kind": "medians"}, {"noise": "Gauss"}):
        assert open_because(with_statistic(**unknown), "does not know")
        with pytest.raises(CardError):
            Card.parse(with_statistic(**unknown))


def test_what_does_not_hold_is_said_even_where_something_else_cannot_be_checked():
    seeded = dataclasses.replace(TERMS["model"], secure=False, statistics=())
    assert verify_card(of_terms("model", seeded)).verdict == "not valid"
    cheaper = card("model", statistics=[], cost={"epsilon": 0.1})
    assert verify_card(cheaper).verdict == "not valid"


OWN = """
from dataclasses import dataclass
import labeldp as ldp

@ldp.mechanisms.register("NAME")
@dataclass(frozen=True, slots=True, kw_only=True)
class Twice(ldp.mechanisms.Mechanism):
    bounds: tuple
    epsilon: float
    channel: object = ldp.mechanisms.channel_field()
    def _build(self):
        return ldp.TwoPoint(bounds=self.bounds, epsilon=self.epsilon).channel
"""


@pytest.fixture
def own(tmp_path):
    """A mechanism that somebody wrote: its file, and a card that names it, in a process that does not know it."""
    path = tmp_path / "own_of_a_test.py"
    path.write_text(OWN.replace("NAME", "own-of-a-test"))
    text = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json()
    card_file = tmp_path / "own.card.json"
    card_file.write_text(forged({**json.loads(text), "mechanism": "own-of-a-test"}))
    yield path, card_file
    sys.modules.pop(path.stem, None)
    ldp.mechanisms.registry.REGISTRY.pop("own-of-a-test", None)


def test_an_unknown_mechanism_is_open_until_the_reviewer_names_its_module(own):
    path, card_file = own
    assert OPEN in said("verify", card_file, code=5)
    assert json.loads(run("verify", "--json", card_file, code=5).stdout)["verdict"] == OPEN
    for command in ("explain", "report", "audit"):
        assert OPEN in said(command, card_file, code=5)
    assert "Valid." in said("verify", card_file, "--import", path)
    assert "What it means" in said("explain", card_file, "--import", "own_of_a_test")


def test_a_module_in_the_current_folder_is_not_found_by_its_name_but_by_its_path(own):
    path, card_file = own
    with contextlib.chdir(path.parent):
        run("verify", card_file, "--import", path.stem, code=2)
        assert path.stem not in sys.modules
        assert "Valid." in said("verify", card_file, "--import", f"./{path.name}")


def test_nothing_is_imported_because_a_card_names_it(own, monkeypatch):
    path, card_file = own
    monkeypatch.syspath_prepend(str(path.parent))
    content = json.loads(card_file.read_text())
    with contextlib.chdir(path.parent):
        for name in ("own_of_a_test", "own_of_a_test:Twice", str(path), "own_of_a_test.py"):
            for entries in ({"mechanism": name}, {"import": name}, {"module": name}):
                assert verify_card(forged({**content, **entries})).verdict != "valid"
    assert path.stem not in sys.modules


# ---- a score on the card of a model --------------------------------------------------------------------------


QUALITY = {"rows": 30, "figures": {"rmse": {"value": 0.5, "standard_error": 0.02}}}


def with_score(epsilon=Fraction(1, 2), kind="model", people=1, split=None):
    """Return the terms of a model with its score; with a split, only the part beyond the model is charged."""
    bought = Statistic("errors", "score", 1, 1 << 36, Fraction(epsilon), "score")
    model = TERMS[kind]
    extra = Fraction(epsilon) if split is None else max(Fraction(epsilon) - model.cost.exact_epsilon, 0)
    paid = dataclasses.replace(other("score"), budget=Budget(extra), mechanism=str(bought))
    charges = [
        dataclasses.replace(one, budget=Budget(people * one.budget.exact_epsilon), rows_per_person=people)
        for one in (*model.charges, *([paid] if extra else []))
    ]
    statistics = (*model.statistics, bought)
    terms = dataclasses.replace(model, charges=tuple(charges), statistics=statistics)
    return terms if split is None else dataclasses.replace(terms, split=tied(split, charges))


def tied(split, charges):
    """Return a split of these charges."""
    return dataclasses.replace(split, fit_charges=fit_times(charges))


SPLIT = ldp.accounts.Split(0, 70, 30)


@pytest.mark.parametrize("people", [1, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(9)])
def test_the_card_of_a_model_with_a_score_costs_what_the_ledger_charged(epsilon, people):
    """Nobody knows whether rows were held out, unless this library split them."""
    model = TERMS["model"].cost.exact_epsilon
    for split, cost in ((None, model + epsilon), (SPLIT, max(model, epsilon))):
        terms = with_score(epsilon, people=people, split=split)
        text = of_terms("model", terms, quality=QUALITY)
        assert verify_card(text).verdict == "valid"
        assert Card.parse(text).terms.cost == Budget(people * cost)
        check = next(check for check in verify_card(text).checks if check.name == "held out")
        assert (check.holds, check.needed) == (True if split else None, False)
        less = {"epsilon": Budget(people * model).epsilon}
        if Budget(people * cost) != Budget(people * model):
            refuse(forged({**json.loads(text), "cost": less}), "cost")


def test_a_score_costs_nothing_beyond_the_model_only_with_a_split_of_its_own_rows():
    good = json.loads(of_terms("model", with_score(split=SPLIT), quality=QUALITY))
    alone = {key: value for key, value in good.items() if key != "split"}
    refuse(forged(alone), "guarantee")
    refuse(card("model", split=good["split"]), "guarantee")
    stated = dataclasses.replace(TERMS["model"], split=tied(SPLIT, TERMS["model"].charges))
    refuse(of_terms("model", stated), "a score needs a charge")
    for times in ([], ["then"]):
        refuse(forged(good | {"split": good["split"] | {"fit_charges": times}}), "the split is of other charges")
    for rows in ({"train_rows": 71}, {"test_rows": 31}):
        refuse(forged(good | {"split": good["split"] | rows}), "the split has other")


def test_a_score_on_rows_held_out_costs_no_more_than_all_charges():
    cost = TERMS["model"].cost.exact_epsilon
    dear = Statistic("errors", "score", 1, 1 << 36, cost + Fraction(1, 1000), "score")
    terms = with_score(cost, split=SPLIT)
    unpaid = dataclasses.replace(terms, statistics=(*terms.statistics[:-1], dear))
    refuse(of_terms("model", unpaid, quality=QUALITY), "cost more than it charges for score")
    unshown = dataclasses.replace(terms, statistics=terms.statistics[:-1])
    assert open_because(of_terms("model", unshown, quality=QUALITY), "beyond the fit")


def test_a_score_is_paid_for_and_what_is_paid_for_is_shown():
    good = json.loads(of_terms("model", with_score(), quality=QUALITY))
    refuse(forged({key: value for key, value in good.items() if key != "quality"}), "needs a charge")
    refuse(card("model", quality=QUALITY), "needs a charge")
    negative = {"value": 1.0, "standard_error": -1.0}
    refuse(forged({**good, "quality": {"rows": 30, "figures": {"rmse": negative}}}), "figures")
    refuse(forged({**good, "quality": {"rows": 30, "figures": {"accuracy": {"value": 1.0}}}}), "figure")
    assert open_because(forged({**good, "statistics": good["statistics"][:-1]}), "charged for score")


def test_what_verify_says_does_not_hold_is_neither_explained_nor_reported(tmp_path):
    path = tmp_path / "some.card.json"
    good = json.loads(of_terms("model", with_score(), quality=QUALITY))
    cards = ((good, 0), ({**good, "statistics": []}, 5), ({**good, "rows": 0}, 4))
    for content, code in cards:
        path.write_text(forged(content))
        (tmp_path / "some.report.html").unlink(missing_ok=True)  # of the card before
        run("verify", path, code=code)
        run("explain", path, code=code)
        run("report", path, code=4 if code == 4 else 0)  # a report says what cannot be checked


def test_a_score_from_a_seed_or_for_other_persons_is_not_put_on_a_private_card(tmp_path):
    X = np.random.default_rng(0).normal(size=(900, 2))
    y, shared = np.clip(X[:, 0] + 2, 0, 5), {"bounds": (0, 5), "ledger": ldp.Ledger()}
    model = ldp.ModelReleaseRegressor(epsilon=1.0, **shared).fit(X[:500], y[:500])
    with pytest.warns(ldp.InsecureRandomnessWarning):
        seeded = ldp.private_score(model, X[500:], y[500:], epsilon=0.9, random_state=1, **shared)
    ldp.save_model(model, tmp_path / "seeded", quality=seeded)
    assert "NOT PRIVATE" in said("verify", tmp_path / "seeded", code=4)
    for_two = ldp.private_score(model, X[500:], y[500:], epsilon=0.9, rows_per_person=2, **shared)
    with pytest.raises(ldp.errors.ParameterError, match="one card cannot promise both"):
        ldp.save_model(model, tmp_path / "two", quality=for_two)
    assert not (tmp_path / "two").exists()
    fair = ldp.private_score(model, X[500:], y[500:], epsilon=0.9, **shared)
    ldp.save_model(model, tmp_path / "fair", quality=fair)
    assert "✓ score" in run("verify", tmp_path / "fair").output
