"""Numbers as text, rounded to the safe side, and the sentences that say what ε means for one label."""

from __future__ import annotations

import math

from labeldp.accounts.budget import rounded_up

LARGE = 1e6
"""Larger factors protect nobody, and are not written out."""
NEARLY_CERTAIN = 0.99
"""The protection is called weak if a guess of 50 % can become this certain."""

EXAMPLE = (
    "An example: someone thinks it as likely as not, 50 %, that a label lies above some figure. After {after} "
    "they can be {half} certain at most, and no less certain than {low}. A suspicion of 1 % can "
    "become {rare}, no more."
)
PEOPLE = (
    "Of 100 people for whom someone can only toss a coin, they are right about 50 before the release, and about "
    "{people} at most after it."
)
WEAK = "WEAK: at ε = {epsilon} a guess of 50 % can become {half}. The proof holds, but what it promises is little."


def number(value: float, digits: int = 4) -> str:
    """Return a number with a few significant digits, without an exponent where it is of a common size.

    Examples
    --------
    >>> number(164512.3), number(0.00123456), number(-3.0), number(1.5e12), number(1250.5, 9)
    ('164,500', '0.001235', '−3', '1.5e+12', '1,250.5')
    """
    size = abs(value)
    if not math.isfinite(size) or (size and not 1e-4 <= size < 1e9):
        text = f"{size:.{digits}g}"
    else:
        rounded = float(f"{size:.{digits}g}")
        text = f"{rounded:,.0f}" if rounded >= 10 ** (digits - 1) else f"{rounded:,.{digits}g}"
    return f"−{text}" if value < 0 and text != "0" else text


def tick(value: float) -> str:
    """Return a number for an axis, where room is scarce.

    Examples
    --------
    >>> tick(-2_000_000), tick(150_000), tick(0.25)
    ('−2M', '150k', '0.25')
    """
    if 1e6 <= abs(value) < 1e9:
        return f"{number(value / 1e6)}M"
    return f"{number(value / 1e3)}k" if 1e4 <= abs(value) < 1e6 else number(value)


def at_most(guess: float, epsilon: float) -> float:
    """Return the largest certainty that somebody can reach who had this certainty before.

    Odds p/(1 − p) grow by at most e^ε. With −ε it is how uncertain one can become.

    Examples
    --------
    >>> round(at_most(0.5, 1.0), 3), round(at_most(0.01, 1.0), 3)
    (0.731, 0.027)
    """
    return 1 / (1 + (1 / guess - 1) * math.exp(-max(-700.0, min(epsilon, 700.0))))


def times(epsilon: float) -> str:
    """Return e^ε for people, rounded up: never less than it is.

    Examples
    --------
    >>> times(1.0), times(0.1), times(5.0), times(50)
    ('2.72×', '1.11×', '149×', 'over a million ×')
    """
    if epsilon > math.log(LARGE):
        return "over a million ×"
    value = math.exp(epsilon)
    digits = 2 if value < 10 else 1 if value < 100 else 0
    scale = 10**digits
    return f"{math.ceil(value * scale - 1e-9) / scale:,.{digits}f}×"


def percent(share: float) -> str:
    """Return a share for people.

    Examples
    --------
    >>> percent(0.7311), percent(0.027), percent(0.99995), percent(1.0)
    ('73 %', '2.7 %', 'over 99.9 %', '100 %')
    """
    if 0.999 < share < 1:
        return "over 99.9 %"
    if 0 < share < 0.001:
        return "under 0.1 %"
    digits = 1 if share < 0.0995 or share > 0.9905 else 0
    return f"{100 * share:.{digits}f} %".replace(".0 %", " %")


def odds_figures(epsilon: float) -> dict[str, str]:
    """Return the figures for the sentences above, by name.

    Examples
    --------
    >>> odds_figures(1.0)
    {'epsilon': '1', 'times': '2.72×', 'half': '73 %', 'low': '27 %', 'rare': '2.7 %', 'people': '73'}
    """
    half = at_most(0.5, epsilon)
    return {
        "epsilon": rounded_up(epsilon, 4),
        "times": times(epsilon),
        "half": percent(half),
        "low": percent(at_most(0.5, -epsilon)),
        "rare": percent(at_most(0.01, epsilon)),
        "people": f"{100 * half:.0f}",
    }


def is_weak(epsilon: float) -> bool:
    """Return whether a coin toss can become near certainty."""
    return at_most(0.5, epsilon) >= NEARLY_CERTAIN
