"""Check a card of labeldp without labeldp: ``python verify_card.py CARD [--ledger EXTRACT]``.

This file needs Python 3.11 only, and shares no code with labeldp. It follows docs/formats.md, the specification
of cards, and the pseudocode in docs/proofs; quotation marks quote them. In exact integers it derives each
mechanism's worst ratio and delta from the integers on the card, each statistic's noise scale, and the sum of all
charges. How labeldp finds the integers it does not check. It prints a line for each check; its exit status is

    0: valid          all of it follows, and the stated epsilon and delta are right
    1: not valid      something is false, or is not private
    2: cannot verify  it may be valid, and this file does not know enough to say

Only the card of the mechanism Gaussian alone has a delta.
"""

import argparse
import hashlib
import json
import math
import os
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any
from unicodedata import category, is_normalized

Card = dict[str, Any]
Amount = tuple[Fraction, Fraction]  # the promise of a channel: ε and δ
Proof = tuple[float, float, Fraction | None]  # ε and δ, rounded up, and the worst ratio of counts
WORDS, ONE = 2**64, 2**192  # random words, of which a count is a number; the unit of exponentials
MOST_CHARACTERS, MOST_NOISE = 2**23, 2**17  # of a card; values of noise, or counts of a table
MOST_OF_EXTRACT = 2**26  # characters
MOST_PROOFS, MOST_WORK = 24, 2**23  # distinct channels of a card; terms of a δ. More would take this file too long
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
VALID, FALSE, OPEN = "valid", "not valid", "cannot verify"


class NotShownError(Exception):
    """What a check found instead of what a card must show: a verdict, and why."""


def require(true: bool, otherwise: str, verdict: str = FALSE) -> None:
    """Refuse the card unless a condition of the specification is true."""
    if not true:
        raise NotShownError(verdict, otherwise)


# ---- "A card is one JSON object in ASCII, at most 2^23 characters." ---------------------------------------------
def read_bytes(path: str, most: int = MOST_CHARACTERS) -> bytes:
    """Return the content of a regular file, or of the standard input, up to one byte more than it may have."""
    if path == "-":
        return sys.stdin.buffer.read(most + 1)
    require(os.path.isfile(path), "it is not a regular file", OPEN)
    with open(path, "rb") as file:
        return file.read(most + 1)


def parse(data: bytes, most: int = MOST_CHARACTERS) -> Card:
    """Refuse "a key that occurs twice in an object, and a number that is not finite as a double"."""

    def unique(pairs: list[tuple[str, Any]]) -> Card:
        require(len(dict(pairs)) == len(pairs), "a key occurs twice in an object")
        return dict(pairs)

    def finite(text: str) -> int | float:
        require(math.isfinite(float(text)), "a number is not finite as a double")
        return float(text) if set(text) & set(".eE") else int(text)

    require(len(data) <= most and data.isascii(), f"not ASCII, or longer than {most:,} characters")
    hooks: Any = dict.fromkeys(("parse_int", "parse_float", "parse_constant"), finite)
    try:
        card = json.loads(data.decode("ascii"), object_pairs_hook=unique, **hooks)
    except ValueError as error:
        raise NotShownError(FALSE, f"not JSON: {error}") from None
    require(not LONE_SURROGATE.search(json.dumps(card, ensure_ascii=False)), "a text has half of a surrogate pair")
    require(isinstance(card, dict), "not a JSON object")
    return dict(card)


