"""What every mechanism has: parameters that make a channel, and the channel's methods."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from abc import ABC, abstractmethod
from importlib.metadata import entry_points
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp import card_format
from labeldp._validation import as_epsilon, as_fraction, as_labels, as_numbers
from labeldp.channels import Channel, Promise, Proof
from labeldp.errors import CardError, LabelDPError, ParameterError, PrivacyProofError
from labeldp.histogram import Histogram
from labeldp.mechanisms.clipping import UnitNoise, best_interval
from labeldp.randomness import RowSource, WordSource, resolve_source

__all__ = ["Mechanism", "fingerprint", "load_all", "load_mechanism", "mechanism_class", "mechanism_names"]

MOST_MECHANISMS = 16
"""A card with more distinct ones is refused: proving one can take a second."""


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
    private : bool
        False for the one mechanism that releases labels as they are.
    unbiased : bool
        Whether `debias` gives labels that are right on average; models need that.
    needs_delta : bool
        Whether the guarantee has a δ; then ``delta`` is a field.
    needs_prior : bool
        Whether to spend a part of ε on a prior that shapes it.
    in_auto : bool
        Whether ``mechanism="auto"`` considers it; that builds it each time.
    """

    __slots__ = ()
    name: ClassVar[str]
    private: ClassVar[bool] = True
    unbiased: ClassVar[bool] = True
    needs_delta: ClassVar[bool] = False
    needs_prior: ClassVar[bool] = False
    in_auto: ClassVar[bool] = False
    epsilon: float
    delta: float = 0.0
    channel: Channel

    @abstractmethod
    def _build(self) -> Channel:
        """Check the parameters and return the channel."""

    @property
    def domain(self) -> tuple[float, float]:
        """The range in which labels are told apart; those outside are clipped."""
        channel: Any = self.channel
        return float(channel.low), float(channel.high)

    # ---- how one is made --------------------------------------------------------------------------

    @classmethod
    def for_bounds(
        cls, bounds: tuple[float, float], epsilon: float, *, prior: Histogram | None = None, **options: Any
    ) -> Self:
        """Return the mechanism that tells all labels within bounds apart.

        Parameters
        ----------
        bounds : (lo, hi)
        epsilon : float
        prior : Histogram, optional
            What is known of labels, for a mechanism that is shaped by it; nothing is clipped for it.
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
        rows : int, optional
            How many labels a learner will see: the more, the less noise matters and the less is clipped.
            By default the error of a single label counts.
        **options
            As for `for_bounds`.
        """
        return cls._with_best_bounds(prior, epsilon, rows, **options)

    @classmethod
    def _with_best_bounds(cls, prior: Histogram, epsilon: float, rows: int | None, **options: Any) -> Self:
        epsilon = as_epsilon(epsilon)
        bounds = best_interval(prior, cls.unit_noise(epsilon, **options), rows)
        return cls.for_bounds(bounds, epsilon, prior=prior, **options)

    def __post_init__(self) -> None:
        channel = self._build()
        if not self._covers(channel.promise):
            raise PrivacyProofError("the channel promises less privacy than the mechanism")
        object.__setattr__(self, "channel", channel)

    def _covers(self, promise: Promise | None) -> bool:
        """Whether ε and δ of this mechanism, which a ledger is charged with, are all that its channel spends."""
        if promise is None:
            return math.isinf(self.epsilon)
        return promise.epsilon <= as_fraction(self.epsilon) and promise.delta <= as_fraction(self.delta)

    def _set(self, **fields: object) -> None:
        """Store checked parameters of a frozen instance, from within ``_build``."""
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    # ---- release --------------------------------------------------------------------------------

    def randomize(
        self, labels: ArrayLike, *, random_state: int | WordSource | RowSource | None = None
    ) -> NDArray[np.float64]:
        """Return private labels, one for each label, in the same shape.

        Calling this twice on the same labels spends ε twice.

        Parameters
        ----------
        labels : array-like of finite numbers
            Labels outside the bounds are clipped silently; an error would tell.
        random_state : None, int or source of words
            Leave it out for a release. An integer makes the result repeatable and **insecure**.

        Raises
        ------
        LabelError
            If labels are missing, not finite, not numbers, or none are given.
        """
        array = as_labels(labels)
        source = resolve_source(random_state, rows=array.size)
        out = np.full(array.shape, np.nan)  # a channel that leaves an entry out must not show freed memory
        with np.errstate(all="ignore"):  # a warning that depends on labels would tell
            self.channel.sample(array.reshape(-1), source, out.reshape(-1))
        return out

    def verify(self) -> Proof:
        """Prove the guarantee again, in exact arithmetic, from the counts that are sampled.

        Returns
        -------
        Proof
            ε and δ that hold for every pair of labels and every output, given ideal random words.

        Raises
        ------
        PrivacyProofError
            If the counts do not keep what was promised.
        """
        return self.channel.verify()

    # ---- what the release is like ----------------------------------------------------------------

    def mean(self, labels: ArrayLike) -> NDArray[np.float64]:
        """Return the mean of the released value, given each label."""
        return _on_labels(self.channel.mean, labels)

    def variance(self, labels: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of the released value, given each label."""
        return _on_labels(self.channel.variance, labels)

    def bias(self, labels: ArrayLike) -> NDArray[np.float64]:
        """Return the mean of the released value minus the label itself, unclipped."""
        return self.mean(labels) - as_labels(labels).astype(np.float64)

    def debias(self, outputs: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased labels from released values.

        Their mean is the label, clipped to the bounds (or RPWithPrior's interval).

        Raises
        ------
        NotUnbiasedError
            If no function of the output is unbiased for this mechanism; the message says why.
        """
        return self.channel.debias(as_labels(outputs).astype(np.float64))

    def unbiased_variance(self, labels: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of the unbiased label, given each label: the price of privacy.

        Raises
        ------
        NotUnbiasedError
            Where `debias` does.
        """
        return self.variance(labels) / self.channel.slope() ** 2

    def density(self, label: float, edges: ArrayLike) -> NDArray[np.float64]:
        """Return the density of the released value in bins, for ``plt.stairs(density, edges)``.

        Parameters
        ----------
        label : float
        edges : array-like
            Increasing bin edges. A bin holds the outputs in (left, right].

        Returns
        -------
        array
            Probability of each bin divided by its width.
        """
        points = as_numbers(edges, "edges")
        one = as_labels(label).reshape(-1)
        if one.size != 1:
            raise ParameterError("density is of one label at a time")
        if points.size < 2 or not (np.diff(points) > 0).all():
            raise ParameterError("edges must be at least two increasing numbers")
        return np.diff(self.channel.cumulative(float(one[0]), points)) / np.diff(points)

    # ---- cards ------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as pure data."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
            if field.init
        }

    def to_json(self) -> str:
        """Return the mechanism's card, for `load_mechanism`."""
        proof = self.verify()
        return card_format.dump(
            {
                "mechanism": self.name,
                "parameters": self.parameters(),
                "channel": fingerprint(self.channel),
                "proof": _proof_data(proof),
            }
        )

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """Return the mechanism with these parameters; lists, which cards have, become tuples."""
        return cls(**{name: _frozen(value) for name, value in parameters.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return load_mechanism, (self.to_json(),)


def channel_field() -> Any:
    """Return the dataclass field that holds a mechanism's channel."""
    return dataclasses.field(init=False, repr=False, compare=False)


def mechanism_names() -> list[str]:
    """Return the names under which labels can be released, those of your own mechanisms included."""
    return [name for name in card_format.known() if card_format.registered(name).private]


def mechanism_class(name: object) -> type[Mechanism]:
    """Return the mechanism registered under a name, by this library or by an installed package.

    A package names the modules that register mechanisms in its entry points, group ``labeldp.mechanisms``; they
    are imported when a name is not known otherwise.

    Raises
    ------
    ParameterError
        If there is none, or it does not protect labels.
    """
    if isinstance(name, str) and name not in mechanism_names():
        for entry in entry_points(group="labeldp.mechanisms"):
            entry.load()
    if not isinstance(name, str) or name not in mechanism_names():
        raise ParameterError(
            f"mechanism must be one of auto, {', '.join(mechanism_names())}, or a mechanism instance, got {name!r}"
        )
    cls: type[Mechanism] = card_format.registered(name)
    return cls


def load_mechanism(text: str, *, allow_no_privacy: bool = False) -> Any:
    """Return the mechanism that a card describes, built and proven anew.

    Parameters
    ----------
    text : str
        What ``to_json`` returned.
    allow_no_privacy : bool
        Whether a card of `NoPrivacy` may be loaded.

    Raises
    ------
    CardError
        If the card is damaged, was tampered with, or its counts cannot be rebuilt.
    PrivacyProofError
        If the counts do not keep the card's promise.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    >>> ldp.load_mechanism(mech.to_json()) == mech
    True
    """
    content = card_format.parse(text)
    cls = card_format.registered(content.get("mechanism"))
    if set(content) != {"schema", "version", "mechanism", "parameters", "channel", "proof"}:
        raise CardError("the card has other entries than a card of a mechanism")
    try:
        mechanism: Mechanism = cls.from_parameters(content["parameters"])
    except LabelDPError:
        raise
    except Exception:
        raise CardError("the card's parameters are not those of its mechanism") from None
    if fingerprint(mechanism.channel) != content["channel"]:
        raise CardError("the card's counts cannot be rebuilt from its parameters")
    proof = mechanism.verify()
    if math.isinf(proof.epsilon) and not allow_no_privacy:
        raise CardError("this card gives no privacy at all; say allow_no_privacy=True if you mean it")
    if content["proof"] != _proof_data(proof):
        raise CardError("the card claims another proof than its counts give")
    return mechanism


def load_all(texts: Any, most: int = MOST_MECHANISMS) -> list[Mechanism]:
    """Return the mechanisms of several cards, each distinct one built and proven once.

    Raises
    ------
    CardError
        If there is none, or more than ``most`` distinct ones, before any is built.
    """
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise CardError("the card's mechanisms are not a list of cards")
    if not texts:
        raise CardError("the card shows no mechanism, so nothing says how labels were released")
    distinct = dict.fromkeys(texts)
    if len(distinct) > most:
        raise CardError(
            f"the card has {len(distinct)} distinct mechanisms, and proving them may take a second each: if you "
            f"trust its writer, read it in Python with most_mechanisms={len(distinct)}"
        )
    loaded = {text: load_mechanism(text) for text in distinct}
    return [loaded[text] for text in texts]


def fingerprint(channel: Channel) -> str:
    """Return a hash of everything that `Channel.sample` and its proof depend on."""
    digest = hashlib.sha256(type(channel).__name__.encode())
    for field in dataclasses.fields(channel):  # type: ignore[arg-type]
        value = getattr(channel, field.name)
        if isinstance(value, np.ndarray):
            data = value.astype(value.dtype.newbyteorder("<")).tobytes()
            text = f"{value.dtype.kind}{value.shape}".encode()
            digest.update(field.name.encode() + text + data)
        else:
            digest.update(f"{field.name}={value!r};".encode())
    return "sha256:" + digest.hexdigest()


def _proof_data(proof: Proof) -> dict[str, Any]:
    infinite = math.isinf(proof.epsilon)
    return {"epsilon": "infinite" if infinite else proof.epsilon, "delta": proof.delta}


def _on_labels(function: Any, labels: ArrayLike) -> NDArray[np.float64]:
    array = as_labels(labels)
    with np.errstate(all="ignore"):
        result: NDArray[np.float64] = function(array.reshape(-1)).reshape(array.shape)
    return result


def _frozen(value: object) -> object:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
