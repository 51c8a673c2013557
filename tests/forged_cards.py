"""Cards whose checksum fits whatever they say."""

import base64
import copy
import hashlib
import json


def forged(content):
    """Return a card with the right checksum for whatever it says, made from its description alone."""
    content = {key: value for key, value in content.items() if key != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))[1:]
    return f'{{"checksum":"sha256:{hashlib.sha256(text.encode()).hexdigest()}",{text}'


def get(content, path):
    for key in path:
        content = content[key]
    return content


def put(content, path, value):
    result = copy.deepcopy(content)
    get(result, path[:-1])[path[-1]] = value
    return result


def leaves(content, path=()):
    """Yield the path of every number and string in nested data."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


def fields(*values):
    """Return values as OpenSSH writes them, each after its length."""
    return b"".join(len(value).to_bytes(4) + value for value in values)


def signature(text, key, signed_as=b"labeldp.card", **changes):
    """Return what ``ssh-keygen -Y sign -n labeldp.card`` writes, or the same with other fields."""
    kind, digest = b"ssh-ed25519", hashlib.sha512(text.encode()).digest()
    parts = {
        "head": b"SSHSIG\0\0\0\1",
        "public": fields(kind, key.public_key().public_bytes_raw()),
        "namespace": b"labeldp.card",
        "reserved": b"",
        "hashed": b"sha512",
        "signed": fields(kind, key.sign(b"SSHSIG" + fields(signed_as, b"", b"sha512", digest))),
        **changes,
    }
    packed = base64.b64encode(parts.pop("head") + fields(*parts.values())).decode()
    lines = [packed[k : k + 70] for k in range(0, len(packed), 70)]
    return "\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""])