def canonical(content: Any) -> str:
    """Return one text for equal data: "JSON with keys sorted by code point, no blanks"."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def sha256(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def read_card(data: bytes) -> Card:
    """Check schema, version, fields and checksum: "the SHA-256 of all that follows the first 86 characters"."""
    card = parse(data)
    schema, version = str(card.get("schema")), card.get("version", 0)
    require(schema in OBJECTS and schema.startswith("labeldp."), "the schema is that of no card")
    require(type(version) is int and version >= 1, "the version is that of no card")
    require(version == 1, f"this file reads version 1; labeldp may read version {version}", OPEN)
    text = data.decode("ascii").strip(" \t\r\n")
    checksum = "sha256:" + sha256(text[86:])
    require(text[:86] == f'{{"checksum":"{checksum}",', f"the text after the checksum has {checksum}")
    conform(card, schema)
    for part in card["labels"] if schema == "labeldp.releases" else ():
        require(not {"schema", "version", "checksum", "file"} & part.keys(), "a label has fields of a card")
        conform(as_release(part), "labeldp.release")
    for part in card["fits"] if schema == "labeldp.updated-model" else ():
        require(not {"schema", "version", "checksum", "model"} & part.keys(), "a fit has fields of a card")
        conform(as_model(part), "labeldp.model")
    return card


def as_release(part: Card) -> Card:
    """Return one of several labels as the card of a release."""
    return {**part, "schema": "labeldp.release", "version": 1, "checksum": ""}


def as_model(part: Card) -> Card:
    """Return one of several fits as the card of a model."""
    return {**part, "schema": "labeldp.model", "version": 1, "checksum": "", "model": ""}


# ---- "Every object below has the fields listed for it and no others." -------------------------------------------
FRACTION, HIDDEN = re.compile("[0-9]+(/[1-9][0-9]*)?"), {"Cc", "Cf", "Cs", "Zl", "Zp"}


def is_large(value: Any) -> bool:
    """Tell an integer "above 2^53 and up to 2^64, as text"."""
    return (
        type(value) is str and re.fullmatch("[1-9][0-9]{15,19}", value) is not None and 2**53 < int(value) <= WORDS
    )


TESTS: dict[str, Callable[[Any], Any]] = {
    "any": lambda _: True,
    "text": lambda value: type(value) is str,
    "line": lambda one: type(one) is str and one.strip() and not one[500:] and not HIDDEN & {*map(category, one)},
    "name": lambda one: TESTS["line"](one) and not one[200:] and one == one.strip() and is_normalized("NFC", one),
    "boolean": lambda value: type(value) is bool,
    "integer": lambda value: type(value) is int and 0 <= value <= 2**53,  # "`true` is none"
    "size": lambda value: type(value) is int and 1 <= value <= 2**53,
    "count": lambda value: (type(value) is int and 0 <= value <= 2**53) or is_large(value),
    "number": lambda value: type(value) in (int, float),
    "positive": lambda value: type(value) in (int, float) and value > 0,
    "error": lambda value: type(value) in (int, float) and value >= 0,
    "part": lambda value: type(value) in (int, float) and 0 <= value <= 1,
    "fraction": lambda one: (
        type(one) is str and not one[400:] and FRACTION.fullmatch(one) and str(Fraction(one)) == one
    ),
    "amount": lambda value: TESTS["fraction"](value) and Fraction(value) > 0,
    "hash": lambda value: type(value) is str and re.fullmatch("[0-9a-f]{64}", value),
    "hashes": lambda value: all(map(TESTS["hash"], value.values() if type(value) is dict else [value])),
    "bounds": lambda pair: conform(pair, "number&") and is_wide(*map(float, pair)),
}
DOMAIN = "kind:text low:number high:number promise:fraction& "
COMMON = """schema:text version:integer checksum:text guarantee:text cost:cost secure:boolean rows:size
    trust:curator/local bounds:bounds* mechanisms:mechanism* parts:integer* priors:prior|null* charges:charge*
    statistics:statistic* people?:people intended_use?:line recipient?:line bounds_reason?:line
    rounding?:positive|null* """
FIELDS = {  # field:type, or field?:type if optional; type* is a list, type& a pair, type% an object with any names
    "cost": "epsilon:number label:number",
    "segments": "names:name* partition?:name checked:boolean",
    "people": "people:size rows_left_out:integer exhausted:integer most_rows_per_person?:size",
    "charge": """description:text budget:amount when:text mechanism:text|null rows_per_person:size
        purpose:labels/prior/mean/sums/score/intervals/other segments?:segments""",
    "extract": "schema:text total:fraction records:entry*",
    "entry": "record:text hash:hash",
    "ledger": "schema:text id:text limit:amount|null unit:label/person segments?:name",
    "ids": "key:hash id?:text/integer person?:text/integer",
    "declaration": "intended_use?:line recipient?:line bounds_reason?:line",
    "record": "charges:charge* declaration?:declaration ids?:ids people?:any* withdrawn?:size",
    "statistic": """description:text kind:text size:size steps:size sensitivity:integer epsilon:amount noise:text
        scale:fraction purpose:text""",
    "proof": "epsilon:number delta:number ratio:fraction|null",
    "mechanism": "mechanism:text parameters:any% channel:kind= proof:proof origin?:origin",
    "reports": "mechanism:text parameters:any% channel:kind= proof:proof",
    "origin": "charge:charge secure:boolean statistics:statistic* reports?:reports",
    "prior": "nodes:number* masses:number* origin?:origin",
    "file": """name:text format:text column?:text row_order:text not_copied:text separator?:text
        decimal?:text encoding?:text rows:integer rows_left_out:integer columns:text*
        types_changed:text&% sha256:hashes""",
    "knowledge": "low:number high:number variance:number sums:integer",
    "figure": "value:number standard_error:error",
    "figures": "rmse?:figure rmse_limit?:figure mse?:figure mae?:figure r2?:figure",
    "quality": "rows:size figures:figures",
    "split": """method:shuffled/people seed:integer train_rows:size test_rows:size fit_charges:text*""",
    "regression": """names:text* params:number* bse:error* pvalues?:part* conf_int?:number&* bse_ols?:error*
        odds_ratios?:error* rate_ratios?:error*""",
    "fit": "rsquared?:part standard_error?:error pvalue?:part",
    "labeldp.mechanism": """schema:text version:integer checksum:text mechanism:text parameters:any% channel:kind=
        proof:proof origin?:origin""",
    "labeldp.release": COMMON + """purpose:training/statistics/values features?:text* residual_variance?:error
        quality?:quality split?:split file?:file label?:text id?:text release?:text""",
    "labeldp.releases": """schema:text version:integer checksum:text guarantee:text cost:cost secure:boolean
        rows:size labels:any%* file?:file""",
    "labeldp.updated-model": """schema:text version:integer checksum:text guarantee:text cost:cost secure:boolean
        rows:size fits:any%* model:text label?:text note?:text features?:text* format?:integer files?:hash%
        versions?:text%""",
    "labeldp.row-release": COMMON + "rounds:size arrays?:hash% knowledge:knowledge label_transform?:log/sqrt",
    "labeldp.model": COMMON + """model:text label?:text note?:text features?:text* format?:integer files?:hash%
        versions?:text% quality?:quality split?:split regression?:regression
        side_by_side?:text** fit?:fit label_transform?:log/sqrt""",
    "kind=table": DOMAIN + "values:number* counts:count**",
    "kind=window": DOMAIN + """cells:count window:count background:count extra:count spread_outside:boolean
        bins:integer*|null cuts:number|null*|null values:number*|null""",
    "kind=shift": DOMAIN + "steps:integer margin:integer reach:integer counts:rule= counts_sha256:hash",
    "rule=laplace": "rule:text epsilon:amount cut:integer",
    "rule=staircase": "rule:text epsilon:amount cut:integer flat:size",
    "rule=gaussian": "rule:text sigma:amount",
    "rule=listed": "rule:text listed:count*",
    **dict.fromkeys(("laplace, shift", "two-point, table", "unbiased, table"), "bounds:bounds epsilon:number"),
    "staircase, shift": "bounds:bounds epsilon:number minimise:absolute/squared",
    "gaussian, shift": "bounds:bounds epsilon:number delta:number sigma:positive",
    "rp, window": "interval:bounds zeta:positive epsilon:number outside:project/uniform",
    "rr-on-bins, window": "edges:number* epsilon:number",
}  # fmt: skip
OBJECTS = {name: dict(field.split(":") for field in text.split()) for name, text in FIELDS.items()}


def is_wide(low: float, high: float) -> bool:
    """Tell bounds "between 1e-140 and 1e140 apart, and at least 1024 units in the last place of the larger"."""
    return max(1e-140, 1024 * math.ulp(max(abs(low), abs(high)))) <= high - low <= 1e140


def conform(value: Any, kind: str, path: str = "card") -> bool:
    """Refuse a value that is not of a type; the type "kind=" is an object with the fields that its kind needs."""
    if kind.endswith("|null"):
        return value is None or conform(value, kind.removesuffix("|null"), path)
    if kind in TESTS or "/" in kind:
        require(TESTS.get(kind, kind.split("/").__contains__)(value), f"{path} is not of the type {kind}")
    elif kind[-1] in "*&%":
        right = type(value) is (dict if kind[-1] == "%" else list) and (kind[-1] != "&" or len(value) == 2)
        require(right, f"{path} is not an object, a list or a pair")
        for name, one in value.items() if kind[-1] == "%" else enumerate(value):
            conform(one, kind[:-1], f"{path}[{name}]")
    else:
        require(type(value) is dict, f"{path} is not an object")
        known = OBJECTS.get(kind + str(value.get(kind[:-1])) if kind[-1] == "=" else kind, {})
        every, needed = {name.rstrip("?") for name in known}, {name for name in known if name[-1] != "?"}
        require(needed <= value.keys() <= every, f"{path} lacks a field, or has an unknown one")
        for name in value:
            conform(value[name], known.get(name) or known[f"{name}?"], f"{path}.{name}")
    return True


# ---- "A lower bound of e^ε", and roundings ----------------------------------------------------------------------
def exp_lower(x: Fraction) -> int:
    """Return a lower bound of e^x in units of 2^-192: the Taylor series, every term rounded down."""
    require(x <= 1024, "an exponent is above 1024", OPEN)
    term, total, k = ONE, 0, 0
    while term:
        total, k = total + term, k + 1
        term = term * x.numerator // (x.denominator * k)
    return total


def smallest_double(read: Callable[[float], Fraction], least: Fraction, most: float) -> float:
    """Return the smallest double from 0 to ``most`` that is read as ``least`` or more."""
    low, high = 0, struct.unpack("<q", struct.pack("<d", most))[0]  # the bits of doubles from 0 on rise with them
    while low < high:
        middle = (low + high) // 2
        below = read(struct.unpack("<d", struct.pack("<q", middle))[0]) < least
        low, high = (middle + 1, high) if below else (low, middle)
    return float(struct.unpack("<d", struct.pack("<q", low))[0])


def exact_sum(amounts: Iterable[Fraction]) -> Fraction:
    """Add; "exact sums whose numerator or denominator has more than 8,192 bits are refused"."""
    total = Fraction(0)
    for amount in amounts:
        total += amount
        require(max(total.numerator, total.denominator).bit_length() <= 8192, "an exact sum is too long")
    return total


# ---- "The proof in integers" (shift_channel.md, window_channel.md, table_channel.md) ----------------------------
def pure(pairs: list[tuple[int, int]], promise: Amount) -> Proof:
    """Return the proof of pairs of a largest and a smallest count: "require R ≤ exp_lower(e)"."""
    top, bottom = 1, 1
    for most, least in pairs:
        require(least > 0 or most == 0, "an output is possible under one label and not under another")
        top, bottom = (most, least) if most * bottom > top * least else (top, bottom)
    require(promise[1] == 0, "this channel has no delta, and one is promised")
    require(top * ONE <= exp_lower(promise[0]) * bottom, f"the worst ratio {top}/{bottom} is above e^{promise[0]}")
    most_epsilon = math.nextafter(float(promise[0]), math.inf) if top > bottom else 0.0
    epsilon = smallest_double(lambda e: Fraction(exp_lower(Fraction(e)), ONE), Fraction(top, bottom), most_epsilon)
    return epsilon, 0.0, Fraction(top, bottom)


def prove_table(channel: Card, promise: Amount) -> Proof:
    """Compare the counts of each output over all rows."""
    rows, values = [list(map(int, row)) for row in channel["counts"]], channel["values"]
    require(len(rows) >= 2 and all(len(row) == len(values) for row in rows), "the table is not rectangular")
    require(len(rows) * len(values) <= MOST_NOISE, f"a table has more than {MOST_NOISE:,} counts")
    require(all(sum(row) == WORDS for row in rows), "a row of the table does not sum to 2^64")
    return pure([(max(column), min(column)) for column in zip(*rows, strict=True)], promise)


def prove_window(channel: Card, promise: Amount) -> Proof:
    """Compare the background of a cell with its background and window."""
    M, m, b, c = (int(channel[name]) for name in ("cells", "window", "background", "extra"))
    S, values, bins, cuts = WORDS - M * b, channel["values"], channel["bins"], channel["cuts"]
    require(min(M, m, b, c) > 0 and c < WORDS and M < 2**63 and M - m < 2**51 and m <= M, "cells are out of range")
    require(S > 0 and (S - 1) // c < m, "the words of the window do not fit into the cells of the window")
    if cuts is None:  # "the start goes linearly from 0 at `low` to cells − window at `high`"
        require(bins is None and m < M, "the start cannot move, or has bins without cuts")
    elif bins is None:  # "the last start is the length of the list"
        rising = None not in cuts and all(low < high for low, high in pairwise(cuts))
        require(rising and len(cuts) <= M - m, "cuts do not rise, or a window starts too late")
    else:  # "in piece i the start is bins[i], and bins[i] + 1 from cuts[i] on, which is null where"
        starts = [start + (cut is not None) for start, cut in zip(bins, cuts, strict=False)]
        require(len(bins) == len(cuts) and max(starts) <= M - m, "bins are wrong, or start too late")
    require(values is None or (m == 1 and len(values) == M), "not one value for each cell")
    return pure([(b if m == M and not channel["spread_outside"] else b + min(c, S), b)], promise)


def gaussian_weights(rule: Card, r: int) -> list[int]:
    """Return w[0] … w[r]: "The counts in integers" of gaussian.md."""
    U, G = 2**256, exp_lower(1 / (2 * Fraction(rule["sigma"]) ** 2))
    ratio, shrink, weights = U * ONE // G, U * ONE * ONE // (G * G), [U]
    for _ in range(r):
        weights.append(weights[-1] * ratio // U)
        ratio = ratio * shrink // U
    return weights


def periodic_weights(rule: Card, N: int, r: int) -> list[int]:
    """Return w[0] … w[r − 1] and the tail: "The counts in integers" of laplace.md and staircase.md."""
    e, c, flat = Fraction(rule["epsilon"]), rule["cut"], rule.get("flat")
    require(r <= c and c + N <= MOST_NOISE and (flat is None or flat <= N), "cut or flat are out of range")
    E, g, w = exp_lower(e), exp_lower(e / N), [2**256]
    require(E > ONE, "the epsilon of the counts is too small")
    for j in range(1, N):
        w.append(w[-1] * ONE // g if flat is None else w[0] if j < flat else w[0] * ONE // E)
    for j in range(N, c + N):
        w.append(w[j - N] * ONE // E)
    return [*w[:r], sum(w[c:]) * E // (E - ONE) + sum(w[r:c])]


def noise_counts(channel: Card) -> list[int]:
    """Return the counts of the noise −reach … reach: "From weights to counts"."""
    rule, r, N, name = channel["counts"], channel["reach"], channel["steps"], channel["counts"]["rule"]
    require(r >= 1 and 2 * r < MOST_NOISE and N >= 1 and N <= 2**51, "steps or reach are out of range")
    if name == "listed":
        return list(map(int, rule["listed"]))
    half = gaussian_weights(rule, r) if name == "gaussian" else periodic_weights(rule, N, r)
    weights, total = half[:0:-1] + half, 2 * sum(half) - half[0]
    counts = [weight * WORDS // total for weight in weights]
    counts[r] += WORDS - sum(counts)
    return counts


def worst_delta(n: list[int], N: int, B: int) -> Fraction:
    """Return the largest δ of all shifts; "Symmetric noise" in shift_channel.md: when the farthest is enough."""

    def stick(t: list[int], s: int) -> Fraction:  # "sum over all o of max(0, t[o] − B · t[o − s]) / 2^64"
        overlap = sum(max(0, above * ONE - B * below) for above, below in zip(t[s:], t, strict=False))
        return Fraction(sum(t[:s]) * ONE + overlap, ONE * WORDS)

    farthest = min(N, len(n))
    if n == n[::-1] and all(a >= b for a, b in pairwise(n[len(n) // 2 :])):
        return stick(n, farthest)
    require(farthest * len(n) <= MOST_WORK, "noise that is not symmetric has too many shifts for this file", OPEN)
    return max(stick(t, s) for t in (n, n[::-1]) for s in range(1, farthest + 1))


def prove_shift(channel: Card, promise: Amount) -> Proof:
    """Compare all outputs under all labels; or, if a δ is promised, find it exactly."""

    def windows(pick: Callable[[int, int], int], span: int = 1) -> list[int]:
        values = n[r - N - a + 1 : r + a + N]  # the outputs between the two ends, under all labels
        while span <= N:  # the largest of a run is that of two shorter runs that overlap or touch
            step = min(span, N + 1 - span)
            values, span = list(map(pick, values, values[step:])), span + step
        return values

    n, N, r, a = noise_counts(channel), channel["steps"], channel["reach"], channel["margin"]
    require(len(n) == 2 * r + 1 and sum(n) == WORDS and a <= r, "counts do not sum to 2^64, or margin is wrong")
    require(sha256(",".join(map(str, n))) == channel["counts_sha256"], "the counts have another SHA-256")
    if promise[1] > 0:
        delta = worst_delta(n, N, exp_lower(promise[0]))
        require(delta <= promise[1], f"delta is {float(delta)}, above the promised {promise[1]}")
        epsilon = smallest_double(Fraction, promise[0], math.nextafter(float(promise[0]), math.inf))
        return epsilon, smallest_double(Fraction, delta, 1.0), None
    require(r >= N + a, "not every label reaches both ends")
    pairs = list(zip(windows(max), windows(min), strict=True))
    pairs += [(sum(t[: r - a + 1]), sum(t[: r - a - N + 1])) for t in (n, n[::-1])]  # the two ends
    require(all(least > 0 for _, least in pairs), "an output is possible under one label and not under another")
    return pure(pairs, promise)


def check_parameters(name: str, given: Card, channel: Card) -> None:
    """Compare parameters and channel: "What follows without its code"."""
    kind, rule = channel["kind"], channel.get("counts", {})
    conform(given, f"{name}, {kind}", "parameters")
    stated = [given["epsilon"], given.get("delta", 0)]
    low, high, steps = float(channel["low"]), float(channel["high"]), channel.get("steps", 0)
    edges = [low, *(channel["cuts"] or () if name == "rr-on-bins" else ()), high]
    agree = [
        0.001 <= given["epsilon"] <= 20,
        list(map(Fraction, channel["promise"])) == [min(Fraction(repr(one)), Fraction(one)) for one in stated],
        edges in [given.get(one) for one in ("bounds", "interval", "edges")],
        kind != "shift" or rule["rule"] == name,
        kind != "window" or channel["bins"] is None,
        name != "rp" or channel["cuts"] is channel["values"] is None,
        name != "rp" or channel["spread_outside"] == (given["outside"] == "uniform"),
        name != "rr-on-bins" or channel["window"] == 1,
        name != "two-point" or len(rule) == len(channel["values"]) == 2,
        name != "gaussian" or Fraction(given["sigma"] / (high - low)) * steps == Fraction(rule["sigma"]),
    ]
    require(all(agree), "parameters and channel contradict each other")


def check_mechanism(mechanism: Card, proven: dict[str, Proof]) -> str:
    """Prove the channel again; "refuse if `proof` is not what the pseudocode gives"."""
    name, stated, channel = mechanism["mechanism"], mechanism["proof"], mechanism["channel"]
    kind, text = channel["kind"], canonical(channel)
    conform([float(channel["low"]), float(channel["high"])], "bounds", "low and high")
    if text not in proven:
        require(len(proven) < MOST_PROOFS, f"this file proves up to {MOST_PROOFS} channels of a card", OPEN)
        prove = {"shift": prove_shift, "window": prove_window, "table": prove_table}[kind]
        proven[text] = math.inf, 1.0, None  # one that fails counts as well
        proven[text] = prove(channel, (Fraction(channel["promise"][0]), Fraction(channel["promise"][1])))
    proof = stated["epsilon"], stated["delta"], stated["ratio"] and Fraction(stated["ratio"])
    derived = "epsilon {}, delta {}, worst ratio {}".format(*proven[text])
    require(proof == proven[text], f"its integers prove {derived}")
    known = any(one.startswith(f"{name}, ") for one in OBJECTS)
    require(known, f"the mechanism {name} is not known here; its integers prove {derived}", OPEN)
    check_parameters(name, mechanism["parameters"], channel)
    return f"{name}, by its {kind} channel: {derived}"


def check_statistic(one: Card) -> str:
    """Check "What one label moves, by the kind of statistic" (noise.md), and "sensitivity/epsilon exactly"."""
    kind, size, epsilon = one["kind"], one["size"], Fraction(one["epsilon"])
    sizes = {"counts": (1, size), "largest count": (1, 1), "sums": (2**16, size), "weighted sums": (2**32, size)}
    sizes["score"] = 2**36 if size <= 2 else 2**37, 4
    known = one["noise"] == "discrete Laplace" and kind in sizes
    require(known, f"{kind} with {one['noise']} noise are not known here", OPEN)
    steps, most = sizes[kind]
    moved = 2 * steps if kind == "counts" else steps
    right = [one["steps"], one["sensitivity"], one["scale"]] == [steps, moved, str(moved / epsilon)]
    require(right and size <= most and moved / epsilon <= 2**52, f"no {kind} have this size, sensitivity or scale")
    return f"{size} {kind}, sensitivity {moved}, scale {moved / epsilon}, epsilon {epsilon}"


def cost_of(thing: Card) -> Fraction:
    """Return the cost of one row by a mechanism, "the proof's double counts as a decimal", or by an origin."""
    if "proof" in thing:
        require(thing["proof"]["delta"] == 0, "a mechanism has a delta, and no charge pays for one")
        return Fraction(repr(thing["proof"]["epsilon"]))
    if "reports" in thing:
        return cost_of(thing["reports"])
    return exact_sum(Fraction(one["epsilon"]) for one in thing["statistics"])


def require_paid(cost: Fraction, charge: Card, what: str) -> None:
    """Refuse more than was charged: "kε for k rows of a person"."""
    right = charge["rows_per_person"] * cost <= Fraction(charge["budget"])
    require(right, f"{what} costs more than was charged for it")


# ---- "Agreement. Refuse a card unless all of this holds." -------------------------------------------------------
def check_labels_together(card: Card) -> str:
    """Check "Several labels": each is a release, and all charges of all of them add up."""
    parts, file = card["labels"], card.get("file", {})
    names = [part.get("label") for part in parts]
    require(1 < len({*names} - {None}) == len(parts) <= 16, "there are not 2 to 16 labels, each with its own name")
    charges = [one for part in parts for one in part["charges"]]
    keys = [tuple(str(one[name]) for name in ("when", "budget", "purpose", "rows_per_person")) for one in charges]
    require(len(set(keys)) == len(keys), "two labels have one charge")
    require({part["rows"] for part in parts} | {file.get("rows", card["rows"])} == {card["rows"]}, "rows differ")
    require(card["secure"] == all(part["secure"] for part in parts), "it is as secure as its labels")
    columns, features = file.get("columns"), {name for part in parts for name in part.get("features", ())}
    require(not features & set(names), "a label is a feature of another")
    right = columns is None or (features | set(names) <= set(columns) and "column" not in file)
    require(right, "the file has other columns")
    check_scope({**card, "charges": charges})
    return check_cost({**card, "charges": charges})


def check_fits_together(card: Card) -> str:
    """Check "Models that learnt on": each fit is a model, and their charges make up the cost of a label."""
    fits = card["fits"]
    require(1 < len(fits) <= 512, "there are not 2 to 512 fits")
    same = {canonical([fit["bounds"], fit.get("label_transform"), fit["trust"]]) for fit in fits}
    require(len(same) == 1, "fits have different bounds, label_transform or trust")
    charges = [one for fit in fits for one in fit["charges"]]
    scored = {"split", "quality"} & {name for fit in fits for name in fit}
    require(not scored and all(one["purpose"] != "score" for one in charges), "a fit has a score")
    names = ("when", "budget", "purpose", "rows_per_person", "segments")
    require(
        len({canonical([one.get(name) for name in names]) for one in charges}) == len(charges), "a charge twice"
    )
    partitions = {one["segments"].get("partition") for one in charges if "segments" in one} - {None}
    require(len(partitions) <= 1, "segments are of different partitions")
    require(card["rows"] == sum(fit["rows"] for fit in fits), "rows are not those of all fits")
    require(card["secure"] == all(fit["secure"] for fit in fits), "it is as secure as its fits")
    return check_cost({**card, "charges": charges})


def check_cost(card: Card) -> str:
    """Check (1) to (3): the cost is the sum of all charges, and the guarantee states it."""
    charges, most, fits = card["charges"], Fraction(sys.float_info.max), card.get("fits", [card])
    times = [fit["charges"][0]["rows_per_person"] for fit in fits]
    k, people = max(times), "fits" in card and any("people" in fit for fit in fits)
    right = "fits" in card or all(one["rows_per_person"] == k for one in charges)
    require(right, "charges have different rows_per_person")
    mixed = card.get("file", {}).get("row_order") == "shuffled"
    epsilon = total(charges)
    all_segments = exact_sum(Fraction(one["budget"]) for one in charges)
    widest = epsilon
    if "fits" in card and (k > 1 or people):  # a person may be in every fit
        epsilon = exact_sum(total(fit["charges"]) for fit in fits)
    require(epsilon <= most, "the charges make up more than a double can say")
    stated = {"epsilon": as_double(epsilon), "label": as_double(total(charges, of_label=True))}
    require(card["cost"] == stated, f"the charges make up {stated}")
    rounded = Context(prec=6, rounding=ROUND_CEILING).divide(*map(Decimal, epsilon.as_integer_ratio()))
    E = f"{float(rounded):.6g}"
    whose = f"all {len(card['labels'])} labels of one row" if "labels" in card else "one row's label"
    whose = f"all labels of a person with up to {k} rows" if k > 1 else whose
    if "fits" in card and (k > 1 or people):
        whose = f"all labels of a person with up to {', '.join(map(str, times))} rows in its {len(fits)} fits"
    says = (
        f"label differential privacy with ε = {E} for all that this card lists: changing "
        f"{whose} changes the probability of any of it by at most a factor e^{E}"
        + "; no row is in both the model and its score" * ("split" in card)
        + "; no row is in two of the segments charged" * (all_segments != widest)
        + "; features, the number and order of rows, and bounds are public"
    )
    require(card["secure"], "NOT PRIVATE: the noise can be repeated from a seed")
    require(card["guarantee"] == says.replace(" and order" * mixed, ""), "the guarantee is another one")
    return f"{len(charges)} charges make up epsilon {epsilon}, for {k} rows of a person"


def as_double(amount: Fraction) -> float:
    """Return "the smallest double that, written as a decimal, is at least this"."""
    return smallest_double(lambda double: Fraction(repr(double)), amount, sys.float_info.max)


def total(charges: list[Card], of_label: bool = False) -> Fraction:
    """Return "the charges without segments, and the largest sum of one segment", of a person or a label."""
    sums: dict[str | None, list[Fraction]] = {None: []}
    for one in charges:
        for name in one.get("segments", {"names": [None]})["names"]:
            rows = one["rows_per_person"] if of_label else 1
            sums.setdefault(name, []).append(Fraction(one["budget"]) / rows)
    common = exact_sum(sums.pop(None))
    return exact_sum([common, max(map(exact_sum, sums.values()), default=Fraction(0))])


def is_alone(charge: Card) -> bool:
    """Tell the charge for a prior that may be of other rows than those of the card."""
    return charge["purpose"] == "prior" and charge["description"].endswith(", estimated alone")


def check_scope(card: Card) -> str:
    """Check (9): the segments of the charges, and the people of the rows."""
    charges, k = card["charges"], card["charges"][0]["rows_per_person"]
    listed = [one["segments"]["names"] for one in charges if "segments" in one]
    require(all(0 < len(names) <= 4096 for names in listed), "a charge has no segments, or more than 4096")
    require(all(names == sorted(set(names)) for names in listed), "segments are not sorted, or one occurs twice")
    own = [one.get("segments") for one in charges if not is_alone(one)]
    require(all(one == own[0] for one in own), "charges for the same rows are in different segments")
    people = card.get("people", {"people": card["rows"]})
    right = people["people"] <= card["rows"] <= people["people"] * k and k <= people.get("most_rows_per_person", k)
    require(right, "the people of the card do not have so many rows")
    has_rows = people.get("exhausted", 0) <= people.get("rows_left_out", 0)
    require(has_rows, "people without budget have rows that are left out")
    vouched = "as its owner declares" if "people" not in card else "as the card says that they were counted"
    return f"{k} rows of a person at most, {vouched}; {len(listed)} charges have segments"


def check_statistics(card: Card) -> str:
    """Check (4): statistics cost what was charged for their purpose, which may pay for labels, too."""
    unsaid = {one["purpose"] for one in card["charges"]} - {"labels", "prior"}
    both = "sums" if pays_for_both(card) else ""
    require(len(card["statistics"]) <= 256, "there are more than 256 statistics")
    for purpose in {one["purpose"] for one in card["statistics"]}:
        charges = [one for one in card["charges"] if one["purpose"] == purpose not in ("labels", "prior")]
        bought = [one for one in card["statistics"] if one["purpose"] == purpose]
        paid = exact_sum(Fraction(one["budget"]) for one in charges)
        if purpose == "score" and "split" in card:  # rows that did not spend the epsilon of the fit
            paid = exact_sum(Fraction(one["budget"]) for one in card["charges"])
        cost = exact_sum(Fraction(one["epsilon"]) for one in bought) * card["charges"][0]["rows_per_person"]
        require(cost <= paid, f"statistics for {purpose} cost epsilon {cost}, and {paid} was charged for them")
        noted = [one["mechanism"] for one in charges if one["mechanism"] is not None]
        noise = [f"{one['description']}: discrete Laplace noise of scale {one['scale']}" for one in bought]
        right = not noted or purpose == both or "; ".join(noted) == "; ".join(noise)
        require(right, f"charges for {purpose} note other noise")
        if purpose == both:  # a proof may be a little below the epsilon of its labels
            most = (
                max(map(cost_of, card["mechanisms"]), default=Fraction(0)) * card["charges"][0]["rows_per_person"]
            )
            cost = paid if cost + most >= paid * Fraction(99, 100) else cost
        if purpose == "score" and "split" in card:
            extra = exact_sum(Fraction(one["budget"]) for one in charges)
            cost = paid if extra == max(cost - (paid - extra), 0) else cost - 1
            unsaid |= {"score"}  # also without a charge
        unsaid -= {purpose} if cost == paid else set()
    require(not unsaid, f"the card does not say what all charges for {', '.join(sorted(unsaid))} bought", OPEN)
    return f"{len(card['statistics'])} statistics cost what was charged for them"


def is_plain(card: Card) -> bool:
    """Tell a release by one mechanism, without a model."""
    return card["schema"] == "labeldp.release" and "features" not in card


def pays_for_both(card: Card) -> Any:
    """Return whether one charge pays for the sums and the labels of a fit: its purpose is sums."""
    purposes = {one["purpose"] for one in card["charges"]}
    return not is_plain(card) and card["parts"] and "labels" not in purposes


def check_labels(card: Card) -> str:
    """Check (6): each charge for labels "pays for its part", and notes its fingerprint."""
    parts, mechanisms, release = card["parts"], card["mechanisms"], is_plain(card)
    require(len(set(map(canonical, mechanisms))) == len(mechanisms) <= 16, "mechanisms are many, or not distinct")
    require([*dict.fromkeys(parts)] == [*range(len(mechanisms))], "parts do not number the mechanisms in order")
    both = pays_for_both(card)
    charges = [one for one in card["charges"] if one["purpose"] == ("sums" if both else "labels")]
    sums = [one for one in card["statistics"] if one["purpose"] == "sums" and both]
    shape = [len(card["bounds"]), len(card["priors"]), len(charges)]
    paid = parts != [] or card["schema"] == "labeldp.row-release"
    require(shape == ([1, 1, 1] if release else [1, 0, paid]), "it is not complete")
    require(not release or len(parts) == 1, "a release has one mechanism")
    names = ["sha256:" + sha256(canonical(one["channel"])) for one in mechanisms]
    notes = [note for one in charges for note in (one["mechanism"] or "").split("; ")]
    several = [f"{one['description']}: discrete Laplace noise of scale {one['scale']}" for one in sums]
    several += [f"part {i}: " * (len(parts) > 1 and not release) + names[part] for i, part in enumerate(parts, 1)]
    require(notes == several, "charges note other noise or mechanisms")
    spent = exact_sum(Fraction(one["epsilon"]) for one in sums)
    for mechanism in mechanisms:
        require_paid(cost_of(mechanism) + spent, charges[0], mechanism["mechanism"])
    return f"{len(parts)} parts cost no more than was charged for them"


def check_origins(card: Card) -> str:
    """Check "Origins" and (8): the charge of every origin is on the card, and pays for all noise that names it."""
    priors = card.get("priors", [])
    found = [part["origin"] for part in [*priors, *card.get("mechanisms", [card])] if part and "origin" in part]
    charges = card.get("charges", [origin["charge"] for origin in found])
    paid = {canonical(one): one for one in charges}
    noise: dict[str, list[Card]] = {key: [] for key, one in paid.items() if one["purpose"] == "prior"}
    for origin in found:
        charge = origin["charge"]
        said = {name: origin[name] for name in ("statistics", "reports") if name in origin}
        key = canonical(charge)
        require(
            key in noise and charge["description"].startswith("prior ("),
            "a private prior has no charge for a prior",
        )
        require(all(one["purpose"] == "prior" for one in said["statistics"]), "a statistic has another purpose")
        many = len(said["statistics"]) > (256 if len(said) == 1 else 0)
        require(not many, "a prior has more than 256 statistics, or reports as well")
        require(any(said.values()), "a private prior does not say from what it was estimated", OPEN)
        require(origin["secure"] or not card.get("secure", True), "a prior from a seed is not private")
        shown = origin in [one["origin"] for one in priors if one and "origin" in one]
        text = charge["description"] if shown and not is_alone(charge) else "prior (other)"
        counted = said["statistics"] and text.startswith("prior (local)")
        require(not counted, "counts need a trusted curator")
        own = text.startswith(("prior (curator)", "prior (local)"))
        require(not own or text.startswith(f"prior ({card['trust']})"), "the prior is of another trust")
        noise[key] += [] if said in noise[key] else [said]
        require(len(noise[key]) <= 64, "this file adds up to 64 priors of one charge", OPEN)
    listed = [one for one in charges if one["purpose"] == "prior"]
    require(all(noise.values()) and len(noise) == len(listed), "a charge for a prior has no prior of its own")
    for key, different in noise.items():
        require_paid(exact_sum(map(cost_of, different)), paid[key], "the noise of a prior")
    return f"{sum(map(len, noise.values()))} private priors cost no more than was charged for them"


def check_rest(card: Card) -> str:
    """Check (5), (7), and what "Release, rows and model" says of the fields that one kind of card has."""
    purposes, known = {one["purpose"] for one in card["charges"]}, card.get("knowledge")
    summed = purposes & {"sums", "mean", "score"} or card["statistics"]
    require(card["trust"] == "curator" or not summed, "sums need a trusted curator")
    for i, prior in enumerate(card["priors"]):
        (low, high), channel = card["bounds"][i], card["mechanisms"][card["parts"][i]]["channel"]
        require(max(low, channel["low"]) < min(high, channel["high"]), f"part {i + 1} lies outside its bounds")
        nodes, masses = (prior["nodes"], prior["masses"]) if prior else ([low, high], [1])
        right = len(nodes) == len(masses) + 1 > 1 and all(a < b for a, b in pairwise(nodes))
        slack = math.inf if prior and "reports" in prior.get("origin", {}) else (high - low) * 1e-9
        right = right and min(masses) >= 0 < max(masses) and low - slack <= nodes[0] and nodes[-1] <= high + slack
        require(right, f"prior {i} is wrong, or lies outside its bounds")
    low, high = card["bounds"][0]
    least = {"log": 5e-324, "sqrt": 0}.get(card.get("label_transform", "") * ("model" in card), low)
    require(low >= least, "the lower bound is too small for label_transform")
    free = {"low": low, "high": high, "variance": (high - low) ** 2 / 20, "sums": 0}
    k = known if known and "sums" in purposes else {**free, "variance": 1}
    right = low <= k["low"] < k["high"] <= high and k["variance"] > 0
    require(right and ("sums" in purposes or known in (None, free)), "knowledge is wrong, or was not paid for")
    split, quality, rows = card.get("split"), card.get("quality", {}), card["rows"]
    scored = "score" in purposes or split is not None
    require(known or is_plain(card) or (quality != {}) == scored, "a score, or its charge, is missing")
    fitted = rows - split["test_rows"] if split and "model" not in card else rows
    right = split is None or (split["train_rows"], split["test_rows"]) == (fitted, quality.get("rows"))
    require(right and card.get("file", card)["rows"] == rows, "the split or the file has other rows")
    times = sorted(one["when"] for one in card["charges"] if one["purpose"] != "score")
    require(not split or times == split["fit_charges"], "the split is of other charges")
    table, shown = card.get("regression") or {"none": []}, {"rsquared", "standard_error"} & {*card.get("fit", ())}
    right = len(shown) != 1 and len(set(map(len, table.values()))) == 1
    require(right and len(card.get("rounding", card["bounds"])) == len(card["bounds"]), "table, R² or rounding")
    shows = split is None or any(one["purpose"] == "score" for one in card["statistics"])
    require(shows, "the card does not say what its score bought", OPEN)
    return "trust, bounds, priors, rows, score and file agree"


def check_purpose(card: Card) -> str:
    """Check "A release is for its purpose": its bounds, its mechanism, its columns, and its residual variance."""
    purpose, features, mechanisms = card["purpose"], card.get("features"), card["mechanisms"]
    require("column" in card.get("file", {"column"}), "the file has no private column")
    private = {card.get("label"), card.get("file", {}).get("column")}
    columns = set(card["file"]["columns"]) - private if "file" in card else {*(features or ())} - private
    if features is None:
        require(not {"residual_variance", "quality", "split"} & card.keys(), "it has a score, and no model")
    else:
        right = purpose == "training" and "residual_variance" in card
        require(right, "a model is for training, and goes with a residual variance")
        require(len(set(features)) == len(features) and set(features) <= columns, "features are no public columns")
        mse = card.get("quality", {}).get("figures", {}).get("mse", {"value": 0, "standard_error": 0})
        right = mse["value"] <= 2 * mse["standard_error"] or card["residual_variance"] == mse["value"]
        require(right, "the residual variance is not the mean squared error")
    if purpose == "statistics":
        ends = [float(mechanisms[0]["channel"][end]) for end in ("low", "high")]
        require(ends == card["bounds"][0] and card["priors"] == [None], "labels are clipped by more than bounds")
    require(
        purpose == "values" or "rr-on-bins" not in {one["mechanism"] for one in mechanisms}, "labels are biased"
    )
    return f"labels for {purpose}"


def checks(card: Card) -> Iterator[tuple[str, Callable[[Card], str], Card]]:
    """Yield all checks of a card that has the right fields, of equal parts once."""
    if "labels" in card:
        for part in card["labels"]:
            yield from checks(as_release(part))
        yield "labels together", check_labels_together, card
        return
    if "fits" in card:
        for part in card["fits"]:
            yield from checks(as_model(part))
        yield "fits together", check_fits_together, card
        return
    proven: dict[str, Proof] = {}
    mechanisms = card.get("mechanisms", [card])
    held = [part["origin"] for part in [*mechanisms, *card.get("priors", [])] if part and "origin" in part]
    mechanisms = mechanisms + [origin["reports"] for origin in held if "reports" in origin]
    statistics = [one for origin in [*held, card] for one in origin.get("statistics", [])]
    for one in {canonical(one): one for one in mechanisms}.values():
        yield "mechanism", lambda mechanism: check_mechanism(mechanism, proven), one
    for one in {canonical(one): one for one in statistics}.values():
        yield "statistic", check_statistic, one
    agreement = (check_cost, check_scope, check_labels, check_statistics, check_rest) if "charges" in card else ()
    agreement += (check_purpose,) if "purpose" in card else ()
    yield from ((check.__name__.replace("check_", "card, "), check, card) for check in (check_origins, *agreement))


# ---- "Ledgers" --------------------------------------------------------------------------------------------------
def move_people(people: dict[Fraction, int], record: Card, limit: Fraction) -> None:
    """Check the moves of a record: "all totals follow, as total + rows · ε"."""
    charges, moves = record["charges"], record.get("people", [])
    require(not charges or moves, "charges of a ledger of people have no people")
    price = exact_sum(Fraction(one["budget"]) / one["rows_per_person"] for one in charges)
    for move in moves:
        require(type(move) is list and len(move) == 3, "a move is no total, rows and people")
        conform(move[0], "fraction")
        conform(move[1:], "size*")
        total, rows, count = Fraction(move[0]), move[1], move[2]
        if total:
            people[total] = people.get(total, 0) - count
        require(people.get(total, 0) >= 0, "more people are moved from a total than have it")
        require(rows <= charges[0]["rows_per_person"], "a person has more rows than were charged")
        after = exact_sum([total, rows * price])
        require(after <= limit, "a person passes the limit")
        people[after] = people.get(after, 0) + count


def check_extract(data: bytes) -> list[Card]:
    """Check an extract: its hashes, its total and its people; return its charges."""
    extract = parse(data, MOST_OF_EXTRACT)
    conform(extract, "extract", "extract")
    require(extract["schema"] == "labeldp.ledger-extract/1" and extract["records"], "it is no extract")
    last, records = "", []
    for entry in extract["records"]:
        require(entry["record"].isascii(), "a record is not ASCII")
        last = sha256(last + entry["record"])
        require(last == entry["hash"], "the hash of a record is another")
        records.append(parse(entry["record"].encode()))
        require(canonical(records[-1]) == entry["record"], "a record is not canonical")
    header, *spent = records
    conform(header, "ledger", "header")
    limit = Fraction(header["limit"]) if header["limit"] else Fraction(10**6)
    people: dict[Fraction, int] = {}
    charges: list[Card] = []
    for record in spent:
        conform(record, "record", "record")
        if header["unit"] == "person":
            move_people(people, record, limit)
        require(header["unit"] == "person" or "people" not in record, "a ledger of labels has people")
        charges += record["charges"]
    named = {one["segments"].get("partition") for one in charges if "segments" in one} - {None}
    require(
        named <= ({header["segments"]} if "segments" in header else named), "its segments are of another partition"
    )
    require(len(named) <= 1, "its segments are of several partitions")
    held = max((amount for amount, count in people.items() if count), default=Fraction(0))
    summed = held if header["unit"] == "person" else total(charges)
    require(str(summed) == extract["total"], f"its total is {summed}")
    require(header["limit"] is None or summed <= limit, "its total is above its limit")
    return charges


def check_in_ledger(card: Card, charges: list[Card]) -> str:
    """Look for the charges of a card in an extract, segments and rows of a person included."""
    names = ("description", "when", "budget", "purpose", "rows_per_person", "segments")
    held = [canonical({name: one[name] for name in names if name in one}) for one in charges]
    parts = card.get("labels", card.get("fits", [card]))
    for one in [one for part in parts for one in part.get("charges", [])]:
        key = canonical({name: one[name] for name in names if name in one})
        require(key in held, "a charge of the card is not in the ledger")
        held.remove(key)
    return f"all charges of the card are among {len(charges)} of the ledger"


def run(what: str, check: Callable[[Any], Any], argument: Any) -> tuple[str, Any]:
    """Print a line on a check, and return its verdict and what it returned."""
    try:
        verdict, result = VALID, check(argument)
        said = result if isinstance(result, str) else f"{result['checksum']}; its fields are those specified"
    except NotShownError as error:
        (verdict, said), result = error.args, None
    except (ArithmeticError, LookupError, RecursionError) as error:
        verdict, said, result = FALSE, f"no card can have such a number or position: {type(error).__name__}", None
    print(f"{verdict:13}  {what}: {said[:2000]}".encode("unicode_escape").decode())
    return verdict, result


def verify(data: bytes, extract: bytes | None = None) -> tuple[str, str]:
    """Check a card, print a line for each check, and return the verdict and the cost that the card states."""
    verdict, card = run("text", read_card, data)
    if verdict != VALID:
        return verdict, "nothing is shown"
    found, cost = {run(*check)[0] for check in checks(card)}, card.get("cost", card.get("proof"))
    if extract is not None:
        found.add(run("ledger", lambda one: check_in_ledger(one, check_extract(extract)), card)[0])
    delta = f", delta = {cost['delta']}" if cost.get("delta") else ""
    verdict = min(found, key=(FALSE, OPEN, VALID).index)
    stated = "" if verdict == VALID else "stated, not shown: "
    return verdict, f"{stated}epsilon = {cost['epsilon']}{delta}"


def main() -> int:
    """Check the card that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("card", metavar="CARD", help="the file of a card; - reads the standard input")
    parser.add_argument("--ledger", metavar="EXTRACT", help="the extract of the ledger that paid for it")
    named = parser.parse_args()
    try:
        extract = None if named.ledger is None else read_bytes(named.ledger, MOST_OF_EXTRACT)
        verdict, cost = verify(read_bytes(named.card), extract)
    except (NotShownError, OSError, ValueError, MemoryError) as error:
        verdict, cost = OPEN, f"it cannot be read: {error.args[-1] if error.args else error!r}"
    print(f"Verdict: {verdict}; {cost}".encode("unicode_escape").decode())
    return (VALID, FALSE, OPEN).index(verdict)


if __name__ == "__main__":
    sys.exit(main())
