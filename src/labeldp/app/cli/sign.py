"""``labeldp sign``: a signature beside a card."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from labeldp.app.cli.command import command
from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.app.cli.shell import news, tell
from labeldp.errors import ParameterError

PASSPHRASE = "LABELDP_PASSPHRASE"  # noqa: S105 (the name of a variable)
"""The environment variable that a key's passphrase is taken from; else it is asked for."""


def _passphrase() -> str:
    """Return the passphrase of a key: from the environment, or asked for where somebody can answer."""
    if PASSPHRASE in os.environ:
        return os.environ[PASSPHRASE]
    if not sys.stdin.isatty():
        raise ParameterError(
            f"the key has a passphrase: set {PASSPHRASE}, or sign at a terminal, which asks for it"
        )
    return str(typer.prompt("Passphrase of the key", hide_input=True, err=True))


@command("card_file", "key", "modules", "force")
def sign(card_file: Path, key: Path, modules: list[str], force: bool) -> None:
    """Sign a card, so that others can check that it is as you wrote it: labeldp verify CARD --trust KEY.pub.

    The signature goes to CARD.sig, in OpenSSH's format, and covers every byte of the card, with the checksums of
    its files. A card that does not hold, or whose file was changed, is not signed (exit code 4). The passphrase of
    a key is asked for, or taken from LABELDP_PASSPHRASE.

    What is released: CARD.sig, to pass on with the card and the public key. The private key is only read.
    """
    from labeldp.app.card_files import sign_card_file  # noqa: PLC0415 (slow to import)

    if card_file == Path("-"):
        raise ParameterError("a signature lies beside its card: name the card's file")
    import_modules(modules)
    done = sign_card_file(card_file, key, _passphrase, force=force)
    screen = news()
    for note in done.notes:
        tell(screen, note)
    tell(screen, f"The signature is in {done.path}, by {done.signer}.")
    tell(screen, f"Hand the public key on by a way that others trust:  {done.public_key}")
