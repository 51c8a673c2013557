"""Any card, by hand: what is read of each kind, to the last field, and what of it is refused."""

import dataclasses
import json

import pytest

import labeldp as ldp
from labeldp import card_format
from labeldp.cards.reading import read_any_card, schema_of
from labeldp.cards.verification import verify_card
from labeldp.ledger import Budget, Charge
from labeldp.mechanisms.base import fingerprint
from labeldp.release.terms import Terms, guarantee

MECHANISM = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
OTHER = ldp.TwoPoint(bounds=(0, 4), epsilon=1.0)
PRIOR = ldp.Histogram([0, 1, 5], [1, 3])
WHEN = "2026-01-01T00:00:00+00:00"
LABELS = Charge("labels", Budget(1), WHEN, fingerprint(MECHANISM.channel), purpose="labels", column=0)
EXTRA = Charge("prior (curator)", Budget(0.5), WHEN, purpose="prior", column=0)
TERMS = Terms(70, (MECHANISM,), (PRIOR,), (LABELS, EXTRA), ((0.0, 5.0),), "curator", True)
PARTS = {
    "guarantee": guarantee(TERMS),
    "words": "secure",
    "rows": 70,
    "charges": [LABELS.as_data(), EXTRA.as_data()],
}
CONTENT = {
    "labeldp.release": {**json.loads(TERMS.to_card())},
    "labeldp.row-release": {
        **PARTS,
        "cost": {"epsilon": 1.5, "delta": 0.0},
        "trust": "local",
        "mechanisms": [MECHANISM.to_json(), OTHER.to_json()],
        "knowledge": {"low": 0, "high": 5, "mean": 2.5, "counted": False},
    },
    "labeldp.model": {**PARTS, "bounds": [0, 5]},
}
NO_PRIOR = dataclasses.replace(TERMS, priors=(None,), charges=(LABELS,))
UNKNOWN = {key: json.loads(NO_PRIOR.to_card())[key] for key in ("priors", "charges", "cost", "guarantee")}
each_kind = pytest.mark.parametrize("schema", CONTENT)


def card(schema, **changes):
    content = {**CONTENT[schema], **changes}
    own = ("schema", "version", "checksum", *(key for key, value in changes.items() if value is ...))
    return card_format.dump({key: value for key, value in content.items() if key not in own}, schema)


# ---- what is read -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "bounds"),
    [
        (MECHANISM, ((0, 5),)),
        (ldp.RPWithPrior(interval=(1, 3), zeta=0.5, epsilon=1.0), ((1, 3),)),
        (ldp.RROnBins(edges=[0, 1, 5], outputs=[0.8, 2.1], epsilon=1.0), ()),
    ],
)
def test_a_mechanism_is_read_with_its_bounds(mechanism, bounds):
    read = read_any_card(mechanism.to_json())
    content = {key: value for key, value in json.loads(mechanism.to_json()).items() if key != "checksum"}
    assert dataclasses.astuple(read)[:1] == ("mechanism",)
    assert (read.content, read.mechanisms, read.charges) == (content, (mechanism,), ())
    assert (read.priors, read.bounds, read.secure, read.cost) == ((None,), bounds, True, Budget(0))


def test_no_privacy_is_read_only_if_it_is_asked_for():
    text = ldp.NoPrivacy().to_json()
    with pytest.raises(ldp.CardError, match="no privacy"):
        read_any_card(text)
    assert read_any_card(text, allow_no_privacy=True).mechanisms == (ldp.NoPrivacy(),)


KINDS = {
    "labeldp.release": ("release", (MECHANISM,), (PRIOR,)),
    "labeldp.row-release": ("row-release", (MECHANISM, OTHER), ()),
    "labeldp.model": ("model", (), ()),
}


@each_kind
def test_a_card_is_read_to_its_last_field(schema):
    text = card(schema)
    assert schema_of(text) == schema
    read = read_any_card(text)
    assert (read.kind, read.mechanisms, read.priors) == KINDS[schema]
    assert (read.charges, read.cost, read.bounds) == ((LABELS, EXTRA), Budget(1.5), ((0.0, 5.0),))
    assert [type(end) for end in read.bounds[0]] == [float, float]
    assert read.secure
    told = {key: value for key, value in json.loads(text).items() if key not in ("checksum", "mechanisms")}
    assert {key: value for key, value in read.content.items() if key != "mechanisms"} == told


