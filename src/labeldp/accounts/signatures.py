"""Signatures of cards: Ed25519, in OpenSSH's own format, in a file beside the card.

What is signed is the card's text to the byte, in the namespace ``labeldp.card``: a signature that the same key
made for anything else is none of a card. A card holds the checksums of its files, so they are signed with it. The
signature lies beside the card and not in it: then nothing has to be taken out or put in order before bytes are
compared, several people may sign, and everybody who has OpenSSH can check and make one without this library::

    ssh-keygen -Y sign -f ~/.ssh/id_ed25519 -n labeldp.card private.csv.card.json
    ssh-keygen -Y check-novalidate -n labeldp.card -s private.csv.card.json.sig < private.csv.card.json

References
----------
OpenSSH, PROTOCOL.sshsig.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from labeldp.accounts.verification import Check
from labeldp.errors import CardError, MissingExtraError, ParameterError

NAMESPACE = b"labeldp.card"

_NO_BCRYPT = "a passphrase on an OpenSSH key needs bcrypt: pip install bcrypt"
_WANTED = "only Ed25519 keys of OpenSSH are accepted, as ssh-keygen -t ed25519 makes them"
_MAGIC, _KIND = b"SSHSIG", b"ssh-ed25519"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_HASHES: dict[bytes, Callable[[bytes], Any]] = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}


def sign_card(text: str, key: Ed25519PrivateKey) -> str:
    """Return the signature of a card's text.

    Examples
    --------
    >>> import labeldp as ldp
    >>> card = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json()
    >>> key = Ed25519PrivateKey.generate()
    >>> signature = sign_card(card, key)
    >>> check_signature(card, signature, [key.public_key()]).holds
    True
    >>> check_signature(card.replace("1.0", "2.0"), signature, [key.public_key()]).holds
    False
    """
    signed = key.sign(_signed_bytes(text, b"sha512"))
    blob = _MAGIC + (1).to_bytes(4) + _fields(_public_blob(key.public_key()), NAMESPACE, b"", b"sha512")
    packed = base64.b64encode(blob + _fields(_fields(_KIND, signed))).decode()
    lines = [packed[k : k + 70] for k in range(0, len(packed), 70)]
    return "\n".join([_BEGIN, *lines, _END, ""])


def check_signature(
    text: str, signature: str | None, trusted: Sequence[Ed25519PublicKey] = (), *, required: bool = False
) -> Check:
    """Check a card's signature, if it has one, by a key that the reader trusts, if one is given.

    It holds only by a trusted key. One that fits another key does not hold where keys are trusted, and says little
    where none are; one that does not fit the card never holds. One that is required must be there.
    """
    if signature is None:
        if trusted or required:
            asked = "a trusted key" if trusted else "a signature"
            return Check("signature", False, f"the card is not signed, and {asked} was asked for")
        return Check("signature", None, "the card is not signed: nobody vouches for it")
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
    """Return the key that signed a card."""
    blob = _decode_armour(signature)
    public, namespace, reserved, hashed, signed = _split(blob, len(_MAGIC) + 4, 5)
    if namespace != NAMESPACE:
        raise CardError("the signature was made for something else than a card of labeldp")
    if blob[: len(_MAGIC) + 4] != _MAGIC + (1).to_bytes(4) or reserved or hashed not in _HASHES:
        raise CardError("the signature is of another version than is known here")
    kind, raw = _split(public, 0, 2)
    signed_kind, value = _split(signed, 0, 2)
    if kind != _KIND or signed_kind != _KIND or len(raw) != 32:
        raise CardError("the signature is by a key of another kind than ssh-ed25519")
    try:
        key = Ed25519PublicKey.from_public_bytes(raw)
        key.verify(value, _signed_bytes(text, hashed))
    except (InvalidSignature, ValueError):
        raise CardError("the signature is not of this card: one of them was changed or mixed up") from None
    return key


def _decode_armour(signature: str) -> bytes:
    text = " ".join(signature.split())
    packed = text.removeprefix(_BEGIN).removesuffix(_END).replace(" ", "")
    try:
        blob = base64.b64decode(packed, validate=True)
    except ValueError:
        blob = b""
    is_armoured = text.startswith(_BEGIN) and text.endswith(_END)
    if not is_armoured or not blob or base64.b64encode(blob).decode() != packed:
        raise CardError("the signature is not one that sign_card or ssh-keygen -Y sign wrote, or is damaged")
    return blob


def _signed_bytes(text: str, hashed: bytes) -> bytes:
    """Return what is signed: it begins with magic and namespace, as nothing else that a key signs does."""
    return _MAGIC + _fields(NAMESPACE, b"", hashed, _HASHES[hashed](text.encode(errors="surrogatepass")).digest())


def _fields(*values: bytes) -> bytes:
    return b"".join(len(value).to_bytes(4) + value for value in values)


def _split(blob: bytes, start: int, count: int) -> list[bytes]:
    """Return so many fields, which must be all there is."""
    values = []
    for _ in range(count):
        size = int.from_bytes(blob[start : start + 4])
        values.append(blob[start + 4 : start + 4 + size])
        start += 4 + size
    if start != len(blob):
        raise CardError("the signature is damaged")
    return values


# ---- keys -----------------------------------------------------------------------------------------------------


def _public_blob(key: Ed25519PublicKey) -> bytes:
    return _fields(_KIND, key.public_bytes_raw())


def key_name(key: Ed25519PublicKey) -> str:
    """Return what OpenSSH calls a key: its fingerprint."""
    digest = hashlib.sha256(_public_blob(key)).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def key_text(key: Ed25519PublicKey) -> str:
    """Return a public key as OpenSSH writes it, in one line."""
    return f"{_KIND.decode()} {base64.b64encode(_public_blob(key)).decode()}"


def read_private_key(data: bytes, passphrase: Callable[[], str]) -> Ed25519PrivateKey:
    """Return a private key as OpenSSH writes it; its passphrase is asked for if it has one."""
    if b"BEGIN OPENSSH PRIVATE KEY" not in data:
        raise ParameterError(f"the key is not a private key of OpenSSH: {_WANTED}")
    try:
        key: object = load_ssh_private_key(data, None)
    except TypeError:  # it has a passphrase
        key = _decrypt(data, passphrase())
    except (ValueError, UnsupportedAlgorithm):
        raise ParameterError(f"the key cannot be read: {_WANTED}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ParameterError(f"the key is of another kind: {_WANTED}")
    return key


def _decrypt(data: bytes, passphrase: str) -> object:
    if not passphrase:
        raise ParameterError("the key has a passphrase, and an empty one was given")
    try:
        return load_ssh_private_key(data, passphrase.encode())
    except UnsupportedAlgorithm:
        raise MissingExtraError(_NO_BCRYPT) from None
    except ValueError:
        raise ParameterError("the key cannot be read: the passphrase does not fit") from None


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
