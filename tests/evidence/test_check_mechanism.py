"""`check_mechanism`: what conforms passes, and each broken mechanism fails for its own reason."""

import warnings
from dataclasses import dataclass
from inspect import getattr_static
from itertools import cycle

import numpy as np
import pytest

import labeldp as ldp
from evidence.coin_cases import Coin, coin
from helpers import EVERY, NAMES, PURE, built_in_choices, make, seeded

SAMPLES = 20_000


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon"), [*zip(EVERY, cycle((1.0, 0.1, 4.0)), strict=False)])
def test_every_mechanism_conforms(name, epsilon):
    assert ldp.evidence.check_mechanism(make(name, epsilon, (1.0, 4.0)), samples=SAMPLES) == tuple(
        ldp.evidence.CHECKS
    )


def test_the_list_of_mechanisms_has_one_of_each():
    assert {make(name, 1.0).name for name in NAMES} == {*NAMES}
    assert {*PURE} == {*built_in_choices()} - {"auto"}


def test_the_coin_of_the_guide_conforms():
    ldp.evidence.check_mechanism(coin("right")(epsilon=1.1), samples=SAMPLES)


# ---- what `Mechanism` does for everybody -----------------------------------------------------------------------


FORMS = {
    "list": lambda y: y.tolist(),
    "column": lambda y: y[:, None],
    "float32": lambda y: y.astype(np.float32),
    "integers": lambda y: np.rint(y).astype(np.int64),
    "objects": lambda y: y.astype(object),
    "more than a piece": lambda y: np.resize(y, 70_001),
    "number": lambda y: float(y[5]),
    "list of one": lambda y: [float(y[5])],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", EVERY)
def test_labels_in_any_form_give_the_channels_own_draws_bit_for_bit(name, form):
    mechanism = make(name, 1.0, (1.0, 4.0))
    labels = FORMS[form](np.linspace(0.9, 4.1, 50))
    flat = np.array(labels, dtype=np.float64).reshape(-1)
    out = np.full(flat.size, np.nan)
    mechanism.channel.sample(flat, seeded(2), out)
    z = mechanism.randomize(labels, random_state=seeded(2))
    assert np.shape(z) == np.shape(labels)
    assert np.asarray(z).tobytes() == out.tobytes()
    assert np.array_equal(np.array(labels, dtype=np.float64).reshape(-1), flat)


def with_own(name):
    """Return a coin with a method that does the same as the one of `Mechanism`."""
    inherited = getattr_static(ldp.mechanisms.Mechanism, name)
    function = getattr(inherited, "fget", inherited)

    def own(self, *arguments, **options):
        return function(self, *arguments, **options)

    method = property(own) if isinstance(inherited, property) else own
    return coin(f"own-{name}", **{name: method})(epsilon=1.1)


@pytest.mark.parametrize("name", ["randomize", "verify", "origin"])
def test_what_mechanism_does_for_everybody_is_left_to_it(name):
    with pytest.raises(ldp.errors.ConformanceError, match=rf"^inherited: .*\.{name} "):
        ldp.evidence.check_mechanism(with_own(name), samples=SAMPLES)


# ---- coins whose channel has one mistake -----------------------------------------------------------------------


def with_channel(make):
    return {"_build": lambda self: make(Coin._build(self))}


def of_class(cls):
    return with_channel(lambda table: cls(table.low, table.high, table.values, table.table, table.promise))


def sampling(change):
    """Return a sampler that draws as it should, and then changes outputs of some labels."""

    def sample(self, labels, source, out):
        ldp.mechanisms.TableChannel.sample(self, labels, source, out)
        change(labels, out)

    return {"sample": sample}


def leaky(where, give):
    """Return a sampler with other outputs for some labels."""

    def change(labels, out):
        mask = np.broadcast_to(where(labels), out.shape)
        out[mask] = np.broadcast_to(give(labels, out), out.shape)[mask]

    return sampling(change)


def above(label):
    return lambda labels: labels > label


def last_bit(labels, out):
    return np.nextafter(out, np.inf)


def raises(labels, out):
    if np.abs(labels).max() > 10:
        raise ldp.errors.LabelError("a label is out of bounds")


def warns(labels, out):
    if np.abs(labels).max() > 1e200:
        warnings.warn("a label is out of bounds", stacklevel=1)


def writes(labels, out):
    labels[...] = 0


def own_words(self, labels, source, out):
    ldp.mechanisms.TableChannel.sample(self, labels, seeded(np.random.default_rng().integers(1 << 30)), out)


def certain_above(self, label, points):
    return (
        (points >= 1.5).astype(float) if label > 1 else ldp.mechanisms.TableChannel.cumulative(self, label, points)
    )


BROKEN = {
    "proves too little": ("proof", {"verify": lambda self: ldp.exact.Proof(9.0, 0.0)}),
    "releases the label": ("distribution", leaky(above(-1), lambda y, z: np.where(y > 0.5, 1.5, -0.5))),
    "leaks labels of some places": ("distribution", leaky(lambda y: (y > 0.6) & (y < 0.95), lambda y, z: 1.5)),
    "leaks a label that comes alone": ("distribution", leaky(lambda y: y.size == 1, lambda y, z: 1.5)),
    "wrong mean": ("moments: mean", {"mean": lambda self, y: np.zeros(len(y))}),
    "wrong variance": ("moments: variance", {"variance": lambda self, y: np.ones(len(y))}),
    "wrong debias": ("moments: debias", {"debias": lambda self, z: 2 * z}),
    "words of its own": ("random words", {"sample": own_words}),
    "leaks float32": ("random words", leaky(lambda y: y.dtype == np.float32, last_bit)),
    "leaks integers": ("random words", leaky(lambda y: y.dtype.kind == "i", last_bit)),
    "writes to its input": ("random words", sampling(writes)),
    "refuses labels outside": ("clipping", sampling(raises)),
    "warns of labels outside": ("clipping", sampling(warns)),
    "leaks labels far outside": ("clipping", leaky(above(4), last_bit)),
    "not finite outside": ("clipping", leaky(above(1e200), lambda y, z: np.nan)),
    "leaks in the last bit": ("distribution", leaky(above(0.5), last_bit)),
    "certain above": ("audit outputs", leaky(above(1), lambda y, z: 1.5) | {"cumulative": certain_above}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_channel_with_a_mistake_fails_the_check_for_it(name):
    check, methods = BROKEN[name]
    cls = dataclass(frozen=True, slots=True)(type("Own", (ldp.mechanisms.TableChannel,), methods))
    mechanism = coin(name.replace(" ", "-"), **of_class(cls))(epsilon=1.1)
    with pytest.raises(ldp.errors.ConformanceError, match=f"^{check}"):
        ldp.evidence.check_mechanism(mechanism, samples=SAMPLES)


class NoDataclass:
    """The protocol of a channel, and no dataclass."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self.__dict__["_inner"], name)


# ---- what is not a mechanism --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Coin):
    """A mechanism that is not registered."""

    epsilon: float
    channel: ldp.mechanisms.TableChannel = ldp.mechanisms.channel_field()


@pytest.mark.parametrize(
    ("make_wrong", "message"),
    [
        (lambda: coin("no-dataclass", **with_channel(NoDataclass))(epsilon=1.1), "card: NoDataclass"),
        (lambda: Unknown(epsilon=1.1), "card: .*@register"),
        (lambda: lambda y: y, "subclass of"),
    ],
)
def test_what_is_not_a_mechanism_is_refused(make_wrong, message):
    with pytest.raises(ldp.errors.ConformanceError, match=message):
        ldp.evidence.check_mechanism(make_wrong(), samples=10_000)
