"""Terms and their card: every field, every word of the guarantee, and no card that charges less than it shows."""

import hashlib
import json
from contextlib import nullcontext
from fractions import Fraction
from types import SimpleNamespace

import pytest

import labeldp as ldp
from labeldp.cards.verification import verify_card
from labeldp.ledger import Budget, Charge
from labeldp.mechanisms.base import fingerprint
from labeldp.release.description import describe_release
from labeldp.release.terms import Terms, guarantee, read_release_card, refuse_contradictions, stated_charges

WHEN = "2026-01-01T00:00:00+00:00"
WEAK, STRONG = (ldp.TwoPoint(bounds=(0, 5), epsilon=epsilon) for epsilon in (2.0, 1.0))
NORMAL = ldp.Gaussian(bounds=(0, 5), epsilon=16.0, delta=0.01)
PRIOR = ldp.Histogram([0, 1, 5], [1, 3])


def charge(what, budget, mechanism=None, people=1):
    print_of = None if mechanism is None else fingerprint(mechanism.channel)
    column = int(what[-1]) if "column" in what else 0
    return Charge(what, budget, WHEN, print_of, people, what.split(" ")[0].rstrip(","), column)


def terms(*charges, mechanisms=(STRONG,), secure=True):
    count = len(mechanisms)
    return Terms(70, mechanisms, (None,) * (count - 1) + (PRIOR,), charges, ((0.0, 5.0),) * count, "local", secure)


ONE = terms(charge("labels", Budget(1), STRONG), charge("prior (local)", Budget(0.5)))


def forged(card, **changes):
    """Return a card with other content, and the checksum for it."""
    content = {**json.loads(card), **changes}
    del content["checksum"]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    content["checksum"] = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(content)


def of_rows(card, **known):
    """Return the content of a card of rows, of which nothing is known but their bounds."""
    return {**json.loads(card), "knowledge": {"low": 0.0, "high": 5.0, "mean": 2.5, "counted": False, **known}}


def test_a_card_says_all_that_the_terms_say():
    two = terms(
        charge("labels, column 0", Budget(2), WEAK), charge("labels, column 1", Budget(1), STRONG),
        mechanisms=(WEAK, STRONG),
    )  # fmt: skip
    content = json.loads(two.to_card(file={"name": "out.csv"}, rows=3))
    assert content.pop("checksum").startswith("sha256:")
    assert content == {
        "schema": "labeldp.release",
        "version": 1,
        "guarantee": guarantee(two),
        "cost": {"epsilon": 3.0, "delta": 0.0},
        "words": "secure",
        "rows": 70,
        "trust": "local",
        "bounds": [[0.0, 5.0], [0.0, 5.0]],
        "mechanisms": [WEAK.to_json(), STRONG.to_json()],
        "priors": [None, {"nodes": [0.0, 1.0, 5.0], "masses": [0.25, 0.75], "source": "public"}],
        "charges": [one.as_data() for one in two.charges],
        "file": {"name": "out.csv"},
    }
    read = read_release_card(two.to_card())
    assert read["mechanisms"] == [WEAK, STRONG]
    assert read["charges"] == content["charges"]
    assert json.loads(terms(charge("labels", Budget(1)), secure=False).to_card())["words"] == "seeded, NOT PRIVATE"


def test_the_guarantee_says_who_is_covered_and_by_how_much():
    def said(*charges, secure=True):
        return guarantee(terms(*charges, secure=secure))

    assert said(charge("labels", Budget(1 / 3))) == (
        "label differential privacy with ε = 0.333334: changing one row's label changes the probability of "
        "anything released by at most a factor e^0.333334; features, the number and order of rows, and bounds "
        "are public"
    )
    assert said(charge("labels", Budget(2, 1e-5), people=3), charge("prior (local)", Budget(1), people=2)) == (
        "label differential privacy with ε = 3 and δ = 1e-05: changing all labels of a person with up to 3 rows "
        "changes the probability of anything released by at most a factor e^3, up to 1e-05; features, the number "
        "and order of rows, and bounds are public"
    )
    assert said(charge("labels", Budget(1)), secure=False) == "NOT PRIVATE: the noise can be repeated from a seed"


def test_the_summary_is_of_these_terms():
    assert ONE.summary() == describe_release(ONE)
    assert "70 labels released for epsilon = 1.5 in all; nobody saw the true ones." in ONE.summary()


