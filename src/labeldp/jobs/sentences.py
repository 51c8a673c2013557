"""What went wrong, in one sentence, in the same words on the command line and on the page."""

from __future__ import annotations

import re
import traceback
import unicodedata

from labeldp.errors import LabelDPError
from labeldp.ledger import Ledger, total_of

EXPLAINED = (LabelDPError, ModuleNotFoundError, OSError, MemoryError)
"""What can go wrong and is explained; anything else is a defect of the library."""

_EXTRAS = {
    **{"pyarrow": "files", "openpyxl": "excel", "matplotlib": "plots", "pyspark": "spark"},
    **dict.fromkeys(["jinja2", "markupsafe", "python_multipart", "starlette", "uvicorn"], "page"),
}
"""Packages, and the extras that bring them."""


def explain_error(error: BaseException, ledger: Ledger | None = None) -> str:
    """Return one sentence for what went wrong, and one for what stays spent in a ledger's file."""
    sentence = _sentence(error).replace("\n", "\ufffd")  # of a name
    return sentence + ("" if ledger is None or ledger.path is None else explain_charges(ledger))


def explain_charges(ledger: Ledger | None) -> str:
    """Return what was charged before something went wrong, and how not to pay for that again; empty if nothing."""
    if ledger is None or not ledger.own_charges:
        return ""
    spent = f"{total_of(ledger.own_charges)} was charged before that, and stays spent"
    return f". {spent}: mend this before you try again, because that will be charged again."


def explain_defect(error: BaseException, ledger: Ledger | None = None) -> str:
    """Return where in the code an unexpected error happened, and not what it says: that may quote a label."""
    lines = traceback.format_list(traceback.extract_tb(error.__traceback__))
    sentence = f"labeldp failed with {type(error).__name__}; its message is left out, since it may quote data"
    return f"Traceback (most recent call last):\n{''.join(lines)}{sentence}{explain_charges(ledger)}"


def _sentence(error: BaseException) -> str:
    if isinstance(error, LabelDPError):
        return as_options(str(error))
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "a package").partition(".")[0]
        extra = _EXTRAS.get(package)
        return f"{package} is not installed: pip install " + (f'"labeldp[{extra}]"' if extra else package)
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}" + (f": {error.filename}" if error.filename else "")
    return "there is not enough memory for this"


def as_options(text: str) -> str:
    """Return a sentence of the library with its parameters as they are typed in a shell.

    Examples
    --------
    >>> as_options('leave their rows out with missing="drop"; force=True replaces it')
    'leave their rows out with --missing drop; --force replaces it'
    >>> as_options('say which, as in Dialect(decimal=",")')
    "say which, as in --decimal ','"
    >>> as_options('drop them, as in drop=["tax", "net"]')
    'drop them, as in --drop tax,net'
    """
    names = r'\[?("[^"]*"(?:, "[^"]*")*)\]?'
    text = text.replace("Dialect(header=True)", "--header")
    text = re.sub(rf"\bDialect\((\w+)={names}\)|\b(drop)={names}", _as_option, text)
    text = re.sub(r'\b(missing|debiased|trust|mechanism|format|release)="([\w-]+)"', r"--\1 \2", text)
    text = text.replace("limit=Budget(epsilon, delta)", "--limit and --limit-delta")
    return re.sub(r"\b(force|shuffle)=True\b", r"--\1", text)


def _as_option(found: re.Match[str]) -> str:
    option, value, drop, names = found.groups()
    typed = (value or names).replace('", "', ",").replace('"', "")
    return f"--{option or drop} " + (typed if re.fullmatch(r"[\w,-]*\w", typed) else f"'{typed}'")


def printable(value: object, most: int = 1000) -> str:
    """Return text of others without what could command a terminal, and not longer than ``most``.

    Examples
    --------
    >>> printable("a card" + chr(27) + "[2J says")
    'a card�[2J says'
    """
    text = without_controls(str(value)[: most + 1].replace("\n", "\0"))
    return text if len(text) <= most else text[: most - 1] + "…"


def without_controls(text: str) -> str:
    r"""Return a text without characters that command a terminal, reorder what follows, or are not seen.

    Examples
    --------
    >>> without_controls("a" + chr(27) + "[2Jb" + chr(0x202E) + "c\nd")
    'a�[2Jb�c\nd'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == "\n" or unicodedata.category(c) == "Zs" else "\ufffd" for c in text
    )
