"""A ledger's records by hand, and the file that holds them."""

import hashlib
import json

import labeldp as ldp

WHEN = "2026-01-01T00:00:00+00:00"
HEADER = {"schema": "labeldp.ledger/1", "limit": "3", "id": "0" * 32}
ENTRY = {
    "description": "café",
    "budget": "1/3",
    "when": WHEN,
    "mechanism": None,
    "rows_per_person": 2,
    "purpose": "labels",
}


def canonical(record):
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def chained(*records):
    """Return the file of some records, each with the hash of the last hash and itself, as docs/formats.md says."""
    lines, last = [], ""
    for record in records:
        last = hashlib.sha256((last + canonical(record)).encode("ascii")).hexdigest()
        lines.append(canonical({**record, "hash": last}) + "\n")
    return "".join(lines).encode("ascii")


def charge(description, epsilon):
    """Return a charge for something else than labels, at a fixed time."""
    return ldp.accounts.Charge(description, ldp.Budget(epsilon), WHEN)
