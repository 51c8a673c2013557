"""Lies on cards and in ledgers, made by walking the schema: a field that is not what was written is refused.

`wrong` yields values that a type does not accept, `others` values near to one. A field that may hold any value of
its type is named in `FREE`; all others follow from something else on the card.
"""

import copy
import dataclasses
import json
import math
from fractions import Fraction
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import pytest

import labeldp as ldp
from accounts.ledger_cases import ENTRY, HEADER, rows_of, write_ledger
from card_cases import FILE, SMALL, TERMS, card, of_terms
from forged_cards import forged, get, put
from helpers import NAMES
from labeldp.accounts import ledger_chain
from labeldp.accounts.schema import CARDS, MechanismEntry, PriorEntry
from labeldp.accounts.terms import fit_times
from labeldp.errors import LedgerError

ENTRIES = {ldp.mechanisms.Mechanism: MechanismEntry, ldp.Histogram: PriorEntry}
"""The schema of a value that is built from its entry."""
AMOUNTS = (
    *("1e999999999", "9" * 401, "1/" + "9" * 399, "0." + "1" * 4000, "9" * 100_000, "1/0", "0.5", "-1", ""),
    *("½", "0x10", "1_0", " 1", "nan", "٣", "1/-3"),
)
"""Texts that are no amount, or would take all memory."""
NOT = {
    str: (None, 3, [], {}),
    bool: (None, 0, 1, "true"),
    int: (None, True, 1.0, "1", [1]),
    float: (None, True, "1", [1], 10**400),
    Fraction: (None, 1, 0.5, *AMOUNTS),
    ldp.Budget: (None, 1, 0.5, ["1"], *AMOUNTS),
    ldp._values.Bounds: (None, 5, [0], [0, 1, 2], [1, 1], [1, 0], ["0", "1"], [0, 10**400]),
}


def bare(hint):
    """Return a type without its limits, and without None."""
    while get_origin(hint) in (Annotated, Union, UnionType):
        hint = next(each for each in get_args(hint) if each is not NoneType)
    return ENTRIES.get(hint, hint)


def fields(hint, value=None):
    """Return the fields of an object by name, and those that may be missing; of anything else, none."""
    hint = bare(hint)
    if hint == dict[str, Any] and isinstance(value, dict):  # parameters and channels are their mechanism's own
        return dict.fromkeys(value, Any), set()
    if not (is_typeddict(hint) or dataclasses.is_dataclass(hint)) or hint in NOT:
        return {}, set()
    known = get_type_hints(hint, include_extras=True)
    known = {name: each for name, each in known.items() if get_origin(each) is not ClassVar}
    free = {name for name, each in known.items() if get_origin(each) is NotRequired}
    if dataclasses.is_dataclass(hint):
        read = [field for field in dataclasses.fields(hint) if field.metadata.get("data", True)]
        known = {field.name: known[field.name] for field in read}
        free = {field.name for field in read if field.metadata.get("optional")}
    known |= dict.fromkeys(getattr(hint, "DERIVED", ()), Any)
    known |= {name: get_args(known[name])[0] for name in free if is_typeddict(hint)}
    return known, free


def wrong(hint, value):
    """Yield what a type does not accept in place of a value."""
    kind, arguments = get_origin(hint), get_args(hint)
    if kind is Annotated:
        yield from wrong(arguments[0], value)
        yield from (-1, (1 << 53) + 1) if arguments[0] is int else ("",) if arguments[0] is str else ()
    elif kind in (Union, UnionType):
        inner = [each for each in arguments if each is not NoneType]
        yield from (lie for lie in wrong(inner[0], value) if lie is not None and not isinstance(lie, str | dict))
    elif kind is Literal:
        yield from (None, 3, "", "nothing", [arguments[0]])
    elif kind in (list, tuple):
        yield from (None, 3, {}, "x")
    elif hint in NOT:
        yield from NOT[hint]
    elif hint is not Any:
        yield from (None, 3, "x", [])


def walk(hint, value, path=()):
    """Yield the path, the type and the value of each field, the fields of what it holds included."""
    yield path, hint, value
    kind, arguments = get_origin(bare(hint)), get_args(bare(hint))
    if kind in (list, tuple) and value is not None:
        inner = [arguments[0]] * len(value) if kind is list or arguments[-1] is ... else arguments
        for k, item in enumerate(value[:2]):
            yield from walk(inner[k], item, (*path, k))
    for name, each in fields(hint, value)[0].items() if isinstance(value, dict) else ():
        if name in value:
            yield from walk(each, value[name], (*path, name))


def lies(hint, content):
    """Yield (path, data) with one value of another type, one field missing, or one too many."""
    for path, each, value in walk(hint, content):
        for lie in wrong(each, value) if path else ():
            yield path, put(content, path, lie)
        known, free = fields(each, value) if isinstance(value, dict) else ({}, ())
        for name in known.keys() - free:
            yield (*path, name), without(content, (*path, name))
        if known:
            yield (*path, "more"), put(content, (*path, "more"), 1)


def without(content, path):
    result = copy.deepcopy(content)
    del get(result, path[:-1])[path[-1]]
    return result


# ---- cards ------------------------------------------------------------------------------------------------------

