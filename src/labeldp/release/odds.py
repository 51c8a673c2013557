"""What ε means for one label, in sentences: reports, terminals and pages fill in the same ones."""

from __future__ import annotations

from labeldp._values import rounded_up
from labeldp.ledger import Budget
from labeldp.release.numbers import at_most, percent, times

NEARLY_CERTAIN = 0.99
"""Who tossed a coin before and can be this certain after is protected little."""

RAISE = "Someone who knows {knows} and sees {seen} can raise their odds on {whose} by at most e^ε = {times}."
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


def odds_sentence(epsilon: float, *, knows: str, seen: str, whose: str, ledger: Budget | None = None) -> str:
    """Return the guarantee that every interface shows, with what it covers: this alone, and all in a ledger.

    Parameters
    ----------
    epsilon : float
        What this costs.
    knows, seen, whose : str
        Who learns something, from what, and of what.
    ledger : Budget, optional
        What its ledger counts in all, where that is more.

    Examples
    --------
    >>> print(odds_sentence(1.0, knows="all", seen="this release", whose="any label", ledger=Budget(1.5)))
    Someone who knows all and sees this release alone can raise their odds on any label by at most e^ε = 2.72×; by
    everything in its ledger, ε = 1.5, by at most 4.49×.
    """
    said = RAISE.format(knows=knows, seen=f"{seen} alone", whose=whose, times=times(epsilon))
    if ledger is None:
        return said
    return f"{said[:-1]}; by everything in its ledger, {ledger}, by at most {times(ledger.epsilon)}."


def odds_figures(epsilon: float) -> dict[str, str]:
    """Return what the sentences lack, by name.

    Examples
    --------
    >>> odds_figures(1.0)
    {'epsilon': '1', 'times': '2.72×', 'half': '73 %', 'low': '27 %', 'rare': '2.7 %', 'people': '73'}
    """
    half, rare = (float(at_most(guess, epsilon)) for guess in (0.5, 0.01))
    return {
        "epsilon": rounded_up(epsilon, 4),
        "times": times(epsilon),
        "half": percent(half),
        "low": percent(float(at_most(0.5, -epsilon))),
        "rare": percent(rare),
        "people": f"{100 * half:.0f}",
    }


def whose_labels(rows_per_person: int) -> str:
    """Return on what odds can be raised by e^ε, where ε covers this many rows of a person.

    Examples
    --------
    >>> whose_labels(1), whose_labels(3)
    ('any label', 'all labels of any one person with up to 3 rows')
    """
    return (
        "any label" if rows_per_person == 1 else f"all labels of any one person with up to {rows_per_person} rows"
    )


def is_weak(epsilon: float) -> bool:
    """Return whether a coin toss can become near certainty."""
    return float(at_most(0.5, epsilon)) >= NEARLY_CERTAIN
