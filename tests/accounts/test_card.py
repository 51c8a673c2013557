"""Any card, by hand: what is read of each kind, to the last entry, and that none charges less than it shows."""

import dataclasses
import json
import math

import pytest

import labeldp as ldp
from card_cases import (
    ALL_PARTS,
    BOUNDS,
    COUNTED,
    IN_ROUNDS,
    KNOWN,
    NORMAL,
    OTHERS,
    PARTS,
    REPORTED,
    STRONG,
    SUMS,
    TERMS,
    WEAK,
    card,
    labels,
    of_terms,
    other,
    prior,
    refuse,
    release,
)  # fmt: skip
from forged_cards import forged
from labeldp.accounts import Card

plain = ldp.mechanisms.typed_data.plain
each_kind = pytest.mark.parametrize("kind", TERMS)

# ---- what is read -----------------------------------------------------------------------------------


@each_kind
def test_a_card_is_read_to_its_last_entry(kind):
    text = card(kind)
    read = Card.parse(text)
    assert (read.kind, read.terms) == (kind.partition(" ")[0], TERMS[kind])
    assert [type(end) for pair in read.terms.bounds for end in pair] == [float, float]
    assert read.content == {key: value for key, value in json.loads(text).items() if key != "checksum"}
    assert ldp.verify_card(text).holds
    assert ldp.verify_card(text).card == read


def test_a_mechanism_alone_is_read_with_its_domain_and_no_charges():
    for mechanism in (STRONG, *OTHERS):
        read = Card.parse(mechanism.to_json())
        assert read.kind == "mechanism"
        assert read.terms == ldp.accounts.Terms(0, (mechanism,), (None,), (), (mechanism.domain,), "local", True)


