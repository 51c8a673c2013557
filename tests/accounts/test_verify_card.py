"""docs/verify_card.py shares no code with the library, and says the same of every card, honest or forged."""

import ast
import copy
import hashlib
import importlib.util
import io
import json
import random
import subprocess
import sys
from contextlib import redirect_stdout
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import labeldp as ldp
from accounts.test_lies import others as near
from card_cases import SMALL, card
from forged_cards import forged, get
from fuzzing import LONG
from helpers import EVERY

FILE = Path(__file__).parents[2] / "docs" / "verify_card.py"
spec = importlib.util.spec_from_file_location("verify_card_of_docs", FILE)
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)
VALID, FALSE, OPEN = checker.VALID, checker.FALSE, checker.OPEN


def mine(text):
    """Return the verdict of the file, the cost it states, and the lines it printed."""
    lines = io.StringIO()
    with redirect_stdout(lines):
        verdict, cost = checker.verify(text.encode())
    return verdict, cost, lines.getvalue()


def library(text):
    """Return the library's verdict in the words of the file."""
    return ldp.verify_card(text).verdict


# ---- cards of every kind ----------------------------------------------------------------------------------------


def release_cards():
    """Return cards of releases, by what is special about them."""
    y = np.linspace(0, 5, 3000)
    X = np.column_stack([y + 0.1 * np.sin(97 * y), np.cos(y)])
    ledger = ldp.Ledger()
    prior = ldp.estimate_prior(y, epsilon=0.5, bounds=(0, 5), ledger=ledger)
    designed = ldp.RROnBins.design(prior, 1.0)
    local = ldp.estimate_prior(y, epsilon=2.0, bounds=(0, 5), trust="local", ledger=ledger)
    cases = {
        "one column": {"y": y, "epsilon": 1.0},
        "rows of a person": {"y": y, "epsilon": 0.3, "rows_per_person": 3},
        "nobody trusted": {"y": y, "epsilon": 8.0, "trust": "local"},
        "a private prior": {"y": y, "epsilon": 1.0, "prior": prior},
        "a prior of reports": {"y": y, "epsilon": 1.0, "prior": local},
        "a designed mechanism": {"y": y, "epsilon": 1.0, "mechanism": designed, "purpose": "values"},
        "for statistics": {"y": y, "epsilon": 1.0, "purpose": "statistics"},
        "with features": {"y": y, "epsilon": 1.0, "X": X},
        "with features of a frame, rows of a person": {
            "y": y, "epsilon": 0.9, "X": pd.DataFrame(X, columns=["a", "b"]), "rows_per_person": 2
        },
        "with features, too few for a score": {"y": y[::30], "epsilon": 0.2, "X": X[::30]},
        "a mean": {"y": y[::30], "epsilon": 0.5},
        "two labels": {"y": np.column_stack([y, 5 - y]), "epsilon": 1.0, "shares": [2, 1]},
        "two labels with features, rows of a person": {
            "y": np.column_stack([y, 5 - y]), "epsilon": 1.0, "X": X, "rows_per_person": 2
        },
        "two labels for statistics": {"y": np.column_stack([y, 5 - y]), "epsilon": 1.0, "purpose": "statistics"},
        "a given mechanism": {"y": y, "epsilon": 1.0, "mechanism": ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)},
    }  # fmt: skip
    return {
        f"release, {name}": ldp.privatize(
            case.pop("y"), **{"bounds": (0, 5), "ledger": ldp.Ledger(), **case}
        ).to_card()
        for name, case in cases.items()
    }


