"""Segments and people: nobody's labels cost more than the limit, in exact fractions, whatever is tried."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import unicodedata
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor

import labeldp as ldp
from accounts.ledger_cases import chained, rows_of, write_rows
from accounts.test_verify_card import checker
from forged_cards import forged as forged_card
from helpers import posix_only
from labeldp import Budget, BudgetError, Ledger
from labeldp.accounts import Card, verify_card
from labeldp.accounts.budget import missing_charges
from labeldp.accounts.ledger_chain import Extract
from labeldp.accounts.ledger_file import restore_ledger
from labeldp.accounts.scope import IdColumn, Scope
from labeldp.errors import CardError, DataError, LedgerError, ParameterError
from labeldp.release import LabelStream, Request

pytestmark = pytest.mark.filterwarnings("ignore:The labels of")
HOW = {"bounds": (0, 5), "mechanism": "two-point"}
Y = np.linspace(1, 4, 40)


def release(ledger, rows=40, epsilon=1.0, **options):
    return ldp.privatize(np.resize(Y, rows), epsilon=epsilon, ledger=ledger, **HOW, **options)


def people_ledger(path, limit=2.0, **rules):
    return Ledger.open(path, limit=Budget(limit), unit="person", **rules)


def as_extract(rows, total):
    """Return the extract of records with hashes that fit."""
    entries = [
        {"record": text, "hash": digest} for text, digest in chained(*[json.loads(text) for text, _ in rows])
    ]
    return json.dumps({"schema": "labeldp.ledger-extract/1", "total": total, "records": entries})


def verify_independently(card, extract):
    """Return the verdict of docs/verify_card.py."""
    return checker.verify(card.encode(), extract.encode())[0]


def test_a_column_of_rows_in_another_order_than_the_labels_is_refused_before_the_charge():
    """Each row would be charged to somebody else."""
    labels, names = pd.Series(Y, index=range_ids(0, 40)), pd.Series(range_ids(0, 40), index=range_ids(0, 40))
    features, ledger = np.random.default_rng(0).normal(size=(40, 1)), Ledger()
    model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5), ledger=ledger)
    uses = {
        "privatize": lambda **rows: ldp.privatize(labels, epsilon=1.0, ledger=ledger, **HOW, **rows),
        "prior": lambda **rows: ldp.estimate_prior(labels, epsilon=1.0, bounds=(0, 5), ledger=ledger, **rows),
        "fit": lambda **rows: model.fit(features, labels, **rows),
        "moments": lambda **rows: ldp.private_moments(
            features, labels, epsilon=1.0, bounds=(0, 5), ledger=ledger, **rows
        ),
        "score": lambda **rows: ldp.private_score(
            DummyRegressor().fit(features, Y), features, labels, epsilon=1.0, bounds=(0, 5), ledger=ledger, **rows
        ),
    }
    for use in uses.values():
        for rows in ({"person": names}, {"segment": names}, {"segment": "May", "id": names}):
            shuffled = {name: one[::-1] if isinstance(one, pd.Series) else one for name, one in rows.items()}
            with pytest.raises(DataError, match=r"labels and (person|segment|id) have the same index in another"):
                use(**shuffled)
    frame = pd.DataFrame({"a": features[:, 0]}, index=names.index)  # of labels without an index
    moments = {"on": "a", "label": "y", "epsilon": 1.0, "bounds": (0, 5), "ledger": ledger}
    for use in (
        lambda **rows: ldp.privatize(Y, X=frame, epsilon=1.0, bounds=(0, 5), ledger=ledger, **rows),
        lambda **rows: model.fit(frame, Y, **rows),
        lambda **rows: ldp.fit_and_score(model, frame, Y, epsilon=1.0, **rows),
        lambda **rows: ldp.private_moments(frame, Y, **moments, **rows),
        lambda person: ldp.private_moments(frame, Y, weights=pd.Series(1.0, names.index)[::-1], **moments),
    ):
        with pytest.raises(DataError, match=r"X and (person|weights) have the same index in another"):
            use(person=names[::-1])
    assert not ledger.charges
    release_of_order = ldp.privatize(labels, epsilon=1.0, ledger=ledger, person=names, **HOW)
    assert release_of_order.labels.shape == (40,)


# ---- segments ---------------------------------------------------------------------------------------------------


def test_a_year_of_nights_costs_one_night_and_a_table_of_all_nights_counts_for_each(path):
    memory, ledger = Ledger(limit=Budget(1)), Ledger.open(path, limit=Budget(1.25), segments="night")
    for night in range(365):
        release(memory, 20, segment=f"night {night}")
    assert (memory.total, len(memory.charges)) == (Budget(1), 365)
    for night in range(20):
        release(ledger, 20, segment=f"night {night}", id=range_ids(20 * night, 20 * night + 20))
    assert (ledger.total, ledger.remaining(), ledger.remaining("night 366")) == (
        Budget(1),
        Budget(0.25),
        Budget(1.25),
    )
    with pytest.raises(BudgetError, match=r"0\.25 of 1\.25 is left in segment night 7"):
        release(ledger, epsilon=0.5, segment="night 7")
    with pytest.raises(BudgetError):
        release(ledger, epsilon=0.5)
    release(ledger, epsilon=0.25)
    with pytest.raises(BudgetError, match=r"left in segment night 19"):
        release(ledger, 2, epsilon=0.01, segment=["night 19", "night 40"])
    assert Extract(ledger.to_extract()).total == ledger.total == Budget(1.25)


def test_a_release_over_several_segments_charges_each(path):
    ledger = Ledger.open(path, limit=Budget(1))
    release(ledger, segment=["a", "b"] * 20, epsilon=0.6)
    assert [ledger.remaining(name) for name in "abc"] == [Budget(0.4), Budget(0.4), Budget(1)]
    with pytest.raises(BudgetError):
        release(ledger, segment="b", epsilon=0.5)


def test_rows_that_were_in_another_segment_are_refused_before_the_charge_with_their_number(path):
    ledger = Ledger.open(path, limit=Budget(1))
    release(ledger, segment="a", id=range_ids(0, 40))
    before = rows_of(path)
    for renamed in ("b", "A", "a2"):
        with pytest.raises(ParameterError, match="15 of 40 ids"):
            release(ledger, segment=renamed, id=range_ids(25, 65))
    with pytest.raises(ParameterError, match="1 of 2 ids"):  # an id in two segments of one release
        release(ledger, 3, segment=["c", "d", "d"], id=[100, 100, 101])
    with pytest.raises(LedgerError, match="type"):
        release(ledger, segment="b", id=[str(number) for number in range(40)])
    assert rows_of(path) == before
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM ids").fetchone() == (40,), "nothing of a refused one stays"
    release(ledger, segment="b", id=range_ids(40, 80))
    assert ledger.total == Budget(1)


def range_ids(first, last):
    return np.arange(first, last)


def test_another_segmentation_is_refused_and_none_counts_for_all(path):
    ledger = Ledger.open(path, limit=Budget(1), segments="night")
    release(ledger, segment=pd.Series(["1", "2"] * 20, name="night"), epsilon=0.5)
    with pytest.raises(LedgerError, match="hospital"):
        release(ledger, segment=pd.Series(["A", "B"] * 20, name="hospital"), epsilon=0.1)
    with pytest.raises(LedgerError, match="segments"):
        Ledger.open(path, segments="hospital")
    unnamed = Ledger.open(path.with_name("unnamed"))
    release(unnamed, segment="a")
    with pytest.raises(LedgerError, match="hospital"):
        release(unnamed, segment=pd.Series(["A", "B"] * 20, name="hospital"))


BAD = {
    "missing": {"person": [None, *["a"] * 39]},
    "floats": {"person": np.arange(40.0)},
    "booleans": {"person": [True, False] * 20},
    "mixed": {"person": ["a", 1] * 20},
    "another form": {"person": [unicodedata.normalize("NFD", "é")] * 40},
    "a blank at the end": {"person": ["a "] * 40},
    "hidden": {"person": ["a\u200b"] * 40},
    "empty": {"person": [""] * 40},
    "too few": {"person": ["a"] * 39},
    "ids without a segment": {"id": list(range(40))},
    "most without people": {"most_rows_per_person": 2},
    "more rows than stated": {"rows_per_person": 39},
    "no rows": {"person": ["a"] * 40, "most_rows_per_person": 0},
    "a segment in another form": {"segment": unicodedata.normalize("NFD", "é")},
    "a segment of two lines": {"segment": "a\nb"},
    "a segment with a blank": {"segment": "a "},
    "segments that are floats": {"segment": np.arange(40.0)},
    "segments that are missing": {"segment": [None] * 40},
}


@pytest.mark.parametrize("name", BAD)
def test_bad_ids_and_segments_are_refused_and_nothing_is_charged(path, name):
    ledger = people_ledger(path)
    before = rows_of(path)
    with pytest.raises(ParameterError) as caught:
        release(ledger, **({} if "without" in name else {"person": ["a"] * 40, "segment": "s"}) | BAD[name])
    assert caught.value.option or "needs" in str(caught.value)
    assert rows_of(path) == before


# ---- people -----------------------------------------------------------------------------------------------------


def test_returning_people_never_pass_their_limit_by_a_recount_from_cards(path):
    """The recount adds ε of a label, from each card, for each row that got a label: it shares no code."""
    random, spent = np.random.default_rng(0), defaultdict(Fraction)
    ledger = people_ledger(path, 3.0)
    for night in range(40):
        newcomers = [f"p{night}-{number}" for number in range(18)]
        returning = [f"p{random.integers(0, 3)}-{random.integers(0, 4)}" for _ in range(7)]
        epsilon = float(random.choice([0.3, 0.7, 1.0]))
        people = newcomers + returning
        done = release(
            ledger,
            25,
            epsilon,
            segment=f"n{night}",
            person=people,
            most_rows_per_person=int(random.integers(1, 4)),
        )
        (charge,) = json.loads(done.to_card())["charges"]
        price = Fraction(charge["budget"]) / charge["rows_per_person"]
        assert price == Fraction(str(epsilon))
        for person in np.array(people)[~np.isnan(done.labels)]:
            spent[person] += price
        assert verify_card(done.to_card()).holds
    assert max(spent.values()) <= 3
    assert ledger.chain.people[Fraction(3)] or max(spent.values()) > 2
    assert {person: ledger.total_of_person(person).exact_epsilon for person in spent} == dict(spent)
    assert Extract(ledger.to_extract()).total == ledger.total == Budget(max(spent.values()))


def test_a_stream_of_more_labels_than_it_has_ids_is_refused(path):
    """Else one row of a person would pay for all labels."""
    ledger = people_ledger(path)
    for scope in (Scope.parse(person=["a"]), Scope.parse(person=["a"] * 40, most_rows_per_person=1)):
        request = Request(epsilon=1.0, scope=scope, **HOW)
        with pytest.raises(ParameterError):
            LabelStream(lambda: [Y], request, ledger=ledger)
    assert ledger.charges == ()
    LabelStream(lambda: [Y], Request(epsilon=0.05, scope=Scope.parse(person=["a"] * 40), **HOW), ledger=ledger)
    assert ledger.total_of_person("a") == Budget(2)


def test_which_labels_stay_empty_depends_on_public_ids_alone(path):
    """Two inputs that differ in labels only leave the same rows empty, also by most_rows_per_person."""
    people, empty = ["a"] * 5 + ["b"] * 3 + ["c"] * 32, []
    for number, labels in enumerate((np.zeros(40), np.linspace(0, 5, 40))):
        ledger = people_ledger(path.with_name(f"ledger {number}"), 4.0)
        done = [ldp.privatize(labels, epsilon=1.0, ledger=ledger, person=people, most_rows_per_person=3, **HOW)]
        with pytest.raises(BudgetError, match="nobody"):
            ldp.privatize(labels, epsilon=1.0, ledger=ledger, person=people, most_rows_per_person=3, **HOW)
        others = [*people[:8], *(f"d{number}" for number in range(32))]
        done.append(ldp.privatize(labels, epsilon=0.25, ledger=ledger, person=others, **HOW))
        empty.append([np.isnan(one.labels).tolist() for one in done])
    assert empty[0] == empty[1]
    assert sum(empty[0][0]) == 31
    assert empty[0][1] == [True] * 5 + [False] * 35


def test_a_person_who_was_withdrawn_is_in_no_further_release_and_keeps_past_charges(path):
    ledger = people_ledger(path)
    release(ledger, 2, person=["anna", "ben"])
    ledger.withdraw("anna")
    ledger.withdraw("anna")
    ledger.withdraw("carl")
    done = release(Ledger.open(path), 3, person=["anna", "ben", "carl"])
    assert np.isnan(done.labels).tolist() == [True, False, True]
    assert (ledger.total_of_person("anna"), ledger.chain.withdrawn) == (Budget(1), 2)
    with pytest.raises(BudgetError):
        ledger.charge("around the rule", epsilon=0.1, person=["anna"])


def test_a_ledger_of_people_refuses_a_charge_without_them_and_one_of_labels_has_no_accounts(path):
    ledger = people_ledger(path)
    for charge in (lambda: release(ledger), lambda: ledger.charge("labels", epsilon=0.1)):
        with pytest.raises(ParameterError, match="person"):
            charge()
    with pytest.raises(LedgerError, match="unit"):
        Ledger.open(path, unit="label")
    labels = Ledger.open(path.with_name("labels"))
    for account in (labels.withdraw, labels.total_of_person):
        with pytest.raises(LedgerError, match="accounts of people"):
            account("anna")
    release(ledger, person=range_ids(0, 40))
    with pytest.raises(LedgerError, match="type"):
        release(ledger, person=[str(number) for number in range(40)])
    os.remove(f"{path}.key")
    with pytest.raises(LedgerError, match="key"):
        release(ledger, person=range_ids(0, 40))
    path.with_name(f"{path.name}.key").write_bytes(b"k" * 32)
    with pytest.raises(LedgerError, match="key"):
        release(ledger, person=range_ids(0, 40))


def test_ids_are_in_no_file_but_as_hashes_of_a_key_beside_the_database(path):
    ledger = people_ledger(path)
    release(ledger, 2, person=["anna-maria", "benedict"], id=["order-4711", "order-4712"], segment="s")
    text = (
        path.read_bytes()
        + ledger.to_extract().encode()
        + release(ledger, 1, person=["carla-ann"]).to_card().encode()
    )
    assert not any(name in text for name in (b"anna-maria", b"benedict", b"order-4711", b"carla-ann"))
    assert path.with_name(f"{path.name}.key").read_bytes() not in text


def test_a_restored_backup_is_found_by_cards_and_parallel_copies_do_not_add_budget(path, tmp_path):
    ledger = people_ledger(path, 1.0)
    ledger.backup(tmp_path / "copy")
    card = Card.parse(release(ledger, 2, person=["a", "b"]).to_card())
    with pytest.raises(LedgerError, match="lacks 1"):
        restore_ledger(path, tmp_path / "copy")
    (tmp_path / "another").mkdir()
    os.rename(path, tmp_path / "another" / "ledger")
    restore_ledger(path, tmp_path / "copy")
    assert missing_charges(card.terms.charges, Ledger.open(path).charges)


def test_a_split_holds_out_people_and_a_row_left_out_is_neither_fitted_nor_scored(path):
    random = np.random.default_rng(1)
    X = random.normal(size=(1500, 2))
    y, people = np.clip(2.5 + X[:, 0], 0, 5), random.integers(0, 700, 1500)
    ledger = people_ledger(path, 2.0)
    model = ldp.ModelReleaseRegressor(epsilon=0.5, bounds=(0, 5), ledger=ledger)
    model, score = ldp.fit_and_score(model, X, y, epsilon=0.75, person=people, most_rows_per_person=2, segment="s")
    kept = ledger.chain.people
    assert set(kept) == {Fraction(3, 4), Fraction(3, 2)}
    rows = sum(count * int(total / Fraction(3, 4)) for total, count in kept.items())
    assert score.split.train_rows + score.split.test_rows == rows
    assert score.split.method == "people"
    train, test = score.split.indices(np.repeat(np.arange(rows // 2 + 1), 2)[:rows])
    assert not set(train.tolist()) & set(test.tolist())
    done = ldp.privatize(y, X=X, epsilon=0.5, bounds=(0, 5), ledger=ledger, person=people + 1000)
    assert verify_card(done.to_card()).holds
    assert done.error.split.method == "people"


# ---- many processes ---------------------------------------------------------------------------------------------

_CHARGE = """
import sys, time, labeldp as ldp
ledger = ldp.Ledger.open(sys.argv[1])
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    person = [f"{sys.argv[2]}-{number}", "everybody"]
    try:
        ledger.charge("labels", epsilon=0.25, person=person, segment=f"s{number}")
        print("paid", flush=True)
    except ldp.BudgetError:
        ledger.charge("labels", epsilon=0.25, person=person[:1], segment=f"s{number}")
        print("paid", flush=True)
