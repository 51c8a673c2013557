"""The requests for several labels of a row: parts of ε and other parameters of each, by public facts alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from labeldp._values import Epsilon, as_fraction, float_below, parse_positive
from labeldp.accounts.budget import Budget, charges_name, new_charge
from labeldp.accounts.ledger import Ledger
from labeldp.errors import ParameterError, Setting
from labeldp.release.plan import Request

MOST_LABELS = 16
"""The most label columns of one release."""

DIGITS = 12
"""Parts of ε but the last have this many decimal digits, so that all parts add up to ε exactly."""

Result = TypeVar("Result")


def label_requests(
    count: int,
    *,
    epsilon: Any,
    shares: Sequence[float] | None,
    bounds: Any,
    mechanism: Any,
    prior: Any,
    **shared: Any,
) -> list[Request]:
    """Return a request for each label: ε is split, other parameters are one for all or one for each.

    Examples
    --------
    >>> how = {"epsilon": 1, "shares": [3, 1], "mechanism": "auto", "prior": None}
    >>> [(one.epsilon, one.bounds) for one in label_requests(2, bounds=[(0, 5), (0, 9)], **how)]
    [(0.75, (0.0, 5.0)), (0.25, (0.0, 9.0))]
    """
    if not 1 <= count <= MOST_LABELS:
        raise ParameterError(Setting("label"), f" names 1 to {MOST_LABELS} columns, got {count}")
    columns = zip(
        split_epsilon(epsilon, shares, count),
        one_each(bounds, count, "bounds"),
        one_each(mechanism, count, "mechanism"),
        one_each(prior, count, "prior"),
        strict=True,
    )
    names = ("epsilon", "bounds", "mechanism", "prior")
    return [Request(**dict(zip(names, values, strict=True)), **shared) for values in columns]


def charge_in_turn(
    requests: Sequence[Request],
    names: Sequence[str | None],
    ledger: Ledger,
    release: Callable[[int, Request], Result],
) -> list[Result]:
    """Return the release of each request; the budget of all is reserved before the first is charged."""
    released = []
    for number, (request, name) in enumerate(zip(requests, names, strict=True)):
        later = [
            new_charge("labels", Budget(following.epsilon), purpose="labels", scope=following.scope)
            for following in requests[number + 1 :]
        ]
        with ledger.reserve(later), charges_name(name):
            released.append(release(number, request))
    return released


def one_each(value: Any, count: int, name: str) -> list[Any]:
    """Return the value of a parameter for each label: one for all, or those of a list.

    Examples
    --------
    >>> one_each((0, 5), 2, "bounds"), one_each([(0, 5), (0, 1)], 2, "bounds")
    ([(0, 5), (0, 5)], [(0, 5), (0, 1)])
    """
    is_list = isinstance(value, list | tuple | np.ndarray)
    if name == "bounds":
        is_list = is_list and len(value) > 0 and all(isinstance(item, list | tuple | np.ndarray) for item in value)
    if not is_list:
        return [value] * count
    if len(value) != count:
        raise ParameterError(
            Setting(name), f" must be one for all {count} labels, or one for each, got {len(value)}"
        )
    return list(value)


def split_epsilon(epsilon: Any, shares: Sequence[float] | None, count: int) -> list[float]:
    """Return the ε of each label; they add up to ε exactly, as decimals.

    Examples
    --------
    >>> split_epsilon(1.0, None, 3)
    [0.333333333333, 0.333333333333, 0.333333333334]
    >>> split_epsilon(1.0, [2, 1, 1], 3)
    [0.5, 0.25, 0.25]
    """
    if shares is not None and len(shares) != count:
        raise ParameterError(Setting("shares"), f" must be one for each of {count} labels, got {len(shares)}")
    if count == 1:
        return [epsilon]
    weights = [
        as_fraction(parse_positive(share, "shares")) for share in ([1] * count if shares is None else shares)
    ]
    total = Epsilon(epsilon).exact
    amounts = [_rounded_down(total * weight / sum(weights)) for weight in weights[:-1]]
    return [*map(float, amounts), float_below(total - sum(amounts))]


def _rounded_down(amount: Fraction) -> Fraction:
    """Return an amount of ε with `DIGITS` decimals."""
    return Fraction(amount * 10**DIGITS // 1, 10**DIGITS)