def model_cards(folder):
    """Return cards of models and of releases of rows, with scores and without."""
    X = np.random.default_rng(0).normal(size=(1200, 2))
    y, shared = np.clip(X[:, 0] + 2, 0, 5), {"bounds": (0, 5), "ledger": ldp.Ledger()}
    by_labels = ldp.LabelReleaseRegressor(epsilon=2.0, **shared).fit(X, y)
    by_sums = ldp.ModelReleaseRegressor(epsilon=0.4, rows_per_person=3, **shared).fit(X, y)
    by_roots = ldp.LabelReleaseRegressor(epsilon=2.0, label_transform="sqrt", **shared).fit(X, y)
    score = {"epsilon": 0.9, **shared}
    risk = ldp.private_score(by_labels, X + 0.01, y, **score)
    ldp.save_model(by_labels, folder / "scored", quality=risk)
    fitted, held_out = ldp.fit_and_score(
        ldp.ModelReleaseRegressor(epsilon=1.0, **shared), X, y, epsilon=0.5, test_size=0.3
    )
    ldp.save_model(fitted, folder / "split", quality=held_out)
    dearer = ldp.fit_and_score(ldp.ModelReleaseRegressor(epsilon=0.4, **shared), X, y, epsilon=0.9)
    ldp.save_model(dearer[0], folder / "dearer", quality=dearer[1])
    return {
        "rows": by_labels.release_.to_card(),
        "model of labels": by_labels.to_card(),
        "rows of a transform": by_roots.release_.to_card(),
        "model of a transform": by_roots.to_card(),
        "model of sums, rows of a person": by_sums.to_card(),
        "model with a score": (folder / "scored" / "card.json").read_text(),
        "model with a score of its own split": (folder / "split" / "card.json").read_text(),
        "model with a score of its own split, beyond its model": (folder / "dearer" / "card.json").read_text(),
    }


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    """Return honest cards of every kind: mechanisms, releases, rows, and models."""
    made = {f"mechanism {name}": SMALL[name](16.0, (1, 4)).to_json() for name in EVERY}
    prior = ldp.estimate_prior(np.linspace(1, 4, 500), epsilon=0.5, bounds=(1, 4), ledger=ldp.Ledger())
    made["mechanism, designed"] = ldp.RROnBins.design(prior, 2.0).to_json()
    return made | release_cards() | model_cards(tmp_path_factory.mktemp("models"))


@pytest.mark.slow
def test_every_honest_card_is_valid_for_both(cards):
    for name, text in cards.items():
        verdict, cost, lines = mine(text)
        assert (verdict, library(text)) == (VALID, VALID), (name, lines)
        assert cost == cost_of(text)


def cost_of(text):
    """Return the cost that a card states, as the file prints it."""
    stated = json.loads(text)
    stated = stated.get("cost", stated.get("proof"))
    return f"epsilon = {stated['epsilon']}" + (f", delta = {stated['delta']}" if stated.get("delta") else "")


# ---- forged cards -----------------------------------------------------------------------------------------------

SCALARS = [
    *(None, True, False, 0, 1, -1, 2, 3, 0.5, 1e-9, 1e308, 2**63, 2**64),
    *("", "0", "1", "1/2", "2/4", "1/0", "x", [], {}),
]


