"""The protocol of mechanisms: parameters that make a channel, and the channel's methods."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from numbers import Integral
from operator import methodcaller
from types import NoneType, SimpleNamespace
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import (
    Array,
    Bounds,
    Data,
    Delta,
    Epsilon,
    Interval,
    Labels,
    Numbers,
    as_fraction,
    parse_choice,
    parse_integer,
    parse_number,
    parse_numbers,
)
from labeldp.errors import ParameterError, PrivacyProofError, Setting, describe
from labeldp.exact.proof import Channel, Proof
from labeldp.exact.word_sources import RandomState, WordSource, resolve_source
from labeldp.mechanisms import card_format
from labeldp.mechanisms.histogram import Histogram, density_axes
from labeldp.mechanisms.interval import ClippingRisks, UnitNoise
from labeldp.mechanisms.registry import registered_class
from labeldp.mechanisms.typed_data import plain


class Mechanism(ABC):
    """A randomiser of labels: frozen parameters, and the channel that follows from them.

    A new mechanism is a frozen, slotted, keyword-only dataclass with the fields ``bounds``, ``epsilon`` and
    ``channel = channel_field()``, a ``_build`` that turns the parameters into a channel, and
    ``@register("name")`` on top. Building the channel proves it, so a mechanism that does not keep
    its promise cannot exist. It then works by its name wherever mechanisms are named; where one cannot be
    used, that follows from the class attributes below.

    Attributes
    ----------
    name : str
        Set by ``register``.
    unbiased : bool
        Whether `debias` gives labels that are right on average; models need that.
    needs_delta : bool
        Whether the guarantee has a δ; then ``delta`` is a field.
    needs_prior : bool
        Whether to spend a part of ε on a prior that shapes it.
    in_auto : bool
        Whether ``mechanism="auto"`` considers it; that builds it each time.
    in_channel : mapping of str
        Parameters that are the channel's ``values`` or ``counts`` to the bit: a card states them once.

    Examples
    --------
    All mechanisms share these methods.

    >>> import labeldp as ldp
    >>> mech = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    >>> private = mech.randomize([0.4, 2.5, 4.1])           # can be released
    >>> mech.debias(private).shape                          # so can these, to train on
    (3,)
    >>> mech.verify().epsilon <= 1.0                        # exact, or it raises
    True
    >>> mech.mean([0.4, 2.5]).round(6).tolist()             # of released values, exactly
    [0.4, 2.5]
    >>> ldp.load_mechanism(mech.to_json()) == mech
    True

    `register` shows one of your own.
    """

    __slots__ = ("_origin",)
    name: ClassVar[str]
    unbiased: ClassVar[bool] = True
    needs_delta: ClassVar[bool] = False
    needs_prior: ClassVar[bool] = False
    in_auto: ClassVar[bool] = False
    in_channel: ClassVar[Mapping[str, str]] = {}
    epsilon: float
    delta: float = 0.0
    channel: Channel

    @abstractmethod
    def _build(self) -> Channel:
        """Return the channel, which follows from the parameters alone: it is kept, and serves equal parameters."""

    @property
    def origin(self) -> Any:
        """The origin of the private prior that it was designed with; None if there is none."""
        return getattr(self, "_origin", None)

    def with_origin(self, origin: Any) -> Self:
        """Return the same mechanism with the origin of its prior; None forgets it."""
        if origin is self.origin:
            return self
        twin = object.__new__(type(self))
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            object.__setattr__(twin, field.name, getattr(self, field.name))
        object.__setattr__(twin, "_origin", origin)
        return twin

    @property
    def domain(self) -> Interval:
        """The range in which labels are distinguished; those outside are clipped."""
        return self.channel.low, self.channel.high

    # ---- construction --------------------------------------------------------------------------

    @classmethod
    def for_bounds(
        cls, bounds: Interval, epsilon: float, *, prior: Histogram | None = None, **options: Any
    ) -> Self:
        """Return the mechanism that distinguishes all labels within bounds.

        Parameters
        ----------
        bounds : (lo, hi)
            Public bounds. They and ε are parsed already, or else by the constructor.
        epsilon : float
            Privacy budget.
        prior : Histogram, optional
            The distribution of labels, for a mechanism that is shaped by it; nothing is clipped for it.
        **options
            Further parameters, such as ``delta`` where it is needed.
        """
        return cls(bounds=bounds, epsilon=epsilon, **options)  # type: ignore[call-arg]

    @classmethod
    def unit_noise(cls, epsilon: float, **options: Any) -> UnitNoise:
        """Return the variance of the unbiased label on bounds of width 1, as a function of q.

        q is the mean squared distance of labels from the middle. By default it is a straight line, which is
        exact where the variance is a quadratic function of the label, the same on both sides of the middle.
        """
        low, middle, high = cls.for_bounds((0.0, 1.0), epsilon, **options).unbiased_variance([0.0, 0.5, 1.0])
        return lambda q: middle + 2 * (low + high - 2 * middle) * q

    @classmethod
    def design(cls, prior: Histogram, epsilon: float, *, rows: int | None = None, **options: Any) -> Self:
        """Return the mechanism on the bounds that are best for an unbiased label under a prior.

        Labels are clipped where that saves more noise than it costs in bias.

        Parameters
        ----------
        prior : Histogram
            Public or privately estimated.
        epsilon : float
            Privacy budget.
        rows : int, optional
            Number of labels that a learner will see: the more, the less noise matters and the less is clipped.
            By default the error of a single label counts.
        **options
            As for `for_bounds`.

        Examples
        --------
        Most labels lie below 20, so the few above are clipped, and all get less noise.

        >>> import labeldp as ldp
        >>> prior = ldp.Histogram([0, 10, 20, 200], [45, 45, 10])
        >>> mech = ldp.Laplace.design(prior, epsilon=1.0)
        >>> mech.domain[1] < 200
        True
        """
        rows = None if rows is None else parse_integer(rows, "rows")
        return cls._design(ClippingRisks(Histogram.parse(prior)), Epsilon(epsilon), rows, **options)

    @classmethod
    def _design(cls, risks: ClippingRisks, epsilon: float, rows: int | None, **options: Any) -> Self:
        """Return the mechanism for parsed arguments of `design`, with the origin of the prior."""
        interval = cls._interval(risks, epsilon, rows, **options)
        return cls.for_bounds(interval, epsilon, prior=risks.prior, **options).with_origin(risks.prior.origin)

    @classmethod
    def _interval(cls, risks: ClippingRisks, epsilon: float, rows: int | None, **options: Any) -> Interval:
        """Return the bounds for `design`."""
        return risks.best_interval(cls.unit_noise(epsilon, **options), rows)

    def __post_init__(self) -> None:
        types = _parameter_types(type(self))
        values = [_parameter(name, declared, getattr(self, name)) for name, declared in types.items()]
        key = repr(values)  # 1, 1.0 and True are equal, and so are 0.0 and -0.0
        built = _build_once(type(self), tuple(values), key)
        for name in (*types, "channel"):
            object.__setattr__(self, name, getattr(built, name))

    # ---- release --------------------------------------------------------------------------------

    def randomize(self, labels: ArrayLike, *, random_state: RandomState = None) -> Array:
        """Return private labels, one for each label, in the same shape.

        Calling this twice on the same labels spends ε twice.

        Parameters
        ----------
        labels : array-like of finite numbers
            Labels outside the bounds are clipped silently; an error would leak that.
        random_state : None, int or source of words
            Leave it out for a release. An integer makes the result repeatable and **insecure**.

        Raises
        ------
        LabelError
            If labels are missing, not finite, not numbers, or none are given.
        """
        array = Labels.parse(labels).values
        source = resolve_source(random_state, rows=array.size)
        return self.randomize_checked(array.reshape(-1), source).reshape(array.shape)

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def randomize_checked(self, labels: Numbers, source: WordSource) -> Array:
        """Return private labels of labels that were checked, in one dimension."""
        result = np.full(labels.shape, np.nan)  # a channel that leaves an entry out must not show freed memory
        self.channel.sample(labels, source, result)
        return result

    def verify(self) -> Proof:
        """Prove the guarantee again, in exact arithmetic, from the counts that are sampled.

        Returns
        -------
        Proof
            ε and δ that hold for every pair of labels and every output, given ideal random words.

        Raises
        ------
        PrivacyProofError
            If the counts do not satisfy the promise.
        """
        return self.channel.verify()

    # ---- properties of the release ----------------------------------------------------------------

    def mean(self, labels: ArrayLike) -> Array:
        """Return the mean of the released value, given each label: exact, from the counts.

        Parameters
        ----------
        labels : array-like
            Labels to ask about, not the private ones: the result is exact, not noisy.
        """
        return _on_labels(self.channel.mean, labels)

    def variance(self, labels: ArrayLike) -> Array:
        """Return the variance of the released value, given each label: exact, from the counts.

        Parameters
        ----------
        labels : array-like
            Labels to ask about, not the private ones: the result is exact, not noisy.
        """
        return _on_labels(self.channel.variance, labels)

    def bias(self, labels: ArrayLike) -> Array:
        """Return the mean of the released value minus the label itself, unclipped."""
        return self.mean(labels) - Labels.parse(labels).values.astype(np.float64)

    def debias(self, outputs: ArrayLike) -> Array:
        """Return unbiased labels from released values.

        Their mean is the label, clipped to the bounds (or RPWithPrior's interval).

        Parameters
        ----------
        outputs : array-like
            What `randomize` returned.

        Raises
        ------
        NotUnbiasedError
            If no function of the output is unbiased for this mechanism; the message says why.
        """
        return self.channel.debias(Labels.parse(outputs).values.astype(np.float64))

    def unbiased_variance(self, labels: ArrayLike) -> Array:
        """Return the variance of the unbiased label, given each label; raise where `debias` does."""
        return self.variance(labels) / self.channel.slope() ** 2

    def plot(self, labels: ArrayLike | None = None) -> Any:
        """Return a Matplotlib figure: the density of released values for some labels.

        Parameters
        ----------
        labels : array-like, optional
            Labels to ask about, not the private ones; by default both ends of the bounds and their middle.

        Examples
        --------
        >>> import labeldp as ldp
        >>> figure = ldp.Laplace(bounds=(0, 5), epsilon=1.0).plot([0.0, 5.0])
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['label 0', 'label 5']
        """
        low, high = self.domain
        values = np.linspace(low, high, 3) if labels is None else Labels.parse(labels).values
        points = np.ravel(values)
        mean = self.mean(points)
        margin = 4 * np.sqrt(self.variance(points)) + 0.02 * (high - low)
        edges = np.linspace((mean - margin).min(), (mean + margin).max(), 201)
        axes = density_axes("released value")
        for label in points.tolist():
            density = np.diff(self.channel.cumulative(label, edges)) / np.diff(edges)
            axes.stairs(density, edges, label=f"label {label:g}")
        axes.legend()
        return axes.figure

    # ---- cards ------------------------------------------------------------------------------------

    def parameters(self) -> Data:
        """Return the parameters as pure data, for a card."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: plain(getattr(self, field.name)) for field in fields if field.init}

    def as_data(self) -> Data:
        """Return the mechanism as it stands on cards: parameters, the integers of its channel, and the proof."""
        repeated = self.in_channel.keys()
        parameters = {name: value for name, value in self.parameters().items() if name not in repeated}
        return {
            "mechanism": self.name,
            "parameters": parameters,
            "channel": self.channel.as_data(),
            "proof": proof_of(self).as_data(),
            **({} if self.origin is None else {"origin": plain(self.origin)}),
        }

    def to_json(self) -> str:
        """Return the mechanism's card, for `load_mechanism`."""
        return card_format.dump(self.as_data())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.name, self.parameters(), self.origin)


