"""Messages of the command line and the page: what went wrong in one sentence, with options as each spells them."""

from __future__ import annotations

import shlex
import traceback
import unicodedata
from collections.abc import Callable

from labeldp.accounts.budget import total_of
from labeldp.accounts.ledger import Ledger
from labeldp.app.options import CommandOption
from labeldp.app.typed_text import join_names
from labeldp.errors import LabelDPError, Message, Setting

Spell = Callable[[Setting], str]
"""The spelling of options in an interface: `as_flag` or `as_field`."""

EXPLAINED = (LabelDPError, ModuleNotFoundError, OSError, MemoryError)
"""Errors that are explained; anything else is a defect of the library."""

_EXTRAS = {
    **{"pyarrow": "files", "openpyxl": "excel", "matplotlib": "plots", "pyspark": "spark"},
    **dict.fromkeys(["python_multipart", "starlette", "uvicorn"], "page"),
}
"""Packages, and the extras that bring them."""


def explain_error(error: BaseException, spell: Spell, ledger: Ledger | None = None) -> str:
    """Return one sentence for what went wrong, and one for what stays spent in a ledger's file."""
    sentence = _sentence(error, spell).replace("\n", "\ufffd")  # of a name
    return sentence + ("" if ledger is None or ledger.path is None else explain_charges(ledger))


def explain_charges(ledger: Ledger | None) -> str:
    """Return the charges before an error, and how not to pay for them again; empty without charges."""
    if ledger is None or not ledger.own_charges:
        return ""
    cost = total_of(ledger.own_charges)
    return f". {cost} was charged before that, and stays spent: mend this first, since the next try costs again."


def explain_defect(error: BaseException, ledger: Ledger | None = None) -> str:
    """Return the lines of code of an unexpected error, without its message: that may quote a label."""
    lines = traceback.format_list(traceback.extract_tb(error.__traceback__))
    sentence = f"labeldp failed with {type(error).__name__}; its message is left out, since it may quote data"
    return f"Traceback (most recent call last):\n{''.join(lines)}{sentence}{explain_charges(ledger)}"


def _sentence(error: BaseException, spell: Spell) -> str:
    if isinstance(error, LabelDPError):
        return error.message.spell(spell)
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "a package").partition(".")[0]
        extra = _EXTRAS.get(package)
        return f"{package} is not installed: pip install " + (f'"labeldp[{extra}]"' if extra else package)
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}" + (f": {error.filename}" if error.filename else "")
    return "there is not enough memory for this"


def printable(value: object, limit: int = 1000) -> str:
    """Return text of others without what could command a terminal, and not longer than ``limit``.

    Examples
    --------
    >>> printable("a card" + chr(27) + "[2J says")
    'a card�[2J says'
    """
    text = without_controls(str(value)[: limit + 1].replace("\n", "\0"))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def counted(count: int, noun: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def without_controls(text: str) -> str:
    r"""Return a text with a mark for characters that command a terminal, reorder text, or are invisible.

    Examples
    --------
    >>> without_controls("a" + chr(27) + "[2Jb" + chr(0x202E) + "c\nd")
    'a�[2Jb�c\nd'
    """
    return "".join(character if _is_safe(character) else "\ufffd" for character in text)


def _is_safe(character: str) -> bool:
    return character.isprintable() or character == "\n" or unicodedata.category(character) == "Zs"


# ---- options in messages ------------------------------------------------------------------------------


def spelled(text: str, spell: Spell) -> str:
    """Return a text with the options in it, if it is a `Message`, as an interface spells them."""
    return text.spell(spell) if isinstance(text, Message) else text


def as_flag(setting: Setting) -> str:
    """Return an option as it is typed in a shell.

    Examples
    --------
    >>> as_flag(Setting("missing", "drop")), as_flag(Setting("shuffle", True)), as_flag(Setting("epsilon"))
    ('--missing drop', '--shuffle', '--epsilon')
    >>> as_flag(Setting("decimal", ",")), as_flag(Setting("drop", ["tax", "net pay"])), as_flag(Setting("prior"))
    ("--decimal ','", "--drop 'tax,net pay'", 'prior')
    """
    option, value = _declaration(setting), setting.value
    if option is None:
        return str(setting)
    flag = option.flag or str(option.typer.metavar)
    if value is None or option.type is bool:
        return flag
    if isinstance(value, tuple) and all(isinstance(number, float | int) for number in value):
        return " ".join([flag, *(str(number).removesuffix(".0") for number in value)])  # typed as two words
    text = shlex.quote(_text(value))
    return f"{flag} {text}" if text[-1:].isalnum() or text.endswith("'") else f"{flag} '{text}'"  # a mark is seen


def as_field(setting: Setting) -> str:
    """Return an option as the page calls it; one that the page does not have, as the command line does.

    Examples
    --------
    >>> as_field(Setting("decimal", ",")), as_field(Setting("missing", "drop"))
    ('“Decimal mark” = “,”', 'the tick at “Leave out rows without a private value”')
    >>> as_field(Setting("force", True)), as_field(Setting("drop", ["tax", "net"]))
    ('--force on the command line', 'the ticks of “tax,net”')
    """
    option = _declaration(setting)
    if option is None:
        return str(setting)
    field = option.field.label
    if not field:
        return f"{as_flag(setting)} on the command line"
    if setting.value is None:
        return f"“{field}”"
    if option.name == "drop":
        return f"the ticks of “{_text(setting.value)}”"
    if option.type is bool or option.name == "missing":
        return f"the tick at “{field}”"
    return f"“{field}” = “{_text(setting.value)}”"


def _declaration(setting: Setting) -> CommandOption | None:
    """Return the option of a setting; None for a parameter that is no option."""
    from labeldp.app.cli import OPTIONS  # noqa: PLC0415 (commands declare options, and import this module)

    return OPTIONS.get(setting.option.partition("[")[0])


def _text(value: object) -> str:
    return join_names(map(str, value)) if isinstance(value, list | tuple) else str(value)
