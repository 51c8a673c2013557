"""Cards whose checksum fits whatever they say."""

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