def proof_of(mechanism: Mechanism) -> Proof:
    """Return the proof of a mechanism's channel, made when that was built."""
    return mechanism.channel.proof


def _rebuild(name: str, parameters: Data, origin: Any) -> Mechanism:
    """Return an unpickled mechanism, built and proven anew."""
    mechanism: Mechanism = registered_class(name)(**parameters)
    return mechanism.with_origin(origin)


def channel_field() -> Any:
    """Return the dataclass field that holds a mechanism's channel.

    It is not a parameter of the class: ``_build`` fills it in. `register` shows it in a class.

    Examples
    --------
    >>> from labeldp.mechanisms import channel_field
    >>> channel_field().init
    False
    """
    return dataclasses.field(init=False, repr=False, compare=False)


def _on_labels(function: Any, labels: ArrayLike) -> Array:
    array = Labels.parse(labels).values
    with np.errstate(all="ignore"):
        result: Array = function(array.reshape(-1)).reshape(array.shape)
    return result


# ---- parameters and channels -------------------------------------------------------------------------


@cache
def _parameter_types(cls: type[Mechanism]) -> Data:
    """Return the type that each parameter is declared as; None if a name in the types is unknown."""
    declared = {field.name: field.type for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    module = dict(vars(sys.modules.get(cls.__module__, object)))
    try:
        return get_type_hints(SimpleNamespace(__annotations__=declared), module)
    except NameError:
        return dict.fromkeys(declared)


_KINDS: Data = {"epsilon": Epsilon, "delta": Delta, "bounds": Bounds, "interval": Bounds}
"""Parameters that mean the same wherever they are named so."""


def _parameter(name: str, declared: Any, value: Any) -> Any:
    """Return a parameter as plain data that does not change: by its name, else by its declared type."""
    if kind := _KINDS.get(name):
        return value if isinstance(value, kind) else kind(value, name)
    origin, options = get_origin(declared), get_args(declared)
    if value is None and NoneType in options:
        return None
    if origin is Literal:
        return parse_choice(value, name, options)
    if origin is not tuple:
        kinds = options or (declared,)
        if float in kinds:
            return _finite(value, name)
        if int in kinds and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise ParameterError(Setting(name), f" must be an integer, got {describe(value)}")
    elif options[0] is float:
        return tuple(parse_numbers(value, name).tolist())
    try:
        return _frozen(json.loads(json.dumps(value, allow_nan=False, default=methodcaller("tolist"))))
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise ParameterError(
            Setting(name), " must be finite numbers, text, booleans, None or lists of them, which a card can hold"
        ) from None


def _finite(value: object, name: str) -> float:
    number = parse_number(value, name)
    if not math.isfinite(number):
        raise ParameterError(Setting(name), f" must be a finite number, got {number}")
    return number


def _frozen(data: Any) -> Any:
    """Return JSON data with tuples for lists; objects are refused."""
    if isinstance(data, dict):
        raise TypeError
    return tuple(map(_frozen, data)) if isinstance(data, list) else data


@lru_cache(maxsize=16)
def _build_once(cls: type[Mechanism], values: tuple[Any, ...], _key: str) -> Mechanism:
    """Return a mechanism with these parameters, built and proven."""
    mechanism: Mechanism = object.__new__(cls)
    for name, value in zip(_parameter_types(cls), values, strict=True):
        object.__setattr__(mechanism, name, value)
    channel = mechanism._build()
    object.__setattr__(mechanism, "channel", channel)
    promise = channel.promise
    epsilon, delta = mechanism.epsilon, mechanism.delta  # as they are now: building may complete them
    # the channel must not spend more than a ledger is charged
    if not math.isfinite(epsilon + delta):
        raise PrivacyProofError("epsilon and delta of a mechanism must be finite")
    if promise is None or promise.epsilon > as_fraction(epsilon) or promise.delta > as_fraction(delta):
        raise PrivacyProofError("the channel promises less privacy than the mechanism")
    _ = channel.proof  # of any channel, one of the user's own too
    return mechanism


def is_pure(mechanism: Mechanism | type[Mechanism]) -> bool:
    """Return whether the guarantee of a mechanism has no δ."""
    return not mechanism.needs_delta and (isinstance(mechanism, type) or mechanism.delta == 0)


def require_pure(mechanism: Mechanism | type[Mechanism]) -> None:
    """Refuse a mechanism whose guarantee has a δ, where a ledger is charged."""
    if not is_pure(mechanism):
        raise ParameterError(
            Setting("mechanism"),
            f" must satisfy pure ε, and {mechanism.name!r} has a δ: choose another, such as laplace",
        )


# ---- hashes of channels ---------------------------------------------------------------------------------


def array_bytes(array: Numbers) -> bytes:
    """Return an array's kind, shape and numbers as bytes, the same on every machine, for a hash."""
    return f"{array.dtype.kind}{array.shape}".encode() + array.astype(array.dtype.newbyteorder("<")).tobytes()


def join_fingerprints(prints: Sequence[str]) -> str:
    """Return the fingerprints of all mechanisms that one charge for labels paid for, in order."""
    if len(prints) == 1:
        return prints[0]
    return "; ".join(f"part {k}: {fingerprint}" for k, fingerprint in enumerate(prints, 1))


def fingerprint(channel: Channel) -> str:
    """Return the hash of a channel as it stands on a card."""
    return channel.fingerprint
