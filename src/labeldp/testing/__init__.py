"""`check_mechanism`: does a mechanism keep the contract? For your own, as `check_estimator` is for estimators."""

from __future__ import annotations

import math
from collections.abc import Callable

from labeldp.errors import ConformanceError
from labeldp.mechanisms.base import Mechanism
from labeldp.testing import checks
from labeldp.testing.case import Case, require

__all__ = ["CHECKS", "check_mechanism"]

CHECKS: dict[str, Callable[[Case], None]] = {
    "proof": checks.proof,
    "distribution": checks.distribution,
    "moments": checks.moments,
    "bad input": checks.bad_input,
    "randomness": checks.randomness,
    "shapes": checks.shapes,
    "same words": checks.same_words,
    "clipping": checks.clipping,
    "audit": checks.audit_outputs,
    "card": checks.card,
    "copies": checks.copies,
    "frozen": checks.frozen,
}
"""All checks, in their order."""


def check_mechanism(
    mechanism: Mechanism, *, samples: int = 100_000, bounds: tuple[float, float] | None = None
) -> tuple[str, ...]:
    """Check that a mechanism keeps the contract of this library, and return the names of the checks that passed.

    Proof, distribution against the channel's counts, moments, bad input, the source of words, shapes, a hundred
    labels of all types against the channel's own draws bit for bit, labels outside the range, an audit of sizes
    and of last bits, the card, copies, and that nothing about it can be changed.

    Parameters
    ----------
    mechanism : Mechanism
        Private, and built; its class must be registered, so that cards can name it.
    samples : int
        Outputs for each label in the statistical checks. 100,000 find noise that is 3 % too small.
    bounds : (lo, hi), optional
        The range in which labels are distinguished, for a channel of your own without ``low`` and ``high``.

    Raises
    ------
    ConformanceError
        At the first check that fails; the message says what was expected, and what to do.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.testing import check_mechanism
    >>> passed = check_mechanism(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0), samples=10_000)
    >>> passed[:3]
    ('proof', 'distribution', 'moments')
    """
    if not isinstance(mechanism, Mechanism):
        raise ConformanceError("check_mechanism takes an instance of a class derived from labeldp.Mechanism")
    require(
        math.isfinite(mechanism.epsilon), "proof: ε is infinite, so nothing is protected, and nothing to check"
    )
    case = Case.of(mechanism, bounds, samples)
    for name, check in CHECKS.items():
        try:
            check(case)
        except ConformanceError:
            raise
        except Exception as error:
            raise ConformanceError(f"{name}: {type(error).__name__} was raised where nothing should be") from error
    return tuple(CHECKS)
