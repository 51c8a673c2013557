"""Write the test vectors of clients in other languages: ``python -m clients.vectors.make``.

``mechanisms.json`` is a list of cards, each with cases ``[label, word, rounding, released value]``: the label,
the random word as text, the 32 rounding bits, and what every client must return, bit for bit. ``forged.json`` is a
list of cards that every client must refuse, each with the reason.
"""

import argparse
import json
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from clients.vectors.forgeries import forgeries

import labeldp as ldp

HERE = Path(__file__).parent
WORDS = 2**64
EPSILONS = (0.05, 0.3, 1.0, 2.5, 8.0)
BOUNDS = ((0.0, 1.0), (0.0, 200_000.0), (-3.7, 11.1), (1e6, 1e6 + 1), (-1e-9, 3e-9))
"""Among them one that holds 0, one far from it, and one whose ends are no short binary fractions."""
Bounds = tuple[float, float]
Case = tuple[float, str, int, float]


def points(bounds: Bounds, *shares: float) -> list[float]:
    """Return the points at these shares of the way through bounds."""
    low, high = bounds
    return [low + share * (high - low) for share in shares]


def prior(bounds: Bounds) -> ldp.Histogram:
    """Return a skewed distribution of labels."""
    return ldp.Histogram(points(bounds, 0, 0.25, 0.5, 0.75, 1), [4, 3, 2, 1])


MAKERS: dict[str, Callable[[float, Bounds], ldp.mechanisms.Mechanism]] = {
    "laplace": lambda e, b: ldp.Laplace(bounds=b, epsilon=e),
    "staircase": lambda e, b: ldp.Staircase(bounds=b, epsilon=e),
    "staircase, squared": lambda e, b: ldp.Staircase(bounds=b, epsilon=e, minimise="squared"),
    "two-point": lambda e, b: ldp.TwoPoint(bounds=b, epsilon=e),
    "rp": lambda e, b: ldp.RPWithPrior(interval=b, zeta=(b[1] - b[0]) / 3, epsilon=e),
    "rp, uniform": lambda e, b: ldp.RPWithPrior(interval=b, zeta=(b[1] - b[0]) / 2, epsilon=e, outside="uniform"),
    "rp, designed": lambda e, b: ldp.RPWithPrior.design(prior(b), e),
    "rr-on-bins": lambda e, b: ldp.RROnBins(
        edges=points(b, 0, 0.205, 0.5, 1), outputs=points(b, 0.1, 0.3, 0.7), epsilon=e
    ),
    "rr-on-bins, designed": lambda e, b: ldp.RROnBins.design(prior(b), e),
    "unbiased": lambda e, b: ldp.Unbiased.design(prior(b), e, size=8),
}
"""Every mechanism of pure epsilon, by name."""


class Given:
    """A source of the words and rounding bits that it was made with, in the order in which channels read them."""

    def __init__(self, words: list[int], rounding: list[int]) -> None:
        self._words = np.array(words, dtype=np.uint64)
        self._rounding = np.array([*rounding, *[0] * (len(rounding) % 2)], dtype="<u4").view(np.uint64)

    def fill(self, words: np.ndarray[Any, Any]) -> None:
        """Overwrite ``words``: one word a label, and then half a word for each where labels are rounded."""
        size = self._words.size
        words[:size] = self._words
        words[size:] = self._rounding[: words.size - size]


def odd_words(data: dict[str, Any]) -> list[int]:
    """Return words where a sampler changes its answer, and their neighbours."""
    edges = [0, WORDS, WORDS // 2]
    if data["kind"] == "window":
        background = int(data["cells"]) * int(data["background"])
        edges += [background, background + int(data["extra"]), int(data["background"])]
    else:
        edges += [k << shift for k in (1, 3) for shift in (32, 47, 53, 59)]
    return sorted({word for edge in edges for word in range(edge - 2, edge + 3) if 0 <= word < WORDS})


def odd_labels(data: dict[str, Any]) -> list[float]:
    """Return labels at edges, far outside, and those that floats find hard."""
    low, high = data["low"], data["high"]
    edges = [low, high, *(data.get("cuts") or [])[:4]]
    steps = data.get("steps", 3)
    edges += [low + k * ((high - low) / steps) for k in (0.5, 1, 1.5, 2)]
    near = [math.nextafter(edge, to) for edge in edges for to in (-math.inf, math.inf)]
    return [*edges, *near, 0.0, -0.0, 5e-324, 1e308, -1e308, 2 * low - high, 2 * high - low]


def cases(mechanism: ldp.mechanisms.Mechanism, size: int, rng: random.Random) -> list[Case]:
    """Return so many labels, words and rounding bits, and what the mechanism releases for them."""
    data = mechanism.channel.as_data()
    words, labels = odd_words(data), odd_labels(data)
    width = data["high"] - data["low"]
    cases = []
    for _ in range(size):
        word = rng.choice(words) if rng.random() < 0.3 else rng.getrandbits(64)
        label = rng.choice(labels) if rng.random() < 0.4 else data["low"] + width * rng.uniform(-0.1, 1.1)
        rounding = rng.choice([0, 2**31, 2**32 - 1]) if rng.random() < 0.2 else rng.getrandbits(32)
        cases.append((label, word, rounding or word == 0, 0.0))
    columns = [list(column) for column in zip(*cases, strict=True)]
    released = released_values(mechanism, columns[0], columns[1], [int(bits) for bits in columns[2]])
    return [
        (label, str(word), int(bits), value) for (label, word, bits, _), value in zip(cases, released, strict=True)
    ]


def released_values(
    mechanism: ldp.mechanisms.Mechanism, labels: list[float], words: list[int], rounding: list[int]
) -> list[float]:
    """Return what a mechanism releases for labels under given words and rounding bits."""
    source = Given(words, rounding)
    return mechanism.randomize_checked(np.array(labels), source).tolist()


def vectors(size: int, seed: int = 7, bounds: tuple[Bounds, ...] = BOUNDS) -> Iterator[dict[str, Any]]:
    """Yield cards with about ``size`` cases in all, over every mechanism, epsilon and bounds."""
    rng = random.Random(seed)
    combinations = [(name, epsilon, pair) for name in MAKERS for epsilon in EPSILONS for pair in bounds]
    each = -(-size // len(combinations))
    for name, epsilon, pair in combinations:
        mechanism = MAKERS[name](epsilon, pair)
        yield {"name": name, "card": mechanism.to_json(), "cases": cases(mechanism, each, rng)}


def write(path: Path, entries: list[dict[str, Any]]) -> None:
    """Write a list, an entry on each line."""
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    path.write_text(f"[\n{lines}\n]\n", encoding="ascii")


def main() -> None:
    """Write both files into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1500, help="cases in all")
    parser.add_argument("-o", "--out", type=Path, default=HERE, help="the folder")
    options = parser.parse_args()
    pairs = BOUNDS[1:3] if options.out == HERE else BOUNDS  # what is committed stays small
    write(options.out / "mechanisms.json", list(vectors(options.size, bounds=pairs)))
    write(options.out / "forged.json", list(forgeries()))


if __name__ == "__main__":
    main()