"""


@posix_only
@pytest.mark.slow
def test_processes_that_charge_one_ledger_of_people_and_are_killed_lose_nothing_and_charge_nothing_twice(path):
    people_ledger(path, 2.0)
    command = [sys.executable, "-c", _CHARGE, str(path)]
    jobs = [subprocess.Popen([*command, str(job), "4"], stdout=subprocess.PIPE, text=True) for job in range(8)]  # noqa: S603
    for job in jobs[:3]:
        job.stdout.readline()
        time.sleep(0.05)
        job.send_signal(signal.SIGKILL)
    paid = sum(job.communicate()[0].count("paid") for job in jobs)
    ledger = Ledger.open(path)
    assert paid <= len(ledger.charges) <= paid + 3, "a charge without a release at most, never the reverse"
    assert ledger.total_of_person("everybody") == ledger.total == Budget(2)
    singles = sum(count for total, count in ledger.chain.people.items() if total == Fraction(1, 4))
    assert singles == len(ledger.charges)
    ledger.backup(path.with_name("sound"))


def test_threads_that_race_for_a_persons_last_budget_do_not_pass_it(path):
    people_ledger(path, 1.0)

    def charge(_):
        try:
            Ledger.open(path).charge("labels", epsilon=0.4, person=["anna"])
        except BudgetError:
            return 0
        return 1

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(charge, range(8))) == 2
    assert Ledger.open(path).total_of_person("anna") == Budget(0.8)


# ---- forgeries --------------------------------------------------------------------------------------------------


def test_an_extract_that_understates_a_segment_or_a_person_is_refused_though_its_hashes_fit(path):
    ledger = people_ledger(path, 2.0)
    release(ledger, 3, person=["a", "a", "b"], segment="n1")
    release(ledger, 2, 0.5, person=["b", "c"], segment="n2")
    card = release(ledger, 1, 0.5, person=["d"]).to_card()
    assert verify_independently(card, ledger.to_extract()) == "valid"
    records = [json.loads(text) for text, _ in rows_of(path)]
    assert Extract(as_extract(rows_of(path), "2")).total == Budget(2)

    def forge(change, total):
        forged = json.loads(json.dumps(records))
        change(forged)
        return as_extract(chained(*forged), total)

    def fewer_rows(forged):
        forged[1]["people"] = [["0", 1, 2]]

    forgeries = {
        "another total": (lambda _: None, "1"),
        "fewer rows": (fewer_rows, "2"),
        "nobody": (lambda forged: forged[1].pop("people"), "1/2"),
        "more rows than charged": (lambda forged: forged[1]["people"][1].__setitem__(1, 3), "3"),
        "a total that nobody had": (lambda forged: forged[2]["people"][0].__setitem__(0, "1/2"), "2"),
        "a unit that hides people": (lambda forged: forged[0].__setitem__("unit", "label"), "2"),
    }
    for name, (change, total) in forgeries.items():
        with pytest.raises(LedgerError):
            Extract(forge(change, total), name)
        assert verify_independently(card, forge(change, total)) == "not valid", name
    labels = Ledger.open(path.with_name("labels"), limit=Budget(1))
    release(labels, segment="n1")
    records = [json.loads(text) for text, _ in rows_of(path.with_name("labels"))]
    with pytest.raises(LedgerError):
        Extract(forge(lambda forged: None, "1/2"))


def test_a_person_with_less_than_a_release_costs_is_told_what_it_costs(tmp_path):
    ledger = people_ledger(tmp_path / "people.db", limit=1.5)
    release(ledger, person=[f"{number}" for number in range(40)])
    with pytest.raises(BudgetError, match="nobody in these rows has ε = 1 left for each of their rows"):
        release(ledger, person=[f"{number}" for number in range(40)])


def test_a_card_of_another_segment_column_or_number_of_rows_than_its_ledger_has_is_not_in_it(path):
    ledger = Ledger.open(path)
    card = json.loads(release(ledger, segment="n1", person=[f"{number % 20}" for number in range(40)]).to_card())
    charges = Card.parse(forged_card(card)).terms.charges
    assert not missing_charges(charges, ledger.charges)
    for change in (
        lambda one: one["segments"].update(names=["n2"]),
        lambda one: one.pop("segments"),
        lambda one: one["segments"].update(checked=True),
        lambda one: one.update(description="another column"),
    ):
        forged = json.loads(json.dumps(card))
        for one in forged["charges"]:
            change(one)
        assert missing_charges(Card.parse(forged_card(forged)).terms.charges, ledger.charges)
        assert verify_independently(forged_card(forged), ledger.to_extract()) == "not valid"
    for impossible in ({"people": 10}, {"people": 41}, {"exhausted": 1}):
        forged = forged_card(card | {"people": card["people"] | impossible})
        with pytest.raises(CardError, match="people"):
            Card.parse(forged)
        assert verify_independently(forged, ledger.to_extract()) == "not valid"


def test_the_tables_of_ids_are_part_of_what_is_checked_before_a_copy_is_made(path, tmp_path):
    ledger = people_ledger(path)
    release(ledger, 2, person=["a", "b"])
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM people WHERE hash = (SELECT min(hash) FROM people)")
    with pytest.raises(LedgerError, match="damaged"):
        ledger.backup(tmp_path / "copy")


@pytest.mark.parametrize("total", ["much", "1/0"])
def test_a_total_of_a_person_that_is_no_amount_is_damage(path, total):
    ledger = people_ledger(path)
    release(ledger, 2, person=["a", "b"])
    before = rows_of(path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE people SET value = ?", (total,))
    for use in (lambda: release(ledger, 1, person=["a"]), lambda: ledger.total_of_person("a")):
        with pytest.raises(LedgerError, match="damaged"):
            use()
    assert rows_of(path) == before


@pytest.mark.parametrize(
    "damage", ["UPDATE people SET value = '0' WHERE value = '1'", "DELETE FROM people", "DELETE FROM ids"]
)
def test_an_account_that_is_lost_has_no_budget_again(path, damage):
    ledger = people_ledger(path)
    release(ledger, 2, person=["a", "b"])
    ledger.withdraw("c")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(damage)
    before = rows_of(path)
    uses = (
        lambda: release(Ledger.open(path), 1, person=["a"]),
        lambda: ledger.charge("labels", epsilon=1, person=["c"]),
        lambda: ledger.withdraw("b"),
        lambda: ledger.total_of_person("a"),
    )
    for use in uses:
        with pytest.raises(LedgerError, match="damaged"):
            use()
    assert rows_of(path) == before


def test_a_ledger_of_an_unknown_unit_is_refused(path):
    write_rows(path, chained({"schema": "labeldp.ledger/1", "limit": "3", "id": "0" * 32, "unit": "household"}))
    with pytest.raises(LedgerError):
        Ledger.open(path)


# ---- negative controls ------------------------------------------------------------------------------------------


def test_accounts_that_forget_the_limit_are_stopped_by_the_records(path, monkeypatch):
    monkeypatch.setattr("labeldp.accounts.ledger_ids._passes", lambda *_: False)
    ledger = people_ledger(path, 1.0)
    release(ledger, 2, person=["a", "b"])
    with pytest.raises(LedgerError, match="limit"):
        release(ledger, 2, person=["a", "b"])
    assert ledger.total == Budget(1)


def test_a_recount_would_notice_a_ledger_that_counts_each_person_once(path, monkeypatch):
    one = IdColumn.counts.fget
    monkeypatch.setattr(IdColumn, "counts", property(lambda column: np.minimum(one(column), 1)))
    ledger = people_ledger(path, 1.0)
    done = release(ledger, 3, person=["a", "a", "a"])
    assert int(np.sum(~np.isnan(done.labels))) * done.terms.label_cost.exact_epsilon > 1


def test_a_key_that_cannot_be_written_is_an_error_before_the_charge(path, monkeypatch):
    ledger = people_ledger(path)
    before = rows_of(path)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("labeldp.accounts.ledger_file.atomic_file", full)
    with pytest.raises(LedgerError, match="No space left"):
        release(ledger, 2, person=["a", "b"])
    assert rows_of(path) == before