@each_kind
def test_a_card_of_seeded_words_is_read_and_says_so(schema):
    seeded = dataclasses.replace(TERMS, secure=False)
    assert not read_any_card(card(schema, words="seeded", guarantee=guarantee(seeded))).secure
    for lie in ({"words": "seeded"}, {"guarantee": guarantee(seeded)}, {"words": None}):
        with pytest.raises(ldp.CardError, match="contradicts itself"):
            read_any_card(card(schema, **lie))


# ---- what is refused --------------------------------------------------------------------------------


@each_kind
def test_public_facts_are_of_their_kind(schema):
    for rows in (1, (1 << 63) - 1):
        assert read_any_card(card(schema, rows=rows)).content["rows"] == rows
    unknown = UNKNOWN if schema == "labeldp.release" else {}
    for trust in ("curator", "local", *(() if unknown else (...,))):
        assert read_any_card(card(schema, trust=trust, **unknown))
    for rows in (0, -1, 1 << 63, True, 1.0, "70", None, [70]):
        with pytest.raises(ldp.CardError, match="rows or trust"):
            read_any_card(card(schema, rows=rows))
    for trust in ("nobody", None, 3, ["curator"], {}):
        with pytest.raises(ldp.CardError, match="rows or trust"):
            read_any_card(card(schema, trust=trust, **unknown))


@each_kind
def test_a_card_that_lacks_something_is_refused(schema):
    for gone in {*CONTENT[schema]} - {"trust", "schema", "version", "checksum"}:
        with pytest.raises(ldp.CardError):
            read_any_card(card(schema, **{gone: ...}))
    for gone in ("rows", "bounds", "knowledge"):
        if gone in CONTENT[schema]:
            with pytest.raises(ldp.CardError, match="lacks what a card of its kind has"):
                read_any_card(card(schema, **{gone: ...}))


@each_kind
def test_charges_give_the_guarantee_that_is_stated(schema):
    cheap = dataclasses.replace(LABELS, budget=Budget(0.5)).as_data()
    for lie in ({"charges": []}, {"charges": [cheap, EXTRA.as_data()]}, {"guarantee": "all is well"}):
        with pytest.raises(ldp.CardError, match="contradicts itself"):
            read_any_card(card(schema, **lie))


WRONG = [
    ("labeldp.release", {"bounds": []}, "each mechanism needs bounds"),
    ("labeldp.release", {"bounds": [[0, 5]] * 2}, "each mechanism needs bounds"),
    ("labeldp.release", {"bounds": [[5, 5]]}, "cannot be used: bounds must satisfy lo < hi"),
    ("labeldp.release", {"bounds": [[5, 0]]}, "cannot be used: bounds must satisfy lo < hi"),
    ("labeldp.release", {**UNKNOWN, "priors": []}, "each mechanism needs bounds"),
    ("labeldp.release", {**UNKNOWN, "priors": [None] * 2}, "each mechanism needs bounds"),
    (
        "labeldp.release",
        {**UNKNOWN, "bounds": [[0, 5]] * 2, "priors": [None] * 2},
        "each mechanism needs bounds",
    ),
    ("labeldp.release", {"bounds": [[0, 5, 6]]}, "cannot be used"),
    ("labeldp.release", {"bounds": [["0", None]]}, "cannot be used"),
    ("labeldp.release", {"bounds": [[0, 10**400]]}, "cannot be used"),
    ("labeldp.release", {"priors": [[1, 2]]}, "lacks what"),
    (
        "labeldp.release",
        {"priors": [{"nodes": [0, 1], "masses": [-1], "source": "paid for"}]},
        "cannot be used",
    ),
    ("labeldp.row-release", {"knowledge": {"low": "x", "high": 5, "mean": 2.5, "counted": False}}, "lacks what"),
    ("labeldp.row-release", {"knowledge": {"low": 0, "high": 5, "mean": 2.4, "counted": False}}, "not charge for"),
    ("labeldp.row-release", {"mechanisms": []}, "shows no mechanism"),
    ("labeldp.release", {"mechanisms": []}, "shows no mechanism"),
    ("labeldp.row-release", {"knowledge": [0, 5]}, "lacks what"),
    ("labeldp.row-release", {"mechanisms": MECHANISM.to_json()}, "not a list"),
    ("labeldp.model", {"bounds": [0, 5, 6]}, "cannot be used"),
    ("labeldp.release", {"bounds": [["0", "5"]]}, "cannot be used"),
    ("labeldp.model", {"bounds": ["0", "5"]}, "cannot be used"),
    ("labeldp.model", {"bounds": [5, 5]}, "cannot be used"),
    ("labeldp.model", {"bounds": 5}, "cannot be used"),
    ("labeldp.model", {"charges": 3}, "lacks what"),
    ("labeldp.model", {"charges": [{"what": 3}]}, r"charges\[0\] is not a valid charge"),
    ("labeldp.model", {"charges": [{**LABELS.as_data(), "budget": ["-1", "0"]}]}, r"charges\[0\] is not a valid"),
    ("labeldp.model", {"charges": [LABELS.as_data(), {**EXTRA.as_data(), "budget": ["0", "0"]}]}, "contradicts"),
]


