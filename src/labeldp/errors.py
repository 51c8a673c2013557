"""The errors and warnings that labeldp raises, and what their messages need; every error is a ``ValueError``."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Number
from types import FrameType
from typing import Self

import numpy as np


@dataclass(frozen=True, slots=True)
class Setting:
    """An option in a message, with a value or without one; each interface spells it in its own way.

    Examples
    --------
    >>> str(Setting("missing", "drop")), str(Setting("epsilon"))
    ('missing="drop"', 'epsilon')
    """

    option: str
    value: object = None

    def __str__(self) -> str:
        if self.value is None:
            return self.option
        quoted = isinstance(self.value, str | list)
        return f"{self.option}={json.dumps(self.value, ensure_ascii=False) if quoted else self.value}"


class Message(str):
    """Text with options in it, for notes and hints: each interface spells the options in its own way.

    Examples
    --------
    >>> hint = Message("Leave it out with ", Setting("drop", ["net"]), ".")
    >>> print(hint, hint.spell(lambda setting: f"--{setting.option}"))
    Leave it out with drop=["net"]. Leave it out with --drop.
    """

    __slots__ = ("pieces",)
    pieces: tuple[object, ...]

    def __new__(cls, *pieces: object) -> Self:
        """Join the pieces; a message or an error among them adds its own."""
        message = super().__new__(cls, "".join(map(str, pieces)))
        message.pieces = ()
        for piece in pieces:
            inner = piece.message if isinstance(piece, LabelDPError) else piece
            message.pieces += inner.pieces if isinstance(inner, Message) else (inner,)
        return message

    def spell(self, setting: Callable[[Setting], str]) -> str:
        """Return the message with settings as ``setting`` spells them."""
        return "".join(setting(piece) if isinstance(piece, Setting) else str(piece) for piece in self.pieces)


class LabelDPError(ValueError):
    """Base of all errors of this package: catch this one to catch them all.

    A message is made of text and of `Setting`, so that the command line and the page can name options as their
    users know them.

    Parameters
    ----------
    *pieces : str, Setting, Message or LabelDPError
        The message; it may include another one, or that of another error.
    option : str, optional
        The option that the error is about; by default the first that the message names.

    Examples
    --------
    >>> import labeldp as ldp
    >>> try:
    ...     ldp.privatize([2.5], epsilon=0, bounds=(0, 5))
    ... except ldp.LabelDPError as error:
    ...     print(error)
    epsilon must be positive, got 0.0
    """

    def __init__(self, *pieces: object, option: str | None = None) -> None:
        super().__init__(*pieces)
        self.message = Message(*pieces)
        options = [piece.option.partition("[")[0] for piece in self.message.pieces if isinstance(piece, Setting)]
        self.option = option or next(iter(options), None)

    def __str__(self) -> str:
        return str(self.message)


class ParameterError(LabelDPError):
    """A parameter (ε, δ, bounds, ζ, a prior …) cannot be used; the message says what to give.

    It is raised before anything is charged.

    Examples
    --------
    Bounds are public knowledge about the label: take them from the form, the scale or the law, and never from the
    data, where they would give away the extreme labels.

    >>> import labeldp as ldp
    >>> ldp.privatize([2.5, 4.0], epsilon=1.0)
    Traceback (most recent call last):
    ...
    labeldp.errors.ParameterError: bounds must be a pair (lo, hi) that is known without looking at the labels; ...
    """


class LabelError(LabelDPError):
    """The labels cannot be used. The message never contains a label.

    Labels outside the bounds raise nothing: they are clipped, because an error would reveal that there are some.

    Examples
    --------
    Leave rows without a label out, or fill them in, before the release; that such rows exist is public.

    >>> import labeldp as ldp
    >>> ldp.privatize([2.5, float("nan")], epsilon=1.0, bounds=(0, 5))
    Traceback (most recent call last):
    ...
    labeldp.errors.LabelError: 1 of 2 labels are NaN or infinite: drop those rows or fill them first
    """


class NotUnbiasedError(LabelDPError):
    """The mechanism has no unbiased label.

    Examples
    --------
    Train on labels of another mechanism, or use the values as released where a single label counts.

    >>> import labeldp as ldp
    >>> release = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), mechanism="rr-on-bins", purpose="values")
    >>> release.labels.shape
    (2,)
    >>> release.mechanism.debias(release.values)
    Traceback (most recent call last):
    ...
    labeldp.errors.NotUnbiasedError: many labels share one output here, so no function of the output is an ...
    """


class PrivacyProofError(LabelDPError):
    """The exact proof failed: these counts do not satisfy the promised ε or δ.

    Examples
    --------
    A channel is proven when it is built, so one that leaks cannot be used. Here two outputs have odds of 3 : 1 for
    one label and 1 : 3 for the other, a ratio of 3 that ε = 1 does not allow; ε = log 3 would.

    >>> from labeldp.mechanisms import WORDS, Promise, TableChannel
    >>> counts = [[WORDS // 4 * 3, WORDS // 4], [WORDS // 4, WORDS // 4 * 3]]
    >>> TableChannel.from_counts(0.0, 5.0, [0.0, 5.0], counts, Promise.of(1.0))
    Traceback (most recent call last):
    ...
    labeldp.errors.PrivacyProofError: the counts reach a ratio of e^1.09861229, above the promised epsilon=1.0: ...
    """


class CardError(LabelDPError):
    """A card is damaged, was changed, or is of an unknown kind. Do not rely on it; ask its author for another.

    Examples
    --------
    >>> import labeldp as ldp
    >>> card = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json()
    >>> ldp.load_mechanism(card.replace("1.0", "0.1"))
    Traceback (most recent call last):
    ...
    labeldp.errors.CardError: the card was changed after it was written: its checksum does not fit
    """


class UncheckableError(CardError):
    """A card names something that this installation does not know, so this version cannot verify it.

    Examples
    --------
    If you trust the module that registers the mechanism, import it first; on the command line, with ``--import``.

    >>> import labeldp as ldp
    >>> from labeldp.mechanisms import card_format
    >>> proof = {"epsilon": 1.0, "delta": 0.0, "ratio": None}
    >>> card = card_format.dump({"mechanism": "dice", "parameters": {}, "channel": {}, "proof": proof})
    >>> ldp.load_mechanism(card)
    Traceback (most recent call last):
    ...
    labeldp.errors.UncheckableError: the card names an unknown mechanism, 'dice', which this version cannot ver...
    """


class ConformanceError(LabelDPError):
    """A mechanism does not follow the protocol; the message says which part, and what to do.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.evidence import check_mechanism
    >>> check_mechanism(lambda y: y)
    Traceback (most recent call last):
    ...
    labeldp.errors.ConformanceError: check_mechanism takes an instance of a subclass of ...
    """


class BudgetError(LabelDPError):
    """The ledger's limit would be passed; nothing was spent or released.

    Examples
    --------
    Reuse the release that there is, ask for less, or let the owner of the data decide on a new ledger.

    >>> import labeldp as ldp
    >>> ledger = ldp.Ledger(limit=ldp.Budget(epsilon=1.0))
    >>> release = ldp.privatize([2.5, 4.0], epsilon=0.8, bounds=(0, 5), ledger=ledger)
    >>> ldp.privatize([2.5, 4.0], epsilon=0.8, bounds=(0, 5), ledger=ledger)
    Traceback (most recent call last):
    ...
    labeldp.errors.BudgetError: Budget exceeded: this costs ε = 0.8, and 0.2 of 1 is left. Nothing was spent.
    """


class LedgerError(LabelDPError):
    """A ledger file is damaged, was changed, or cannot be written; nothing was released.

    Examples
    --------
    Treat the whole limit as spent, or restore the file from a copy: no charge must be forgotten.

    >>> import tempfile, pathlib, labeldp as ldp
    >>> path = pathlib.Path(tempfile.mkdtemp(), "budget.db")
    >>> _ = ldp.Ledger.open(path, limit=ldp.Budget(epsilon=1.0)).charge("labels", epsilon=0.4)
    >>> _ = path.write_bytes(path.read_bytes().replace(b"2/5", b"1/5"))
    >>> ldp.Ledger.open(path)
    Traceback (most recent call last):
    ...
    labeldp.errors.LedgerError: record 2 of the ledger ...budget.db is damaged, was changed, or ...
    """


class DataError(LabelDPError):
    """A file is damaged, or of another format than expected. The message never contains a label.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from labeldp.tables import open_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "flats.parquet")
    >>> _ = path.write_text("rooms,price")
    >>> open_table(path)
    Traceback (most recent call last):
    ...
    labeldp.errors.DataError: ...flats.parquet is damaged, or of another format than its name says
    """


class NoSolutionError(DataError):
    """Noisy sums to which no model of a family fits. The sums are released and paid for.

    Attributes
    ----------
    moments : PrivateMoments, optional
        The released sums, to estimate other models from at no further cost.
    """

    moments: object = None


class DataNotFoundError(DataError, FileNotFoundError):
    """A file is not here and could not be fetched; the message says how to get it.

    Examples
    --------
    >>> import tempfile, labeldp as ldp
    >>> ldp.load_model(tempfile.mkdtemp() + "/model")
    Traceback (most recent call last):
    ...
    labeldp.errors.DataNotFoundError: there is no model here, or it is not complete: there is no file ...
    """


class MissingExtraError(LabelDPError, ImportError):
    """A package that only some of the library needs is not installed; the message names the extra.

    Examples
    --------
    >>> import sys
    >>> from unittest import mock
    >>> import labeldp as ldp
    >>> with mock.patch.dict(sys.modules, {"matplotlib.figure": None}):      # as if it were not installed
    ...     ldp.Histogram([0, 1], [1]).plot()
    Traceback (most recent call last):
    ...
    labeldp.errors.MissingExtraError: a plot needs Matplotlib: pip install "labeldp[plots]"
    """


class RepeatedReleaseWarning(UserWarning):
    """The same labels are about to be released again, and paid for again.

    Examples
    --------
    Keep the first release, or pass a ledger that counts: with one, there is no warning.

    >>> import warnings, numpy as np, labeldp as ldp
    >>> y = np.linspace(0, 5, 1000)
    >>> first = ldp.privatize(y, epsilon=1.0, bounds=(0, 5))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     again = ldp.privatize(y, epsilon=1.0, bounds=(0, 5))
    >>> str(caught[0].message)
    'these labels were released before: each release costs epsilon again, and the costs add up. ...'
    """


class WeakModelWarning(UserWarning):
    """A fitted model is next to useless, by its private values: a constant, at a bound, or fitted to noise.

    Examples
    --------
    >>> import warnings, numpy as np, labeldp as ldp
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> euros = 30_000 + 5_000 * X[:, 0]
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     _ = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 100)).fit(X, euros)   # thousands were meant
    >>> print(caught[0].message)
    100 % of the fitted values lie at the bound 100: check that labels and bounds are in the same unit, or give ...
    """


class InsecureRandomnessWarning(UserWarning):
    """A seed was given: results can be repeated, by an attacker too.

    Examples
    --------
    Leave ``random_state`` out for a release. A release from a seed says so, and so does its card.

    >>> import warnings, labeldp as ldp
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     release = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), random_state=0)
    >>> caught[0].category.__name__, release.secure
    ('InsecureRandomnessWarning', False)
    """


# ---- what messages need ------------------------------------------------------------------------------


def describe(value: object) -> str:
    """Return a parameter for a message: a scalar as it is, of all else the type, since it may hold labels.

    Examples
    --------
    >>> describe("lokal"), describe(0), describe([61.5, 48.0])
    ("'lokal'", '0', 'list')
    """
    return repr(value) if value is None or isinstance(value, str | Number | np.bool_) else type(value).__name__


def list_first(items: Sequence[object], limit: int) -> str:
    """Return the first of some items, and the number of the others.

    Examples
    --------
    >>> list_first([2, 3, 5, 7, 11], 3)
    '2, 3, 5 and 2 more'
    """
    text = ", ".join(map(str, items[:limit]))
    return text if len(items) <= limit else f"{text} and {len(items) - limit:,} more"


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def is_called_from(package: str) -> bool:
    """Return whether a function of a package is being called, such as ``sklearn.model_selection``."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and not str(frame.f_globals.get("__name__")).startswith(package):
        frame = frame.f_back
    return frame is not None


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: the first outside of this package, scikit-learn and NumPy."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _package_of(frame) in ("labeldp", "sklearn", "numpy"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
