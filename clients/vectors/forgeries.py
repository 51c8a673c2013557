"""Cards that no client may use: their checksums fit, and something on them is false or ambiguous."""

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import labeldp as ldp

Card = dict[str, Any]
Change = Callable[[Card], object]
BOUNDS = (0.0, 5.0)
HONEST = {
    "laplace": ldp.Laplace(bounds=BOUNDS, epsilon=8.0),
    "staircase": ldp.Staircase(bounds=BOUNDS, epsilon=8.0),
    "rp": ldp.RPWithPrior(interval=BOUNDS, zeta=1.0, epsilon=1.0),
    "rr-on-bins": ldp.RROnBins(edges=[0, 1, 3, 5], outputs=[0.5, 2, 4], epsilon=1.0),
    "two-point": ldp.TwoPoint(bounds=BOUNDS, epsilon=1.0),
    "unbiased": ldp.Unbiased.design(ldp.Histogram([0, 1, 5], [3, 1]), 1.0, size=4),
}


def signed(rest: str) -> str:
    """Return a card with the right checksum for the text that follows it."""
    return f'{{"checksum":"sha256:{hashlib.sha256(rest.encode()).hexdigest()}",{rest}'


def text_of(card: Card) -> str:
    """Return the text of a card after its checksum."""
    return json.dumps(card, sort_keys=True, separators=(",", ":"))[1:]


def move_word(card: Card) -> None:
    """Give one word of the first row to another output."""
    row = [int(count) for count in card["channel"]["counts"][0]]
    row[0], row[1] = row[0] + 1, row[1] - 1
    card["channel"]["counts"][0] = [str(count) for count in row]


def list_counts(counts: list[Any]) -> Change:
    """Return a change to noise with these counts, on a grid of one step, and their hash."""

    def change(card: Card) -> None:
        digest = hashlib.sha256(",".join(map(str, counts)).encode()).hexdigest()
        listed = {"rule": "listed", "listed": counts}
        half = len(counts) // 2
        card["mechanism"] = "own"
        card["channel"].update(steps=1, margin=0, reach=half, counts=listed, counts_sha256=digest)

    return change


def channel(**changes: Any) -> Change:
    """Return a change of a channel's fields."""
    return lambda card: card["channel"].update(changes)


def counts(rows: list[Any], **changes: Any) -> Change:
    """Return a change of a table's counts, of a mechanism with a name of its own."""
    return lambda card: (card.update(mechanism="own"), card["channel"].update(counts=rows, **changes))


def within(low: float, high: float) -> Change:
    """Return a change of the bounds, in parameters and channel."""
    return lambda card: (channel(low=low, high=high)(card), parameters(bounds=[low, high])(card))


def proof(**changes: Any) -> Change:
    """Return a change of the proof."""
    return lambda card: card["proof"].update(changes)


def rule(**changes: Any) -> Change:
    """Return a change of the rule of the counts."""
    return lambda card: card["channel"]["counts"].update(changes)


def parameters(**changes: Any) -> Change:
    """Return a change of the parameters."""
    return lambda card: card["parameters"].update(changes)


