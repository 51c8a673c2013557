"""The guide's coin, as a class to break in one place."""

from dataclasses import dataclass

from labeldp import mechanisms as mech


class Coin(mech.Mechanism):
    """What coins share: no instance of its own, so it needs no register. Their ε is log 3."""

    __slots__ = ()

    def _build(self):
        truth = 3 << 62
        counts = [[truth, 2**64 - truth], [2**64 - truth, truth]]
        return mech.TableChannel.from_counts(0.0, 1.0, [-0.5, 1.5], counts, mech.Promise.of(self.epsilon))


def coin(name, **methods):
    """Return a coin with some of its methods replaced."""
    fields = {"__annotations__": {"epsilon": float, "channel": mech.TableChannel}, "channel": mech.channel_field()}
    cls = type(f"Coin{name}", (Coin,), {**fields, **methods, "__module__": __name__})
    cls = dataclass(frozen=True, kw_only=True, slots=True)(cls)
    globals()[cls.__qualname__] = cls
    return mech.register(f"test-coin-{name}")(cls)
