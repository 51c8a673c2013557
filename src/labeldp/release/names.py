"""Names of columns: a name is part of the output, and the name of a label must not be a label.

In a table without a header the values of the first row are read as names. So a label whose name may be a value is
refused, whatever the table comes from; a frame that numbers its columns has no names, and its label is called
``label``.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from numbers import Integral, Number
from typing import Any

from labeldp.errors import ParameterError, Setting
from labeldp.release.number_patterns import GROUPS, amount_pattern

UNNAMED = "label"
"""Name in all output of a label without a name."""

RENAME = "rename the column"

LONGEST = 1_000
"""Characters that the name of a label may have."""

_NUMBERS = [re.compile(amount_pattern(decimal, GROUPS + "_" + group)) for decimal, group in (".,", ",.")]
"""Numbers in all dialects that files may have."""

_MARKS = "()[]+-\u2013%\u2030<>\u2264\u2265~ "
"""Signs, brackets of accountants, percent signs and limits around a number."""

_CURRENCY_WORDS = (
    "aed ars aud bgn brl cad chf clp cny czk dkk eur gbp hkd huf idr ils inr isk jpy krw mxn myr nok nzd php pln "
    "rmb ron rub sar sek sgd thb tl twd uah usd vnd zar "
    "dollar dollars euro euros fr ft kr kč lei rm rp rs zł лв руб"
)
_CURRENCY_SIGNS = "$¢£¥฿₦₩₪₫€₱₴₹₺₽"
_SIGN = f"[a-z]{{0,3}}[{_CURRENCY_SIGNS}]"
_WORD = f"(?:{_CURRENCY_WORDS.replace(' ', '|')})"
_CURRENCY_AT_END = re.compile(rf"^{_SIGN}|^{_WORD}[. ]|{_SIGN}$|{_WORD}\.?$")
"""A currency before or after an amount, in lower case. ``ft4`` is a name, and ``ft 4`` an amount."""

_REPEATED = re.compile(r"\.[0-9]+$")
"""The end that pandas adds to a name that another column has."""

_NOT_FINITE = {"inf", "infinity", "nan"}


def reads_as_value(name: object) -> bool:
    """Return whether a whole name is a number, or an amount, in a dialect that files may have.

    Only such a name can be a label of a row that was taken for the header.

    Examples
    --------
    >>> [reads_as_value(name) for name in ("66993", " 1.234,50 €", "5 USD", "(51,234)", "12 %", "nan", 2019)]
    [True, True, True, True, True, True, True]
    >>> [reads_as_value(name) for name in ("price", "2nd", "T_0.5", "price 2019", "PM2.5")]
    [False, False, False, False, False]
    """
    if isinstance(name, Number):
        return True
    decoded = name.decode("latin-1") if isinstance(name, bytes) else str(name)
    text = "".join(map(_ascii_digit, _visible(decoded)))
    if text.lstrip("+-") in _NOT_FINITE:
        return True
    amount = _CURRENCY_AT_END.sub("", text.strip(_MARKS), count=1).strip(_MARKS)
    forms = (text, amount, _REPEATED.sub("", text))
    return any(pattern.search(form) for pattern in _NUMBERS for form in forms)


def _ascii_digit(character: str) -> str:
    """Return a digit of any script, or a minus sign, in ASCII; other characters stay."""
    if character == "\N{MINUS SIGN}":
        return "-"
    return str(unicodedata.decimal(character, character))


def looks_like_value(name: str) -> bool:
    """Return whether a name may be a value of a row: it is a number, or has digits and begins with no letter."""
    has_digits = any(map(str.isnumeric, name))
    return reads_as_value(name) or (has_digits and not name.lstrip(" _")[0].isalpha())


def look_like_values(names: Iterable[str]) -> bool:
    """Return whether most names have digits and begin with no letter, as those without a header do.

    Examples
    --------
    >>> look_like_values(["oak", "51234", "20"]), look_like_values(["item", "price", "2019"])
    (True, False)
    """
    texts = [name for name in names if name.strip()]
    return 2 * sum(map(looks_like_value, texts)) > len(texts)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that a misspelt name may have meant, or None.

    The result is never a value: in a text file without a header, names are the values of a row, with its label.

    Examples
    --------
    >>> nearest("prise", ["area", "price"]), nearest("town", ["area", "price"]), nearest("2", ["25"])
    ('price', None, None)
    """
    words = [word for word in names if not looks_like_value(word)]
    return next(iter(difflib.get_close_matches(name, words, 1)), None)


def as_label_name(name: object, *advice: object) -> str:
    """Return the name of a label, or refuse one that may be a label; the message does not quote it.

    Examples
    --------
    >>> as_label_name("price")
    'price'
    >>> as_label_name("pay2019")
    'pay2019'
    >>> as_label_name(("price", "66,993"))
    Traceback (most recent call last):
    labeldp.errors.ParameterError: the label's name reads as a value, or has more than 1,000 ...
    """
    levels = name if isinstance(name, tuple) else (name,)  # of a MultiIndex
    if any(reads_as_value(level) or len(str(level)) > LONGEST for level in levels):
        raise ParameterError(
            f"the label's name reads as a value, or has more than {LONGEST:,} characters, and names are public: ",
            *(advice or (RENAME,)),
        )
    return as_text(str(name), "label")