def branches(content, path=()):
    """Yield the path of every value in nested data, lists and objects included."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from branches(value, (*path, key))


def forge(content, others, rng):
    """Return a card with one, two or three changes, and their paths: what a forger would try."""
    content, changed = copy.deepcopy(content), []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        few = [path for path in branches(content) if not any(isinstance(key, int) and key > 2 for key in path)]
        path = rng.choice(few)  # few of many counts
        place, value = get(content, path[:-1]), get(content, path)
        same = [get(other, path) for other in others if has(other, path)]
        kinds = [[*near(value)] or SCALARS, [*near(value)] or SCALARS, same or SCALARS, SCALARS]
        if isinstance(place, dict) and rng.random() < 0.1:
            del place[path[-1]]
        elif isinstance(value, dict) and rng.random() < 0.3:
            value[rng.choice(["more", "origin", "delta", "split", "rounding"])] = 1
        else:
            place[path[-1]] = copy.deepcopy(rng.choice(rng.choice(kinds)))
        changed.append(path)
    return content, changed


def has(content, path):
    """Return whether a card has a value at a path."""
    try:
        get(content, path)
    except (LookupError, TypeError):
        return False
    return True


def mend(content, original):
    """Return a forged card whose fingerprints follow from its channels again, and its cost from its charges."""
    text = json.dumps(content)
    shown = content["mechanisms"] if isinstance(content.get("mechanisms"), list) else []
    for old, new in zip(original.get("mechanisms", []), shown, strict=False):
        text = text.replace(fingerprint(old), fingerprint(new))
    content = json.loads(text)
    try:
        new, old = (
            float(sum(Fraction(charge["budget"]) for charge in content["charges"])),
            original["cost"]["epsilon"],
        )
        content["cost"] = {"epsilon": new}
        content["guarantee"] = content["guarantee"].replace(f" = {old:g} ", f" = {new:g} ")
        content["guarantee"] = content["guarantee"].replace(f"e^{old:g}", f"e^{new:g}")
    except (TypeError, LookupError, ValueError, ArithmeticError, AttributeError):
        pass
    return content


def fingerprint(mechanism):
    """Return the fingerprint of a mechanism on a card, as formats.md says; of what is none, something."""
    channel = mechanism.get("channel") if isinstance(mechanism, dict) else None
    text = json.dumps(channel, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def forgeries(cards, count, seed):
    """Yield forged cards with the right checksum, and what was changed."""
    rng = random.Random(seed)
    contents = [json.loads(text) for text in cards.values()]
    for _ in range(count):
        original = rng.choice(contents)
        others = [one for one in contents if one["schema"] == original["schema"]]
        content, changed = forge(original, others, rng)
        yield forged(mend(content, original) if rng.random() < 0.5 else content), changed


def is_rebuilt(changed):
    """Return whether a change is to parameters or channels, which the library builds again from each other.

    The file proves the channel that is on the card. The library also refuses one that is as private and not its
    own, such as one with other outputs.
    """
    return any({"parameters", "channel"} & set(path) for path in changed)


@pytest.mark.slow
def test_the_file_and_the_library_say_the_same_of_forged_cards(cards):
    """It never says that a card is valid where the library does not, nor the reverse."""
    verdicts = []
    for text, changed in forgeries(cards, 10_000 if LONG else 300, seed=27):
        verdict, cost, lines = mine(text)
        other = library(text)
        verdicts.append(verdict)
        if verdict == VALID:
            assert cost == cost_of(text)
            assert other == VALID or is_rebuilt(changed), (changed, lines, text)
        if other == VALID:
            assert verdict == VALID, (changed, lines, text)
    assert {VALID, FALSE, OPEN} == set(verdicts), "the comparison saw all three verdicts"


def with_counts_of(content, path, value):
    """Return a mechanism's card with a number of its channel changed, and its counts hashed again."""
    content = copy.deepcopy(content)
    get(content["channel"], path[:-1])[path[-1]] = value
    channel = content["channel"]
    if "counts_sha256" in channel:
        text = ",".join(map(str, checker.noise_counts(channel)))
        channel["counts_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return content


@pytest.mark.slow
def test_less_noise_is_found_in_the_integers_even_if_hashes_follow(cards):
    """A forger who makes all hashes anew, and promises the same, is refused by the counts themselves."""
    lies = {
        "laplace": (("counts", "epsilon"), "17"),
        "staircase": (("counts", "epsilon"), "17"),
        "gaussian": (("counts", "sigma"), "30"),
        "rp": (("background",), 2**10),
        "rr-on-bins": (("background",), 2**10),
    }
    for name, (path, value) in lies.items():
        text = forged(with_counts_of(json.loads(cards[f"mechanism {name}"]), path, value))
        assert (mine(text)[0], library(text)) == (FALSE, FALSE), name


def test_half_of_a_surrogate_pair_is_refused_by_both(cards):
    """No terminal prints one."""
    content = json.loads(cards["mechanism laplace"])
    release = json.loads(next(text for text in cards.values() if '"labeldp.release"' in text))
    odd = ({**release, "label": "\ud800"}, {**release, "intended_use": "a\udfff"}, {**content, "\ud800": 1})
    for wrong in odd:
        assert (mine(forged(wrong))[0], library(forged(wrong))) == (FALSE, FALSE)
    assert (
        mine(forged({**release, "label": "\U0001f600"}))[0]
        == VALID
        == library(forged({**release, "label": "\U0001f600"}))
    )


SCORED = {
    "no change": (lambda card: None, VALID),
    "a charge without a note": (lambda card: card["charges"][-1].update(mechanism=None), VALID),
    "a note of other noise": (lambda card: card["charges"][-1].update(mechanism="x"), FALSE),
    "no statistics for it": (lambda card: card["statistics"].clear(), OPEN),
    "no statistics, and of other charges": (
        lambda card: (card["statistics"].clear(), card["split"].update(fit_charges=[])),
        FALSE,
    ),
    "no statistics, and other rows": (
        lambda card: (card["statistics"].clear(), card["split"].update(test_rows=1)),
        FALSE,
    ),
}


@pytest.mark.parametrize("case", SCORED)
def test_both_weigh_a_score_alike_if_one_part_is_false_and_another_is_open(cards, case):
    """What is false outweighs what is open, in whatever order it is found."""
    change, verdict = SCORED[case]
    content = json.loads(cards["model with a score of its own split, beyond its model"])
    change(content)
    text = forged(content)
    assert (mine(text)[0], library(text)) == (verdict, verdict)


# ---- the file itself --------------------------------------------------------------------------------------------


def test_it_is_one_short_file_of_the_standard_library():
    text = FILE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 870
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.partition(".")[0])
    assert names <= set(sys.stdlib_module_names)


