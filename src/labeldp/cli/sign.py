"""``labeldp sign``, and the files that cards, signatures and keys are read from."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from labeldp.card_format import MAX_TEXT
from labeldp.cli.options import Force
from labeldp.cli.own_mechanisms import Modules, import_modules
from labeldp.cli.shell import explained, news, printable, tell
from labeldp.errors import CardError, MissingExtraError, ParameterError

__all__ = ["PASSPHRASE", "read_card_file", "read_key", "read_signature", "sign"]

PASSPHRASE = "LABELDP_PASSPHRASE"  # noqa: S105 (the name of a variable)
"""The environment variable that a key's passphrase is taken from; else it is asked for."""

K = TypeVar("K")


def read_card_file(path: Path) -> tuple[Path, str]:
    """Return a card's path and text; for a model's folder, or what has its card beside it, of that card.

    ``-`` is standard input.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sales.csv.card.json").write_text("{}")
    >>> path, text = read_card_file(folder / "sales.csv")
    >>> path.name, text
    ('sales.csv.card.json', '{}')
    """
    if path == Path("-"):
        return path, _decode(sys.stdin.buffer.read(MAX_TEXT + 1), "standard input")
    beside = path.parent / f"{path.name}.card.json"
    inside = path / "card.json"
    card = inside if inside.is_file() else beside if beside.is_file() else path
    if not card.exists():
        raise ParameterError(f"there is no file {card}")
    if card.is_dir():
        raise ParameterError(f"{path} holds no card.json, and there is no {beside.name} beside it")
    with open(card, "rb") as stream:
        data = stream.read(MAX_TEXT + 1)
    if card == path and data.strip() and not data.lstrip().startswith((b"{", b"[")):
        raise CardError(f"{path} is not a card, and there is no {beside.name} beside it")
    return card, _decode(data, str(card))


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CardError(f"{name} is not a card: it is not text") from None


def read_signature(card: Path, given: Path | None) -> str | None:
    """Return the text of a card's signature, which lies beside it; None if it has none."""
    path = given or card.with_name(f"{card.name}.sig")
    if given is None and (card == Path("-") or not path.exists()):
        return None
    return _small(path).decode("ascii", errors="replace")


def read_key(path: Path, read: Callable[[bytes], K]) -> K:
    """Return the key in a file; what is wrong with it is said with the file's name."""
    try:
        return read(_small(path))
    except MissingExtraError:
        raise
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None


def _small(path: Path) -> bytes:
    """Return the bytes of a key or a signature."""
    from labeldp.cards.signatures import MAX_SIGNATURE  # noqa: PLC0415

    if not path.exists() or path.is_dir():
        raise ParameterError(f"there is no file {path}")
    with open(path, "rb") as stream:
        data = stream.read(MAX_SIGNATURE + 1)
    if len(data) > MAX_SIGNATURE:
        raise ParameterError(f"{path} is far too large for a key or a signature")
    return data


def _passphrase() -> str:
    """Return the passphrase of a key: from the environment, or asked for where somebody can answer."""
    if PASSPHRASE in os.environ:
        return os.environ[PASSPHRASE]
    if not sys.stdin.isatty():
        raise ParameterError(
            f"the key has a passphrase: set {PASSPHRASE}, or sign at a terminal, which asks for it"
        )
    return str(typer.prompt("Passphrase of the key", hide_input=True, err=True))


def sign(
    card: Annotated[
        Path,
        typer.Argument(
            metavar="CARD", help="A card, the file it lies beside, or a model's folder.", show_default=False
        ),
    ],
    key: Annotated[
        Path,
        typer.Option(
            help="Your private Ed25519 key, as OpenSSH or PEM writes it; ssh-keygen -t ed25519 makes one.",
            show_default=False,
        ),
    ],
    modules: Modules = None,
    force: Force = False,
) -> None:
    """Sign a card, so that others can tell that it is as you wrote it: labeldp verify CARD --trust KEY.pub.

    The signature goes to CARD.sig, in OpenSSH's format, and covers every byte of the card, with the checksums of
    its files. A card that does not hold, or whose file was changed, is not signed (exit code 4). The passphrase of
    a key is asked for, or taken from LABELDP_PASSPHRASE.
    """
    with explained():
        from labeldp._atomic import atomic_file  # noqa: PLC0415
        from labeldp.cards.signatures import key_name, key_text, read_private_key, sign_card  # noqa: PLC0415
        from labeldp.files.card_check import verify_files  # noqa: PLC0415 (slow to import)
        from labeldp.files.places import refuse_same, refuse_target  # noqa: PLC0415

        if card == Path("-"):
            raise ParameterError("a signature lies beside its card: name the card's file")
        import_modules(modules)
        path, text = read_card_file(card)
        target = path.with_name(f"{path.name}.sig")
        refuse_same({"the signature": target}, {"the card": path, "the key": key})
        refuse_target(str(target), force=force)
        private = read_key(key, lambda data: read_private_key(data, _passphrase))
        result = verify_files(text, file=None if path == card else card, folder=path.parent)
        for check in result.checks:
            if check.holds is False:
                raise CardError(
                    f"a card that does not hold is not signed: {check.name}: {printable(check.detail)}"
                )
        with atomic_file(target, public=True) as draft:
            draft.write_text(sign_card(text, private), encoding="ascii")
        screen = news()
        if not result.holds:
            tell(screen, "The card is signed as it is, though it cannot be checked here: see labeldp verify.")
        if not any(check.name == "file" and check.holds for check in result.checks):
            tell(screen, "No file was compared: the signature covers what the card says, and no more.")
        public = private.public_key()
        tell(screen, f"The signature is in {target}, by {key_name(public)}.")
        tell(screen, f"Hand the public key on by a way that others trust:  {key_text(public)}")