def as_text(text: str, parameter: str) -> str:
    """Return text that every file can hold, or refuse text that is not Unicode, such as bytes of a shell."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ParameterError(Setting(parameter), f" is not valid Unicode text: {text!r}")
    return text


def same_name(first: str, second: str) -> bool:
    """Return whether two names look the same: but for case, blanks, invisible characters and forms of a letter.

    Examples
    --------
    >>> same_name("Gehalt", "GEHALT"), same_name("sala\u0301rio", "sal\u00e1rio"), same_name("pay", "paid")
    (True, True, False)
    >>> same_name("pay", " pay\u200b"), same_name("pay", "\uff50\uff41\uff59")
    (True, True)
    """
    return _visible(first) == _visible(second)


def lookalike(label: str, names: Iterable[str]) -> str | None:
    """Return the first name that looks the same as a label's, or None."""
    return next((name for name in names if _is_lookalike(name, label)), None)


def _is_lookalike(name: str, label: str) -> bool:
    """Return whether a name is that of a label, or what pandas calls a second column of it, such as ``pay.1``."""
    return same_name(name, label) or same_name(_REPEATED.sub("", name), label)


def refuse_lookalike(label: str, public: Iterable[str], *advice: object) -> None:
    """Refuse public columns of a table if one has a name that looks the same as the label's.

    Examples
    --------
    >>> refuse_lookalike("pay", ["town", " PAY"], "drop it")
    Traceback (most recent call last):
    labeldp.errors.ParameterError: the public column ' PAY' has the name of the label 'pay', ...
    """
    name = lookalike(label, public)
    if name is not None:
        raise ParameterError(
            f"the public column {name!r} has the name of the label {label!r}, but for case, blanks, forms of "
            "letters or a number that pandas adds, and public columns leave in the clear: ",
            *advice,
        )


def _visible(name: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    visible = (mark for mark in text if mark.isspace() or not unicodedata.category(mark).startswith("C"))
    return " ".join("".join(visible).split())


def column_names(frame: Any) -> list[Any] | None:
    """Return the names of a frame's columns as they are, or None if something is no frame."""
    if len(getattr(frame, "shape", ())) != 2:
        return None
    names = getattr(frame, "column_names", None)  # Arrow's tables; their columns are arrays
    names = getattr(frame, "columns", None) if names is None else names
    return None if names is None else list(names)


def name_of_labels(labels: Any, features: Any = None, *, advice: str = "drop it from X") -> str | None:
    """Return the name of labels: of a Series, or of the first column of a frame; None if unnamed.

    The columns of a frame that are exactly 0, 1, 2 … have no names, and neither has a Series named by one of these
    numbers; beside a frame of features it must be one of the same numbering.

    Raises
    ------
    ParameterError
        If a name reads as a value otherwise, or looks the same as that of a feature; labels without a name are
        called ``label``.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]])
    >>> name_of_labels(frame[1], frame[[0]]), name_of_labels(frame[1].rename("pay"))
    (None, 'pay')
    >>> name_of_labels(frame[1].rename("66993"))
    Traceback (most recent call last):
    labeldp.errors.ParameterError: the label's name reads as a value, or has more than 1,000 ...
    """
    feature_names = column_names(features)
    label_names = column_names(labels)
    if label_names is not None:
        is_numbering = _are_positions(label_names)
    else:
        name = getattr(labels, "name", None)
        label_names = [name]
        is_position = isinstance(name, Integral) and not isinstance(name, bool) and int(name) >= 0
        is_numbering = is_position and (feature_names is None or _are_positions([*{*feature_names, name}]))
    texts = [] if is_numbering else [as_label_name(name) for name in label_names if name not in (None, "")]
    reserved = [str(name) for name in label_names if name is not None]
    if not texts:
        reserved.append(UNNAMED)
    feature_texts = map(str, feature_names or ())
    clash = next((name for name in feature_texts if any(_is_lookalike(name, label) for label in reserved)), None)
    if clash is not None:
        column = "a column" if is_numbering else f"the column {clash!r}"
        unnamed = "" if texts else f" (a y without a name is called {UNNAMED!r})"
        raise ParameterError(
            f"X has {column}, which is the name of y{unnamed}: features are public, so labels must not be among "
            f"them; {advice}, or rename y if they are not the same"
        )
    return texts[0] if texts else None


def _are_positions(names: list[Any]) -> bool:
    """Return whether names are exactly 0, 1, 2 …, as integers or as the text that files make of them."""
    return sorted(map(str, names)) == sorted(map(str, range(len(names))))
