"""``labeldp sign``: a signature beside a card."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from labeldp.cli.options import Force
from labeldp.cli.own_mechanisms import Modules, import_modules
from labeldp.cli.shell import explained, news, tell
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


def sign(
    card: Annotated[
        Path, typer.Argument(metavar="CARD", help="A card, the file it lies beside, or a model's folder.")
    ],
    key: Annotated[
        Path,
        typer.Option(
            metavar="KEY",
            help="Your private Ed25519 key, as OpenSSH or PEM writes it; ssh-keygen -t ed25519 makes one.",
        ),
    ],
    modules: Modules = None,
    force: Force = False,
) -> None:
    """Sign a card, so that others can tell that it is as you wrote it: labeldp verify CARD --trust KEY.pub.

    The signature goes to CARD.sig, in OpenSSH's format, and covers every byte of the card, with the checksums of
    its files. A card that does not hold, or whose file was changed, is not signed (exit code 4). The passphrase of
    a key is asked for, or taken from LABELDP_PASSPHRASE.

    What leaves: CARD.sig, to pass on with the card and the public key. The private key is only read.
    """
    with explained():
        from labeldp.jobs.card_files import sign_card_file  # noqa: PLC0415 (slow to import)

        if card == Path("-"):
            raise ParameterError("a signature lies beside its card: name the card's file")
        import_modules(modules)
        done = sign_card_file(card, key, _passphrase, force=force)
        screen = news()
        for note in done.notes:
            tell(screen, note)
        tell(screen, f"The signature is in {done.path}, by {done.signer}.")
        tell(screen, f"Hand the public key on by a way that others trust:  {done.public_key}")