SCORE_EPSILON = TERMS["model"].cost.exact_epsilon + Fraction(1, 2)
SCORE = ldp.accounts.Statistic("errors", "score", 1, 1 << 36, SCORE_EPSILON, "score")
PAID = ldp.accounts.Charge("score", ldp.Budget(0.5), "now", str(SCORE), 1, "score")
SCORED = dataclasses.replace(
    TERMS["model"],
    charges=(*TERMS["model"].charges, PAID),
    statistics=(*TERMS["model"].statistics, SCORE),
    split=ldp.accounts.Split(0, 70, 30, fit_times(TERMS["model"].charges)),
)
MODEL = {
    "model": "ModelReleaseRegressor", "label": "pay", "note": "", "features": ["a"], "format": 4,
    "files": {"model.npz": "0" * 64}, "versions": {"labeldp": "0.2.0"},
    "quality": {"rows": 30, "figures": {"rmse": {"value": 0.5, "standard_error": 0.02}}},
    "regression": {"names": ["a"], "params": [1.0], "bse": [0.5], "bse_ols": [0.4], "pvalues": [0.1],
                   "conf_int": [[0.0, 2.0]]},
}  # fmt: skip
SAID = {"intended_use": "a study", "recipient": "a lab", "bounds_reason": "the form", "rounding": [0.5]}
PRIOR = ldp.estimate_prior([1.0, 2.0, 3.0] * 40, epsilon=0.5, bounds=(0, 5), ledger=ldp.Ledger())
HONEST = {
    "mechanism": ldp.RROnBins.design(PRIOR, 2.0).to_json(),
    "release": of_terms("release", TERMS["release"], file=FILE, label="pay", id="row", release="spring", **SAID),
    "row-release": card("row-release", arrays={"labels": "0" * 64}, **SAID),
    "model": of_terms("model", SCORED, **MODEL, **SAID),
}
EACH = {**HONEST, **{name: SMALL[name](16.0, (1, 4)).to_json() for name in NAMES}}


def holds(content):
    """Return whether a card with this content and its checksum holds."""
    return ldp.verify_card(forged(content)).holds


@pytest.mark.parametrize("kind", EACH)
def test_a_value_of_another_type_and_a_field_missing_or_too_many_are_refused(kind):
    content, seen = json.loads(EACH[kind]), set()
    del content["checksum"]
    assert forged(content) == EACH[kind]
    assert holds(content)
    for path, lie in lies(CARDS[content["schema"]], content):
        seen.add(path)
        assert not holds(lie), path
    assert len(seen) > 10


FREE = {
    *(
        "description",
        "when",
        "size",
        "column",
        "label",
        "id",
        "intended_use",
        "recipient",
        "bounds_reason",
        "rounding",
    ),
    *("nodes", "masses", "model", "note", "features", "format", "value", "standard_error", "params", "bse"),
    *("pvalues", "conf_int", "names", "seed", "rounds", "arrays", "files", "versions", "file", "knowledge"),
    *("bounds", "schema", "release", "rows", "bse_ols"),
}
"""Fields that may hold another value: text for people, and numbers that nothing else on the card repeats."""
BOUND = {
    ("charges", 0, "purpose"),
    ("quality", "rows"),
    ("file", "rows"),
    ("split", "train_rows"),
}
"""Fields of these names that may not."""


def others(value):
    """Yield values near to one: what a forger would try."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value / 2 if isinstance(value, float) else value - 1)
        yield from [math.nextafter(value, math.inf)] if isinstance(value, float) else []
    elif isinstance(value, str):
        yield from (f"{value} ", value[:-1], value.upper(), value.replace("1", "2"), f"{value}0")
    elif isinstance(value, list) and value:
        yield from (value[:-1], [*value, value[-1]])
    elif value is None:
        yield from (0, "x")


@pytest.mark.parametrize("kind", HONEST)
def test_every_other_value_of_a_field_is_refused_unless_the_field_is_free(kind):
    """Amounts, fingerprints, proofs, scales, columns, trust: each follows from others, to the last digit."""
    content, count = json.loads(HONEST[kind]), 0
    for path, _, value in walk(CARDS[f"labeldp.{kind}"], content):
        if path in BOUND or not ({*path} & FREE or path[-2:] == ("charge", "mechanism")):
            for other in [other for other in others(value) if other != value]:
                count += 1
                assert not holds(put(content, path, other)), (path, value, other)
    assert count > 50


# ---- ledgers ----------------------------------------------------------------------------------------------------

DECLARED = {"intended_use": "a study", "recipient": "a lab", "bounds_reason": "the form"}
RECORDS = {
    "header": (ledger_chain.Header, HEADER, 0),
    "charges": (
        ledger_chain.Charged,
        {"charges": [{**ENTRY, "mechanism": "sha256:0123"}], "declaration": DECLARED},
        1,
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_of_a_ledger_that_lies_is_refused_though_its_hashes_fit(path, name):
    hint, record, place = RECORDS[name]
    honest = [each for _, each, _ in RECORDS.values()]
    write_ledger(path, *honest)
    assert ldp.Ledger.open(path).total == ldp.Budget(Fraction(1, 3))
    for where, lie in lies(hint, record):
        if where == ("limit",) and lie.get("limit", 0) is None:  # a ledger without a limit
            continue
        before = rows_of(write_ledger(path, *honest[:place], lie, *honest[place + 1 :]))
        with pytest.raises(LedgerError):
            ldp.Ledger.open(path).total  # noqa: B018
        with pytest.raises(LedgerError):
            ldp.Ledger.open(path).charge("more", epsilon=0.1)
        assert rows_of(path) == before, where