def test_of_symmetric_noise_that_never_rises_outwards_the_farthest_shift_has_the_largest_delta():
    """What shift_channel.md proves, for noise that no rule makes: steps, flats and zeros."""
    rng = random.Random(5)
    for _ in range(60):
        half = sorted((rng.choice([0, 1, 2, 3, 9, 30]) for _ in range(rng.randint(2, 9))), reverse=True)
        noise, steps = half[:0:-1] + half, rng.randint(1, 20)
        for epsilon in (Fraction(1, 100), Fraction(1), Fraction(3)):
            bound = checker.exp_lower(epsilon)
            every = [
                sum(
                    max(0, above * checker.ONE - bound * below)
                    for above, below in zip(shifted, still, strict=True)
                )
                for shift in range(1, steps + 1)
                for shifted, still in [([*noise, *[0] * shift], [*[0] * shift, *noise])]
            ]
            assert checker.worst_delta(noise, steps, bound) == Fraction(max(every), checker.ONE * checker.WORDS)


def status(*arguments, **options):
    """Run the file as a reviewer does, and return its exit status, output and errors."""
    command = [sys.executable, "-I", str(FILE), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, check=False, **options)  # noqa: S603
    return result.returncode, result.stdout.decode("ascii"), result.stderr.decode()


@pytest.mark.slow
def test_its_exit_status_is_the_verdict_and_its_last_line_says_it(tmp_path):
    text, path = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json(), tmp_path / "card.json"
    content = json.loads(text)
    stronger = {**content, "proof": {**content["proof"], "epsilon": 0.5}}
    unknown = {**content, "mechanism": "of-my-own"}
    for one, code, said in (
        (text, 0, "Verdict: valid; epsilon = 1.0"),
        (forged(stronger), 1, "Verdict: not valid; stated, not shown: epsilon = 0.5"),
        (forged(unknown), 2, "Verdict: cannot verify; "),
        (forged({**content, "version": 5}), 2, "Verdict: cannot verify; "),
    ):
        path.write_text(one)
        for found in (status(path), status("-", input=one.encode())):
            assert (found[0], found[2]) == (code, ""), found
            assert found[1].splitlines()[-1].startswith(said)
    assert "exit status" in status("--help")[1]
    assert status(tmp_path)[0] == status(tmp_path / "none")[0] == 2


HOSTILE = {
    "nothing": b"",
    "no JSON": b"{",
    "bytes": bytes(range(256)),
    "UTF-16": '{"schema": 1}'.encode("utf-16"),
    "a list": b"[]",
    "null": b"null",
    "deep lists": b"[" * 200_000 + b"]" * 200_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a long integer": b'{"version": ' + b"9" * 100_000 + b"}",
    "not a number": b'{"version": NaN}',
    "infinite": b'{"version": 1e999}',
    "a key twice": b'{"version": 3, "version": 3}',
    "a schema that is no text": b'{"schema": {}, "version": 3}',
    "too long": b" " * (2**23 + 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_without_a_traceback(name):
    assert mine_of_bytes(HOSTILE[name]) == FALSE


def mine_of_bytes(data):
    with redirect_stdout(io.StringIO()):
        return checker.verify(data)[0]


def nested(content, depth):
    """Return a mechanism's card whose origin is a report whose origin is a report, and so on."""
    inner = {key: value for key, value in content.items() if key not in ("schema", "version", "checksum")}
    charge = {"description": "prior (local)", "budget": "1", "when": "", "mechanism": None, "rows_per_person": 1}
    for _ in range(depth):
        origin = {"charge": {**charge, "purpose": "prior"}, "secure": True, "statistics": []}
        inner = {**inner, "origin": {**origin, "reports": copy.copy(inner)}}
    return {**content, **inner}


def test_reports_of_a_prior_have_no_origin_of_their_own():
    content = json.loads(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json())
    for depth, verdict in ((0, VALID), (1, VALID), (2, FALSE), (50, FALSE), (200, FALSE)):
        assert mine(forged(nested(content, depth)))[0] == verdict


def test_an_r_squared_is_shown_with_its_standard_error_or_not_at_all():
    table = {"names": ["a"], "params": [1.0], "bse": [0.5]}
    for fit, verdict in (
        ({"rsquared": 0.5, "standard_error": 0.1}, VALID),
        ({"rsquared": 0.5}, FALSE),
        ({}, VALID),
    ):
        text = card("model", regression=table, fit=fit)
        assert mine(text)[0] == ldp.verify_card(text).verdict == verdict
