"""Checking signatures of cards: Ed25519, in OpenSSH's own format, in a file beside the card.

What is signed is the card's text to the byte, in the namespace ``labeldp.card``: a signature that the same key
made for anything else is refused. A card holds the checksums of its files, so they are signed with it. The
owner signs with OpenSSH::

    ssh-keygen -Y sign -f ~/.ssh/id_ed25519 -n labeldp.card private.csv.card.json

References
----------
OpenSSH, PROTOCOL.sshsig.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from labeldp.accounts.verification import Check
from labeldp.errors import CardError, ParameterError

NAMESPACE = b"labeldp.card"

_MAGIC, _KIND = b"SSHSIG", b"ssh-ed25519"
_BEGIN, _END = "-----BEGINSSHSIGNATURE-----", "-----ENDSSHSIGNATURE-----"
"""Around a signature, without blanks."""
_KEY_BYTES = slice(33, 65)
"""Where the public key is in a signature."""


def check_signature(
    text: str, signature: str | None, trusted: Sequence[Ed25519PublicKey] = (), *, required: bool = False
) -> Check:
    """Check a card's signature, if it has one, by a key that the reader trusts, if one is given.

    It holds only by a trusted key. One that fits another key does not hold where keys are trusted, and says little
    where none are; one that does not fit the card never holds. One that is required must be there.
    """
    if signature is None:
        is_asked = bool(trusted) or required
        return Check("signature", False if is_asked else None, "the card is not signed: nobody vouches for it")
    try:
        key = _signer(text, signature)
    except CardError as error:
        return Check("signature", False, str(error))
    name = key_name(key)
    if name in map(key_name, trusted):
        return Check("signature", True, f"the card is as it was written, signed by the trusted key {name}")
    if trusted:
        return Check("signature", False, f"the card is signed by {name}, which is not a key you trust")
    unknown = f"signed by {name}, whoever that is: give the public key that you trust to check that"
    return Check("signature", None, unknown)


def _signer(text: str, signature: str) -> Ed25519PublicKey:
    """Return the key that signed a card; what its signature may be is written again, and compared."""
    armoured = "".join(signature.split())
    try:
        blob = base64.b64decode(armoured.removeprefix(_BEGIN).removesuffix(_END))
    except ValueError:
        blob = b""
    public, signed = blob[_KEY_BYTES], blob[-64:]
    own = _fields(NAMESPACE, b"", b"sha512")
    whole = _MAGIC + (1).to_bytes(4) + _fields(_fields(_KIND, public)) + own + _fields(_fields(_KIND, signed))
    if armoured != f"{_BEGIN}{base64.b64encode(whole).decode()}{_END}":
        raise CardError(
            "the signature is damaged, or not one that ssh-keygen -Y sign -n labeldp.card makes with Ed25519"
        )
    digest = hashlib.sha512(text.encode(errors="surrogatepass")).digest()
    try:
        key = Ed25519PublicKey.from_public_bytes(public)
        key.verify(signed, _MAGIC + own + _fields(digest))
    except (InvalidSignature, ValueError):
        raise CardError("the signature is not of this card: one of them was changed or mixed up") from None
    return key


def _fields(*values: bytes) -> bytes:
    return b"".join(len(value).to_bytes(4) + value for value in values)


def key_name(key: Ed25519PublicKey) -> str:
    """Return what OpenSSH calls a key: its fingerprint."""
    digest = hashlib.sha256(_fields(_KIND, key.public_bytes_raw())).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def read_public_key(data: bytes) -> Ed25519PublicKey:
    """Return the one public key of a line that OpenSSH writes."""
    try:
        (line,) = data.strip().splitlines()
        key = load_ssh_public_key(line)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ParameterError(
            "the key cannot be read: give a file with one Ed25519 public key, as OpenSSH writes it (.pub)"
        )
    return key