GOOD = {
    "public prior": release(labels()),
    "nobody trusted": release(labels(), prior("prior (local)"), priors=(REPORTED,), trust="local"),
    "three rows a person": release(labels(epsilon=3, people=3)),
    "an unknown purchase beside it": release(labels(), other("mean")),
    "a real one, for groups": ldp.privatize([1.0, 2.0] * 9, epsilon=4.0, bounds=(0, 5), rows_per_person=3).terms,
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
def test_a_card_that_agrees_with_itself_is_read(case):
    assert Card.parse(GOOD[case].to_card(purpose="training")).terms == GOOD[case]


def test_a_card_lists_each_mechanism_once_and_parts_name_them_in_order():
    fingerprints = [ldp.mechanisms.base.fingerprint(mechanism.channel) for mechanism in (WEAK, STRONG, WEAK)]
    noted = "; ".join(f"part {k}: {name}" for k, name in enumerate(fingerprints, 1))
    paid = dataclasses.replace(IN_ROUNDS, mechanism=noted, budget=ldp.Budget(2))
    three = dataclasses.replace(
        TERMS["model of sums"], mechanisms=(WEAK, STRONG, WEAK), charges=(paid, other("sums"))
    )
    content = json.loads(of_terms("model", three))
    assert (len(content["mechanisms"]), content["parts"]) == (2, [0, 1, 0])
    assert Card.parse(of_terms("model", three)).terms.mechanisms == (WEAK, STRONG, WEAK)
    weak, strong = content["mechanisms"]
    for listed, parts in (([strong, weak], [1, 0, 1]), ([weak], [0, 1, 0])):
        refuse(forged({**content, "mechanisms": listed, "parts": parts}), "list each mechanism once")


def test_a_release_has_one_mechanism_one_pair_of_bounds_and_a_prior_or_none():
    twice = dataclasses.replace(release(labels()), mechanisms=(STRONG, STRONG))
    refuse(twice.to_card(purpose="training"), "one mechanism")
    refuse(release(labels(), labels()).to_card(purpose="training"), "need one charge")
    known = json.loads(release(labels(), priors=(None,)).to_card(purpose="training"))
    for wrong in ({"bounds": []}, {"bounds": [[0, 5]] * 2}, {"priors": []}, {"priors": [None] * 2}):
        refuse(forged({**known, **wrong}), "it must have one")


# ---- each mechanism is paid for, exactly ---------------------------------------------------------------

UNDERPAID = {
    "a cheaper charge": release(labels(WEAK, 1), mechanisms=(WEAK,)),
    "no charge for labels": release(prior()),
    "a score pays for labels": release(dataclasses.replace(labels(), purpose="score"), priors=(None,)),
    "one row's price for three": release(labels(epsilon=2, people=3)),
    "another mechanism": release(labels(WEAK, 2)),
    "no mechanism": release(dataclasses.replace(labels(), mechanism=None)),
    "a charge of nothing": release(labels(), other("score", 0)),
    "a prior's charge of nothing": release(labels(), prior(epsilon=0)),
}


@pytest.mark.parametrize("case", UNDERPAID)
def test_a_release_whose_charges_do_not_pay_for_its_mechanisms_is_refused(case):
    refuse(UNDERPAID[case].to_card(purpose="training"))


@pytest.mark.parametrize("kind", ["release", "row-release", "model"])
def test_all_charges_are_for_as_many_rows_of_a_person(kind):
    """Or the guarantee names the most rows, and the labels were charged for one."""
    first, *rest = TERMS[kind].charges
    many = [dataclasses.replace(charge, rows_per_person=100) for charge in rest]
    refuse(of_terms(kind, dataclasses.replace(TERMS[kind], charges=(first, *many))), "rows_per_person")


LESS = [
    {"budget": ldp.Budget(0.95)},
    {"rows_per_person": 2},
    *(
        {"mechanism": name}
        for name in (
            ldp.mechanisms.base.fingerprint(PARTS[0].channel),
            ALL_PARTS.replace("part 2", "part 3"),
            None,
        )
    ),
    {"purpose": "sums"},
]


@pytest.mark.parametrize("kind", ["row-release", "model"])
def test_the_one_charge_for_rows_pays_for_each_of_their_mechanisms(kind):
    for charges in ((), (IN_ROUNDS, IN_ROUNDS), *((dataclasses.replace(IN_ROUNDS, **less),) for less in LESS)):
        refuse(of_terms(kind, dataclasses.replace(TERMS[kind], charges=(*charges, other("mean")))))


def test_a_charge_pays_for_epsilon_to_the_last_digit():
    proof = STRONG.verify()
    exact = labels(STRONG, proof.epsilon)
    assert Card.parse(release(exact).to_card(purpose="training")).terms.charges == (exact,)
    refuse(release(labels(STRONG, math.nextafter(proof.epsilon, 0))).to_card(purpose="training"), "cost more")


def test_no_charge_pays_for_a_mechanism_with_a_delta():
    reported = ldp.Histogram([0, 1, 5], [1, 3], ldp.accounts.Origin(reports=NORMAL))
    paid = prior("prior (local)", 100), labels(epsilon=100)
    refuse(release(labels(NORMAL, 100), mechanisms=(NORMAL,)).to_card(purpose="training"), "pure")
    refuse(release(*paid, priors=(reported,), trust="local").to_card(purpose="training"), "pure")
    assert ldp.verify_card(NORMAL.to_json()).holds


def test_what_is_known_of_rows_is_paid_for():
    def stated(known, paid):
        listed = SUMS if "sums" in paid else ()
        terms = dataclasses.replace(
            TERMS["row-release"], charges=(IN_ROUNDS, *map(other, paid)), statistics=listed
        )
        return terms, of_terms("row-release", terms, knowledge={**KNOWN, **known})

    narrow, measured, summed = {"low": 1.0}, {"variance": 0.3}, {"sums": 7, "variance": 2.0}
    for known, paid in (({}, ()), (summed, ("sums",)), (summed | narrow | measured, ("sums",))):
        terms, text = stated(known, paid)
        assert Card.parse(text).terms == terms
    for known in (narrow, measured, summed, {"variance": 2.0}, {"high": 4.0}, {"sums": 1}):
        for paid in ((), ("mean",)):
            refuse(stated(known, paid)[1], "no charge pays for")
    for known in ({"low": -1.0}, {"high": 6.0}, {"low": 5.0}, {"variance": 0.0}):
        refuse(stated(known, ("sums",))[1])


def test_with_local_trust_no_card_charges_for_sums_and_no_prior_is_from_counts():
    refuse(
        release(labels(), prior("prior (local)"), trust="local").to_card(purpose="training"),
        "nobody can count labels",
    )
    for kind in ("row-release", "model"):
        refuse(of_terms(kind, dataclasses.replace(TERMS[kind], trust="local")), "nobody can sum labels")


# ---- priors and bounds ---------------------------------------------------------------------------------

SHOWN = {"nodes": [0.0, 1.0, 5.0], "masses": [0.25, 0.75]}
PAID = json.loads(card("release"))["priors"][0]
UNPAID = {
    "its charge is gone": {"charges": [labels()]},
    "another's charge": {"charges": [labels(), prior("prior (local)")]},
    "a charge of something else": {"charges": [labels(), prior("labels")]},
    "its charge twice": {"charges": [labels(), prior(), prior()]},
    "another's charge beside its own": {"charges": [labels(), prior(), prior("prior (local)")]},
    "a charge, and no prior": {"priors": [None]},
    "trust that is another": {"trust": "local"},
    "public, and charged": {"priors": [SHOWN]},
    "a prior that is no histogram": {"priors": [{**PAID, "nodes": [0, 1], "masses": [-1]}]},
}


@pytest.mark.parametrize("case", UNPAID)
def test_a_prior_that_was_paid_for_has_its_charge_and_no_other_has_one(case):
    changes = dict(UNPAID[case])
    if "charges" in changes:
        stated = json.loads(release(*changes["charges"]).to_card(purpose="training"))
        changes |= {key: stated[key] for key in ("charges", "cost", "guarantee")}
    refuse(card("release", **changes), None)


def test_a_prior_lies_inside_its_bounds_up_to_rounding_of_their_width():
    def with_prior(low, high, bounds=BOUNDS):
        shown = (ldp.Histogram([low, (low + high) / 2, high], [1, 1], COUNTED),)
        return release(labels(), prior(), priors=shown, bounds=bounds).to_card(purpose="training")

    for low, high in ((0, 5), (0.5, 4.5), (-4e-9, 5), (0, 5 + 4e-9)):
        assert Card.parse(with_prior(low, high)).terms.priors[0].bounds == (low, high)
    for low, high in ((-6e-9, 5), (0, 5 + 6e-9), (-1, 5), (0, 6)):
        refuse(with_prior(low, high), "prior lies outside")
    refuse(with_prior(4 - 5e-9, 5, bounds=(4.0, 5.0)), "prior lies outside")


@pytest.mark.parametrize("mechanism", [STRONG, *OTHERS], ids=lambda mechanism: mechanism.name)
def test_a_mechanism_for_labels_outside_the_bounds_of_the_card_does_not_hold(mechanism):
    """One for more labels than the bounds allow is as private: it may be made before the bounds are known."""

    def text(*bounds):
        terms = release(labels(mechanism), mechanisms=(mechanism,), priors=(None,), bounds=bounds)
        return terms.to_card(purpose="values")

    assert all(ldp.verify_card(text(*bounds)).holds for bounds in ((0.0, 5.0), (-1.0, 6.0), (1.0, 5.0)))
    for bounds in ((100.0, 101.0), (5.0, 6.0)):
        refuse(text(*bounds), "outside its bounds")


def test_labels_are_not_released_without_a_mechanism_and_rows_and_models_show_no_prior():
    for kind in ("release", "row-release"):
        refuse(card(kind, mechanisms=[], parts=[]), "shows no mechanism")
    refuse(of_terms("model", dataclasses.replace(TERMS["model"], mechanisms=())), "needs mechanisms")
    for kind in ("row-release", "model"):
        for shown in (SHOWN, None):
            refuse(card(kind, priors=[shown]), "no prior")
