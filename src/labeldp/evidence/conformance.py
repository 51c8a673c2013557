"""`check_mechanism`: for mechanisms what scikit-learn's `check_estimator` is for estimators."""

from __future__ import annotations

import math

from labeldp.errors import ConformanceError
from labeldp.evidence.mechanism_checks import CHECKS, Case, require
from labeldp.mechanisms.base import Mechanism

__all__ = ["CHECKS", "check_mechanism"]


def check_mechanism(
    mechanism: Mechanism, *, samples: int = 100_000, bounds: tuple[float, float] | None = None
) -> tuple[str, ...]:
    """Check that a mechanism follows the protocol, and return the names of the checks that passed.

    That its methods are inherited, the proof, the distribution against the channel's counts, moments, the source
    of words, labels outside the range, an audit of sizes and of last bits, the card and copies, and that nothing
    about it can be changed.

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
    >>> from labeldp.evidence import check_mechanism
    >>> passed = check_mechanism(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0), samples=10_000)
    >>> passed[:3]
    ('inherited', 'proof', 'distribution')
    """
    if not isinstance(mechanism, Mechanism):
        raise ConformanceError("check_mechanism takes an instance of a subclass of labeldp.mechanisms.Mechanism")
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