def test_a_card_that_agrees_with_itself_is_read():
    for good in (
        ONE,
        terms(charge("labels", Budget(1), STRONG), secure=False),
        terms(charge("labels", Budget(3), STRONG, people=3)),
        terms(charge("labels", Budget(16, 0.01), NORMAL), mechanisms=(NORMAL,)),
        terms(charge("labels", Budget(1), STRONG), charge("labels", Budget(1), STRONG), mechanisms=(STRONG,) * 2),
    ):
        assert read_release_card(good.to_card())["mechanisms"] == list(good.mechanisms)
    group = ldp.privatize(
        [[1.0, 2.0]] * 9, epsilon=4.0, delta=1e-4, bounds=[(0, 5)] * 2, mechanism="gaussian", rows_per_person=3
    )
    assert read_release_card(group.to_card())["cost"]["epsilon"] == 12.0


UNDERPAID = {
    "a cheaper charge": terms(charge("labels", Budget(1), WEAK), mechanisms=(WEAK,)),
    "one charge for two": terms(charge("labels", Budget(1), STRONG), mechanisms=(STRONG, STRONG)),
    "a prior that pays for labels": terms(
        charge("labels", Budget(1), STRONG), charge("prior (local)", Budget(1), STRONG),
        mechanisms=(STRONG, STRONG),
    ),
    "two charges for one": terms(charge("labels", Budget(1), STRONG), charge("labels", Budget(1), STRONG)),
    "the dear one pays for the other": terms(
        charge("labels, column 0", Budget(1), WEAK), charge("labels, column 1", Budget(2), STRONG),
        mechanisms=(WEAK, STRONG),
    ),
    "no charge for labels": terms(charge("prior (local)", Budget(1), STRONG)),
    "one row's price for three": terms(charge("labels", Budget(2), STRONG, people=3)),
    "no delta": terms(charge("labels", Budget(16), NORMAL), mechanisms=(NORMAL,)),
    "one row's delta for three": terms(charge("labels", Budget(48, 0.01), NORMAL, people=3), mechanisms=(NORMAL,)),
    "another mechanism": terms(charge("labels", Budget(2), WEAK)),
    "no mechanism": terms(charge("labels", Budget(1))),
}  # fmt: skip


@pytest.mark.parametrize("case", UNDERPAID)
def test_a_card_whose_charges_do_not_pay_for_its_mechanisms_is_refused(case):
    with pytest.raises(ldp.CardError, match="contradicts itself"):
        read_release_card(UNDERPAID[case].to_card())


CARD = ONE.to_card()
LIES = {
    "less epsilon": {"cost": {"epsilon": 1.5 * (1 - 1e-15), "delta": 0.0}},
    "more epsilon": {"cost": {"epsilon": 1.5 * (1 + 1e-15), "delta": 0.0}},
    "more delta": {"cost": {"epsilon": 1.5, "delta": 1e-12}},
    "another guarantee": {"guarantee": guarantee(ONE).replace("1.5", "1.4")},
    "no guarantee": {"guarantee": None},
    "other words": {"words": "seeded"},
    "no charges": {"charges": [], "cost": {"epsilon": 0.0, "delta": 0.0}},
    "charges that are none": {"charges": [{"what": "labels"}]},
    "an amount that is none": {"cost": {"epsilon": "1.5", "delta": 0.0}},
    "no cost": {"cost": {}},
    "an endless amount": {"cost": {"epsilon": 10**400, "delta": 0.0}},
    "mechanisms that are none": {"mechanisms": STRONG.to_json()},
    "no mechanisms": {"mechanisms": []},
    "a mechanism that is none": {"mechanisms": [PRIOR.nodes.tolist()]},
}


@pytest.mark.parametrize("case", LIES)
def test_a_card_that_says_two_things_is_refused(case):
    with pytest.raises(ldp.CardError):
        read_release_card(forged(CARD, **LIES[case]))


@pytest.mark.parametrize("gone", ["charges", "guarantee", "words", "cost", "mechanisms"])
def test_a_card_that_lacks_what_must_agree_is_refused(gone):
    content = json.loads(CARD)
    del content[gone]
    with pytest.raises(ldp.CardError):
        read_release_card(forged(json.dumps(content)))