@pytest.mark.parametrize(("schema", "lie", "why"), WRONG, ids=str)
def test_a_card_that_says_what_cannot_be_is_refused(schema, lie, why):
    with pytest.raises(ldp.CardError, match=why):
        read_any_card(card(schema, **lie))


def test_a_prior_lies_inside_its_bounds_up_to_rounding():
    paid = {"source": "paid for"}

    def with_prior(low, high):
        return card("labeldp.release", priors=[{**paid, "nodes": [low, 1, high], "masses": [0.5, 0.5]}])

    assert read_any_card(card("labeldp.release", **UNKNOWN)).priors == (None,)
    for low, high in ((0, 5), (0.5, 4.5), (-4e-9, 5), (0, 5 + 4e-9), (-1e-9 * 5, 5), (0, 5 + 1e-9 * 5)):
        assert read_any_card(with_prior(low, high)).priors[0].bounds == (low, high)
    for low, high in ((-6e-9, 5), (0, 5 + 6e-9), (-1, 5), (0, 6)):
        with pytest.raises(ldp.CardError, match="prior lies outside"):
            read_any_card(with_prior(low, high))
    far = {**paid, "nodes": [4 - 5e-9, 4.5, 5], "masses": [0.5, 0.5]}  # rounding is of the width, not of the place
    with pytest.raises(ldp.CardError, match="prior lies outside"):
        read_any_card(card("labeldp.release", bounds=[[4, 5]], priors=[far]))


def test_a_card_of_more_mechanisms_than_allowed_is_refused():
    assert len(read_any_card(card("labeldp.row-release"), most_mechanisms=2).mechanisms) == 2
    for schema, most in (("labeldp.row-release", 1), ("labeldp.release", 0)):
        with pytest.raises(ldp.CardError, match="distinct mechanisms"):
            read_any_card(card(schema), most_mechanisms=most)


@each_kind
def test_a_card_that_was_changed_or_is_of_another_version_is_refused(schema):
    text = card(schema)
    for changed in (text.replace('"rows":70', '"rows":71'), text.replace('"version":1', '"version":2')):
        with pytest.raises(ldp.CardError, match=r"checksum|version"):
            read_any_card(changed)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "3", "null", '"schema"', "{}", '{"schema":3}', '{"schema":"labeldp"}'),
        "[" * 100_000,
        b"{}",
    ],
    ids=lambda text: text[:20],
)
def test_what_names_no_kind_of_card_is_none(text):
    for read in (schema_of, read_any_card):
        with pytest.raises(ldp.CardError):
            read(text)


def test_a_card_that_names_a_mechanism_often_is_verified_with_few_proofs(monkeypatch):
    proven, verify = [], ldp.TwoPoint.verify
    monkeypatch.setattr(ldp.TwoPoint, "verify", lambda self: (proven.append(1), verify(self))[1])
    many = ldp.privatize([[1.0] * 100] * 3, epsilon=10.0, bounds=[(0, 5)] * 100, mechanism="two-point").to_card()
    proven.clear()
    assert verify_card(many).holds
    assert len(proven) < 5