HALF = str(2**63)
CHANGES: list[tuple[str, str, Change]] = [
    ("the stated epsilon is smaller than that of the counts", "rp", proof(epsilon=0.5)),
    ("the stated epsilon is larger than that of the counts", "rp", proof(epsilon=1.5)),
    ("the stated epsilon is negative", "rp", proof(epsilon=-1.0)),
    ("the stated epsilon takes forever to check", "rp", proof(epsilon=1e308)),
    ("the stated epsilon is text", "rp", proof(epsilon="1")),
    ("the ratio is another one", "two-point", proof(ratio="2")),
    ("the ratio is not in lowest terms", "two-point", proof(ratio="4/2")),
    ("a delta is stated", "rp", proof(delta=0.01)),
    ("a delta is promised", "rp", channel(promise=["1", "1/100"])),
    ("the promise is larger than the epsilon of the parameters", "rp", channel(promise=["2", "0"])),
    ("the promise is smaller than the epsilon of the counts", "rp", channel(promise=["1/2", "0"])),
    ("parameters and promise are smaller than the epsilon of the counts", "rp",
     lambda card: (channel(promise=["1/2", "0"])(card), parameters(epsilon=0.5)(card))),
    ("the epsilon of the parameters is too large", "rp", parameters(epsilon=21.0)),
    ("the bounds of the parameters are others", "laplace", parameters(bounds=[0.0, 6.0])),
    ("a window cell has a word too many", "rp", lambda card: channel(extra=card["channel"]["extra"] + 1)(card)),
    ("the window is too small for its words", "rp",
     lambda card: channel(window=card["channel"]["window"] - 1)(card)),
    ("the background is smaller", "rp", channel(background=1024)),
    ("there is no background", "rp", channel(background=0)),
    ("there are too many cells", "rp", channel(cells=HALF)),
    ("the background takes all words", "rr-on-bins", channel(background=str(2**64 // 3 + 1))),
    ("the starts of windows are stated", "rr-on-bins", channel(bins=[0, 1, 2])),
    ("the cuts do not rise", "rr-on-bins", channel(cuts=[3.0, 1.0])),
    ("a cut lies outside", "rr-on-bins", channel(cuts=[1.0, 6.0])),
    ("an output is missing", "rr-on-bins", channel(values=[0.5, 2.0])),
    ("labels outside are spread, and the parameters say projected", "rp", channel(spread_outside=True)),
    ("the noise is smaller, and its hash is not", "laplace", rule(epsilon="9")),
    ("the noise is cut elsewhere", "laplace", rule(cut=2**17)),
    ("the noise has an epsilon of 0", "laplace", rule(epsilon="0")),
    ("the noise has a huge epsilon", "laplace", rule(epsilon="1" + "0" * 300)),
    ("the rule of the noise is unknown", "laplace", rule(rule="__proto__")),
    ("the rule of the noise is another mechanism's", "staircase", lambda card: card.update(mechanism="laplace")),
    ("the margin is larger", "laplace", lambda card: channel(margin=card["channel"]["margin"] + 1)(card)),
    ("there is one step more", "laplace", lambda card: channel(steps=card["channel"]["steps"] + 1)(card)),
    ("there are 2^51 steps", "laplace", channel(steps=2**51)),
    ("listed noise does not reach every output", "laplace", list_counts([0, HALF, HALF])),
    ("listed noise sums to 0 modulo 2^64", "laplace", list_counts([HALF, HALF, HALF, HALF, 0])),
    ("listed noise is an even number of counts", "laplace", list_counts([HALF, HALF])),
    ("a count is negative", "two-point", counts([[-1, "18446744073709551617"], [1, 1]])),
    ("one word is another output's", "two-point", move_word),
    ("a row has a word too many", "two-point", counts([[HALF, HALF], [HALF, str(2**63 + 1)]])),
    ("a row reveals its label", "two-point", counts([[str(2**64), 0], [0, str(2**64)]])),
    ("a large count is a number, which many readers round", "two-point", counts([[2**63, 2**63]] * 2)),
    ("a small count is text", "two-point", counts([["1", str(2**64 - 1)]] * 2)),
    ("a count is a double", "unbiased", lambda card: card["channel"]["counts"][0].__setitem__(0, 1e15)),
    ("a count is true", "unbiased", lambda card: card["channel"]["counts"][0].__setitem__(0, True)),
    ("there is one row", "two-point", counts([[HALF, HALF]])),
    ("there are no rows", "two-point", counts([])),
    ("there are no outputs", "two-point", counts([[], []], values=[])),
    ("a row has a count more", "unbiased", lambda card: card["channel"]["counts"][0].append(0)),
    ("a value is missing", "unbiased", lambda card: card["channel"]["values"].pop()),
    ("a value is text", "two-point", channel(values=["0", "5"])),
    ("the bounds are in the wrong order", "two-point", within(5.0, 0.0)),
    ("the bounds are too close", "two-point", within(1e16, 1e16 + 2)),
    ("the kind of the channel is unknown", "rp", channel(kind="constructor")),
    ("the kind of the channel is a list", "rp", channel(kind=["window"])),
    ("there is an unknown field", "rp", lambda card: card.update(weaker=True)),
    ("there is a field __proto__", "rp", lambda card: card.update({"__proto__": {"epsilon": 1}})),
    ("a field of the channel is missing", "rp", lambda card: card["channel"].pop("extra")),
    ("there is no proof", "rp", lambda card: card.pop("proof")),
    ("the version is a newer one", "rp", lambda card: card.update(version=5)),
    ("the version is a double", "rp", lambda card: card.update(version=1.0)),
    ("it is the card of a release", "rp", lambda card: card.update(schema="labeldp.release")),
    ("text has half of a surrogate pair", "rp", lambda card: card.update(mechanism="\ud800")),
]  # fmt: skip
"""What is wrong, the honest mechanism, and the change of its card."""


def replaced(name: str, old: str, new: str) -> str:
    """Return an honest card with a piece of its text replaced, and the checksum for it."""
    rest = HONEST[name].to_json()[86:]
    assert rest.count(old) >= 1, (name, old)  # noqa: S101
    return signed(rest.replace(old, new, 1))


def texts() -> Iterator[tuple[str, str]]:
    """Yield cards that are wrong as text, and what is wrong with them."""
    honest = HONEST["two-point"].to_json()
    yield "the text was changed after it was signed", honest.replace('"epsilon":1.0', '"epsilon":2.0', 1)
    yield "the checksum is missing", "{" + honest[86:]
    yield "the checksum is in another place", "{" + honest[86:-1] + "," + honest[1:85] + "}"
    yield "a key occurs twice", replaced("two-point", '"delta":0.0', '"delta":0.01,"delta":0.0')
    yield (
        "a key occurs twice, once with an escape",
        replaced("two-point", '"delta":0.0', '"d\\u0065lta":0.01,"delta":0.0'),
    )
    yield (
        "the whole proof occurs twice",
        replaced("rp", '"proof":', '"proof":{"delta":0.0,"epsilon":9.0},"proof":'),
    )
    yield "a number is not finite", replaced("two-point", '"high":5.0', '"high":1e400')
    yield "a number is NaN", replaced("two-point", '"delta":0.0', '"delta":NaN')
    yield "a number is Infinity", replaced("two-point", '"delta":0.0', '"delta":-Infinity')
    yield "a number begins with 0", replaced("two-point", '"version":1', '"version":01')
    yield "a number ends with a point", replaced("two-point", '"delta":0.0', '"delta":0.')
    yield "a number is a key", replaced("two-point", '"delta":0.0', '0:1,"delta":0.0')
    yield "a comma ends an object", replaced("two-point", '"version":1}', '"version":1,}')
    yield "there is a comment", replaced("two-point", '"version":1}', '"version":1/**/}')
    yield "there is a character beyond ASCII", replaced("two-point", "two-point", "two\u2010point")
    yield "there is a control character in text", replaced("two-point", "two-point", "two\tpoint")
    yield "there is text after the object", honest + "1"
    yield "an object is not closed", signed(honest[86:-1])
    yield "a string is not closed", signed(honest[86:] + '"1 2')
    yield "there are 5,000 lists in each other", signed('"a":' + "[" * 5_000 + "]" * 5_000 + "}")
    yield "it is empty", ""
    yield "it is a list", "[]"


def forgeries() -> Iterator[dict[str, str]]:
    """Yield forged cards, and the reason why each must be refused."""
    for why, name, change in CHANGES:
        card = copy.deepcopy(json.loads(HONEST[name].to_json()))
        del card["checksum"]
        change(card)
        yield {"why": why, "card": signed(text_of(card))}
    for why, text in texts():
        yield {"why": why, "card": text}
    gaussian = ldp.Gaussian(bounds=BOUNDS, epsilon=8.0, delta=0.01)
    yield {"why": "the mechanism has a delta", "card": gaussian.to_json()}