def test_charges_on_a_card_are_exact_so_nothing_is_rounded_between_writer_and_reader():
    """A third three times is one, and not the float above it, which would be told as 1.00001."""
    third = Budget(Fraction(1, 3))
    weak = ldp.TwoPoint(bounds=(0, 5), epsilon=0.3)
    thirds = terms(*[charge("labels", third, weak)] * 3, mechanisms=(weak,) * 3)
    read = read_release_card(thirds.to_card())
    assert read["cost"] == {"epsilon": 1.0, "delta": 0.0}
    assert "ε = 1:" in read["guarantee"]
    assert [Charge.from_data(one).budget for one in read["charges"]] == [third] * 3


PAID = charge("prior (local)", Budget(0.5))


def without(*charges, **changes):
    """Return the card of one column with other charges, and the cost and guarantee that follow from them."""
    said = terms(*charges)
    return forged(said.to_card(), priors=json.loads(CARD)["priors"], **changes)


def test_a_card_says_whether_its_prior_was_public_or_paid_for():
    labels = charge("labels", Budget(1), STRONG)
    assert json.loads(CARD)["priors"][0]["source"] == "paid for"
    assert json.loads(terms(labels).to_card())["priors"][0]["source"] == "public"
    assert without(labels, PAID) == CARD or json.loads(without(labels, PAID)) == json.loads(CARD)


UNPAID = {
    "its charge is gone": without(charge("labels", Budget(1), STRONG)),
    "its charge is nothing": without(charge("labels", Budget(1), STRONG), charge("prior (local)", Budget(0))),
    "another's charge": without(charge("labels", Budget(1), STRONG), charge("prior (curator)", Budget(0.5))),
    "a charge of another column": without(
        charge("labels", Budget(1), STRONG), charge("prior (local), column 1", Budget(0.5))
    ),
    "another's charge beside its own": without(
        charge("labels", Budget(1), STRONG), PAID, charge("prior (curator)", Budget(0.5))
    ),
    "a charge, and no prior": forged(CARD, priors=[None]),
    "another's charge for a public prior": forged(
        CARD, trust="curator", priors=[{**json.loads(CARD)["priors"][0], "source": "public"}]
    ),
    "trust that is another": forged(CARD, trust="curator"),
    "public, and charged": forged(CARD, priors=[{**json.loads(CARD)["priors"][0], "source": "public"}]),
    "no source": forged(CARD, priors=[{"nodes": [0, 1, 5], "masses": [1, 3]}]),
    "a source that is none": forged(CARD, priors=[{**json.loads(CARD)["priors"][0], "source": None}]),
    "priors that are none": forged(CARD, priors=3),
    "a prior that is none": forged(CARD, priors=["public"]),
}


@pytest.mark.parametrize("case", UNPAID)
def test_a_prior_that_was_paid_for_has_its_charge(case):
    with pytest.raises(ldp.CardError):
        read_release_card(UNPAID[case])
    assert not verify_card(UNPAID[case]).holds


def test_all_charges_of_a_card_are_for_as_many_rows_of_a_person():
    """Or the guarantee names the most rows, and the labels were charged for one."""
    said = terms(charge("labels", Budget(1), STRONG), charge("prior (local)", Budget(0.5), people=100))
    with pytest.raises(ldp.CardError, match="rows_per_person"):
        read_release_card(said.to_card())
    with pytest.raises(ldp.CardError, match="rows_per_person"):
        refuse_contradictions(of_rows(said.to_card()), [STRONG])


RANGES = {
    "laplace": ldp.Laplace(bounds=(0, 5), epsilon=1.0),
    "rp": ldp.RPWithPrior(interval=(0, 5), zeta=0.5, epsilon=1.0),
    "bins": ldp.RROnBins(edges=[0, 1, 5], outputs=[0.8, 2.1], epsilon=1.0),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_mechanism_for_labels_outside_the_bounds_of_the_card_does_not_hold(name):
    """One for more labels than the bounds allow is as private: it may be made before the bounds are known."""
    mechanism = RANGES[name]
    one = charge("labels", Budget(1), mechanism)
    for bounds, good in (
        ((0.0, 5.0), True),
        ((-1.0, 6.0), True),
        ((1.0, 5.0), True),
        ((100.0, 101.0), False),
        ((5.0, 6.0), False),
    ):
        card = Terms(70, (mechanism,), (None,), (one,), (bounds,), "curator", True).to_card()
        assert verify_card(card).holds == good, bounds


def test_a_release_that_shows_no_mechanism_does_not_hold():
    """Nothing says how its labels were released, and no charge has to pay for it."""
    none = Terms(70, (), (), (charge("prior (local)", Budget(1)),), (), "local", True).to_card()
    with pytest.raises(ldp.CardError, match="shows no mechanism"):
        read_release_card(none)
    assert not verify_card(none).holds


def test_a_charge_of_nothing_or_of_everything_is_no_charge():
    for budget in (Budget(0), Budget(float("inf"))):
        said = terms(charge("labels", Budget(1), STRONG), charge("other", budget))
        content = {"charges": [one.as_data() for one in said.charges], "words": "secure"}
        with pytest.raises(ldp.CardError, match="its charges do not give"):
            stated_charges({**content, "guarantee": guarantee(said)})


@pytest.mark.parametrize(
    ("known", "paid", "good"),
    [
        ({}, (), True),
        ({"mean": 3.0}, ("mean",), True),
        ({"mean": 3.0, "counted": True}, ("mean", "prior"), True),
        ({"mean": 3.0}, (), False),
        ({"mean": 3.0}, ("prior",), False),
        ({"counted": True}, ("mean",), False),
        ({"counted": True}, (), False),
    ],
)
def test_what_is_known_of_rows_is_paid_for(known, paid, good):
    said = terms(charge("labels", Budget(1), STRONG), *(charge(what, Budget(0.1)) for what in paid))
    content = of_rows(said.to_card(), **known)
    with nullcontext() if good else pytest.raises(ldp.CardError, match="does not charge for"):
        refuse_contradictions(content, [STRONG])


def test_a_mechanism_named_often_is_proven_once():
    proven = []
    proof = SimpleNamespace(epsilon=1.0, delta=0.0)
    mechanism = SimpleNamespace(verify=lambda: (proven.append(1), proof)[1])
    assert refuse_contradictions(of_rows(CARD), [mechanism] * 1000) == list(ONE.charges)
    assert proven == [1]


def test_a_mechanism_that_many_columns_share_is_built_and_hashed_once(monkeypatch):
    hashed = []
    monkeypatch.setattr(
        "labeldp.release.terms.fingerprint", lambda channel: (hashed.append(1), fingerprint(channel))[1]
    )
    many = terms(*[charge("labels", Budget(1), STRONG)] * 50, mechanisms=(STRONG,) * 50)
    assert len(read_release_card(many.to_card())["mechanisms"]) == 50
    assert hashed == [1]


@pytest.mark.parametrize(
    ("epsilon", "delta", "good"),
    [(1.0, 0.0, True), (1 - 1e-15, 0.0, True), (1 + 1e-15, 0.0, False), (0.5, 1e-300, False), (2.0, 0.0, False)],
)
def test_the_one_charge_for_rows_pays_for_each_mechanism_exactly(epsilon, delta, good):
    mechanism = SimpleNamespace(verify=lambda: SimpleNamespace(epsilon=epsilon, delta=delta))
    if good:
        assert refuse_contradictions(of_rows(CARD), [STRONG, mechanism]) == list(ONE.charges)
        return
    with pytest.raises(ldp.CardError, match="cost more"):
        refuse_contradictions(of_rows(CARD), [STRONG, mechanism])


@pytest.mark.parametrize(
    ("delta", "good"), [(0.01, True), (0.01 * (1 - 1e-15), True), (0.01 * (1 + 1e-15), False)]
)
def test_the_charge_pays_for_delta_exactly(delta, good):
    mechanism = SimpleNamespace(verify=lambda: SimpleNamespace(epsilon=1.0, delta=delta))
    content = of_rows(terms(charge("labels", Budget(1, 0.01))).to_card())
    with nullcontext() if good else pytest.raises(ldp.CardError, match="cost more"):
        refuse_contradictions(content, [mechanism])


@pytest.mark.parametrize("count", [0, 2])
def test_rows_have_one_charge_for_labels(count):
    card = terms(*[charge("labels", Budget(1), STRONG)] * count, charge("prior (local)", Budget(0.5))).to_card()
    with pytest.raises(ldp.CardError, match="one charge"):
        refuse_contradictions(of_rows(card), [STRONG])
